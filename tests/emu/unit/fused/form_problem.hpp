// Products for the tests of the fast forms of fused FP8 units, compared with the reference.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/description.hpp"
#include "formats/codec.hpp"
#include "tests/emu/unit/by_path.hpp"
#include "tests/emu/unit/fused/fused_product.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

/// A unit of `instruction` products in steps of `group`, F = 13 unless said.
inline UnitDescription fp8_unit(int instruction, int group, const std::string& reg,
                                int fraction_bits = 13) {
  UnitDescription u;
  u.name = "test";
  u.core = CoreKind::fused;
  u.k = instruction;
  u.group = group;
  u.alignment.fraction_bits = fraction_bits;
  u.accumulator.format = &find_format(reg);
  const bool half = reg == "float16";
  u.accumulator.rounding.mode = half ? RoundingMode::rne : RoundingMode::rtz;
  u.accumulator.overflow_to_infinity = !half;
  u.c = u.d = &find_format(half ? "float16" : "float32");
  u.nan_code = half ? 0x7fff : 0x7fffffff;
  return u;
}
inline UnitDescription wgmma_e4m3() { return fp8_unit(32, 32, "e8m13"); }
inline UnitDescription ada_f32() { return fp8_unit(32, 16, "e8m13"); }
inline UnitDescription ada_f16() { return fp8_unit(32, 16, "float16"); }

enum class FormData { gaussian, uniform, wide_sparse, cancelling, subnormal, zero_groups, special };
constexpr FormData kAllFormData[] = {
    FormData::gaussian,  FormData::uniform,     FormData::wide_sparse, FormData::cancelling,
    FormData::subnormal, FormData::zero_groups, FormData::special};

enum class CData { none, gaussian, dominating, tiny, minus_zero, special, mixed };
constexpr CData kAllC[] = {CData::none,       CData::gaussian, CData::dominating, CData::tiny,
                           CData::minus_zero, CData::special,  CData::mixed};

/// One code of an 8-bit format. `group` counts runs of 32 elements.
inline std::uint8_t draw_form_code(const Format& format, FormData data, std::int64_t group,
                                   Dice& dice) {
  const auto largest = static_cast<std::int64_t>(format.largest_code());
  const auto sign = static_cast<std::uint8_t>(dice.bits() & format.sign_bit());
  const auto uniform = [&] {
    return static_cast<std::uint8_t>(sign | static_cast<std::uint8_t>(dice.below(largest + 1)));
  };
  switch (data) {
    case FormData::gaussian: {
      // Twelve uniform numbers; the field of 2^4 in the middle of E4M3.
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += dice.bits() * 0x1p-32;
      const Value v = value_of(sum * 32);
      return static_cast<std::uint8_t>(encode(format, v, {}, Overflow::saturate).code);
    }
    case FormData::cancelling:
    case FormData::uniform:
      return uniform();
    case FormData::wide_sparse:
      return dice.below(8) == 0 ? uniform() : std::uint8_t{0};
    case FormData::subnormal:
      return static_cast<std::uint8_t>(sign | dice.below(dice.below(4) == 0
                                                             ? 1 << (format.mantissa_bits + 2)
                                                             : 1 << format.mantissa_bits));
    case FormData::zero_groups:
      return group % 3 != 0 ? sign : uniform();
    case FormData::special:
      return dice.below(400) == 0 ? static_cast<std::uint8_t>(dice.bits()) : uniform();
  }
  return 0;
}

inline OperandData fp8_operand(const std::string& format, Gather gather, std::int64_t size,
                               FormData data, Dice& dice) {
  OperandData x;
  x.format = &find_format(format);
  x.gather = std::move(gather);
  x.bytes.resize(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i)
    x.bytes[static_cast<std::size_t>(i)] = draw_form_code(*x.format, data, i / 32, dice);
  return x;
}

/// k, k + 1 of A equal and of B opposite, for half of the pairs.
inline void make_cancelling(OperandData& a, OperandData& b) {
  for (std::size_t i = 0; i + 1 < a.bytes.size(); i += 2) a.bytes[i + 1] = a.bytes[i];
  for (std::size_t i = 0; i + 1 < b.bytes.size(); i += 4)
    b.bytes[i + 1] = b.bytes[i] ^ static_cast<std::uint8_t>(b.format->sign_bit());
}

inline float draw_form_c(CData data, Dice& dice) {
  const float unit = static_cast<float>(static_cast<std::int32_t>(dice.bits())) * 0x1p-31f;
  switch (data) {
    case CData::gaussian:
      return unit * 1000;
    case CData::dominating:
      return unit * 0x1p40f;
    case CData::tiny:
      return unit * std::ldexp(1.0f, -140 + static_cast<int>(dice.below(100)));
    case CData::minus_zero:
      return -0.0f;
    case CData::special: {
      const float some[] = {INFINITY, -INFINITY, NAN, unit, unit * 0x1p-20f, 0.0f};
      return some[dice.below(6)];
    }
    case CData::mixed:
      return unit * std::ldexp(1.0f, -30 + static_cast<int>(dice.below(60)));
    case CData::none:
      break;
  }
  return 0;
}

