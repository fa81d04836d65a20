// A unit in sentences, one aspect after the other.
#include "emu/unit/description/words.hpp"

#include <fmt/format.h>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/fields.hpp"

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

namespace {

std::string mode_words(const Rounding& rounding) {
  switch (rounding.mode) {
    case RoundingMode::rne:
      return "to nearest, ties to even";
    case RoundingMode::rna:
      return "to nearest, ties away from zero";
    case RoundingMode::rtz:
      return "toward zero";
    case RoundingMode::rup:
      return "toward +infinity";
    case RoundingMode::rdn:
      return "toward -infinity";
    case RoundingMode::rodd:
      return "to odd";
    case RoundingMode::sr:
      break;
  }
  return fmt::format("stochastically with {} random bits", rounding.random_bits);
}

std::string fused_sum(const UnitDescription& u) {
  const Alignment& al = u.alignment;
  const char* term = u.scaling.point == Scaling::Point::groups ? "scaled sums" : "products";
  std::string text;
  if (u.scaling.point != Scaling::Point::groups) {
    text =
        "The exponent of an exact product is the sum of its operands' exponents, whatever its "
        "significand in [0, 4); a subnormal operand counts with its format's smallest exponent. ";
  }
  const std::string cut =
      fmt::format("cut {} bits below the largest exponent among them, {}, and added exactly",
                  al.fraction_bits, rounding_words({.mode = al.rounding}));
  if (u.c_entry == CEntry::in_alignment)
    return text + fmt::format("The {} of a step and C are {}.", term, cut);
  if (al.parts == 1) return text + fmt::format("The {} of a step are {}.", term, cut);
  return text + fmt::format(
                    "The {} of even and of odd k of a step are each {}; both sums are cut {} bits "
                    "below the larger of their exponents, {}, and added exactly.",
                    term, cut, al.fraction_bits, rounding_words({.mode = RoundingMode::rdn}));
}

std::string chain_sum(const UnitDescription& u) {
  const Chaining& chain = u.chain;
  std::string text = "Each product is rounded, then added and rounded again.";
  if (chain.fused) text = "Each product is added by a fused multiply-add, rounded once.";
  if (chain.kahan) {
    text =
        "Each product p is added with Kahan's correction e: y = p - e, t = s + y, e = (t - s) - y, "
        "s = t, where each of the four differences and sums is rounded.";
  }
  if (chain.kahan && u.k != 0) text += " The correction e starts from +0 in each instruction.";
  if (chain.chains > 1) {
    text += fmt::format(
        " There are {} chains, from +0 over k mod {}; their sums are added pairwise, neighbours "
        "first.",
        chain.chains, chain.chains);
  }
  if (chain.chunk != 0) {
    text += fmt::format(
        " Each {} products form a chunk summed from +0; the sums of chunks are added one after the "
        "other.",
        chain.chunk);
  }
  return text;
}

std::string tree_sum(const UnitDescription& u) {
  const Tree& tree = u.tree;
  std::string text = tree.leaf > 1 ? fmt::format(
                                         "Each {} neighbouring products are added exactly "
                                         "and rounded.",
                                         tree.leaf)
                     : tree.round_products ? "Each product is rounded."
                                           : "Products are exact.";
  if (tree.plus_zero_products) text += " A product that is zero is +0.";
  // A step of one leaf has nothing left to add.
  if (u.group == tree.leaf) return text;
  return text + " Neighbours are added pairwise, every sum rounded, until one is left.";
}

std::string overflow(const UnitDescription& u, const Register& r) {
  if (r.format == nullptr) {
    const std::string ends = fmt::format("the ends of {} bits", r.bits);
    if (r.integer == IntegerOverflow::wrap) return fmt::format("It wraps modulo 2^{}.", r.bits);
    const bool steps = u.core == CoreKind::chain || u.core == CoreKind::tree;
    const bool each =
        r.integer == IntegerOverflow::saturate_each || (steps && &r == &u.accumulator);
    if (&r == &u.outer.accumulator) return fmt::format("It saturates to {}.", ends);
    return fmt::format("It saturates to {} {}.", ends,
                       each ? "after every addition" : "once per step");
  }
  if (r.overflow_to_infinity)
    return "Sums of magnitude beyond the largest value's binade become infinite, whatever the "
           "rounding.";
  switch (r.overflow) {
    case Overflow::saturate:
      return "Sums beyond the largest value, infinite ones too, become the largest value.";
    case Overflow::propagate:
      return "Finite sums beyond the largest value become the largest value.";
    case Overflow::ieee:
      break;
  }
  if (!r.format->has_infinity() && !r.format->has_nan())
    return "Sums beyond the largest value become the largest value.";
  const char* beyond = r.format->has_infinity() ? "infinity of its sign" : "NaN";
  switch (r.rounding.mode) {
    case RoundingMode::rtz:
    case RoundingMode::rodd:
      return "A finite sum beyond the largest value becomes the largest value.";
    case RoundingMode::rup:
    case RoundingMode::rdn:
      return fmt::format(
          "A finite sum that rounds beyond the largest value becomes {}; rounded towards zero, it "
          "stays the largest value.",
          beyond);
    default:
      return fmt::format("A finite sum that rounds beyond the largest value becomes {}.", beyond);
  }
}

}  // namespace

