// A unit in sentences, one aspect after the other.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/description/words.hpp"

#include <fmt/format.h>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/sum_words.hpp"

namespace numemu::unit {
namespace {

std::string operands(const UnitDescription& u) {
  const auto name = [&](const Format* f) {
    if (f != nullptr) return f->name;
    return std::string(u.core == CoreKind::exact
                           ? "any format of at most 16 bits, tfloat32 or float32"
                           : "any format whose values are float32 values");
  };
  std::string text = u.a == u.b ? fmt::format("A and B are {}.", name(u.a))
                                : fmt::format("A is {}, B is {}.", name(u.a), name(u.b));
  if (u.input.format != nullptr) {
    text += fmt::format(" Operands are first rounded to {}, {}.", u.input.format->name,
                        rounding_words(u.input.rounding));
  }
  return text;
}

/// Which products an instruction takes, and which of them each step.
std::string order(const UnitDescription& u) {
  const std::string products = u.sparsity.dense() ? "products" : "kept products";
  const int step = products_of_step(u);
  const bool chain = u.core == CoreKind::chain;
  if (u.k == 0 && chain) return "The " + products + " are taken one after the other, k ascending.";
  if (step == 0) {
    return fmt::format("All {} of {} form one step.", products,
                       u.outer.every != 0 ? "a sum" : "an output");
  }
  if (u.k == 0) return fmt::format("The {} are taken in steps of {}, k ascending.", products, step);
  const char* ranks =
      u.order == StepOrder::pairs_mod4
          ? "first those with k mod 4 = 0 or 1, then those with k mod 4 = 2 or 3, each ascending"
      : u.order == StepOrder::odd_first ? "in pairs of neighbours, odd k before even k"
                                        : "k ascending";
  const std::string steps = chain         ? "one after the other"
                            : step == u.k ? "in one step"
                                          : fmt::format("in {} steps of {}", u.k / step, step);
  return fmt::format("An instruction takes {} {}, {}, {}.", u.k, products, ranks, steps);
}

std::string subnormals(const UnitDescription& u) {
  const Subnormals& s = u.subnormals;
  if (!s.flush_inputs && !s.flush_c && !s.flush_results)
    return "Subnormal numbers are kept everywhere.";
  std::string text;
  if (s.flush_inputs || s.flush_c) {
    const char* which = s.flush_inputs && s.flush_c ? "A, B and C" : s.flush_c ? "C" : "A and B";
    text = fmt::format("Subnormal numbers in {} are read as {}. ", which,
                       s.inputs_to_plus_zero ? "+0, and so is -0" : "zeros of their sign");
  }
  if (s.flush_results) {
    text += fmt::format(
        "Results below the smallest normal number, judged {} rounding, become zeros of their "
        "sign. ",
        s.tiny_before_rounding ? "before" : "after");
  }
  if (!s.flush_inputs) text += "Subnormal A and B are kept. ";
  if (!s.flush_c) text += "Subnormal C is kept. ";
  if (!s.flush_results) text += "Subnormal results are kept. ";
  text.pop_back();
  return text;
}

std::string specials(const UnitDescription& u) {
  const std::string code = text_of(u.nan_code);
  if (u.accumulator.format == nullptr) {
    return u.accumulator.integer == IntegerOverflow::wrap
               ? "NaN and infinity give 0."
               : "NaN gives 0, infinity the end of its sign.";
  }
  std::string text =
      u.nan == NanRule::x86
          ? fmt::format(
                "The first NaN of a, b and the accumulator results, quieted, with its sign "
                "and payload; 0 x infinity and infinities of both signs give {}.",
                code)
          : fmt::format("NaN, 0 x infinity and infinities of both signs give {}.", code);
  if (u.nan == NanRule::x86 && u.c_entry == CEntry::after_rounding)
    text += " Where C is added, a NaN in C comes first.";
  if (u.products_overflow)
    text += " A finite product of magnitude 2^128 or more counts as infinite.";
  return text;
}

std::string zeros(const UnitDescription& u) {
  const bool minus = applies(u, "plus_zero_sums") && !u.plus_zero_sums;
  if (u.core != CoreKind::fused) {
    return std::string("A sum of exactly zero is +0, except that zeros of negative sign alone ") +
           (minus ? "give -0, and so do sums that cancel where they are rounded down."
                  : "give -0.");
  }
  const Alignment& al = u.alignment;
  // Groups count with the exponents of their scales, whatever their products are.
  const bool groups = u.scaling.point == Scaling::Point::groups;
  const char* c_counts = al.zero_c_counts ? "" : " in A or B";
  std::string text =
      !al.zero_exponent || (groups && !al.zero_c_counts)
          ? fmt::format("{} no exponent in the alignment.",
                        groups ? "A zero C has" : "Terms with a zero operand have")
          : fmt::format("{}{} counts with exponent {}.", groups ? "A zero C" : "A zero operand",
                        c_counts, *al.zero_exponent);
  if (al.zero_exponent && !al.zero_c_counts && !groups)
    text += " A zero C has no exponent in the alignment.";
  text += al.floor ? fmt::format(" The largest exponent is at least {}.", *al.floor)
                   : " The largest exponent has no lower bound.";
  return text + " A sum of zero is +0." +
         (minus ? " Sums of steps that cancel where they are rounded down give -0." : "");
}

std::string scales(const UnitDescription& u) {
  const Scaling& s = u.scaling;
  if (s.point == Scaling::Point::after_sum) {
    return fmt::format(
        "The exact sum of the products of a step is multiplied by 2^-{} before C is added.",
        s.shift);
  }
  const std::string shared =
      fmt::format("Along k each {} elements of A, and of B, share a scale ({}{})", s.block,
                  s.format->name, s.format->is_signed ? ", its sign ignored" : "");
  if (s.point == Scaling::Point::groups) {
    return shared +
           ". The exact sum of 16 products times both scales is one term of the step, aligned with "
           "the sum of the scales' exponents. A NaN scale gives NaN.";
  }
  return shared + (u.core == CoreKind::exact
                       ? "; each product is multiplied by both, exactly. A NaN scale gives NaN."
                       : "; the exponents of both are added to each product's. A NaN scale gives "
                         "NaN.");
}

std::string padding(const UnitDescription& u) {
  const int size = u.k != 0 ? u.k : u.group;
  const char* depth = u.sparsity.dense() ? "K" : "The number of kept products";
  return fmt::format("{} is padded with +0 to a multiple of {}.", depth, size);
}

}  // namespace

std::vector<std::string> description_words(const UnitDescription& u) {
  const bool floating = !is_integer_core(u);
  std::vector<std::string> words{operands(u), order(u), sum_words(u), c_words(u),
                                 register_words(u)};
  if (floating) {
    words.push_back(subnormals(u));
    words.push_back(specials(u));
  }
  if (floating && u.accumulator.format != nullptr) words.push_back(zeros(u));
  if (u.scaling.block != 0 || u.scaling.shift != 0) words.push_back(scales(u));
  if (!u.sparsity.dense()) {
    words.push_back(
        fmt::format("A holds {} of each {} elements along k, and their places; B's "
                    "elements at these places are multiplied.",
                    u.sparsity.kept, u.sparsity.group));
  }
  // Signs and codes that are looked up have no +0: their last step is short.
  const bool pads = u.core != CoreKind::xnor && u.core != CoreKind::table;
  if (pads && (u.k > 1 || (u.k == 0 && u.group > 1))) words.push_back(padding(u));
  return words;
}

}  // namespace numemu::unit
