// Block-scaled FP4: whether the form applies, the scales, and the outputs with special numbers.
#include "emu/unit/fused/group_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/fused/group_form_tile.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"

namespace numemu::unit {
namespace {

constexpr int kGroup = 16, kMostGroups = 4;
/// The largest fraction for which Step() of group_form_tile.cpp is exact.
constexpr int kMostFraction = 38;

bool covered(const UnitDescription& u, const Gemm& g) {
  const auto is = [](const Format* f, const char* name) { return f != nullptr && f->name == name; };
  const int fraction_bits = u.alignment.fraction_bits;
  return u.core == CoreKind::fused && u.scaling.point == Scaling::Point::groups &&
         is(u.accumulator.format, "float32") && is(c_format(u), "float32") &&
         is(result_format(u), "float32") && is(g.a.format, "float4_e2m1fn") &&
         is(g.b.format, "float4_e2m1fn") && u.accumulator.rounding.mode == RoundingMode::rtz &&
         u.accumulator.overflow_to_infinity && u.k > 0 && u.k % kGroup == 0 &&
         u.k <= kMostGroups * kGroup && (u.group == 0 || u.group == u.k) && fraction_bits >= 24 &&
         fraction_bits <= kMostFraction && u.scaling.block % kGroup == 0 && group_tiles_exist();
}

/// The exponent and significand in [0, 2) of a scale, as the reference takes them apart.
struct Scale {
  int exponent = 0;
  float significand = 0;
  bool nan = false;
};

std::vector<Scale> scale_table(const Format& format) {
  std::vector<Scale> table(256);
  for (unsigned code = 0; code < 256; ++code) {
    const Value v = decode(format, format.is_signed ? code & 0x7fu : code);
    Scale& s = table[code];
    s.nan = v.kind == Class::nan;
    s.exponent = 1 - format.bias;
    if (v.kind != Class::finite) continue;
    const int leading = v.exponent + static_cast<int>(std::bit_width(v.significand)) - 1;
    s.exponent = format.mantissa_bits == 0 ? leading : std::max(leading, 1 - format.bias);
    s.significand = std::ldexp(static_cast<float>(v.significand), v.exponent - s.exponent);
  }
  return table;
}

struct PreparedSide {
  GroupSide side;
  std::vector<std::uint8_t> nan_rows;
  int largest = -1000;  ///< exponent of a scale
};

PreparedSide prepare(const UnitDescription& u, const Operand& operand, const std::uint8_t* codes,
                     std::int64_t rows, std::int64_t k, std::int64_t groups) {
  PreparedSide p;
  p.side.values = decode_floats(operand, rows, k);
  const std::vector<Scale> table = scale_table(*u.scaling.format);
  const std::int64_t blocks = (k + u.scaling.block - 1) / u.scaling.block;
  p.side.exponents = std::make_unique_for_overwrite<std::int32_t[]>(rows * groups);
  p.side.significands = std::make_unique_for_overwrite<float[]>(rows * groups);
  p.nan_rows.assign(static_cast<std::size_t>(rows), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t block = g * kGroup / u.scaling.block;
      // Scales beyond K are the smallest code, as the reference pads.
      const Scale& s = table[block < blocks ? codes[r * blocks + block] : 0];
      p.side.exponents[r * groups + g] = s.exponent;
      p.side.significands[r * groups + g] = s.significand;
      p.largest = std::max(p.largest, s.exponent);
      if (s.nan) p.nan_rows[static_cast<std::size_t>(r)] = 1;
    }
  }
  return p;
}

/// The sums of all groups stay below 2^126 together, so that with a smaller C no register
/// overflows: a group is below 16 * 36 * 4 = 2^11.2 times its scales' power.
bool bounded(const PreparedSide& a, const PreparedSide& b, std::int64_t groups) {
  constexpr int kRoom = 126, kGroupTop = 12;
  const int count = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(groups)));
  return a.largest + b.largest + kGroupTop + count <= kRoom;
}

/// Outputs that meet a NaN scale, or a C that is not finite or may overflow.
void redo_specials(const UnitDescription& u, const Gemm& g, const PreparedSide& a,
                   const PreparedSide& b) {
  const auto* c = static_cast<const float*>(g.c);
  const auto special = [&](std::int64_t i, std::int64_t j) {
    return a.nan_rows[static_cast<std::size_t>(i)] != 0 ||
           b.nan_rows[static_cast<std::size_t>(j)] != 0 ||
           (c != nullptr && !(std::fabs(c[i * g.n + j]) < 0x1p126f));
  };
  std::unique_ptr<ReferenceDot> dot;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      if (!special(i, j)) continue;
      if (!dot) dot = std::make_unique<ReferenceDot>(u, g);
      dot->write(i, j);
    }
  }
}

}  // namespace

bool multiply_fused_groups(const UnitDescription& u, const Gemm& g) {
  if (!covered(u, g)) return false;
  const int per_step = u.k / kGroup;
  const std::int64_t groups = (g.k + u.k - 1) / u.k * per_step;
  if (groups == 0) return false;
  const auto side = [&](const Operand& operand, const std::uint8_t* scales, std::int64_t rows) {
    return prepared<PreparedSide>(
        operand, [&](const Operand& read) { return prepare(u, read, scales, rows, g.k, groups); });
  };
  const auto kept_a = side(g.a, g.scale_a, g.m), kept_b = side(g.b, g.scale_b, g.n);
  const PreparedSide &a = *kept_a, &b = *kept_b;
  const auto* c = static_cast<const float*>(g.c);
  if (!bounded(a, b, groups)) return false;
  const TileShape shape{.rows = 256, .lanes = 256, .granule = 16};
  for_each_tile(g.m, g.n, g.k, shape, [&](const Tile& tile) {
    GroupTile t{&a.side,
                &b.side,
                tile.row_begin,
                tile.row_end,
                tile.lane_begin,
                tile.lane_end,
                g.k,
                groups,
                per_step,
                u.alignment.fraction_bits,
                g.n,
                c,
                static_cast<float*>(g.d)};
    const FloatGuard guard(HostRounding::toward_zero);
    run_group_tile(t);
  });
  redo_specials(u, g, a, b);
  return true;
}

}  // namespace numemu::unit
