#include "emu/oracle/replay/record_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/oracle/patches.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_edits.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;
using recording::Instruction;
using recording::Sparsity;
using recording::Specials;
using unit::CEntry;
using unit::CoreKind;
using unit::Scaling;
using unit::StepOrder;
using unit::UnitDescription;

// The questions that rivals answer otherwise, and why no input tells some of them apart.

int greatest_exponent(Element e) {
  const recording::ElementInfo f = info(e);
  return (1 << f.exponent_bits) - 1 - f.bias - (f.specials == Specials::ieee ? 1 : 0);
}
bool small(Element e) { return greatest_exponent(e) <= 2; }

/// Whether products are floats within 2^-126 and 2^127.
bool sums_floats(const Instruction& i) {
  const bool wide =
      info(i.a).exponent_bits == 8 || i.a == Element::f64 || i.scale == Element::ue8m0;
  return !is_integer(i.a) && !wide;
}

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
  std::string_view family;
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

/// "no product reaches 2^128"; "" where some input may tell. `rule` is the catalogue's.
std::string_view why_equal(const Rule& rule, const Rule& rival, const Instruction& i) {
  const Pair pair{i, *rule.unit->description(), *rival.unit->description(),
                  static_cast<bool>(rival.inputs), edit_of(rival.results)};
  for (const Reason& reason : kReasons)
    if (reason.family == rival.family && reason.applies(pair)) return reason.text;
  return "";
}

