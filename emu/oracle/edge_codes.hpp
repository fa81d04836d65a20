// Codes at the ends of a format, and where conversions change.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/format.hpp"

namespace numemu::oracle {

/// Ascending, without repetition. Level 1: both zeros, the smallest and the largest number, both
/// sides of the smallest normal number and of one, infinities, NaN (a signalling one, too). Level
/// 2: powers of two as well, and the neighbours of all of these. Of each sign.
std::vector<std::uint64_t> edge_codes(const Format&, int level);

/// The codes of `from` for the edges of `to`, and their neighbours: where a conversion changes.
std::vector<std::uint64_t> conversion_edges(const Format& from, const Format& to, int level);

}  // namespace numemu::oracle
