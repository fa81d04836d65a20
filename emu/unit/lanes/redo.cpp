// Tops of rows, and the reference run on single outputs.
#include "emu/unit/lanes/redo.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

#include "emu/unit/lanes/side.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

std::uint32_t magnitude_of(float x) { return std::bit_cast<std::uint32_t>(x) & kMagnitude; }

std::vector<std::int32_t> row_tops(const Source<float>& source, std::int64_t rows,
                                   std::int64_t depth) {
  std::vector<std::int32_t> tops(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::uint32_t most = 0;
    for (std::int64_t k = 0; k < depth; ++k)
      most = std::max(most, magnitude_of(source.values[source.row[r] + source.depth[k]]));
    tops[static_cast<std::size_t>(r)] = top_of(most);
  }
  return tops;
}

}  // namespace

Redo::Redo(const Gemm& g, const Source<float>& a, const Source<float>& b, const SafeRange& range)
    : range_(range) {
  if (!range.product_top) return;
  const int top =
      top_of(magnitudes(g.a, a, g.m, g.k).most) + top_of(magnitudes(g.b, b, g.n, g.k).most);
  if (top <= *range.product_top) return;
  a_tops_ = row_tops(a, g.m, g.k);
  b_tops_ = row_tops(b, g.n, g.k);
}

void Redo::run(const UnitDescription& unit, const Gemm& g, bool code_only) const {
  const auto* c = static_cast<const float*>(g.c);
  auto* d = static_cast<float*>(g.d);
  const auto nan_code = std::bit_cast<float>(static_cast<std::uint32_t>(unit.nan_code));
  const std::uint32_t c_end =
      range_.c_top ? static_cast<std::uint32_t>(*range_.c_top + 127) << 23 : ~std::uint32_t{0};
  const auto lost_sign = [&](float before, float after) {
    return !range_.negative_zero && std::bit_cast<std::uint32_t>(before) == 0x80000000 &&
           std::bit_cast<std::uint32_t>(after) == 0;
  };
  std::unique_ptr<const ReferenceDot> reference;
  std::once_flag made;
  // One multiply-add per output to look at; references only where they are needed.
  for_each_tile(g.m, g.n, 1, {.granule = 1}, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
      for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
        const std::int64_t at = i * g.n + j;
        const bool nan = magnitude_of(d[at]) > kInfinity;
        const bool beyond =
            outside(i, j) ||
            (c != nullptr && (magnitude_of(c[at]) >= c_end || lost_sign(c[at], d[at])));
        if (!nan && !beyond) continue;
        if (nan && !beyond && code_only) {
          d[at] = nan_code;
          continue;
        }
        std::call_once(made, [&] { reference = std::make_unique<const ReferenceDot>(unit, g); });
        reference->write(i, j);
      }
    }
  });
}

}  // namespace numemu::unit
