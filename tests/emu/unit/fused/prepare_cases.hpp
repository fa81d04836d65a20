// Products for the tests of the integer and the float64 form of fused units, any operand format.
#pragma once
#include <hwy/targets.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description.hpp"
#include "formats/codec.hpp"
#include "tests/emu/unit/by_path.hpp"
#include "tests/emu/unit/fused/fused_product.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

/// A fused unit of NVIDIA's kind.
struct FusedCase {
  std::string a = "float16", b = "float16", accumulator = "float32";
  int instruction = 16, group = 16, fraction_bits = 25;
  bool pairs_mod4 = false, scaled = false;
  bool nearest = false;  ///< rounding of a register in float32; float16 ones always are
  bool c_last = false, odd_first = false;
  RoundingMode alignment = RoundingMode::rtz;
};

inline UnitDescription describe(const FusedCase& f) {
  const bool half = f.accumulator == "float16";
  UnitDescription u;
  u.name = "test";
  u.core = CoreKind::fused;
  u.k = f.instruction;
  u.group = f.group;
  u.alignment.fraction_bits = f.fraction_bits;
  u.alignment.rounding = f.alignment;
  u.accumulator.format = &find_format(f.accumulator);
  u.accumulator.rounding.mode = half || f.nearest ? RoundingMode::rne : RoundingMode::rtz;
  u.accumulator.overflow_to_infinity = true;
  u.c = u.d = &find_format(half ? "float16" : "float32");
  u.nan_code = half ? 0x7fff : 0x7fffffff;
  if (f.pairs_mod4) {
    u.order = StepOrder::pairs_mod4;
    u.c_entry = CEntry::after_rounding;
  }
  if (f.c_last) u.c_entry = CEntry::after_rounding;
  if (f.odd_first) u.order = StepOrder::odd_first;
  if (f.scaled) {
    u.scaling.point = Scaling::Point::exponents;
    u.scaling.format = &find_format("float8_e8m0fnu");
    u.scaling.block = f.group;
  }
  return u;
}

enum class Elements {
  gaussian,
  uniform,     ///< every finite code
  wide,        ///< mostly zeros, the others over all binades
  cancelling,  ///< few magnitudes, both signs
  subnormal,
  large,    ///< near the format's end, with zeros of both signs
  special,  ///< gaussian with NaN and infinity
};
constexpr Elements kAllElements[] = {Elements::gaussian,   Elements::uniform,   Elements::wide,
                                     Elements::cancelling, Elements::subnormal, Elements::large,
                                     Elements::special};

inline double normal_draw(Dice& dice) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += dice.bits() * 0x1p-32;
  return sum;
}

inline std::uint64_t draw_element(const Format& f, Elements elements, Dice& dice) {
  const auto code_of = [&](double x) {
    return encode(f, value_of(x), Rounding{}, Overflow::saturate).code;
  };
  const auto below = [&](std::int64_t n) { return static_cast<int>(dice.below(n)); };
  const double sign = below(2) == 0 ? 1 : -1;
  switch (elements) {
    case Elements::uniform: {
      const std::uint64_t code = dice.bits() & f.code_mask();
      return (code & ~f.sign_bit()) <= f.largest_code() ? code : 0;
    }
    case Elements::wide:
      return below(5) != 0 ? 0 : code_of(std::ldexp(normal_draw(dice), below(2 * f.bias) - f.bias));
    case Elements::cancelling:
      return code_of(sign * std::ldexp(1 + below(8) / 8.0, below(3) * 6 - 6));
    case Elements::subnormal:
      return code_of(sign * below(9) * std::ldexp(1.0, 1 - f.bias - f.mantissa_bits));
    case Elements::large:
      return below(3) != 0 ? (sign < 0 ? f.sign_bit() : 0)
                           : code_of(sign * std::ldexp(1.0, f.bias - 1));
    case Elements::special:
      if (below(150) == 0) return f.nan_code();
      if (f.has_infinity() && below(150) == 0) return f.infinity_code(sign < 0);
      break;
    case Elements::gaussian:
      break;
  }
  return code_of(normal_draw(dice));
}

enum class Addend { none, usual, dominating, tiny, mixed, special };
constexpr Addend kAllAddends[] = {Addend::none, Addend::usual, Addend::dominating,
                                  Addend::tiny, Addend::mixed, Addend::special};

inline float draw_addend(Addend addend, bool half, Dice& dice) {
  const auto x = static_cast<float>(normal_draw(dice));
  const auto binade = static_cast<int>(dice.below(60));
  if (dice.below(16) == 0) return -0.0f;
  switch (addend) {
    case Addend::none:
      return 0;
    case Addend::usual:
      return x * 100;
    case Addend::dominating:
      return std::ldexp(x, half ? 13 : 120);
    case Addend::tiny:
      return std::ldexp(x, half ? -20 : -140 + binade);
    case Addend::mixed:
      return std::ldexp(x, half ? binade / 3 - 20 : binade - 30);
    case Addend::special:
      return binade == 0 ? NAN : binade < 3 ? INFINITY : binade < 5 ? -INFINITY : x;
  }
  return 0;
}

inline OperandData draw_operand(const std::string& format, Gather gather, Elements elements,
                                Dice& dice) {
  const std::int64_t size = gather.padding.source_size();
  OperandData data = make_operand(format, size, std::move(gather), test::Fill::finite, dice);
  const Format& f = *data.format;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    const std::uint64_t code = draw_element(f, elements, dice);
    if (!data.bytes.empty()) data.bytes[i] = static_cast<std::uint8_t>(code);
    if (!data.halves.empty()) data.halves[i] = static_cast<std::uint16_t>(code);
    if (!data.floats.empty())
      data.floats[i] = std::bit_cast<float>(static_cast<std::uint32_t>(code << f.container_shift));
  }
  return data;
}

