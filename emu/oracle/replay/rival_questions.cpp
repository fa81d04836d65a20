// Cold: a negligible share of any run (docs/build.md).
#include "emu/oracle/replay/rival_questions.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "emu/oracle/patches.hpp"
#include "emu/oracle/replay/record_edits.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::oracle {

namespace {

using recording::Element;
using recording::Instruction;
using recording::Specials;
using unit::UnitDescription;

int greatest_exponent(Element e) {
  const recording::ElementInfo f = info(e);
  return (1 << f.exponent_bits) - 1 - f.bias - (f.specials == Specials::ieee ? 1 : 0);
}
bool small(Element e) { return greatest_exponent(e) <= 2; }

/// The two descriptions, whether the second reads edited operands, and its edit of results.
struct Pair {
  const Instruction& i;
  const UnitDescription &own, &other;
  bool edits_operands;
  ResultEdit results;
};

bool scales_groups(const Pair& p) {
  return p.own.scaling.point == unit::Scaling::Point::groups && !p.edits_operands;
}
/// Of two scales: that of a zero or subnormal scale is the smallest of its type.
int least_scale_exponent(const Pair& p) { return 2 * (1 - info(p.i.scale).bias); }
/// Whether a zero C cannot be the largest exponent beside one of `least`.
bool zero_c_below(const unit::Alignment& a, int least) {
  return !a.zero_c_counts || a.zero_exponent.value_or(least) <= least;
}
/// Whether neither a zero C nor the floor can be the largest exponent beside one of `least`.
bool below(const unit::Alignment& a, int least) {
  return zero_c_below(a, least) && a.floor.value_or(least) <= least;
}
/// The larger of both floors, where there is one; -126 stands for none.
int larger_floor(const Pair& p) {
  return std::max(p.own.alignment.floor.value_or(-126), p.other.alignment.floor.value_or(-126));
}

struct Reason {
  std::string_view question;
  bool (*applies)(const Pair&);
  std::string_view text;
};

constexpr Reason kReasons[] = {
    {"exponent-floor",
     [](const Pair& p) {
       return sums_floats(p.i) && larger_floor(p) <= -126 && p.other.alignment.zero_exponent;
     },
     "no product and no C has an exponent below -126"},
    {"exponent-floor",
     [](const Pair& p) {
       return sums_floats(p.i) && p.i.d == Element::f16 && info(p.i.a).bits <= 8 &&
              larger_floor(p) - p.own.alignment.fraction_bits <= -32;
     },
     "the floor keeps 2^-32, the least product of FP8, and the least float16 C"},
    {"exponent-floor",
     [](const Pair& p) {
       return p.i.scale == Element::ue4m3 && scales_groups(p) &&
              below(p.own.alignment, least_scale_exponent(p)) &&
              below(p.other.alignment, least_scale_exponent(p));
     },
     "the sum of a block has the exponent of its scales, -12 at least, which is above the floor"},
    {"zero-exponent",
     [](const Pair& p) {
       const unit::Alignment &own = p.own.alignment, &other = p.other.alignment;
       return scales_groups(p) && own.floor && own.floor == other.floor &&
              zero_c_below(own, *own.floor) && zero_c_below(other, *own.floor);
     },
     "the sum of a block has the exponent of its scales, and a zero C none above the floor"},
    {"zero-exponent",
     [](const Pair& p) {
       return sums_floats(p.i) && (p.i.d == Element::f16 || p.i.c == Element::f16);
     },
     "a zero product has an exponent of -111 at most, and float16 ends at 2^-24"},
    {"zero-exponent",
     [](const Pair& p) {
       return sums_floats(p.i) && p.own.c_entry == unit::CEntry::after_rounding;
     },
     "no product is below 2^-32, and C is added apart"},
    {"zero-exponent",
     [](const Pair& p) {
       return sums_floats(p.i) && p.i.block == 0 && small(p.i.a) && small(p.i.b);
     },
     "a zero product has an exponent of -124 at most, which keeps 2^-149"},
    {"overflow", [](const Pair& p) { return sums_floats(p.i) && p.i.d == Element::f32; },
     "no sum of products is near 2^103, half an ulp of the largest float32"},
    {"overflow", [](const Pair& p) { return sums_floats(p.i) && p.other.products_overflow; },
     "no product reaches 2^128"},
    {"zero-sign",
     [](const Pair& p) {
       return sums_floats(p.i) && p.i.d == Element::f32 && p.results == ResultEdit::positive_zero;
     },
     "every term is a multiple of 2^-149, so no sum but zero is written as zero"},
    {"int-saturation",
     [](const Pair& p) {
       return !info(p.i.a).has_sign && !info(p.i.b).has_sign &&
              p.own.accumulator.integer != unit::IntegerOverflow::wrap &&
              p.other.accumulator.integer != unit::IntegerOverflow::wrap;
     },
     "no product is negative, so a sum that has left never returns"},
    {"kept-zeros",
     [](const Pair& p) { return info(p.i.b).specials == Specials::finite && small(p.i.b); },
     "B has no infinity and no NaN, and zeros beside it raise no exponent above that of C"},
    {"subnormal-inputs",
     [](const Pair& p) {
       return p.own.input.format != nullptr && p.i.a == Element::e4m3 && p.i.b == Element::e4m3 &&
              p.other.subnormals.flush_inputs != p.own.subnormals.flush_inputs;
     },
     "every e4m3 is a normal float16, which the steps multiply"},
    {"subnormal-inputs", [](const Pair& p) { return p.i.scale == Element::ue4m3; },
     "a subnormal C is lost beside the least scales"},
    {"subnormal-results", [](const Pair& p) { return p.i.scale == Element::ue4m3; },
     "what is kept beside the least scales is a normal float32"},
    {"subnormal-results",
     [](const Pair& p) { return p.i.d == Element::f32 && p.i.c == Element::f16; },
     "no sum of float16 products and a float16 C is a subnormal float32"},
};

}  // namespace

