// A unit in one line, and its parameters as pairs: what tables of units show.
#include <fmt/format.h>

#include <algorithm>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/words.hpp"

namespace numemu::unit {
namespace {

/// "e8m13 rtz", "fixed24q12 rne saturating"
std::string rounded_register(const Register& r) {
  const std::string text = register_name(r) + " " + to_string(r.rounding);
  if (r.format == nullptr)
    return text + (r.integer == IntegerOverflow::wrap ? " wrapping" : " saturating");
  return r.overflow == Overflow::ieee ? text : text + " saturating";
}

/// "16 products", "all products"
std::string products_of_one_step(const UnitDescription& u) {
  const int step = products_of_step(u);
  if (step == 0) return "all products";
  return fmt::format("{} product{}", step, step == 1 ? "" : "s");
}

/// How C is carried between the steps; empty for a single step that includes C.
std::string c_chained(const UnitDescription& u) {
  if (u.c_entry == CEntry::after_rounding)
    return fmt::format("; from +0, C added last ({})", to_string(u.c_rounding));
  return products_of_step(u) == 0 ? "" : "; C chained";
}

std::string order_words(const UnitDescription& u) {
  if (u.order == StepOrder::pairs_mod4) return "; k mod 4 in {0, 1} first, then {2, 3}";
  return u.order == StepOrder::odd_first ? "; odd k before even k" : "";
}

std::string fused_line(const UnitDescription& u) {
  const Alignment& al = u.alignment;
  const bool groups = u.scaling.point == Scaling::Point::groups;
  std::string terms = groups ? fmt::format("scaled exact sums of 16 of {}", products_of_one_step(u))
                             : products_of_one_step(u);
  const bool later = u.c_entry == CEntry::after_alignment;
  if (u.c_entry == CEntry::in_alignment) terms += " and C";
  if (al.parts == 2) terms += " in two parts (even, odd k)";
  std::string line = fmt::format("{} aligned to the largest exponent, {} bits kept ({}), ", terms,
                                 al.fraction_bits, text_of(al.rounding));
  if (later) {
    line += fmt::format("sum ({} bits) and C ({} bits) aligned, sum", u.second.fraction_bits,
                        u.second.c_fraction_bits);
  } else {
    line += "sum";
  }
  line += " to " + rounded_register(u.accumulator) + c_chained(u);
  const Alignment usual;
  if (!al.zero_exponent) line += "; zero operands not aligned";
  if (!al.zero_c_counts) line += "; zero C not aligned";
  if (al.floor != usual.floor)
    line += al.floor ? fmt::format("; floor {}", *al.floor) : std::string("; no floor");
  return line;
}

std::string chain_line(const UnitDescription& u) {
  const Chaining& chain = u.chain;
  const std::string kind = chain.kahan   ? "compensated (Kahan) chain"
                           : chain.fused ? "fused multiply-add chain"
                                         : "chain of rounded products and sums";
  const std::string in = " in " + rounded_register(u.accumulator);
  if (chain.chunk != 0) {
    return fmt::format("{}s of {} products{} from +0, their sums chained from C", kind, chain.chunk,
                       in);
  }
  if (chain.chains > 1) {
    return fmt::format("{} {}s (k mod {}){} from +0, added pairwise, C added last ({})",
                       chain.chains, kind, chain.chains, in, to_string(u.c_rounding));
  }
  return u.c_entry == CEntry::after_rounding ? kind + in + c_chained(u) : kind + in + " from C";
}

std::string tree_line(const UnitDescription& u) {
  const Tree& tree = u.tree;
  std::string line = products_of_one_step(u);
  if (tree.leaf > 1 && tree.leaf == products_of_step(u)) {
    return "exact sum of " + line + ", then C, both rounded to " + rounded_register(u.accumulator) +
           c_chained(u);
  }
  if (tree.leaf > 1) {
    line += fmt::format(" added {} at a time exactly, then", tree.leaf);
  } else if (tree.round_products) {
    line += " rounded, then added";
  } else {
    line += " added";
  }
  return line + " pairwise, then C, every sum rounded to " + rounded_register(u.accumulator) +
         c_chained(u);
}

std::string exact_line(const UnitDescription& u) {
  const bool shifted = u.scaling.point == Scaling::Point::after_sum && u.scaling.shift != 0;
  return fmt::format("exact sum of {}{} and C, rounded once to {}{}", products_of_one_step(u),
                     shifted ? fmt::format(" times 2^-{}", u.scaling.shift) : "",
                     rounded_register(u.accumulator), c_chained(u));
}

std::string integer_line(const UnitDescription& u) {
  const Register& r = u.accumulator;
  const std::string what = u.core == CoreKind::xnor    ? "agreements of signs less disagreements"
                           : u.core == CoreKind::table ? "products from a table"
                                                       : "exact integer products";
  if (r.integer == IntegerOverflow::wrap) return fmt::format("{} and C modulo 2^{}", what, r.bits);
  const int step = products_of_step(u);
  const std::string when = r.integer == IntegerOverflow::saturate_each
                               ? "after every addition"
                               : (step == 0 ? "once" : fmt::format("once per {} products", step));
  return fmt::format("{} and C, saturated to {} {}", what, register_name(r), when);
}

std::string core_line(const UnitDescription& u) {
  switch (u.core) {
    case CoreKind::fused:
      return fused_line(u);
    case CoreKind::chain:
      return chain_line(u);
    case CoreKind::tree:
      return tree_line(u);
    case CoreKind::exact:
      return exact_line(u);
    case CoreKind::integer:
    case CoreKind::xnor:
    case CoreKind::table:
      break;
  }
  return integer_line(u);
}

}  // namespace

std::string register_name(const Register& r) {
  if (r.format != nullptr) return r.format->name;
  if (r.fraction == 0) return fmt::format("int{}", r.bits);
  return fmt::format("fixed{}q{}", r.bits, r.fraction);
}

std::string description_line(const UnitDescription& u) {
  std::string line = core_line(u) + order_words(u);
  if (u.outer.every != 0) {
    line += fmt::format("; each {} products from +0, then added to {}", u.outer.every,
                        rounded_register(u.outer.accumulator));
  }
  if (u.scaling.block != 0)
    line += fmt::format("; {} scales per {}", u.scaling.format->name, u.scaling.block);
  if (!u.sparsity.dense()) line += fmt::format("; A sparse {}", text_of(u.sparsity));
  if (u.input.format != nullptr) {
    line += fmt::format("; operands rounded to {} ({})", u.input.format->name,
                        to_string(u.input.rounding));
  }
  const Subnormals& s = u.subnormals;
  if (s.flush_inputs || s.flush_c || s.flush_results) {
    std::string flushed = s.flush_inputs ? "A, B" : "";
    if (s.flush_c) flushed += flushed.empty() ? "C" : ", C";
    if (s.flush_results) flushed += flushed.empty() ? "results" : ", results";
    line += "; subnormals flushed (" + flushed + ")";
  }
  return line;
}

namespace {

/// "f32", "bf16", "tf32", "e4m3fn", "s32", "fixed24q12"
std::string short_name(const Register& r) {
  if (r.format == nullptr && r.fraction == 0) return fmt::format("s{}", r.bits);
  std::string name = register_name(r);
  if (const std::size_t line = name.find('_'); line != name.npos) return name.substr(line + 1);
  constexpr std::string_view kFloat = "float";
  if (const std::size_t at = name.find(kFloat); at != name.npos)
    name.replace(at, kFloat.size(), "f");
  return name;
}

/// "rtz->f32", "wrap->s32", "rne,sat->fixed24q12"
std::string written(const UnitDescription& u, const Register& r) {
  std::string how = is_integer_core(u) ? "" : to_string(r.rounding);
  if (r.format == nullptr) {
    how += how.empty() ? "" : ",";
    how += r.integer == IntegerOverflow::wrap            ? "wrap"
           : r.integer == IntegerOverflow::saturate_each ? "sat each"
                                                         : "sat";
  } else if (r.overflow == Overflow::saturate) {
    how += ",sat";
  }
  return how + "->" + short_name(r);
}

/// The products of a step; K: all of them.
std::string terms(const UnitDescription& u) {
  const int step = products_of_step(u);
  if (step == 0) return "K";
  return u.scaling.point == Scaling::Point::groups
             ? fmt::format("{}x{}", step / kScaledGroup, kScaledGroup)
             : std::to_string(step);
}

std::string fused(const UnitDescription& u) {
  const Alignment& al = u.alignment;
  std::string text = terms(u);
  if (u.c_entry == CEntry::in_alignment) text += "+C";
  if (al.parts == 2) text += " in 2";
  text += fmt::format(" F{}", al.fraction_bits);
  if (al.rounding != RoundingMode::rtz) text += text_of(al.rounding);
  if (u.c_entry == CEntry::after_alignment)
    text += fmt::format(", F{}+C F{}", u.second.fraction_bits, u.second.c_fraction_bits);
  return text;
}

std::string chain(const UnitDescription& u) {
  const Chaining& c = u.chain;
  std::string text = c.kahan ? "kahan" : c.fused ? "fma" : "mul,add";
  if (u.order == StepOrder::odd_first) text += " odd first";
  if (c.chains > 1) text = fmt::format("{} {}s", c.chains, text);
  if (c.chunk != 0) text += fmt::format(" from 0 per {}", c.chunk);
  return text;
}

std::string sum(const UnitDescription& u) {
  switch (u.core) {
    case CoreKind::fused:
      return fused(u);
    case CoreKind::chain:
      return chain(u);
    case CoreKind::tree:
      return u.tree.leaf > 1 ? fmt::format("{} exact by {},+C", terms(u), u.tree.leaf)
                             : fmt::format("{} pairwise,+C", terms(u));
    case CoreKind::exact:
      return terms(u) + "+C exact";
    case CoreKind::integer:
      return terms(u) + "+C int";
    case CoreKind::xnor:
      return terms(u) + "+C xnor";
    case CoreKind::table:
      break;
  }
  return terms(u) + "+C table";
}

}  // namespace

std::string description_code(const UnitDescription& u) {
  std::string text = u.sparsity.dense() ? "" : text_of(u.sparsity) + " ";
  text += sum(u) + " " + written(u, u.accumulator);
  if (u.c_entry == CEntry::after_rounding) text += ",+C";
  if (u.order == StepOrder::pairs_mod4) text += " k%4";
  if (u.outer.every != 0)
    text += fmt::format(" /{} {}", u.outer.every, written(u, u.outer.accumulator));
  // "e8m0/32", "e4m3/16"
  if (u.scaling.block != 0) {
    const std::string scale = short_name({.format = u.scaling.format});
    text += fmt::format(" {}/{}", scale.substr(0, scale.find('f')), u.scaling.block);
  }
  const Subnormals& s = u.subnormals;
  if (s.flush_inputs || s.flush_c || s.flush_results) text += " ftz";
  return text;
}

}  // namespace numemu::unit
