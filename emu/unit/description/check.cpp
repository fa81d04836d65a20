// Refuses descriptions whose parameters contradict each other: names, sizes, formats, register.
#include "emu/unit/description/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/products.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

constexpr int kValueBits = 64;  ///< of a Value's significand
constexpr int kSumBits = 127;   ///< of the magnitude of a signed 128-bit sum
constexpr int kScaledGroupBits = 4;

/// Gathers index with 32 bits, so no step has more products than this.
constexpr std::int64_t kLargestDepth = std::int64_t{1} << 31;

int bits_of(const Format& f) {
  return f.kind == Kind::floating ? f.mantissa_bits + 1 : f.kind == Kind::integer ? f.bits : 1;
}

/// n addends below 2^b in magnitude add up to less than 2^(b + carry).
int carry_bits(const UnitDescription& u) {
  const int step = products_of_step(u);
  std::int64_t addends = step == 0 ? kLargestDepth : step;
  if (u.scaling.point == Scaling::Point::groups)
    addends = (addends + kScaledGroup - 1) / kScaledGroup;
  return std::bit_width(static_cast<std::uint64_t>(addends));
}

/// An addend is below 2^(E + this), where E is the exponent it is aligned with. A product of two
/// significands in [0, 2) stays below 2^2. A scaled group's E is that of its scales alone: 16
/// products below 2^(top_a + top_b), times two significands in [0, 2).
int bits_above_exponent(const UnitDescription& u) {
  constexpr int kSignificands = 2;
  if (u.scaling.point != Scaling::Point::groups) return kSignificands;
  const int top = exponents_of(*u.a).top + exponents_of(*u.b).top;
  return kSignificands + std::max(0, kScaledGroupBits + top);
}

}  // namespace

int significand_bits(const UnitDescription& u, const Format& operand) {
  return bits_of(u.input.format != nullptr ? *u.input.format : operand);
}

bool products_fit(const UnitDescription& u) {
  constexpr int kWidestAny = 24;  // any format: values of float32
  const int a = u.a == nullptr ? kWidestAny : significand_bits(u, *u.a);
  const int b = u.b == nullptr ? kWidestAny : significand_bits(u, *u.b);
  return a + b <= kValueBits;
}

bool group_sums_fit(const UnitDescription& u) {
  const Exponents a = exponents_of(*u.a), b = exponents_of(*u.b);
  const int sum = (a.top - a.low) + (b.top - b.low) + kScaledGroupBits;
  return sum + 2 * bits_of(*u.scaling.format) <= kValueBits;
}

// In units of 2^(largest exponent - F) every addend is below 2^(F + above), cut in whatever
// direction, and C below 2^(F + 1). The sum of n addends and C is below (n + 1) 2^(F + above) <=
// 2^(F + above + carry), which must fit 127 bits. With C after_alignment the sum of the products
// becomes a Value and is cut again, so that it must fit 64 bits.
int most_fraction_bits(const UnitDescription& u) {
  const int bits = u.c_entry == CEntry::after_alignment ? kValueBits : kSumBits;
  return bits - bits_above_exponent(u) - carry_bits(u);
}

// The same sum, now in units of 2^(larger exponent - second.fraction_bits). Both parts then meet
// below 2^(64 + 63) in the finer of the two units.
int most_second_fraction_bits(const UnitDescription& u) {
  return kValueBits - bits_above_exponent(u) - carry_bits(u);
}

namespace {

constexpr int kLargestPattern = 16;  ///< M of N:M
constexpr int kLargestShift = 127;   ///< of Arm's LSCALE

}  // namespace

void DescriptionCheck::subnormals() {
  const Subnormals& s = u_.subnormals;
  const auto floats = [](const Format* f) { return f == nullptr || f->kind == Kind::floating; };
  if (s.flush_inputs)
    require(floats(u_.a) || floats(u_.b), "subnormals.flush_inputs",
            "together with a floating operand");
  if (!s.flush_results || s.tiny_before_rounding) return;
  constexpr std::string_view kExpected =
      "rne with subnormals.flush_results (or tiny_before_rounding true): tiny is judged as if "
      "rounded to nearest even";
  require(u_.accumulator.rounding.mode == RoundingMode::rne, "accumulator.rounding", kExpected);
  require(u_.c_rounding.mode == RoundingMode::rne, "c_rounding", kExpected);
  require(u_.outer.accumulator.rounding.mode == RoundingMode::rne, "outer.rounding", kExpected);
}