bool sums_floats(const Instruction& i) {
  const bool wide =
      info(i.a).exponent_bits == 8 || i.a == Element::f64 || i.scale == Element::ue8m0;
  return !is_integer(i.a) && !wide;
}

std::string_view why_equal(const Rule& rule, const Rule& rival, const Instruction& i) {
  const Pair pair{i, *rule.unit->description(), *rival.unit->description(),
                  static_cast<bool>(rival.inputs), edit_of(rival.results)};
  for (const Reason& reason : kReasons)
    if (reason.question == rival.family && reason.applies(pair)) return reason.text;
  return "";
}

namespace {

using unit::CEntry;
using unit::CoreKind;
using unit::Scaling;
using unit::StepOrder;

}  // namespace

std::string_view question_of(const UnitDescription& own, const UnitDescription& other,
                             const Instruction& i) {
  const std::vector<std::string> keys = changed_keys(own, other);
  const auto changes = [&](const char* key) { return std::ranges::find(keys, key) != keys.end(); };
  const auto within = [&](std::initializer_list<std::string_view> allowed) {
    return std::ranges::all_of(keys, [&](const std::string& key) {
      return std::ranges::find(allowed, key) != allowed.end();
    });
  };
  const bool chain = own.core == CoreKind::chain;
  if (changes("core"))  // a step that rounds its exact sum cuts no term
    return other.core != CoreKind::exact ? "" : chain ? "double-chain" : "alignment-rounding";
  if (within({"alignment.fraction_bits"})) {
    constexpr int kNear = 2;
    const int distance = other.alignment.fraction_bits - own.alignment.fraction_bits;
    return std::abs(distance) <= kNear ? "kept-bits" : "";
  }
  if (within({"alignment.rounding"})) return "alignment-rounding";
  if (within({"alignment.zero_exponent", "alignment.zero_c_counts"}) &&
      !other.alignment.zero_exponent)
    return "zero-exponent";
  if (within({"alignment.zero_exponent", "alignment.zero_c_counts", "alignment.floor"})) {
    // Without zeros and where no product reaches the floor, the rival is that of zero-exponent. A
    // zero C that counts has an exponent of -126, and that of groups is all that zero_exponent is.
    const bool groups = own.scaling.point == Scaling::Point::groups;
    const unit::Alignment& rival = other.alignment;
    const bool reached = !sums_floats(i) || i.scales() > 1 || rival.floor > -126;
    const bool zero_c = rival.zero_exponent && rival.zero_c_counts;
    if ((!rival.zero_exponent && !reached) || (groups && !rival.zero_c_counts) ||
        (zero_c && rival.floor.value_or(-127) < -126))
      return "";
    if (!rival.floor) return "exponent-floor";
    // MMA-Sim's, and those of the Leeds models: by the least exponent of the output and the extra
    // bits.
    const int floor = *rival.floor;
    const int leeds = 1 - info(i.d).bias - (5 + own.alignment.fraction_bits - 23);
    const bool likely =
        floor == -126 || (i.d == Element::f32 ? floor == -132 || floor == -133 : floor == leeds);
    return likely ? "exponent-floor" : "";
  }
  if (within({"products_overflow"})) return "overflow";
  if (within({"group"})) {
    if (other.group == unit::products_of_step(own)) return "";
    const bool wraps = own.accumulator.integer == unit::IntegerOverflow::wrap;
    if (unit::is_integer_core(own)) return wraps ? "" : "int-saturation";
    return other.group < 4 ? "" : "step-width";
  }
  if (within({"order"})) {
    if (other.order == StepOrder::odd_first) return "";  // the same steps
    return own.order == StepOrder::ascending ? "step-width" : "fp8-lowering";
  }
  if (within({"c_entry", "c_rounding", "chain.chunk"}) && changes("c_entry")) {
    if (other.c_entry == CEntry::after_alignment) return "";
    return chain ? "double-chain" : "c-entry";
  }
  if (within({"accumulator.format", "c", "d"})) {
    const int bits = other.accumulator.format->mantissa_bits;
    return i.d == Element::f32 && (bits == 13 || bits == 23) ? "written-bits" : "";
  }
  if (within({"accumulator.overflow", "accumulator.overflow_to_infinity"})) {
    // It takes infinite terms to the largest number, too; no other sum comes near.
    if (other.accumulator.overflow == Overflow::saturate && sums_floats(i) && i.d == Element::f32)
      return "infinities";
    return other.accumulator.overflow == Overflow::propagate ? "" : "overflow";
  }
  if (within({"accumulator.integer_overflow"})) return "int-saturation";
  if (within({"subnormals.flush_c"})) return "subnormal-inputs";
  if (within({"subnormals.flush_inputs"}))
    return own.scaling.point == Scaling::Point::groups ? "" : "subnormal-inputs";
  if (within({"subnormals.flush_results", "subnormals.tiny_before_rounding"}))
    return "subnormal-results";
  if (within({"chain.fused"})) return "double-chain";
  if (within({"nan_code"})) return chain ? "infinities" : "";
  return "";
}

}  // namespace numemu::oracle
