// Multiply-adds over a whole product: whether they apply, operands and C in, tiles, codes out.
#include "emu/unit/mac/mac.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/mac/native_half.hpp"
#include "emu/unit/mac/register_values.hpp"
#include "emu/unit/mac/tile.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "emu/unit/unit.hpp"
#include "formats/float_guard.hpp"

namespace numemu::unit {

namespace {

using mac::MacTile;
using mac::Plan;

bool known_register(const UnitDescription& unit) {
  const Register& r = unit.accumulator;
  if (r.format != nullptr) return mac::floats_known(unit);
  return c_format(unit) == nullptr && result_format(unit) == nullptr && r.bits >= 2 && r.bits <= 32;
}

bool applies(const UnitDescription& unit) {
  return unit.core == CoreKind::chain && unit.group <= 1 && known_register(unit);
}

bool may_be_infinite(const Format& f) { return f.kind == Kind::floating && f.has_infinity(); }

bool may_be_special(const Format& f) {
  return f.kind == Kind::floating && (f.has_infinity() || f.has_nan());
}

/// Bounds from the formats alone, and from C's values.
mac::Inputs inputs_of(const UnitDescription& unit, const Gemm& g, const std::vector<double>& c) {
  mac::Inputs in;
  in.a = exponents_of(*g.a.format);
  in.b = exponents_of(*g.b.format);
  in.infinite = may_be_infinite(*g.a.format) || may_be_infinite(*g.b.format);
  in.special = may_be_special(*g.a.format) || may_be_special(*g.b.format);
  in.product_bits = mac::precision(*g.a.format) + mac::precision(*g.b.format);
  in.k = g.k;
  in.foreign_c = mac::is_foreign(unit, c);
  for (const double x : c) {
    in.infinite |= std::isinf(x);
    in.negative_zero_c |= x == 0 && std::signbit(x);
    if (std::isfinite(x)) in.largest_c = std::max(in.largest_c, std::abs(x));
  }
  if (in.foreign_c) in.largest_c *= 2;  // at least the register's next number
  return in;
}

/// The plan from the bounds of the formats, or from the values present if these may give a better.
std::optional<Plan> plan_of(const UnitDescription& unit, const Gemm& g,
                            const std::vector<double>& c) {
  mac::Inputs in = inputs_of(unit, g, c);
  const auto make = [&] { return mac::make_plan(unit.accumulator, unit.chain.chunk, in); };
  const std::optional<Plan> plan = make();
  if (plan && !plan->wide && plan->ends != mac::Ends::guarded) return plan;
  const Present a = scan(g.a, g.m, g.k), b = scan(g.b, g.n, g.k);
  in.a = a.exponents;
  in.b = b.exponents;
  in.special = a.specials || b.specials;
  in.infinite =
      in.special || std::any_of(c.begin(), c.end(), [](double x) { return std::isinf(x); });
  return make();
}

template <class T>
void multiply_as(const UnitDescription& unit, const Gemm& g, const Plan& plan,
                 const std::vector<double>& c_values) {
  const Source<T> a = decode_numbers<T>(g.a, g.m, g.k), b = decode_numbers<T>(g.b, g.n, g.k);
  const std::vector<T> c(c_values.begin(), c_values.end());  // exact: values of the register
  const ChainSide<T> side_a{a.values, a.row, a.depth}, side_b{b.values, b.row, b.depth};
  MacTile<T> whole;
  whole.plan = &plan;
  whole.chunk = unit.chain.chunk;
  whole.k = g.k;
  whole.c = g.c == nullptr ? nullptr : c.data();
  whole.random = {.seed = g.seed, .stream = Stream::accumulate, .tensor = g.tensor};
  whole.columns = g.n;
  // Random numbers lie along the columns; else the longer side fills the vectors.
  const bool swap = plan.random_bits == 0 && g.n < g.m && g.n % 32 != 0;
  whole.rows = swap ? side_b : side_a;
  whole.lanes = swap ? side_a : side_b;
  whole.row_stride = swap ? 1 : g.n;
  whole.lane_stride = swap ? g.n : 1;
  const mac::ResultWriter writer(unit, g);
  const TileShape shape{.granule = 32};
  for_each_tile(swap ? g.n : g.m, swap ? g.m : g.n, g.k, shape, [&](const Tile& tile) {
    MacTile<T> part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    const std::int64_t rows = tile.row_end - tile.row_begin;
    const std::int64_t lanes = tile.lane_end - tile.lane_begin;
    const std::int64_t m = swap ? lanes : rows, n = swap ? rows : lanes;
    const auto values = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(m * n));
    part.d = values.get();
    part.d_row_stride = swap ? 1 : n;
    part.d_lane_stride = swap ? n : 1;
    mac::run_mac_tile(part);
    const std::int64_t first_row = swap ? tile.lane_begin : tile.row_begin;
    const std::int64_t first_column = swap ? tile.row_begin : tile.lane_begin;
    if (n == g.n) {  // whole rows lie together: short ones would cost a call each
      writer.write(first_row, 0, m * n, values.get());
      return;
    }
    for (std::int64_t i = 0; i < m; ++i)
      writer.write(first_row + i, first_column, n, values.get() + i * n);
  });
}

/// Whether the host's float32 fused multiply-add is the whole step, NaN included.
bool is_float32_chain(const UnitDescription& unit, const Gemm& g) {
  constexpr std::uint64_t kNan = 0x7fc00000;  // what run_chain() writes
  static const Format* const float32 = &find_format("float32");
  const Register& r = unit.accumulator;
  return r.format == float32 && c_format(unit) == float32 && result_format(unit) == float32 &&
         r.rounding.mode == RoundingMode::rne && r.overflow == Overflow::ieee &&
         unit.chain.chunk == 0 && unit.nan_code == kNan && fits_float32(*g.a.format) &&
         fits_float32(*g.b.format);
}

void multiply_float32(const Gemm& g) {
  const auto a = decode_floats(g.a, g.m, g.k), b = decode_floats(g.b, g.n, g.k);
  Chain<float, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
}

}  // namespace

bool multiply_mac(const UnitDescription& unit, const Gemm& g) {
  if (!applies(unit)) return false;
  const FloatGuard guard;
  if (is_float32_chain(unit, g)) {
    multiply_float32(g);
    return true;
  }
  if (mac::multiply_native_half(unit, g)) return true;
  const std::vector<double> c = mac::read_c(unit, g);
  const std::optional<Plan> plan = plan_of(unit, g, c);
  if (!plan) return false;
  if (plan->wide) {
    multiply_as<double>(unit, g, *plan, c);
  } else {
    multiply_as<float>(unit, g, *plan, c);
  }
  return true;
}

}  // namespace numemu::unit
