// Picking depth offsets by index, group by group.
#include "emu/unit/sparse/kept_gather.hpp"

#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/sparse/shape.hpp"

namespace numemu::unit {

void gather_kept(const Sparsity& s, const std::uint8_t* index, std::int64_t count,
                 const std::int32_t* depth, std::int32_t* kept) {
  with_shape(s, [&](const auto shape) {
    const std::int32_t* group = depth;
    for (std::int64_t j = 0; j < count; j += shape.kept, group += shape.group)
      for (int i = 0; i < shape.kept; ++i) kept[j + i] = group[index[j + i]];
  });
}

Gather gather_kept(const Pattern& p, const std::uint8_t* index, std::int64_t row, const Gather& b) {
  require_pattern(p);
  const auto depth = static_cast<std::int64_t>(b.depth.size());
  const std::int64_t count = kept_depth(p, depth);
  const std::uint8_t* of_row = index + row * count;
  check_index(p, of_row, 1, depth, row);
  Gather kept{b.padding, b.row, std::vector<std::int32_t>(static_cast<std::size_t>(count))};
  gather_kept(p, of_row, count, b.depth.data(), kept.depth.data());
  return kept;
}

}  // namespace numemu::unit
