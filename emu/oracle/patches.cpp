#include "emu/oracle/patches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using unit::CEntry;
using unit::CoreKind;
using unit::IntegerOverflow;
using unit::NanRule;
using unit::Register;
using unit::Scaling;
using unit::StepOrder;
using unit::UnitDescription;

constexpr std::array kModes = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                               RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd};

class Patches {
 public:
  explicit Patches(const unit::UnitDescription& u) : u_(u) {}
  std::vector<Rival> make();

 private:
  /// Adds the description with `change` done to it where that is another one without contradiction.
  template <class Change>
  void add(std::string name, const Change& change) {
    unit::UnitDescription other = u_;
    change(other);
    other.name = u_.name.empty() ? "rival" : u_.name + ".rival";
    try {
      unit::check_description(other);
    } catch (const Error&) {
      return;
    }
    if (!same_rule(other, u_)) rivals_.push_back({std::move(name), std::move(other)});
  }

  // The sum.

  void alignment();
  void c_entry();
  /// The register's rounding and width.
  void result();
  /// Registers of any fraction up to that of `whole`; `what` holds `held`, and `put` finds it.
  void widths(const char* what, const Format& held, const Format& whole,
              unit::Register& (*put)(unit::UnitDescription&));
  /// Another core with everything that only the old one uses at its default.
  void core();
  void chain();
  void tree();
  /// Products of a step, of an instruction, and their order.
  void steps();
  /// A second level of accumulation, or none; its sums and its register.
  void levels();
  void outer_register();

  // The numbers.

  void subnormals();
  /// Operands that the format holds are never rounded, but subnormal ones may be normal there.
  bool changes_operands(const Format& format, RoundingMode mode) const;
  void input();
  void overflow();
  void nan();

  const unit::UnitDescription& u_;
  std::vector<Rival> rivals_;
};

/// "to nearest even", "toward zero"
const char* words(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rne:
      return "to nearest even";
    case RoundingMode::rna:
      return "to nearest, ties away from zero";
    case RoundingMode::rtz:
      return "toward zero";
    case RoundingMode::rup:
      return "toward plus infinity";
    case RoundingMode::rdn:
      return "toward minus infinity";
    case RoundingMode::rodd:
      return "to odd";
    case RoundingMode::sr:
      break;
  }
  return "stochastically";
}

}  // namespace

std::vector<Rival> Patches::make() {
  // A sum that is rounded needs these; an integer sum has few parameters.
  if (!unit::is_integer_core(u_)) {
    alignment();
    c_entry();
    result();
    core();
    chain();
    tree();
    subnormals();
    input();
  }
  overflow();
  steps();
  levels();
  nan();
  return std::move(rivals_);
}

void Patches::alignment() {
  const int kept = u_.alignment.fraction_bits;
  for (int f = 0; f <= 64; ++f) {
    add(fmt::format("{} fraction bits kept instead of {}", f, kept),
        [f](UnitDescription& u) { u.alignment.fraction_bits = f; });
  }
  for (const RoundingMode mode : kModes) {
    add(fmt::format("addends cut {} in the alignment", words(mode)),
        [mode](UnitDescription& u) { u.alignment.rounding = mode; });
  }
  const auto drop_zeros = [](UnitDescription& u) {
    u.alignment.zero_exponent.reset();
    u.alignment.zero_c_counts = true;
  };
  add("products with a zero operand take no part in the alignment", drop_zeros);
  add("zero operands count with exponent -126",
      [](UnitDescription& u) { u.alignment.zero_exponent = -126; });
  // Who lets zeros take no part has another lower bound, too.
  constexpr std::array<std::optional<int>, 10> kFloors = {std::nullopt, -126, -132, -133, -149,
                                                          -21,          -20,  -19,  -24,  -14};
  for (const std::optional<int> floor : kFloors) {
    const std::string is = "the largest exponent " +
                           (floor ? fmt::format("is at least {}", *floor) : "has no lower bound");
    add(is, [floor](UnitDescription& u) { u.alignment.floor = floor; });
    add("zero operands take no part and " + is, [=](UnitDescription& u) {
      drop_zeros(u);
      u.alignment.floor = floor;
    });
    add("a zero C takes no part and " + is, [floor](UnitDescription& u) {
      u.alignment.zero_c_counts = !u.alignment.zero_exponent;
      u.alignment.floor = floor;
    });
  }
  for (const int parts : {1, 2}) {
    add(parts == 1 ? "all products summed together" : "products of even and odd k summed apart",
        [parts](UnitDescription& u) { u.alignment.parts = parts; });
  }
  for (const int f : {23, 24, 25, 26, 30, 31, 32}) {
    add(fmt::format("{} fraction bits of the sum kept where it meets C", f),
        [f](UnitDescription& u) { u.second.fraction_bits = f; });
    add(fmt::format("{} fraction bits of C kept where it meets the sum", f),
        [f](UnitDescription& u) { u.second.c_fraction_bits = f; });
    add(fmt::format("C dropped more than {} below the sum", f),
        [f](UnitDescription& u) { u.second.c_dropped = f; });
  }
  add("C never dropped", [](UnitDescription& u) { u.second.c_dropped.reset(); });
  add("products of 2^128 and more are infinite",
      [](UnitDescription& u) { u.products_overflow = true; });
  add("products of 2^128 and more are numbers",
      [](UnitDescription& u) { u.products_overflow = false; });
}

