// The contiguous runs of a padded tensor: which source elements land where.
#pragma once
#include <cstdint>

#include "emu/unit/gather.hpp"

namespace numemu::unit {

/// Calls visit(source offset, padded offset, count) for each contiguous run of the outer index `o`,
/// in source order.
template <class Visit>
void for_each_padding_span(const Padding& p, std::int64_t o, Visit&& visit) {
  for (std::int64_t row = 0; row < p.depth * p.height; ++row) {
    const std::int64_t z = row / p.height, y = row % p.height;
    const std::int64_t from = (o * p.depth * p.height + row) * p.width * p.channels;
    const std::int64_t plane = o * p.padded_depth + p.front + z * p.dilation_depth;
    const std::int64_t line = plane * p.padded_height + p.top + y * p.row_dilation();
    const std::int64_t to = (line * p.padded_width + p.left) * p.channels;
    if (p.dilation == 1) {
      visit(from, to, p.width * p.channels);
      continue;
    }
    for (std::int64_t x = 0; x < p.width; ++x)
      visit(from + x * p.channels, to + x * p.dilation * p.channels, p.channels);
  }
}

}  // namespace numemu::unit