void DescriptionCheck::nan() {
  if (twos_complement(u_)) {
    const bool unused = is_integer_core(u_) && u_.nan_code == UnitDescription{}.nan_code;
    require(u_.nan_code == 0 || unused, "nan_code", "0x0 with a two's complement register");
    return;
  }
  const Format& d = *result_format(u_);
  const bool is_code = u_.nan_code <= d.last_code();
  if (!d.has_nan()) {
    require(is_code, "nan_code", fmt::format("a code of {}, which has no NaN", d.name));
    return;
  }
  require(is_code && decode(d, u_.nan_code).kind == Class::nan, "nan_code",
          fmt::format("a NaN of {}, such as {}", d.name, text_of(d.nan_code())));
  if (u_.nan != NanRule::x86) return;
  for (const auto& [key, format] : {std::pair("a", u_.a), std::pair("b", u_.b),
                                    std::pair("c", c_format(u_)), std::pair("d", result_format(u_)),
                                    std::pair("accumulator.format", u_.accumulator.format)}) {
    const bool can_be_nan =
        format != nullptr && format->kind == Kind::floating && format->has_nan();
    require(!can_be_nan || (format->specials == Specials::ieee && format->mantissa_bits >= 2), key,
            "a format whose NaN has a payload with nan x86");
  }
}

void DescriptionCheck::scaling() {
  const Scaling& s = u_.scaling;
  if (s.point == Scaling::Point::after_sum) {
    require(u_.core == CoreKind::exact, "scaling.point", "core exact with after_sum");
    in_range(s.shift, "scaling.shift", 0, kLargestShift);
  }
  if (!block_scaled(u_)) return;
  const bool groups = s.point == Scaling::Point::groups;
  require(u_.core == CoreKind::fused || (!groups && u_.core == CoreKind::exact), "scaling.point",
          groups ? "core fused with groups" : "core fused or exact with exponents");
  const bool known =
      require(s.format != nullptr && s.format->kind == Kind::floating && s.format->bits <= 8,
              "scaling.format", "a floating format of at most 8 bits, such as float8_e8m0fnu");
  in_range(s.block, "scaling.block", 1, kLargestSize);
  require(u_.sparsity.dense(), "sparsity", "null with block scales");
  if (!known) return;
  if (!groups) {
    require(u_.core == CoreKind::exact || s.format->mantissa_bits == 0, "scaling.format",
            "powers of two, such as float8_e8m0fnu, with scaling.point exponents");
    return;
  }
  require(s.block % kScaledGroup == 0, "scaling.block", "a multiple of 16 with scaling groups");
  require(step_ != 0 && step_ % kScaledGroup == 0, "group", "a multiple of 16 with scaling groups");
  require(u_.order == StepOrder::ascending, "order", "ascending with scaling groups");
  require(u_.a == nullptr || u_.b == nullptr || group_sums_fit(u_), "b",
          "operands whose exact sums of 16 products, times both scales, fit 64 bits");
}

void DescriptionCheck::sparsity() {
  const Sparsity& s = u_.sparsity;
  if (s.dense()) {
    require(s.kept == 0, "sparsity", "0:0 (dense) or N:M");
    return;
  }
  require(s.group > 0 && s.group <= kLargestPattern && s.kept >= 1 && s.kept <= s.group, "sparsity",
          "N:M with 1 <= N <= M <= 16");
}

void DescriptionCheck::input() {
  const Format* format = u_.input.format;
  if (format == nullptr) return;
  require(format->kind == Kind::floating && format->is_signed && format->has_zero(), "input.format",
          "a signed floating format with a zero");
  for (const Format* operand : {u_.a, u_.b}) {
    if (operand == nullptr) continue;
    require(operand->kind == Kind::floating, "input.format", "together with floating operands");
  }
}

