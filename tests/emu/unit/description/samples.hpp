// Descriptions for tests: one valid unit of each core, and random valid ones.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/description/check.hpp"
#include "formats/error.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

inline const Format* format(const char* name) { return &find_format(name); }

/// A valid unit of that core; floating ones end in float32.
inline UnitDescription sample(CoreKind core) {
  UnitDescription u;
  u.name = "my.unit";
  u.core = core;
  switch (core) {
    case CoreKind::fused:
      u.a = u.b = format("float8_e4m3fn");
      u.k = 32;
      u.group = 16;
      u.alignment.fraction_bits = 20;
      break;
    case CoreKind::integer:
      u.a = u.b = format("int8");
      u.k = 32;
      break;
    case CoreKind::xnor:
      u.a = u.b = format("sign1");
      break;
    case CoreKind::table:
      u.a = format("int2");
      u.b = format("int3");
      u.products = std::make_shared<const std::vector<std::int32_t>>(32, 7);
      break;
    case CoreKind::tree:
      u.k = u.group = 8;
      break;
    case CoreKind::chain:
    case CoreKind::exact:
      break;
  }
  const bool integer =
      core == CoreKind::integer || core == CoreKind::xnor || core == CoreKind::table;
  if (integer) {
    u.nan_code = 0;
  } else {
    u.c = u.d = u.accumulator.format = format("float32");
  }
  return u;
}

constexpr std::array kAllCores = {CoreKind::fused, CoreKind::chain,   CoreKind::tree,
                                  CoreKind::exact, CoreKind::integer, CoreKind::xnor,
                                  CoreKind::table};

/// Draws one of the values.
template <class T>
T pick(Dice& dice, std::initializer_list<T> values) {
  return values.begin()[dice.below(static_cast<std::int64_t>(values.size()))];
}