inline void draw_rest(FusedProduct& p, Addend addend, bool nan_scales, Dice& dice) {
  p.with_c = addend != Addend::none;
  for (std::int64_t i = 0; i < p.m * p.n; ++i) {
    p.c.push_back(draw_addend(addend, p.half(), dice));
    p.half_c.push_back(static_cast<std::uint16_t>(
        encode(find_format("float16"), value_of(p.c.back()), Rounding{}, Overflow::ieee).code));
  }
  if (p.unit.scaling.block == 0) return;
  const std::int64_t blocks = (p.k + p.unit.scaling.block - 1) / p.unit.scaling.block;
  const auto scale = [&] {
    if (nan_scales && dice.below(20) == 0) return std::uint8_t{255};
    return static_cast<std::uint8_t>(dice.below(4) == 0 ? dice.below(255) : 117 + dice.below(20));
  };
  for (std::int64_t i = 0; i < p.m * blocks; ++i) p.scale_a.push_back(scale());
  for (std::int64_t i = 0; i < p.n * blocks; ++i) p.scale_b.push_back(scale());
}

struct FusedShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool a_transposed = false, b_transposed = false;
};

inline FusedProduct make_fused(const FusedCase& f, const FusedShape& s, Elements elements,
                               Addend addend, std::uint64_t seed) {
  Dice dice(seed);
  FusedProduct p;
  p.unit = describe(f);
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a = draw_operand(f.a, Gather::matrix(s.m, s.k, s.a_transposed), elements, dice);
  p.b = draw_operand(f.b, Gather::matrix(s.n, s.k, s.b_transposed), elements, dice);
  draw_rest(p, addend, elements == Elements::special, dice);
  return p;
}

/// The patches of a padded, dilated convolution times filters.
inline FusedProduct make_fused_convolution(const FusedCase& f, Elements elements,
                                           std::uint64_t seed) {
  Dice dice(seed);
  FusedProduct p;
  p.unit = describe(f);
  Gather gather = patches({1, 4, 5, 5, 3, 2, 2, 1});
  p.m = static_cast<std::int64_t>(gather.row.size());
  p.n = 9;
  p.k = static_cast<std::int64_t>(gather.depth.size());
  p.a = draw_operand(f.a, std::move(gather), elements, dice);
  p.b = draw_operand(f.b, Gather::matrix(p.n, p.k), elements, dice);
  draw_rest(p, Addend::usual, false, dice);
  return p;
}

enum class Answer { declined, equal, different };

/// What the form does with the product on the best target of this machine. A form that declines
/// must not have written.
inline Answer answer_of(Multiply form, const FusedProduct& p) {
  std::vector<std::uint8_t> d, untouched;
  p.gemm(untouched);
  if (!by_path(form, p.unit, p.gemm(d)))
    return d == untouched ? Answer::declined : Answer::different;
  return d == p.reference() ? Answer::equal : Answer::different;
}

/// Runs `body` once per instruction set that this machine has and the library was built for.
template <class Body>
void for_each_simd_target(const Body& body) {
  std::set<std::string> seen;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    if (seen.insert(chain_target()).second) body(chain_target());
    hwy::SetSupportedTargetsForTest(0);
  }
}

/// The form's answers on each of those targets.
inline std::set<Answer> answers_of_targets(Multiply form, bool (*has_form)(),
                                           const FusedProduct& p) {
  std::set<Answer> answers;
  const std::vector<std::uint8_t> expected = p.reference();
  for_each_simd_target([&](const std::string&) {
    std::vector<std::uint8_t> d;
    const bool ran = by_path(form, p.unit, p.gemm(d));
    if (ran != has_form()) answers.insert(Answer::declined);
    if (ran) answers.insert(d == expected ? Answer::equal : Answer::different);
  });
  return answers;
}

/// Odd sizes, one row, one column, tails of K, all layouts; `i` picks.
inline FusedShape fused_shape(std::uint64_t i) {
  const std::int64_t m[] = {1, 7, 27, 3}, n[] = {35, 1, 33, 17}, k[] = {33, 64, 70, 7, 1};
  return {m[i % 4], n[i / 4 % 4], k[i % 5], i % 2 == 1, i % 3 == 1};
}

/// Answers to every kind of elements and of C, for each of the alignment's variants.
struct AnswerCounts {
  int equal = 0, declined = 0, different = 0;
  void count(Answer answer) {
    (answer == Answer::equal ? equal : answer == Answer::declined ? declined : different)++;
  }
};
inline AnswerCounts tally_fused(Multiply form, const FusedCase& f, std::uint64_t seed) {
  AnswerCounts tally;
  for (const Elements elements : kAllElements) {
    for (const Addend addend : kAllAddends) {
      ++seed;
      FusedProduct p = make_fused(f, fused_shape(seed), elements, addend, seed);
      const bool half = p.unit.accumulator.format->name == "float16";
      if (seed % 3 == 1) p.unit.alignment.floor.reset();
      if (seed % 3 == 2) p.unit.alignment.floor = half ? -21 : -133;
      if (seed % 5 == 1) p.unit.alignment.zero_exponent.reset();
      if (seed % 5 > 2) p.unit.alignment.zero_c_counts = false;
      if (seed % 7 == 1) p.unit.accumulator.overflow_to_infinity = false;
      tally.count(answer_of(form, p));
    }
  }
  tally.count(answer_of(form, make_fused_convolution(f, Elements::gaussian, seed)));
  tally.count(answer_of(form, make_fused_convolution(f, Elements::special, seed)));
  return tally;
}

}  // namespace numemu::unit::test
