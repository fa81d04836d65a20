// Outputs that meet NaN or infinity: which of them results, from the signs alone, or the reference.
#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

/// C or D of the register's container.
struct Elements {
  bool half;
  bool finite(const void* array, std::int64_t i) const {
    if (half) return (static_cast<const std::uint16_t*>(array)[i] & 0x7c00) != 0x7c00;
    return std::isfinite(static_cast<const float*>(array)[i]);
  }
  float as_float(const void* array, std::int64_t i) const {
    if (!half) return static_cast<const float*>(array)[i];
    const std::uint32_t code = static_cast<const std::uint16_t*>(array)[i];
    return std::bit_cast<float>((code & 0x8000) << 16 | (code & 0x7c00) << 13 | 0x70000000 |
                                (code & 0x3ff) << 13);
  }
  void store(void* array, std::int64_t i, std::uint64_t code) const {
    if (half) {
      static_cast<std::uint16_t*>(array)[i] = static_cast<std::uint16_t>(code);
    } else {
      static_cast<float*>(array)[i] = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    }
  }
  std::uint64_t infinity(bool negative) const {
    return half ? (negative ? 0xfc00 : 0x7c00) : (negative ? 0xff800000 : 0x7f800000);
  }
};

/// An operand's signs: 0, +-1 for finite numbers, infinity and NaN as they are.
Source<float> signs_of(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  return decode_source<float>(operand, rows, depth, [](const Value& v) {
    if (v.kind == Class::zero) return 0.0f;
    if (v.kind == Class::nan) return NAN;
    return std::copysign(v.kind == Class::infinite ? INFINITY : 1.0f, v.negative ? -1.0f : 1.0f);
  });
}

/// Sums of products of signs plus C where it is not finite: NaN and infinity exactly where the unit
/// has them too, since those do not depend on the order of a sum; all other sums are at most K.
std::vector<float> multiply_signs(const Gemm& gemm, const Elements& elements) {
  const Source<float> a = signs_of(gemm.a, gemm.m, gemm.k), b = signs_of(gemm.b, gemm.n, gemm.k);
  std::vector<float> c(static_cast<std::size_t>(gemm.m * gemm.n)), d(c.size());
  if (gemm.c != nullptr) {
    for (std::int64_t i = 0; i < gemm.m * gemm.n; ++i) {
      if (!elements.finite(gemm.c, i))
        c[static_cast<std::size_t>(i)] = elements.as_float(gemm.c, i);
    }
  }
  run_chain(Chain<float, float>{gemm.m,
                                gemm.n,
                                gemm.k,
                                {a.values, a.row, a.depth},
                                {b.values, b.row, b.depth},
                                c.data(),
                                d.data()});
  return d;
}

/// Below this many products the reference is quicker than another product of matrices.
constexpr std::int64_t kFewProducts = 20'000;

}  // namespace

void finish_fused(const UnitDescription& unit, const Gemm& gemm, const FusedOperands& o) {
  if (!o.any_special()) return;
  const auto marked = [](const std::vector<std::uint8_t>& rows, std::int64_t r) {
    return !rows.empty() && rows[static_cast<std::size_t>(r)] != 0;
  };
  const Elements elements{o.rule.half};
  const auto affected = [&](std::int64_t i, std::int64_t j) {
    return marked(o.a.special_rows, i) || marked(o.b.special_rows, j) ||
           (o.special_c && !elements.finite(gemm.c, i * gemm.n + j));
  };
  std::int64_t outputs = 0;
  for (std::int64_t i = 0; i < gemm.m; ++i) {
    for (std::int64_t j = 0; j < gemm.n; ++j) outputs += affected(i, j);
  }
  // NaN scales are not elements of A or B.
  const bool few = o.rule.scaled || outputs * gemm.k <= kFewProducts;
  std::vector<float> signs;
  if (!few) signs = multiply_signs(gemm, elements);
  const ReferenceDot reference(unit, gemm);
  for_each_tile(gemm.m, gemm.n, few ? gemm.k : 1, kReferenceTile, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
      for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
        if (!affected(i, j)) continue;
        const std::int64_t index = i * gemm.n + j;
        // A finite sum that overflowed may have met the infinity before or after.
        if (few || !elements.finite(gemm.d, index)) {
          reference.write(i, j);
          continue;
        }
        const float sign = signs[static_cast<std::size_t>(index)];
        if (std::isfinite(sign)) continue;
        elements.store(gemm.d, index,
                       std::isnan(sign) ? unit.nan_code : elements.infinity(sign < 0));
      }
    }
  });
}

}  // namespace numemu::unit
