// Refuses descriptions whose parameters contradict each other: names, sizes, formats, register.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/description/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/unit/description/bounds.hpp"
#include "emu/unit/operand.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
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

}  // namespace numemu::unit