/// Random parameters for one core; about half of them contradict each other.
inline UnitDescription random_description(Dice& dice) {
  const auto flag = [&] { return dice.below(4) == 0; };
  const auto exponent = [&]() -> std::optional<int> {
    if (flag()) return std::nullopt;
    return static_cast<int>(dice.below(300)) - 200;
  };
  UnitDescription u = sample(kAllCores[static_cast<std::size_t>(dice.below(kAllCores.size()))]);
  u.name = "random." + std::to_string(dice.below(1000));
  const bool integer =
      u.core == CoreKind::integer || u.core == CoreKind::xnor || u.core == CoreKind::table;
  if (u.core != CoreKind::table) u.k = pick(dice, {0, 16, 32, 64});
  u.group = pick(dice, {0, 0, 4, 16, 32});
  if (u.core == CoreKind::chain || u.core == CoreKind::table)
    u.group = static_cast<int>(dice.below(2));
  if (flag()) u.order = pick(dice, {StepOrder::pairs_mod4, StepOrder::odd_first});
  if (flag())
    u.sparsity = pick(dice, {Sparsity{2, 4}, Sparsity{1, 2}, Sparsity{4, 8}, Sparsity{3, 16}});
  if (integer || flag()) {
    u.c = u.d = u.accumulator.format = nullptr;
    u.nan_code = 0;
    u.accumulator.bits = static_cast<int>(2 + dice.below(31));
    if (!integer) u.accumulator.fraction = static_cast<int>(dice.below(20));
    u.accumulator.integer = pick(dice, {IntegerOverflow::wrap, IntegerOverflow::saturate_once,
                                        IntegerOverflow::saturate_each});
    if (flag()) u.outer = {pick(dice, {1, 32, 64}), {.bits = static_cast<int>(2 + dice.below(31))}};
    if (integer) return u;
  } else {
    const char* result = pick(dice, {"float32", "float16", "bfloat16", "float64"});
    const char* held = pick(dice, {"", "", "e5m4", "e8m7"});
    u.c = u.d = u.accumulator.format = format(result);
    if (*held != 0) u.accumulator.format = format(held);
    u.nan_code = u.d->nan_code(flag());
    u.accumulator.overflow =
        pick(dice, {Overflow::ieee, Overflow::ieee, Overflow::saturate, Overflow::propagate});
    u.accumulator.overflow_to_infinity = flag();
    u.subnormals.flush_c = flag();
    u.subnormals.flush_results = flag();
    u.subnormals.tiny_before_rounding = u.subnormals.flush_results && flag();
    if (flag()) {
      u.outer = {pick(dice, {32, 64, 128}), {.format = u.d, .overflow_to_infinity = flag()}};
      if (flag()) u.outer.accumulator.rounding = {.mode = RoundingMode::rtz};
    }
  }
  if (u.core == CoreKind::fused || flag()) {
    u.a = format(pick(dice, {"float8_e4m3fn", "float16", "float4_e2m1fn", "tfloat32"}));
    u.b = flag() ? format("float8_e5m2") : u.a;
  }
  if (flag())
    u.accumulator.rounding = {.mode = pick(dice, {RoundingMode::rtz, RoundingMode::rodd,
                                                  RoundingMode::rdn, RoundingMode::rna})};
  if (u.core == CoreKind::chain && flag())
    u.accumulator.rounding = {RoundingMode::sr,
                              pick(dice, {StochasticVariant::a, StochasticVariant::c}),
                              static_cast<int>(1 + dice.below(20))};
  u.subnormals.flush_inputs = flag();
  u.subnormals.inputs_to_plus_zero = u.subnormals.flush_inputs && flag();
  if (flag()) u.input = {format("bfloat16"), {.mode = RoundingMode::rtz}};
  if (u.core == CoreKind::fused) {
    u.c_entry = pick(dice, {CEntry::in_alignment, CEntry::after_alignment, CEntry::after_rounding});
    u.alignment = {.fraction_bits = static_cast<int>(dice.below(40)),
                   .rounding = pick(dice, {RoundingMode::rtz, RoundingMode::rne, RoundingMode::rodd,
                                           RoundingMode::rdn}),
                   .zero_exponent = exponent(),
                   .floor = exponent()};
    u.alignment.zero_c_counts = !u.alignment.zero_exponent || flag();
    if (u.c_entry == CEntry::after_alignment) {
      u.alignment.parts = static_cast<int>(1 + dice.below(2));
      u.second = {static_cast<int>(dice.below(45)), static_cast<int>(dice.below(45)), {}};
      if (flag()) u.second.c_dropped = static_cast<int>(dice.below(60));
    }
    if (flag()) {
      u.a = u.b = format("float4_e2m1fn");
      u.k = u.group = 64;
      u.input = {};
      u.sparsity = {};
      u.scaling = {.point = Scaling::Point::groups, .format = format("float8_e4m3fn"), .block = 16};
      return u;
    }
    u.products_overflow = flag();
    if (flag()) {
      u.scaling = {
          .point = Scaling::Point::exponents, .format = format("float8_e8m0fnu"), .block = 32};
      u.sparsity = {};
    }
  }
  if (u.core == CoreKind::chain) {
    if (flag()) u.chain.chains = pick(dice, {2, 4, 8});
    if (u.chain.chains > 1 || flag()) u.c_entry = CEntry::after_rounding;
    if (flag()) u.chain.chunk = pick(dice, {8, 16});
    u.chain.fused = !flag();
    u.chain.kahan = flag();
  }
  if (u.core == CoreKind::tree) {
    u.tree = {
        .leaf = pick(dice, {1, 2, 4}), .round_products = !flag(), .plus_zero_products = flag()};
  }
  if (u.core == CoreKind::exact && flag())
    u.scaling = {.point = Scaling::Point::after_sum, .shift = static_cast<int>(dice.below(16))};
  if (u.c_entry == CEntry::after_rounding && u.accumulator.format != nullptr && flag())
    u.c_rounding = {.mode = pick(dice, {RoundingMode::rtz, RoundingMode::rdn})};
  u.plus_zero_sums = applies(u, "plus_zero_sums") && flag();
  return u;
}

/// That many random descriptions that check_description() accepts.
inline std::vector<UnitDescription> random_valid(std::uint64_t seed, std::size_t count) {
  Dice dice(seed);
  std::vector<UnitDescription> units;
  while (units.size() < count) {
    UnitDescription u = random_description(dice);
    try {
      check_description(u);
    } catch (const Error&) {
      continue;
    }
    units.push_back(std::move(u));
  }
  return units;
}

}  // namespace numemu::unit::test