void Patches::c_entry() {
  constexpr std::array kNames = {"C in the alignment, or the start of the chain",
                                 "C meets the unrounded sum in a second alignment",
                                 "C added after rounding"};
  for (const CEntry entry :
       {CEntry::in_alignment, CEntry::after_alignment, CEntry::after_rounding}) {
    add(kNames[static_cast<std::size_t>(entry)], [entry](UnitDescription& u) {
      u.c_entry = entry;
      if (entry != CEntry::after_rounding) u.c_rounding = {};
      if (entry != CEntry::after_alignment) {
        u.second = {};
        u.alignment.parts = 1;
      }
      if (entry == CEntry::in_alignment) u.chain.chains = 1;
      if (entry != CEntry::in_alignment) u.chain.chunk = 0;
    });
  }
  for (const RoundingMode mode : kModes) {
    add(fmt::format("C added with rounding {}", words(mode)),
        [mode](UnitDescription& u) { u.c_rounding = {.mode = mode}; });
  }
}

void Patches::core() {
  for (const CoreKind kind : {CoreKind::fused, CoreKind::chain, CoreKind::tree, CoreKind::exact}) {
    if (kind == u_.core) continue;
    constexpr std::array kNames = {
        "products aligned, cut and added in one step", "one multiply-add after another",
        "products added pairwise, every sum rounded", "the exact sum of a step, rounded once"};
    add(kNames[static_cast<std::size_t>(kind)], [&](UnitDescription& u) {
      u.core = kind;
      u.alignment = {};
      u.second = {};
      u.chain = {};
      u.tree = {};
      u.products_overflow = false;
      const bool entry_fits = kind == CoreKind::fused ||
                              (kind == CoreKind::chain && u.c_entry != CEntry::after_alignment);
      if (!entry_fits) {
        u.c_entry = CEntry::in_alignment;
        u.c_rounding = {};
      }
      if (kind == CoreKind::fused) {
        u.alignment.fraction_bits = 24;
        u.alignment.floor.reset();
      }
      if (kind == CoreKind::chain) u.group = 0;
      if (kind != CoreKind::chain && u.nan == NanRule::x86) u.nan = NanRule::canonical;
      if (u.order != StepOrder::ascending && kind == CoreKind::exact) u.order = {};
    });
  }
}

void Patches::chain() {
  for (const int chains : {1, 2, 4, 8, 16, 32}) {
    add(fmt::format("{} over k mod {}",
                    chains == 1 ? "one chain" : fmt::format("{} chains", chains), chains),
        [chains](UnitDescription& u) {
          u.chain.chains = chains;
          if (chains > 1) {
            u.chain.chunk = 0;
            u.c_entry = CEntry::after_rounding;
          }
        });
  }
  for (const int chunk : {0, 2, 4, 8, 16, 32, 64, 128}) {
    add(chunk == 0 ? "no chunks" : fmt::format("chunks of {} products", chunk),
        [chunk](UnitDescription& u) {
          u.chain.chunk = chunk;
          if (chunk != 0) {
            u.chain.chains = 1;
            u.c_entry = CEntry::in_alignment;
            u.c_rounding = {};
          }
        });
  }
  add("products rounded before they are added", [](UnitDescription& u) { u.chain.fused = false; });
  add("fused multiply-adds", [](UnitDescription& u) { u.chain.fused = true; });
  add("Kahan's correction", [](UnitDescription& u) { u.chain.kahan = true; });
  add("no correction", [](UnitDescription& u) { u.chain.kahan = false; });
}

