// The specification's rule for every chip and instruction, and the list of all rules.
#include "tests/oracle/cuda/replay/rules.hpp"

#include "tests/oracle/cuda/replay/chips.hpp"

namespace numemu::oracle::recording::replay {
namespace {

enum class Family { any, mma, wgmma, tc5 };
enum class Inputs { half, tf32, fp8, narrow, other };
enum class Evidence { published, extension };

struct Step {
  const char* chip;
  Family family;
  Inputs inputs;
  Core core;
  int step, fraction, kept;
  Evidence evidence;
};

constexpr Step kSteps[] = {
#define NUMEMU_GPU_STEP(chip, family, inputs, core, step, fraction, kept, evidence) \
  {#chip, Family::family, Inputs::inputs, Core::core, step, fraction, kept, Evidence::evidence},
#include "tests/oracle/cuda/replay/steps.def"
#undef NUMEMU_GPU_STEP
};

Family family_of(Kind kind) {
  switch (kind) {
    case Kind::wgmma:
    case Kind::wgmmasp:
      return Family::wgmma;
    case Kind::tc5:
    case Kind::tc5sp:
    case Kind::tc5bs:
      return Family::tc5;
    default:
      return Family::mma;
  }
}

Inputs inputs_of(const Instruction& i) {
  const auto fp8 = [](Element e) { return e == Element::e4m3 || e == Element::e5m2; };
  if (i.a == Element::f16 || i.a == Element::bf16) return Inputs::half;
  if (i.a == Element::tf32) return Inputs::tf32;
  if (fp8(i.a) && fp8(i.b)) return Inputs::fp8;
  return info(i.a).bits <= 8 && !is_integer(i.a) ? Inputs::narrow : Inputs::other;
}

/// m8n8k4 of float16, which chips after Turing do in float32 arithmetic and not in a matrix unit.
bool is_quad_pair(const Instruction& i) { return i.m == 8 && i.k == 4 && i.a == Element::f16; }
bool has_quad_pairs(const std::string& chip) { return chip == "V100" || chip == "T4"; }

/// Instructions that a published row covers only by analogy. FP8 at K = 16 and in mma.sp of Hopper
/// and Blackwell are not: the machine code shows their two steps.
bool extends(const Instruction& i, Core core) {
  return i.sparsity != Sparsity::dense && core != Core::lowered_fp8;
}

Rule fused_rule(const std::string& chip, const Instruction& i) {
  Rule rule;
  const std::string unit = chip == "H200" ? "H100" : chip;
  for (const Step& s : kSteps) {
    const bool family = s.family == Family::any || s.family == family_of(i.kind);
    if (unit != s.chip || !family || s.inputs != inputs_of(i)) continue;
    rule.core = s.core;
    rule.step = s.step;
    rule.fraction = s.fraction;
    rule.kept = s.kept;
    if (s.core == Core::lowered_fp8) {
      rule.c = CEnters::after_rounding;
      rule.name = "lowered, ";
    }
    rule.name += "G=" + std::to_string(s.step) + " F=" + std::to_string(s.fraction);
    if (s.kept != 23 && i.d == Element::f32) rule.name += " kept " + std::to_string(s.kept);
    if (s.evidence == Evidence::extension || extends(i, s.core)) rule.name += kByExtension;
    return rule;
  }
  return rule;
}

Rule groups_rule(const std::string& chip) {
  Rule rule;
  if (chip != "B200" && chip != "RTXBlackwell") return rule;
  rule.core = Core::four_groups;
  rule.step = 16;
  rule.fraction = 35;
  rule.name = "groups of 16, F=35";
  return rule;
}

Rule integer_rule(const Instruction& i) {
  Rule rule;
  rule.core = Core::integer;
  rule.saturation = i.satfinite ? Saturation::once : Saturation::never;
  rule.name = i.satfinite ? "clamps once" : "wraps";
  if (i.sparsity != Sparsity::dense) rule.name += kByExtension;
  return rule;
}

Rule double_rule(const std::string& chip) {
  Rule rule;
  rule.core = Core::fma_chain;
  rule.nan = NanPayload::a_b_c;
  rule.name = "FMA chain";
  const bool published = chip == "A100" || chip == "H100" || chip == "H200";
  if (!published) rule.name += kByExtension;
  return rule;
}

bool steps_of_rule(const Rule& rule) {
  return rule.core == Core::fused || rule.core == Core::lowered_fp8 ||
         rule.core == Core::four_groups;
}

}  // namespace

Rule specified_rule(const std::string& chip, const Instruction& i) {
  if (chip.empty() || chip_of(chip) != chip) return {};
  if (is_integer(i.a)) return integer_rule(i);
  if (i.a == Element::f64) return double_rule(chip);
  if (i.block != 0 && i.k == 64) return groups_rule(chip);
  if (is_quad_pair(i) && !has_quad_pairs(chip)) return {};
  return fused_rule(chip, i);
}

Rule rival(const Rule& first, const char* question, const std::string& name) {
  Rule other = first;
  other.question = question;
  other.name = name;
  return other;
}

std::vector<Rule> rivals_of(const std::string& chip, const Instruction& i, const Rule& first) {
  std::vector<Rule> all;
  if (steps_of_rule(first)) {
    add_fused_rivals(i, first, all);
    add_lowering_rivals(chip, i, first, all);
  }
  if (first.core == Core::integer) add_integer_rivals(i, first, all);
  if (i.sparsity != Sparsity::dense) add_sparse_rivals(i, first, all);
  if (i.a == Element::tf32) add_tf32_rivals(first, all);
  if (i.a == Element::f64) add_double_rivals(first, all);
  if (i.block != 0) add_scale_rivals(i, first, all);
  if (first.core != Core::integer) add_nan_rivals(first, all);
  return all;
}

}  // namespace numemu::oracle::recording::replay

std::vector<numemu::oracle::recording::Rule> numemu::oracle::recording::rules(
    const std::string& chip, const Instruction& i) {
  const Rule first = replay::specified_rule(chip, i);
  std::vector<Rule> all;
  if (first.name.empty()) return all;
  all.push_back(first);
  for (const Rule& rival : replay::rivals_of(chip, i, first)) all.push_back(rival);
  return all;
}
