// Formats described by their name instead of a row: eXmY... descriptors and the P3109 family.
#pragma once
#include <optional>
#include <string_view>

#include "formats/format.hpp"

namespace numemu {

/// eXmY[bB][+ieee|+nan1|+fnuz|+finite][+nosub|+ftz][+unsigned]: 1 <= X <= 15, 0 <= Y <= 23, |B| <=
/// 32767; default bias 2^(X-1)-1, default +ieee; the parts after '+' in any order.
/// binary{K}p{P}{s|u}{e|f} (IEEE P3109): 3 <= K <= 15, signed 1 <= P < K, unsigned 1 <= P <= K.
/// int{N}, uint{N}: 9 <= N <= 16 (narrower ones are rows). The record's name is the canonical
/// spelling. Empty if `text` has neither shape. Throws Error naming the offending part if it has
/// the shape but is out of range.
std::optional<Format> parse_descriptor(std::string_view text);

}  // namespace numemu