void Patches::tree() {
  for (const int leaf : {1, 2, 4, 8, 16}) {
    add(leaf == 1 ? "products rounded one by one"
                  : fmt::format("{} products added exactly before the first rounding", leaf),
        [leaf](UnitDescription& u) {
          u.tree.leaf = leaf;
          if (leaf == 1) return;
          u.tree.round_products = true;
          u.tree.plus_zero_products = false;
        });
  }
  for (const bool on : {false, true}) {
    add(on ? "products rounded before they are added" : "products added exactly",
        [on](UnitDescription& u) { u.tree.round_products = on; });
    add(on ? "zero products are +0" : "zero products keep their sign",
        [on](UnitDescription& u) { u.tree.plus_zero_products = on; });
  }
}

void Patches::steps() {
  const int step = unit::products_of_step(u_);
  const auto text = [](int n) { return n == 0 ? std::string("all") : std::to_string(n); };
  for (const int group : {1, 2, 4, 8, 16, 32, 64, 128}) {
    if (u_.core != CoreKind::chain)
      add(fmt::format("{} products a step instead of {}", group, text(step)),
          [group](UnitDescription& u) {
            u.group = group;
            if (u.k != 0 && (u.k < group || u.c_entry != CEntry::after_rounding))
              u.k = std::max(u.k, group);
          });
    if (u_.k == 0) continue;
    add(fmt::format("{} products an instruction instead of {}", group, u_.k),
        [group](UnitDescription& u) {
          u.k = group;
          u.group = std::min(u.group, group);
        });
  }
  constexpr std::array kNames = {"k ascending", "k mod 4 in {0, 1} first, then {2, 3}",
                                 "odd k before even k"};
  for (const StepOrder order : {StepOrder::ascending, StepOrder::pairs_mod4, StepOrder::odd_first})
    add(kNames[static_cast<std::size_t>(order)], [order](UnitDescription& u) { u.order = order; });
}

// What happens to numbers: subnormals, operands, overflow, NaN.

namespace {

bool nearest_even(const UnitDescription& u) {
  return u.accumulator.rounding.mode == RoundingMode::rne &&
         u.c_rounding.mode == RoundingMode::rne &&
         u.outer.accumulator.rounding.mode == RoundingMode::rne;
}

}  // namespace

void Patches::subnormals() {
  const auto flag = [&](const char* on, const char* off, bool unit::Subnormals::*field) {
    for (const bool value : {true, false})
      add(value ? on : off, [&](UnitDescription& u) {
        u.subnormals.*field = value;
        // Tiny after rounding means: to nearest even.
        if (field == &unit::Subnormals::flush_results && !nearest_even(u))
          u.subnormals.tiny_before_rounding = value;
        if (!u.subnormals.flush_inputs) u.subnormals.inputs_to_plus_zero = false;
        if (!u.subnormals.flush_results) u.subnormals.tiny_before_rounding = false;
      });
  };
  flag("subnormal inputs read as zero", "subnormal inputs read as they are",
       &unit::Subnormals::flush_inputs);
  flag("flushed inputs and -0 read as +0", "flushed inputs keep their sign",
       &unit::Subnormals::inputs_to_plus_zero);
  flag("subnormal C read as zero", "subnormal C read as it is", &unit::Subnormals::flush_c);
  flag("subnormal results flushed to zero", "subnormal results written",
       &unit::Subnormals::flush_results);
  flag("results judged tiny before rounding", "results judged tiny after rounding",
       &unit::Subnormals::tiny_before_rounding);
}

