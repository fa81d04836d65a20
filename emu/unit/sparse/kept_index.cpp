// The rules of indices inside a group: checked fast, explained slowly.
#include "emu/unit/sparse/kept_index.hpp"

#include <fmt/format.h>

#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

/// Whether the j-th index of a group follows from what is before it.
bool allowed(const Pattern& p, const std::uint8_t* index, int j) {
  if (index[j] >= p.group || (j > 0 && index[j] <= index[j - 1])) return false;
  if (!p.pairwise) return true;
  return j % 2 == 0 ? index[j] % 2 == 0 : index[j] == index[j - 1] + 1;
}

[[noreturn]] void refuse(const Pattern& p, const std::uint8_t* row_index, std::int64_t row,
                         std::int64_t position) {
  const std::int64_t j = position % p.kept;
  throw Error(
      fmt::format("meta row {}, position {}: index {}{}; {} expects indices below {}, strictly "
                  "ascending inside "
                  "their group{}",
                  row, position, row_index[position],
                  j > 0 ? fmt::format(" after {}", row_index[position - 1]) : "", to_string(p),
                  p.group, p.pairwise ? ", an even one and the next in turn" : ""));
}

}  // namespace

void check_index(const Pattern& p, const std::uint8_t* index, std::int64_t rows, std::int64_t depth,
                 std::int64_t first_row) {
  require_pattern(p);
  require_whole_groups(p, depth);
  const std::int64_t per_row = kept_depth(p, depth);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* of_row = index + row * per_row;
    // Without branches, so that it vectorises; which one is wrong is looked for afterwards.
    const bool wrong = with_shape(p, [&](const auto shape) {
      unsigned bad = 0;
      for (std::int64_t g = 0; g < per_row; g += shape.kept) {
        const std::uint8_t* group = of_row + g;
        for (int j = 1; j < shape.kept; ++j) bad |= static_cast<unsigned>(group[j] <= group[j - 1]);
        bad |= static_cast<unsigned>(group[shape.kept - 1] >= shape.group);
        if (p.pairwise)
          for (int j = 0; j < shape.kept; j += 2)
            bad |= static_cast<unsigned>(group[j] % 2 != 0 || group[j + 1] != group[j] + 1);
      }
      return bad != 0;
    });
    if (!wrong) continue;
    for (std::int64_t i = 0; i < per_row; ++i)
      if (!allowed(p, of_row + i - i % p.kept, static_cast<int>(i % p.kept)))
        refuse(p, of_row, first_row + row, i);
  }
}

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
