// Multiply-adds over a whole product: whether they apply, operands and C in, tiles, codes out.
#include "emu/unit/mac/mac.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/mac/native_half.hpp"
#include "emu/unit/mac/tile.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "formats/float32_converter.hpp"
#include "formats/float_guard.hpp"

namespace numemu::unit {

namespace mac {
namespace {

/// Writes values of the register as codes of D. Const functions may run in several threads.
class ResultWriter {
 public:
  ResultWriter(const UnitDescription&, const Gemm&);

  /// D(i, j) ... D(i, j + count - 1).
  void write(std::int64_t i, std::int64_t j, std::int64_t count, const float* values) const;
  void write(std::int64_t i, std::int64_t j, std::int64_t count, const double* values) const;

 private:
  template <class Code>
  void write_floats(std::int64_t first, std::int64_t count, const float* values) const;
  template <class T>
  void write_integers(std::int64_t first, std::int64_t count, const T* values) const;

  const UnitDescription& unit_;
  const Gemm& gemm_;
  Float32Converter to_code_;
};

/// Bytes of a two's complement register's container.
int integer_bytes(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }

std::int64_t sign_extended(std::uint64_t code, int bits) {
  return static_cast<std::int64_t>(code << (64 - bits)) >> (64 - bits);
}

double integer_at(const Register& r, const void* codes, std::int64_t i) {
  std::uint64_t code = 0;
  switch (integer_bytes(r.bits)) {
    case 1:
      code = static_cast<const std::uint8_t*>(codes)[i];
      break;
    case 2:
      code = static_cast<const std::uint16_t*>(codes)[i];
      break;
    default:
      code = static_cast<const std::uint32_t*>(codes)[i];
  }
  return std::ldexp(static_cast<double>(sign_extended(code, r.bits)), -r.fraction);
}

const Format& any_float32() {
  static const Format& float32 = find_format("float32");
  return float32;
}

/// To a format that holds the values; nullptr: any, nothing is converted.
Conversion exactly_to(const Format* format) {
  Conversion c;
  c.format = format != nullptr ? format : &any_float32();
  c.overflow = Overflow::ieee;
  return c;
}

/// The values of C, row-major; empty where there is no C. Its format fits float32, or it has at
/// most 32 bits in two's complement.
std::vector<double> read_c(const UnitDescription& unit, const Gemm& g) {
  if (g.c == nullptr) return {};
  std::vector<double> values(static_cast<std::size_t>(g.m * g.n));
  const auto count = static_cast<std::int64_t>(values.size());
  const Format* const format = c_format(unit);
  if (format == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = integer_at(unit.accumulator, g.c, i);
    return values;
  }
  const Format& f = *format;
  if (format == &any_float32()) {
    const auto* c = static_cast<const float*>(g.c);
    values.assign(c, c + count);
    return values;
  }
  const auto value_of_code = [&](std::uint64_t code) { return double_or_nan(decode(f, code)); };
  const auto code = [&](std::int64_t i) { return load_code(f, g.c, i) & f.code_mask(); };
  const auto codes = std::int64_t{1} << f.bits;
  if (codes > count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = value_of_code(code(i));
    return values;
  }
  std::vector<double> table(static_cast<std::size_t>(codes));
  for (std::int64_t i = 0; i < codes; ++i) table[i] = value_of_code(static_cast<std::uint64_t>(i));
  for (std::int64_t i = 0; i < count; ++i) values[i] = table[code(i)];
  return values;
}

ResultWriter::ResultWriter(const UnitDescription& unit, const Gemm& gemm)
    : unit_(unit), gemm_(gemm), to_code_(exactly_to(result_format(unit))) {}

template <class Code>
void ResultWriter::write_floats(std::int64_t first, std::int64_t count, const float* values) const {
  auto* codes = static_cast<Code*>(gemm_.d) + first;
  if (result_format(unit_) == &any_float32()) {
    std::memcpy(codes, values, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    to_code_.encode(values, count, codes);
  }
  int nans = 0;
#pragma omp simd reduction(+ : nans)
  for (std::int64_t j = 0; j < count; ++j) nans += values[j] != values[j];
  if (nans == 0) return;
  const std::uint64_t nan = unit_.nan_code << result_format(unit_)->container_shift;
  for (std::int64_t j = 0; j < count; ++j) {
    if (values[j] != values[j]) codes[j] = static_cast<Code>(nan);
  }
}

template <class T>
void ResultWriter::write_integers(std::int64_t first, std::int64_t count, const T* values) const {
  const Register& r = unit_.accumulator;
  const double units = std::ldexp(1.0, r.fraction);
  const std::uint64_t mask = (std::uint64_t{1} << r.bits) - 1;
  for (std::int64_t j = 0; j < count; ++j) {
    const auto n = static_cast<std::int64_t>(static_cast<double>(values[j]) * units);
    const std::uint64_t code = static_cast<std::uint64_t>(n) & mask;
    switch (integer_bytes(r.bits)) {
      case 1:
        static_cast<std::uint8_t*>(gemm_.d)[first + j] = static_cast<std::uint8_t>(code);
        break;
      case 2:
        static_cast<std::uint16_t*>(gemm_.d)[first + j] = static_cast<std::uint16_t>(code);
        break;
      default:  // sign-extended: an int32
        static_cast<std::int32_t*>(gemm_.d)[first + j] = static_cast<std::int32_t>(n);
    }
  }
}

void ResultWriter::write(std::int64_t i, std::int64_t j, std::int64_t count,
                         const float* values) const {
  const std::int64_t first = i * gemm_.n + j;
  const Format* format = result_format(unit_);
  if (format == nullptr) return write_integers(first, count, values);
  if (format->bits <= 8) return write_floats<std::uint8_t>(first, count, values);
  if (format->bits <= 16) return write_floats<std::uint16_t>(first, count, values);
  write_floats<std::uint32_t>(first, count, values);
}

void ResultWriter::write(std::int64_t i, std::int64_t j, std::int64_t count,
                         const double* values) const {
  if (unit_.accumulator.format == nullptr) return write_integers(i * gemm_.n + j, count, values);
  const std::vector<float> narrow(values, values + count);  // exact: the register fits float32
  write(i, j, count, narrow.data());
}

}  // namespace
}  // namespace mac

namespace {

using mac::MacTile;
using mac::Plan;

bool known_register(const UnitDescription& unit) {
  const Register& r = unit.accumulator;
  const Format *const c = c_format(unit), *const d = result_format(unit);
  if (r.format == nullptr) return c == nullptr && d == nullptr && r.bits >= 2 && r.bits <= 32;
  if (c->kind != Kind::floating || !fits_float32(*c) || !fits_float32(*d)) return false;
  const Format& f = *r.format;
  return f.kind == Kind::floating && f.is_signed && f.mantissa_bits > 0 &&
         f.field_zero == FieldZero::subnormal && fits_float32(f);
}

bool applies(const UnitDescription& unit) {
  return unit.core == CoreKind::chain && unit.group <= 1 && known_register(unit);
}

bool may_be_infinite(const Format& f) { return f.kind == Kind::floating && f.has_infinity(); }

bool may_be_special(const Format& f) {
  return f.kind == Kind::floating && (f.has_infinity() || f.has_nan());
}

/// Whether C holds finite numbers that the register does not, which is narrower than C's format.
bool is_foreign(const UnitDescription& unit, const std::vector<double>& c) {
  if (c.empty() || c_format(unit) == unit.accumulator.format) return false;
  std::vector<float> exact(c.begin(), c.end()), held(c.size());
  const Float32Converter to_register(mac::exactly_to(unit.accumulator.format));
  to_register.round(exact.data(), std::ssize(exact), held.data());
  return !std::equal(exact.begin(), exact.end(), held.begin(),
                     [](float x, float y) { return x == y || std::isnan(x); });
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
  in.foreign_c = is_foreign(unit, c);
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
  const Format* const float32 = &mac::any_float32();
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