/// The family of a patch of a description; "": none that probes ask, or too far from the unit's
/// own value.
std::string_view family_of(const UnitDescription& own, const UnitDescription& other,
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

/// The names of the catalogue are its own.
std::shared_ptr<const unit::Unit> named_recorded(UnitDescription u) {
  u.name = "recorded";
  return unit::make_unit(std::move(u));
}

bool is_fp8(const Instruction& i) {
  const auto fp8 = [](Element e) { return e == Element::e4m3 || e == Element::e5m2; };
  return fp8(i.a) && fp8(i.b) && i.block == 0;
}

/// Refuses a unit that reads or writes beyond the fields of records.
void require_containers(const Subject& s, const Layout& layout, const Instruction& i) {
  const UnitDescription& u = *s.unit->description();
  const unit::Register& own = unit::result_register(u);
  const std::int64_t kept = u.sparsity.dense() ? s.k : unit::kept_depth(u.sparsity, s.k);
  const std::int64_t scales =
      u.scaling.block == 0 ? 0 : (kept + u.scaling.block - 1) / u.scaling.block;
  const auto require = [&](const char* name, int bits, std::int64_t count) {
    const int f = find_field(layout, name);
    if (f < 0) return;
    const Field& field = layout[static_cast<std::size_t>(f)];
    if (bits != field.bits || count > field.count)
      throw Error(
          fmt::format("unit {}: {}: expected {} codes of {} bits, found {} of {} bits in {}",
                      u.name, name, count, bits, field.count, field.bits, full_name(i)));
  };
  require("a", 8 * unit::bytes_of(s.a, own), kept);
  require("b", 8 * unit::bytes_of(s.b, own), s.k);
  require("sa", 8, scales);
  require("c", 8 * unit::bytes_of(s.unit->c_format(), own), 1);
  require("d", 8 * unit::bytes_of(s.unit->d_format(), own), 1);
}

/// A rule by a description. Throws Error where it reads other containers than records have.
Rule by_description(const Instruction& i, std::string family, std::string name, UnitDescription u,
                    OperandEdit operands, Path path) {
  const std::shared_ptr<const unit::Unit> unit = named_recorded(std::move(u));
  const Subject subject = subject_of(*unit, i);
  const Layout& read = operands.layout.empty() ? container_layout(i) : operands.layout;
  require_containers(subject, read, i);
  return {.family = std::move(family),
          .name = std::move(name),
          .inputs = std::move(operands.change),
          .compute = [unit, subject, read,
                      path](Records& r) { UnitDot(subject, read).multiply(r, path); },
          .unit = unit,
          .layout = std::move(operands.layout)};
}

class RivalList {
 public:
  RivalList(const Rule& rule, const Instruction& i)
      : rule_(rule), own_(*rule.unit->description()), i_(i) {}

  std::vector<Rule> make() {
    std::vector<UnitDescription> asked;
    for (Rival& patch : patches_of(own_)) {
      const std::string_view family = family_of(own_, patch.description, i_);
      const bool repeated = std::ranges::any_of(
          asked, [&](const UnitDescription& one) { return same_rule(one, patch.description); });
      if (family.empty() || repeated) continue;
      asked.push_back(patch.description);
      add(family, std::move(patch.name), std::move(patch.description));
    }
    if (!unit::is_integer_core(own_)) floating();
    return std::move(rivals_);
  }

 private:
  void floating() {
    if (own_.core == CoreKind::chain) {
      std::vector<int> descending(static_cast<std::size_t>(units()));
      std::iota(descending.rbegin(), descending.rend(), 0);
      edit("double-chain", "products in descending k", in_order(i_, std::move(descending)));
    } else {
      orders();
      lowering();
      zeros();
      zero_blocks();
      products();
    }
    if (i_.sparsity != Sparsity::dense) sparse();
    if (i_.a == Element::tf32) low_bits();
    if (i_.block != 0) scales();
    nan();
  }

  void add(std::string_view family, std::string name, UnitDescription u, OperandEdit operands = {},
           ResultEdit results = ResultEdit::none) {
    if (!operands.change) operands = {rule_.inputs, rule_.layout};
    try {
      Rule rival = by_description(i_, std::string(family), std::move(name), std::move(u),
                                  std::move(operands), Path::fast);
      rival.results = results != ResultEdit::none ? change_of(i_, results) : rule_.results;
      rivals_.push_back(std::move(rival));
    } catch (const Error&) {  // the two contradict each other in this unit
    }
  }
  void edit(std::string_view family, std::string name, OperandEdit operands) {
    add(family, std::move(name), own_, std::move(operands));
  }
  void write(std::string_view family, std::string name, ResultEdit results) {
    if (results != edit_of(rule_.results)) add(family, std::move(name), own_, {}, results);
  }

  /// Kept products that move together, and how many of them there are.
  int kept_of_unit() const {
    return i_.sparsity == Sparsity::dense           ? 1
           : i_.sparsity == Sparsity::pairs_of_four ? 4
           : i_.sparsity == Sparsity::two_of_four   ? 2
                                                    : 1;
  }
  int units() const { return i_.kept() / kept_of_unit(); }

  /// Units by the step that takes them, each step's in ascending k.
  template <class StepOf>
  OperandEdit by_step(const StepOf& step_of) const {
    std::vector<int> order(static_cast<std::size_t>(units()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, step_of);
    return in_order(i_, std::move(order));
  }

  void orders() {
    const int step = unit::products_of_step(own_) / kept_of_unit();
    if (own_.order != StepOrder::ascending || step == 0 || step >= units() || i_.block != 0) return;
    const int steps = units() / step;
    for (const int run : {1, 2}) {
      if (run % kept_of_unit() != 0) continue;
      const int own_run = run / kept_of_unit();
      edit("step-width", fmt::format("steps take turns by {}", run),
           by_step([=](int unit) { return unit / own_run % steps; }));
    }
    edit("step-width", "the last step first", by_step([=](int unit) { return -(unit / step); }));
  }

  void lowering() {
    if (!is_fp8(i_)) return;
    constexpr const char* kQuestion = "fp8-lowering";
    UnitDescription u = own_;
    if (own_.order != StepOrder::pairs_mod4) {
      u.order = StepOrder::pairs_mod4;
      u.c_entry = CEntry::after_rounding;
      u.input.format = &find_format("float16");
      u.k = i_.kept();
      u.group = u.k / 2;
      u.alignment.fraction_bits = 25;
      u.accumulator.format = u.d;
      add(kQuestion, "two half-precision steps over k mod 4, C added last", std::move(u));
      return;
    }
    u.order = StepOrder::ascending;
    u.c_entry = CEntry::in_alignment;
    u.input = {};
    u.group = u.k;
    add(kQuestion, "one native step, 25 fraction bits kept", u);
    u.alignment.fraction_bits = 13;
    if (i_.d == Element::f32) u.accumulator.format = &find_format("e8m13");
    add(kQuestion, "one native step, 13 fraction bits kept", u);
    if (i_.sparsity != Sparsity::dense) return;
    const auto takes = [&](const char* name, const auto& in_first_step) {
      edit(kQuestion, name, halves(in_first_step));
    };
    takes("k mod 4 in {2, 3} first", [](int k) { return k % 4 >= 2; });
    takes("the low half of k first", [this](int k) { return k < i_.k / 2; });
    takes("even k first", [](int k) { return k % 2 == 0; });
  }

  /// The unit takes k mod 4 in {0, 1} first: there come the products of the first step.
  template <class First>
  OperandEdit halves(const First& in_first_step) const {
    std::vector<int> first, second, order;
    for (int k = 0; k < i_.k; ++k) (in_first_step(k) ? first : second).push_back(k);
    for (int k = 0; k < i_.k; ++k) {
      const auto at = static_cast<std::size_t>(k / 4 * 2 + k % 2);
      order.push_back((k % 4 < 2 ? first : second)[at]);
    }
    return in_order(i_, std::move(order));
  }

  void zeros() {
    if (own_.c_entry != CEntry::in_alignment) return;
    constexpr const char* kQuestion = "zero-sign";
    if (i_.d == Element::f32)
      write(kQuestion, "a sum cut to zero is +0", ResultEdit::positive_zero);
    if (own_.scaling.point == Scaling::Point::groups) return;
    write(kQuestion, "-0 where every addend is -0", ResultEdit::zero_of_zeros);
    write(kQuestion, "-0 where every addend is negative", ResultEdit::zero_of_addends);
  }

  void zero_blocks() {
    if (own_.scaling.point != Scaling::Point::groups) return;
    UnitDescription u = own_;
    u.alignment.zero_exponent.reset();
    add("zero-exponent", "blocks and C that are zero take no part in the alignment", std::move(u),
        least_scales_of_zeros(i_));
  }

  void products() {
    if (own_.scaling.point != Scaling::Point::groups) {
      UnitDescription u = own_;
      u.a = &find_format("float64");
      u.b = &find_format("bfloat16");
      u.input = {};
      add("product-exponent", "exponents of normalised products", std::move(u),
          normalised_products(i_));
    }
    const auto finite = [](const Format* f) {
      return f->has_infinity()
                 ? &find_format(fmt::format("e{}m{}+finite", f->exponent_bits, f->mantissa_bits))
                 : f;
    };
    UnitDescription u = own_;
    if (!u.a->has_infinity() && !u.b->has_infinity()) return;
    // A rule of normalised products reads float64, which no descriptor has without infinities.
    if (*u.a == find_format("float64")) return;
    u.a = finite(u.a);
    u.b = finite(u.b);
    if (u.input.format != nullptr) u.input.format = finite(u.input.format);
    if (i_.a != Element::tf32)
      add("infinities", "infinity and NaN of A, B are numbers", std::move(u));
  }

  void sparse() {
    const int step = unit::products_of_step(own_);
    UnitDescription u = own_;
    u.sparsity = {};
    u.k = i_.k;
    if (own_.core == CoreKind::fused && step < i_.k) {
      u.group = step;
      add("sparse-order", "steps count positions of k", u, expanded_beside_zeros(i_));
    }
    edit("kept-zeros", "kept zeros are skipped", without_kept_zeros(i_));
    u.group = 2 * step;
    add("kept-zeros", "what is not kept counts as zeros", std::move(u), expanded(i_));
  }

  void low_bits() {
    for (const auto& [name, mode] :
         {std::pair("low bits rounded to nearest even", RoundingMode::rne),
          std::pair("low bits rounded to nearest, away", RoundingMode::rna),
          std::pair("low bits used", RoundingMode::rtz)}) {
      UnitDescription u = own_;
      u.a = u.b = &find_format("float32");
      if (mode != RoundingMode::rtz) u.input = {&find_format("tfloat32"), {.mode = mode}};
      add("tf32-low-bits", name, std::move(u));
    }
  }

  void scales() {
    edit("scale-nan", "a NaN scale of zeros does nothing", nan_scales_of_nonzeros(i_));
    edit("infinite-c", "infinite C gives NaN", infinite_c_as_nan(i_));
    if (i_.scale == Element::ue8m0)
      edit("scale-range", "scale exponents clamped to -127, 127", clamped_scales(i_));
    if (i_.scale != Element::ue4m3) return;
    edit("scale-significand", "the sign of a scale counts", signed_scales(i_));
    edit("scale-significand", "subnormal scales are zeros", flushed_scales(i_));
  }

  void nan() {
    constexpr const char* kQuestion = "nan-payload";
    if (edit_of(rule_.results) == ResultEdit::first_nan) {
      Rule canonical = rule_;
      canonical.family = kQuestion;
      canonical.name = "canonical NaN";
      canonical.results = nullptr;
      rivals_.push_back(std::move(canonical));
    }
    write(kQuestion, "payload of the first NaN of A, B, C", ResultEdit::first_nan);
    write(kQuestion, "payload of the first NaN of C, A, B", ResultEdit::first_nan_from_c);
  }

  const Rule& rule_;
  const UnitDescription& own_;
  const Instruction& i_;
  std::vector<Rule> rivals_;
};

}  // namespace

Rule rule_of(const UnitDescription& u, const Instruction& i) {
  Rule rule = by_description(i, "", u.name, u, {}, Path::reference);
  // Float64 arithmetic passes payloads on, as IEEE 754 recommends.
  if (i.d == Element::f64) rule.results = change_of(i, ResultEdit::first_nan);
  return rule;
}

std::optional<Rule> rule_of(const std::string& chip, const Instruction& i) {
  const std::optional<UnitDescription> u = unit_of(chip, i);
  return u ? std::optional(rule_of(*u, i)) : std::nullopt;
}

std::vector<Rule> rivals_of(const Rule& rule, const Instruction& i) {
  return RivalList(rule, i).make();
}

std::vector<Rule> rivals_of_catalogue(const Rule& rule, const Instruction& i) {
  std::vector<Rule> rivals = rivals_of(rule, i);
  for (Rule& rival : rivals) rival.equal = why_equal(rule, rival, i);
  return rivals;
}

std::vector<std::uint8_t> results_of(const Rule& rule, const recording::Batch& batch) {
  Sample sample;
  sample.records = records_of(batch);
  return in_containers(*batch.instruction, predict(subject_of(*rule.unit, *batch.instruction), rule,
                                                   sample.records, sample));
}

}  // namespace numemu::oracle
