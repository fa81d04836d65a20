// Block formats described by their name instead of a row: mx(...), bfp(...), group(...).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blocks/block_format.hpp"

namespace numemu {

/// The record that HEAD(ARGUMENT, ...) describes, its name the canonical spelling; empty if `text`
/// has no bracket. Throws Error naming the offending part. Grammar: find_block_format().
std::optional<BlockFormat> parse_block_description(std::string_view text);

/// What a description looks like, for messages: "mx(ELEM,SIZE)", ...
const std::vector<std::string>& block_description_shapes();

}  // namespace numemu