namespace {

constexpr int kMostFraction = 64;  ///< of a two's complement register

/// Infinities and signs of zero pass as well as the finite values.
bool holds_all_of(const Format& wide, const Format& narrow) {
  return exact_in(narrow, wide) && (wide.has_infinity() || !narrow.has_infinity()) &&
         (wide.has_negative_zero() || !narrow.has_negative_zero());
}

bool printable(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

bool DescriptionCheck::require(bool holds, std::string_view key, std::string_view expected) {
  if (!holds) problems_.push_back({std::string(key), std::string(expected)});
  return holds;
}

bool DescriptionCheck::in_range(int value, std::string_view key, int least, int most) {
  return require(value >= least && value <= most, key, fmt::format("{} to {}", least, most));
}

std::vector<DescriptionProblem> DescriptionCheck::run() {
  name();
  sizes();
  const std::size_t before = problems_.size();
  accumulator();
  outer();
  const std::size_t registers = problems_.size() - before;
  unused_fields();
  const std::size_t others = problems_.size();
  operands();
  const bool formats_known = registers == 0 && problems_.size() == others;
  if (formats_known) results();
  roundings();
  order();
  if (formats_known) scaling();
  if (u_.core == CoreKind::fused && formats_known) fused();
  if (u_.core == CoreKind::chain) chain();
  if (u_.core == CoreKind::tree) tree();
  if (formats_known) table();
  c_entry();
  subnormals();
  if (formats_known) nan();
  sparsity();
  input();
  return std::move(problems_);
}

void DescriptionCheck::name() {
  require(printable(u_.name), "name", "printable ASCII without spaces");
}

void DescriptionCheck::sizes() {
  in_range(u_.k, "k", 0, kLargestSize);
  in_range(u_.group, "group", 0, kLargestSize);
  if (u_.k != 0 && u_.group != 0)
    require(u_.k % u_.group == 0, "group", fmt::format("a divisor of k, {}", u_.k));
  if (u_.core == CoreKind::chain)
    require(u_.group <= 1, "group", "0 or 1: a step of core chain is one product");
}

void DescriptionCheck::one_register(const Register& r, const std::string& object) {
  const auto key = [&](const char* member) { return object + "." + member; };
  if (r.format != nullptr) {
    require(r.format->kind == Kind::floating && r.format->is_signed && r.format->has_zero(),
            key("format"), "a signed floating format with a zero, or null");
  } else {
    in_range(r.bits, key("bits"), 2, 32);
    in_range(r.fraction, key("fraction"), 0, kMostFraction);
  }
  if (r.overflow_to_infinity) {
    require(r.overflow == Overflow::ieee, key("overflow"),
            fmt::format("ieee with {}.overflow_to_infinity", object));
    require(r.format != nullptr && r.format->specials == Specials::ieee,
            key("overflow_to_infinity"),
            fmt::format("together with an IEEE-like {}.format", object));
  }
}

void DescriptionCheck::accumulator() {
  const Register& r = u_.accumulator;
  if (is_integer_core(u_)) {
    require(r.format == nullptr, "accumulator.format",
            fmt::format("null (two's complement) with core {}", text_of(u_.core)));
  }
  one_register(r, "accumulator");
  const bool once = u_.core == CoreKind::fused || u_.core == CoreKind::exact;
  require(!once || r.integer != IntegerOverflow::saturate_each, "accumulator.integer_overflow",
          fmt::format("wrap or saturate_once: core {} writes its register once per step",
                      text_of(u_.core)));
}

void DescriptionCheck::outer() {
  const int every = u_.outer.every;
  in_range(every, "outer.every", 0, kLargestSize);
  if (every <= 0) return;
  const Register& r = u_.outer.accumulator;
  const int instruction = u_.k != 0 ? u_.k : u_.group;
  if (instruction > 0)
    require(every % instruction == 0, "outer.every",
            fmt::format("a multiple of an instruction, {} products", instruction));
  require((r.format == nullptr) == (u_.accumulator.format == nullptr), "outer.format",
          u_.accumulator.format == nullptr ? "null (two's complement) as accumulator.format"
                                           : "a floating format as accumulator.format");
  one_register(r, "outer");
  require(r.integer != IntegerOverflow::saturate_each, "outer.integer_overflow",
          "wrap or saturate_once: the outer register is written once per sum");
  require(u_.chain.chunk == 0, "chain.chunk", "0 with outer.every: a sum is a chunk");
  require(u_.nan == NanRule::canonical, "nan", "canonical with outer.every");
}

void DescriptionCheck::operands() {
  for (const auto& [key, format] : {std::pair("a", u_.a), std::pair("b", u_.b)}) {
    if (format == nullptr) {
      require(!is_integer_core(u_) && u_.core != CoreKind::fused, key,
              fmt::format("a format with core {}", text_of(u_.core)));
      continue;
    }
    require(container_of(*format).has_value(), key,
            "a format of at most 16 bits, tfloat32, float32 or float64");
    const Kind kind = format->kind;
    if (u_.core == CoreKind::fused)
      require(kind == Kind::floating, key, "a floating format with core fused");
    if (u_.core == CoreKind::integer)
      require(kind == Kind::integer || kind == Kind::sign, key,
              "an integer format or sign1 with core integer");
    if (u_.core == CoreKind::xnor) require(kind == Kind::sign, key, "sign1 with core xnor");
  }
  const bool keeps_products =
      u_.core == CoreKind::fused || (u_.core == CoreKind::tree && !u_.tree.round_products);
  require(!keeps_products || products_fit(u_), "b",
          "operands whose significands have at most 64 bits together where products are not "
          "rounded");
}

void DescriptionCheck::results() {
  if (twos_complement(u_)) return;
  const Format& r = *result_register(u_).format;
  const Format &c = *c_format(u_), &d = *result_format(u_);
  for (const auto& [key, format] : {std::pair("c", &c), std::pair("d", &d)}) {
    require(container_of(*format).has_value(), key,
            "a format of at most 16 bits, tfloat32, float32 or float64 (null is the register's " +
                r.name + ")");
    require(format->kind == Kind::floating && format->is_signed, key, "a signed floating format");
  }
  require(holds_all_of(d, r), "d", "a format that holds every value of the register's " + r.name);
  require(holds_all_of(d, c), "c",
          fmt::format("a format whose values {} holds: with K = 0, D is C", d.name));
}

std::string problem_text(const UnitDescription& u, const DescriptionProblem& problem) {
  // A name that is not printable would break the one line.
  const bool named = !u.name.empty() && printable(u.name);
  return fmt::format("{}: {}: expected {}", named ? u.name : "unit", problem.key, problem.expected);
}

void check_description(const UnitDescription& u) {
  const std::vector<DescriptionProblem> problems = DescriptionCheck(u).run();
  if (!problems.empty()) throw Error(problem_text(u, problems.front()));
}

namespace {

using Described = UnitDescription;

/// A field, or an object of fields, that means something only in some units.
struct Rule {
  std::string_view key;
  bool (*used)(const Described&);
  std::string_view needs;
};

template <CoreKind kCore>
bool has_core(const Described& u) {
  return u.core == kCore;
}

bool two_levels(const Described& u) { return u.outer.every != 0; }

/// The roundings of sums that IEEE 754 defines: not those of fused steps.
bool sums_round_down(const Described& u) {
  const auto down = [](const Rounding& r) { return r.mode == RoundingMode::rdn; };
  return floating_register(u) && ((u.core != CoreKind::fused && down(u.accumulator.rounding)) ||
                                  down(u.c_rounding) || down(u.outer.accumulator.rounding));
}

constexpr std::string_view kFloatingRegister = "together with a floating accumulator.format";
constexpr std::string_view kTwosComplement = "together with accumulator.format null";
constexpr std::string_view kRounds = "together with core fused, chain, tree or exact";
constexpr std::string_view kTwoLevels = "together with outer.every";
constexpr std::string_view kBlockScaled = "together with scaling.point exponents or groups";

const Rule kRules[] = {
    {"c", floating_register, kFloatingRegister},
    {"d", floating_register, kFloatingRegister},
    {"c_rounding",
     [](const Described& u) { return u.c_entry == CEntry::after_rounding && floating_register(u); },
     "together with c_entry after_rounding and a floating accumulator.format"},
    {"plus_zero_sums", sums_round_down, "together with a floating register or C added with rdn"},
    {"accumulator.rounding", rounds, kRounds},
    {"accumulator.overflow", floating_register, kFloatingRegister},
    {"accumulator.bits", twos_complement, kTwosComplement},
    {"accumulator.fraction", twos_complement, kTwosComplement},
    {"accumulator.fraction", rounds, kRounds},
    {"accumulator.integer_overflow", twos_complement, kTwosComplement},
    {"alignment", has_core<CoreKind::fused>, "together with core fused"},
    {"alignment.zero_c_counts",
     [](const Described& u) { return u.alignment.zero_exponent.has_value(); },
     "together with an alignment.zero_exponent"},
    {"alignment.parts", meets_later, "together with c_entry after_alignment"},
    {"second", meets_later, "together with c_entry after_alignment"},
    {"chain", has_core<CoreKind::chain>, "together with core chain"},
    {"tree", has_core<CoreKind::tree>, "together with core tree"},
    {"tree.round_products", [](const Described& u) { return u.tree.leaf == 1; },
     "together with tree.leaf 1"},
    {"tree.plus_zero_products", [](const Described& u) { return u.tree.leaf == 1; },
     "together with tree.leaf 1"},
    {"subnormals", rounds, kRounds},
    {"subnormals.inputs_to_plus_zero", [](const Described& u) { return u.subnormals.flush_inputs; },
     "together with subnormals.flush_inputs true"},
    {"subnormals.flush_c", floating_register, kFloatingRegister},
    {"subnormals.flush_results", floating_register, kFloatingRegister},
    {"subnormals.tiny_before_rounding",
     [](const Described& u) { return u.subnormals.flush_results; },
     "together with subnormals.flush_results true"},
    {"products_overflow",
     [](const Described& u) {
       return u.core == CoreKind::fused && u.scaling.point != Scaling::Point::groups;
     },
     "together with core fused, without scaling groups"},
    {"nan", [](const Described& u) { return u.core == CoreKind::chain && floating_register(u); },
     "together with core chain and a floating accumulator.format"},
    {"scaling.format", block_scaled, kBlockScaled},
    {"scaling.block", block_scaled, kBlockScaled},
    {"scaling.shift",
     [](const Described& u) { return u.scaling.point == Scaling::Point::after_sum; },
     "together with scaling.point after_sum"},
    {"input", rounds, kRounds},
    {"input.rounding", [](const Described& u) { return u.input.format != nullptr; },
     "together with input.format"},
    {"outer.format", two_levels, kTwoLevels},
    {"outer.rounding", two_levels, kTwoLevels},
    {"outer.overflow", two_levels, kTwoLevels},
    {"outer.overflow_to_infinity", two_levels, kTwoLevels},
    {"outer.bits", two_levels, kTwoLevels},
    {"outer.fraction", two_levels, kTwoLevels},
    {"outer.integer_overflow", two_levels, kTwoLevels},
    {"outer.rounding", rounds, kRounds},
    {"outer.overflow", floating_register, kFloatingRegister},
    {"outer.bits", twos_complement, kTwosComplement},
    {"outer.fraction", twos_complement, kTwosComplement},
    {"outer.fraction", rounds, kRounds},
    {"outer.integer_overflow", twos_complement, kTwosComplement},
};

bool under(std::string_view key, std::string_view rule) {
  return key == rule || (key.starts_with(rule) && key[rule.size()] == '.');
}

}  // namespace

bool applies(const UnitDescription& u, std::string_view key) {
  return std::ranges::all_of(
      kRules, [&](const Rule& rule) { return !under(key, rule.key) || rule.used(u); });
}

void DescriptionCheck::unused_fields() {
  for (const std::string& key : changed_fields(u_)) {
    for (const Rule& rule : kRules) {
      if (!require(!under(key, rule.key) || rule.used(u_), key, rule.needs)) break;
    }
  }
}

namespace {

// Refusals that concern the steps of a core: order, roundings, alignment, chains, trees, tables.

constexpr int kMostChains = 64;

}  // namespace

void DescriptionCheck::roundings() {
  const Register& r = u_.accumulator;
  for (const auto& [key, rounding] :
       {std::pair("accumulator.rounding", r.rounding), std::pair("c_rounding", u_.c_rounding),
        std::pair("input.rounding", u_.input.rounding),
        std::pair("outer.rounding", u_.outer.accumulator.rounding)}) {
    if (rounding.stochastic()) {
      in_range(rounding.random_bits, key, 1, 32);
      require(std::string_view(key) == "accumulator.rounding", key,
              "a rounding without random bits");
    } else {
      require(rounding == Rounding{.mode = rounding.mode}, key,
              "random bits and a variant with stochastic rounding only");
    }
  }
  if (!r.rounding.stochastic()) return;
  const std::string_view key = "accumulator.rounding";
  require(u_.core == CoreKind::chain, key, "core chain with stochastic rounding");
  require(u_.chain.chains == 1, "chain.chains",
          "1 with stochastic rounding: the additions of chains draw no random number");
  require(u_.chain.chunk == 0 || u_.k == 0, "k",
          "0 with stochastic rounding and chain.chunk: chunks draw by their index");
  if (r.format == nullptr) {
    require(r.integer != IntegerOverflow::wrap, "accumulator.integer_overflow",
            "saturate_once or saturate_each with stochastic rounding");
    return;
  }
  // A value has 64 bits; encode() needs two bits beyond those it rounds with.
  constexpr int kKnown = 64, kGuard = 2;
  const int most = kKnown - kGuard - 1 - r.format->mantissa_bits;
  require(r.rounding.random_bits <= most, key,
          fmt::format("at most {} random bits with {}", most, r.format->name));
}

void DescriptionCheck::order() {
  if (u_.order == StepOrder::ascending) return;
  const int period = u_.order == StepOrder::pairs_mod4 ? 4 : 2;
  require(u_.k != 0 && u_.k % period == 0, "order",
          fmt::format("a k that is a multiple of {} with {}", period, text_of(u_.order)));
  const bool sums_in_order = u_.core == CoreKind::chain || u_.core == CoreKind::tree ||
                             u_.accumulator.integer == IntegerOverflow::saturate_each;
  require(sums_in_order || step_ < u_.k, "order",
          "ascending where one step takes the whole instruction");
}

void DescriptionCheck::fused() {
  const Alignment& al = u_.alignment;
  in_range(al.fraction_bits, "alignment.fraction_bits", 0, most_fraction_bits(u_));
  const RoundingMode mode = al.rounding;
  require(mode == RoundingMode::rtz || mode == RoundingMode::rne || mode == RoundingMode::rodd ||
              mode == RoundingMode::rdn,
          "alignment.rounding", "rtz, rne, rodd or rdn");
  if (al.zero_exponent)
    in_range(*al.zero_exponent, "alignment.zero_exponent", -kLargestExponent, kLargestExponent);
  if (al.floor) in_range(*al.floor, "alignment.floor", -kLargestExponent, kLargestExponent);
  in_range(al.parts, "alignment.parts", 1, 2);
  if (al.parts == 2)
    require(step_ != 0 && step_ % 2 == 0, "alignment.parts", "an even group with 2 parts");
  if (!meets_later(u_)) return;
  in_range(u_.second.fraction_bits, "second.fraction_bits", 0, most_second_fraction_bits(u_));
  in_range(u_.second.c_fraction_bits, "second.c_fraction_bits", 0, kMostCFractionBits);
  if (u_.second.c_dropped) in_range(*u_.second.c_dropped, "second.c_dropped", 0, kLargestExponent);
}

void DescriptionCheck::chain() {
  const Chaining& chain = u_.chain;
  in_range(chain.chains, "chain.chains", 1, kMostChains);
  in_range(chain.chunk, "chain.chunk", 0, kLargestSize);
  if (chain.chains > 1) {
    require(u_.k % chain.chains == 0, "chain.chains", fmt::format("a divisor of k, {}", u_.k));
    require(u_.c_entry == CEntry::after_rounding, "c_entry",
            "after_rounding with several chains, which start from +0");
  }
  if (chain.chunk != 0) {
    require(chain.chains == 1, "chain.chunk", "together with chain.chains 1");
    require(u_.k % chain.chunk == 0, "chain.chunk", fmt::format("a divisor of k, {}", u_.k));
    require(u_.c_entry == CEntry::in_alignment, "c_entry",
            "in_alignment with chain.chunk: the sums of chunks are chained from C");
  }
  require(!chain.kahan || chain.fused, "chain.kahan", "together with chain.fused true");
  // Its four roundings of a product would need four draws.
  require(!chain.kahan || !u_.accumulator.rounding.stochastic(), "chain.kahan",
          "together with a rounding that is not stochastic");
}

void DescriptionCheck::tree() {
  const bool leaf = in_range(u_.tree.leaf, "tree.leaf", 1, kLargestSize);
  if (leaf && step_ != 0)
    require(step_ % u_.tree.leaf == 0, "tree.leaf",
            fmt::format("a divisor of the step, {}", step_));
}

void DescriptionCheck::table() {
  if (u_.core != CoreKind::table) {
    require(u_.products == nullptr, "products", "together with core table");
    return;
  }
  if (!require(u_.products != nullptr, "products", "a table of products with core table")) return;
  const int bits = u_.a->bits + u_.b->bits;
  if (!require(bits <= kMostTableBits, "b",
               fmt::format("codes of at most {} bits together with core table", kMostTableBits)))
    return;
  require(u_.products->size() == std::size_t{1} << bits, "products",
          fmt::format("2^{} x 2^{} entries, one for each pair of codes", u_.a->bits, u_.b->bits));
}

void DescriptionCheck::c_entry() {
  if (u_.c_entry == CEntry::after_alignment)
    require(u_.core == CoreKind::fused, "c_entry", "core fused with after_alignment");
  if (u_.c_entry == CEntry::after_rounding)
    require(u_.core == CoreKind::fused || u_.core == CoreKind::chain, "c_entry",
            "core fused or chain with after_rounding");
}

}  // namespace numemu::unit