bool Patches::changes_operands(const Format& format, RoundingMode mode) const {
  const Format* const operands[] = {u_.a, u_.b};
  const auto held = [&](const Format* f) { return f != nullptr && exact_in(*f, format); };
  const auto normal = [&](const Format* f) {
    return f->kind == Kind::floating &&
           unit::smallest_normal_exponent(*f) != unit::smallest_normal_exponent(format);
  };
  if (!std::all_of(std::begin(operands), std::end(operands), held)) return true;
  return mode == RoundingMode::rne && u_.core == CoreKind::fused &&
         std::any_of(std::begin(operands), std::end(operands), normal);
}

void Patches::input() {
  const auto drop = [&](const char* name, const Format* format, RoundingMode mode) {
    const std::string how = format == nullptr
                                ? "operands enter as they are"
                                : fmt::format("operands rounded {} to {}", words(mode), name);
    add(how, [&](UnitDescription& u) { u.input = {format, {.mode = mode}}; });
  };
  drop("", nullptr, RoundingMode::rne);
  for (const char* name : {"tfloat32", "bfloat16", "float16"}) {
    for (const RoundingMode mode : {RoundingMode::rtz, RoundingMode::rne, RoundingMode::rna}) {
      const Format& format = find_format(name);
      if (changes_operands(format, mode)) drop(name, &format, mode);
    }
  }
  for (const int shift : {0, 1, 2, 4, 8}) {
    if (u_.scaling.point == Scaling::Point::exponents || u_.scaling.point == Scaling::Point::groups)
      break;
    add(fmt::format("the sum scaled by 2^-{}", shift), [shift](UnitDescription& u) {
      u.scaling = {};
      if (shift != 0) u.scaling.point = Scaling::Point::after_sum;
      u.scaling.shift = shift;
    });
  }
}

void Patches::overflow() {
  for (const auto& [name, rule] :
       {std::pair("wraps", IntegerOverflow::wrap),
        std::pair("saturates once per step", IntegerOverflow::saturate_once),
        std::pair("saturates after every addition", IntegerOverflow::saturate_each)}) {
    add(name, [&, value = rule](UnitDescription& u) { u.accumulator.integer = value; });
  }
  for (const auto& [name, rule] :
       {std::pair("overflow as IEEE 754 rounds it", Overflow::ieee),
        std::pair("overflow gives the largest number", Overflow::saturate),
        std::pair("overflow gives infinity or NaN", Overflow::propagate)}) {
    add(name, [&, value = rule](UnitDescription& u) {
      u.accumulator.overflow = value;
      u.accumulator.overflow_to_infinity = false;
    });
  }
  // To nearest it does so in any case.
  if (u_.accumulator.rounding.mode == RoundingMode::rne) return;
  add("overflow gives infinity for any rounding", [](UnitDescription& u) {
    u.accumulator.overflow = Overflow::ieee;
    u.accumulator.overflow_to_infinity = true;
  });
}

void Patches::nan() {
  const Format* d = unit::result_format(u_);
  if (d == nullptr || !d->has_nan()) return;
  add("the first NaN operand, quieted", [](UnitDescription& u) { u.nan = NanRule::x86; });
  add("one canonical NaN", [](UnitDescription& u) { u.nan = NanRule::canonical; });
  for (const std::uint64_t code : {d->nan_code(), d->nan_code() | d->sign_bit(),
                                   d->code_mask() & ~d->sign_bit(), d->code_mask()})
    add(fmt::format("NaN is written as {}", unit::text_of(code)),
        [code](UnitDescription& u) { u.nan_code = code; });
}

// Registers.

namespace {

constexpr int kMostDescribed = 23;  ///< mantissa bits of a format that has no name

}  // namespace

void Patches::widths(const char* what, const Format& held, const Format& whole,
                     Register& (*put)(UnitDescription&)) {
  if (whole.specials != Specials::ieee || whole.field_zero != FieldZero::subnormal) return;
  for (int bits = 1; bits <= whole.mantissa_bits; ++bits) {
    if (bits > kMostDescribed && bits != whole.mantissa_bits) continue;
    add(fmt::format("{} keeps {} fraction bits instead of {}", what, bits, held.mantissa_bits),
        [&](UnitDescription& u) {
          u.c = unit::c_format(u_);
          u.d = unit::result_format(u_);
          put(u).format = bits == whole.mantissa_bits
                              ? &whole
                              : &find_format(fmt::format("e{}m{}", whole.exponent_bits, bits));
        });
  }
}

