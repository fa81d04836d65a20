// Block formats as `numemu formats` shows them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "formats/block_format.hpp"

namespace numemu::cli {

nlohmann::ordered_json block_json(const BlockFormat&);
/// A table of the named block formats.
std::string block_table();
/// The text is a named block format, or has the shape of a described one.
bool is_block_name(std::string_view text);

}  // namespace numemu::cli
