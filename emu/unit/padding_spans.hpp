// The contiguous runs of a padded tensor: which source elements land where.
#pragma once
#include <cstdint>

#include "emu/unit/gather.hpp"

namespace numemu::unit {

/// Calls visit(source offset, padded offset, count) for each contiguous run of the outer index `o`,
/// in source order.
template <class Visit>
void for_each_padding_span(const Padding& p, std::int64_t o, Visit&& visit) {
  for (std::int64_t y = 0; y < p.height; ++y) {
    const std::int64_t from = (o * p.height + y) * p.width * p.channels;
    const std::int64_t line = o * p.padded_height + p.top + y * p.row_dilation();
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