std::string rounding_words(const Rounding& rounding) {
  return fmt::format("{} ({})", mode_words(rounding), to_string(rounding));
}

std::string sum_words(const UnitDescription& u) {
  switch (u.core) {
    case CoreKind::fused:
      return fused_sum(u);
    case CoreKind::chain:
      return chain_sum(u);
    case CoreKind::tree:
      return tree_sum(u);
    case CoreKind::exact:
      return "The products of a step are added exactly, with C.";
    case CoreKind::integer:
      return "Products are exact integers, added exactly.";
    case CoreKind::xnor:
      return "A product is +1 where the signs agree and -1 where they do not.";
    case CoreKind::table:
      break;
  }
  return "The product of codes a and b is an integer from a table, added exactly.";
}

std::string c_words(const UnitDescription& u) {
  const Format* c = c_format(u);
  // What C is of one level, the register is of each sum of two.
  const bool two_levels = u.outer.every != 0;
  const std::string name =
      c != nullptr ? c->name : register_name(two_levels ? u.outer.accumulator : u.accumulator);
  std::string text = fmt::format("C is {}, +0 where none is given. ", name);
  if (two_levels) {
    text += fmt::format(
        "The outer register starts from it. The register starts from +0 in each sum of {} "
        "products. ",
        u.outer.every);
  }
  const char* const joins = two_levels ? "The register" : "C";
  const char* const it = two_levels ? "The register" : "It";
  if (u.c_entry == CEntry::after_rounding) {
    return text +
           fmt::format("An instruction starts from +0; {} is added to its result, rounded {}.",
                       two_levels ? "the register" : "C", rounding_words(u.c_rounding));
  }
  if (u.c_entry == CEntry::after_alignment) {
    const SecondAlignment& s = u.second;
    text += fmt::format(
        "{} is added to the unrounded sum of the products: the sum is cut {} bits and {} {} bits "
        "below the larger of their two exponents, both {}, and they are added exactly.",
        it, s.fraction_bits, two_levels ? "the register" : "C", s.c_fraction_bits,
        rounding_words({.mode = RoundingMode::rdn}));
    if (s.c_dropped) {
      text += fmt::format(" {} counts as zero where its exponent is more than {} below.", joins,
                          *s.c_dropped);
    }
  } else if (u.core == CoreKind::chain) {
    text += u.chain.chunk != 0 ? "The sums of chunks are added to it."
            : two_levels       ? "The chain starts from the register."
                               : "The chain starts from it.";
  } else if (u.core == CoreKind::tree) {
    text += fmt::format("{} is added to the sum of the step, rounded.", it);
  } else {
    text += fmt::format("{} is one more term of the step.", it);
  }
  const bool goes_on = u.core == CoreKind::chain ? u.k != 0 : products_of_step(u) != 0;
  return goes_on && !two_levels ? text + " The register is C of the next step." : text;
}

namespace {

/// "The register is e8m13 (8 exponent bits, 13 fraction bits); the sum of a step is rounded toward
/// zero (rtz). ..."
std::string one_register(const UnitDescription& u, const Register& r, const char* which,
                         const char* what) {
  std::string text = fmt::format("{} is {}", which, register_name(r));
  if (r.format == nullptr) {
    text += fmt::format(" (two's complement, {} bits, {} right of the point)", r.bits, r.fraction);
  } else {
    text += fmt::format(" ({} exponent bits, {} fraction bits)", r.format->exponent_bits,
                        r.format->mantissa_bits);
  }
  if (!is_integer_core(u))
    text += fmt::format("; {} is rounded {}", what, rounding_words(r.rounding));
  return text + ". " + overflow(u, r);
}

}  // namespace

std::string register_words(const UnitDescription& u) {
  const bool once = u.core == CoreKind::fused || u.core == CoreKind::exact;
  std::string text =
      one_register(u, u.accumulator, "The register", once ? "the sum of a step" : "each result");
  if (u.outer.every != 0) {
    text += fmt::format(
                " After each {} products, and after the last, it is added to the outer "
                "register. ",
                u.outer.every) +
            one_register(u, u.outer.accumulator, "That", "the sum of the two");
  }
  const Register& last = result_register(u);
  const Format* d = result_format(u);
  if (d != last.format) {
    text += fmt::format(" D is {}, which holds every value of {}.", d->name,
                        u.outer.every != 0 ? "that" : "the register");
  }
  return text;
}

}  // namespace numemu::unit
