#include "emu/oracle/replay/rival_questions.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "emu/unit/description/fields.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;
using recording::Instruction;
using unit::CEntry;
using unit::CoreKind;
using unit::Scaling;
using unit::StepOrder;
using unit::UnitDescription;

std::set<std::string> changed_keys(const UnitDescription& own, const UnitDescription& other) {
  std::vector<std::string> values;
  unit::for_each_field(
      own, [&](const char*, const auto& field) { values.push_back(unit::text_of(field)); });
  std::set<std::string> keys;
  std::size_t at = 0;
  unit::for_each_field(other, [&](std::string_view key, const auto& field) {
    if (values[at++] != unit::text_of(field) && key != "name") keys.emplace(key);
  });
  return keys;
}

}  // namespace

std::string_view question_of(const UnitDescription& own, const UnitDescription& other,
                             const Instruction& i) {
  const std::set<std::string> keys = changed_keys(own, other);
  const auto within = [&](std::initializer_list<std::string_view> allowed) {
    return std::ranges::all_of(keys, [&](const std::string& key) {
      return std::ranges::find(allowed, key) != allowed.end();
    });
  };
  const bool chain = own.core == CoreKind::chain;
  if (keys.contains("core"))  // a step that rounds its exact sum cuts no term
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
  if (within({"c_entry", "c_rounding", "chain.chunk"}) && keys.contains("c_entry")) {
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