void Patches::result() {
  for (const RoundingMode mode : kModes) {
    add(fmt::format("rounds {}", words(mode)),
        [mode](UnitDescription& u) { u.accumulator.rounding = {.mode = mode}; });
  }
  const Format* r = u_.accumulator.format;
  if (r == nullptr) return;
  for (const bool plus : {false, true}) {
    add(fmt::format("a sum that cancels is {} where it is rounded down", plus ? "+0" : "-0"),
        [plus](UnitDescription& u) { u.plus_zero_sums = plus; });
  }
  const Format& d = *unit::result_format(u_);
  // The first register of two may have exponents that D does not have.
  const bool alone = u_.outer.every == 0 || r->exponent_bits == d.exponent_bits;
  widths("the register", *r, alone ? d : *r,
         [](UnitDescription& u) -> Register& { return u.accumulator; });
}

void Patches::levels() {
  const int every = u_.outer.every;
  const Format* const d = unit::result_format(u_);
  if (every == 0) {
    if (d == nullptr) return;
    for (const int sum : {4, 8, 16, 32, 64, 128, 256}) {
      add(fmt::format("sums promoted every {} products to {}", sum, d->name),
          [&](UnitDescription& u) {
            u.c = unit::c_format(u_);
            u.d = d;
            u.outer = {sum, {.format = d}};
          });
    }
    return;
  }
  for (const int sum : {every / 2, 2 * every}) {
    add(fmt::format("sums promoted every {} products instead of {}", sum, every),
        [sum](UnitDescription& u) { u.outer.every = sum; });
  }
  for (const auto& [name, held] :
       {std::pair("sums never promoted", &u_.accumulator),
        std::pair("one level, in the outer register", &u_.outer.accumulator)}) {
    add(name, [&, one = held](UnitDescription& u) {
      u.c = unit::c_format(u_);
      u.d = d;
      u.accumulator = *one;
      u.outer = {};
    });
  }
  outer_register();
}

void Patches::outer_register() {
  const Format* const r = u_.outer.accumulator.format;
  if (r == nullptr) return;
  for (const RoundingMode mode : kModes) {
    add(fmt::format("the outer register rounds {}", words(mode)),
        [mode](UnitDescription& u) { u.outer.accumulator.rounding = {.mode = mode}; });
  }
  widths("the outer register", *r, *unit::result_format(u_),
         [](UnitDescription& u) -> Register& { return u.outer.accumulator; });
  for (const auto& [name, rule] : {std::pair("as IEEE 754 rounds it", Overflow::ieee),
                                   std::pair("to the largest number", Overflow::saturate),
                                   std::pair("to infinity or NaN", Overflow::propagate)}) {
    add(fmt::format("the outer register overflows {}", name),
        [&, value = rule](UnitDescription& u) {
          u.outer.accumulator.overflow = value;
          u.outer.accumulator.overflow_to_infinity = false;
        });
  }
  for (const char* name : {"float16", "bfloat16", "float32"}) {
    add(fmt::format("sums held in {} before they are promoted", name),
        [name](UnitDescription& u) { u.accumulator.format = &find_format(name); });
  }
}

std::vector<std::string> changed_keys(const UnitDescription& x, const UnitDescription& y) {
  std::vector<std::string> values, keys;
  unit::for_each_field(
      x, [&](const char*, const auto& field) { values.push_back(unit::text_of(field)); });
  std::size_t at = 0;
  unit::for_each_field(y, [&](std::string_view key, const auto& field) {
    if (values[at++] != unit::text_of(field) && key != "name") keys.emplace_back(key);
  });
  return keys;
}

bool same_rule(const UnitDescription& x, const UnitDescription& y) {
  return changed_keys(x, y).empty() && x.products == y.products;
}

std::vector<Rival> patches_of(const UnitDescription& u) { return Patches(u).make(); }

}  // namespace numemu::oracle
