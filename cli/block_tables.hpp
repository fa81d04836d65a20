// Block formats as `numemu formats` shows them.
#pragma once
#include <string>
#include <string_view>

#include "formats/blocks/block_format.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

Json block_json(const BlockFormat&);
/// A table of the named block formats.
std::string block_table();
/// The text is a named block format, or has the shape of a described one.
bool is_block_name(std::string_view text);

}  // namespace numemu::cli
