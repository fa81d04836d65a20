// The arithmetic of a unit as a code of a few words, for lists: "16+C F25 rtz->f32".
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/words.hpp"

namespace numemu::unit {
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