/// A product of 8-bit operands with C and D of the unit.
using FormProblem = FusedProduct;

inline void add_c(FormProblem& p, CData data, Dice& dice) {
  p.with_c = data != CData::none;
  p.c.resize(static_cast<std::size_t>(p.m * p.n));
  p.half_c.resize(p.c.size());
  for (std::size_t i = 0; i < p.c.size(); ++i) {
    p.c[i] = draw_form_c(data, dice);
    const float scaled = data == CData::dominating ? p.c[i] * 0x1p-26f : p.c[i];
    p.half_c[i] = static_cast<std::uint16_t>(
        encode(find_format("float16"), value_of(scaled), {}, Overflow::ieee).code);
  }
}

struct FormCase {
  UnitDescription unit;
  std::string format_a = "float8_e4m3fn", format_b = "float8_e4m3fn";
  std::int64_t m = 1, n = 1, k = 1;
  FormData data = FormData::gaussian;
  CData c = CData::none;
  bool a_transposed = false, b_transposed = false;
};

inline FormProblem make_form_problem(const FormCase& f, std::uint64_t seed) {
  Dice dice(seed);
  FormProblem p;
  p.unit = f.unit;
  p.m = f.m;
  p.n = f.n;
  p.k = f.k;
  p.a = fp8_operand(f.format_a, Gather::matrix(f.m, f.k, f.a_transposed), f.m * f.k, f.data, dice);
  p.b = fp8_operand(f.format_b, Gather::matrix(f.n, f.k, f.b_transposed), f.n * f.k, f.data, dice);
  if (f.data == FormData::cancelling) make_cancelling(p.a, p.b);
  add_c(p, f.c, dice);
  return p;
}

/// The patches of a padded convolution times 8-bit filters.
inline FormProblem make_form_convolution(const UnitDescription& unit, const Convolution& shape,
                                         std::int64_t outputs, std::uint64_t seed,
                                         const std::string& format_b = "float8_e5m2") {
  Dice dice(seed);
  FormProblem p;
  p.unit = unit;
  Gather gather = patches(shape);
  p.m = static_cast<std::int64_t>(gather.row.size());
  p.n = outputs;
  p.k = static_cast<std::int64_t>(gather.depth.size());
  const std::int64_t source = gather.padding.source_size();
  p.a = fp8_operand("float8_e4m3fn", std::move(gather), source, FormData::gaussian, dice);
  p.b = fp8_operand(format_b, Gather::matrix(p.n, p.k), p.n * p.k, FormData::gaussian, dice);
  return p;
}

/// Bytes that differ from the reference, or -1 where the form declines having written nothing, -2
/// where it wrote and declined.
inline std::int64_t form_mismatches(Multiply multiply, const FormProblem& p) {
  std::vector<std::uint8_t> d;
  const Gemm g = p.gemm(d);
  if (!by_path(multiply, p.unit, g)) {
    return d == std::vector<std::uint8_t>(p.bytes(), 0xa5) ? -1 : -2;
  }
  const std::vector<std::uint8_t> expected = p.reference();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < d.size(); ++i) count += d[i] != expected[i];
  return count;
}

/// check(problem) for each unit, uniform numbers of many shapes in every layout.
template <class Check>
void for_each_shape(const std::vector<UnitDescription>& units, const Check& check) {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {1, 70, 33}, {70, 1, 33},  {3, 129, 15},
                                   {129, 3, 16}, {2, 64, 31}, {33, 65, 40}, {65, 33, 47},
                                   {1, 1, 1100}, {35, 70, 7}};
  std::uint64_t seed = 1000;
  for (const UnitDescription& unit : units) {
    for (const auto& [m, n, k] : sizes) {
      const int layout = static_cast<int>(++seed % 4);
      INFO(m << "x" << n << "x" << k << " layout " << layout);
      check(make_form_problem({unit, "float8_e4m3fn", "float8_e4m3fn", m, n, k, FormData::uniform,
                               CData::mixed, (layout & 1) != 0, (layout & 2) != 0},
                              seed));
    }
  }
}

/// With padding, dilation and stride.
inline constexpr Convolution kConvolutions[] = {{2, 5, 5, 1, 5, 2, 1, 1},
                                                {1, 4, 5, 6, 3, 0, 1, 1},
                                                {1, 3, 3, 4, 3, 2, 2, 1},
                                                {2, 6, 6, 3, 3, 1, 1, 2}};

}  // namespace numemu::unit::test
