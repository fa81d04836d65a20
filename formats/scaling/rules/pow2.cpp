// Scale rule pow2: another rule's real scale rounded to a power of two, which costs hardware a
// shift instead of a multiplication.
#include <cmath>

#include "formats/scaling/scale_exponent.hpp"

namespace numemu {
namespace {

// In the order of the choices.
enum class To : std::uint8_t { nearest, up, down };

/// The exponent of the power of two for a positive scale. nearest: in log2; a square of the
/// mantissa in integers decides, and sqrt 2, no fraction, never ties.
int exponent_for(float scale, To to) {
  constexpr std::uint64_t kOne = std::uint64_t{1} << 23;
  const Leading lead = leading(value_of(scale));
  const bool upward = to == To::nearest ? lead.mantissa * lead.mantissa > 2 * kOne * kOne
                                        : to == To::up && lead.mantissa > kOne;
  return lead.exponent + (upward ? 1 : 0);
}

float power_for(float scale, To to) {
  constexpr int kHighest = 127, kLowest = -149;  // of float32
  return std::ldexp(1.0f, std::clamp(exponent_for(scale, to), kLowest, kHighest));
}

ScaleRule pow2(const ScaleArguments& arguments) {
  const ScaleRule& inner = *arguments.rule;
  ScaleRule rule = inner;
  rule.lands_on = nullptr;
  if (inner.scale == nullptr) return rule;  // powers of two already
  rule.scale = [&inner, to = static_cast<To>(arguments.choice)](const ScaleRequest& r) {
    const float scale = inner.scale(r);
    if (!(scale > 0)) return scale;  // the code of zero beside a tensor scale
    const float power = power_for(scale, to);
    if (r.block == nullptr) return power;
    const float stored = round_scale(r, power);
    // Beyond the largest value of the scale format: the largest power of two in it.
    return stored < power ? power_for(stored, To::down) : stored;
  };
  return rule;
}

}  // namespace

extern const ScaleRule scale_pow2{
    .name = "pow2",
    .summary = "the scale of RULE rounded to a power of two",
    .arguments = {{ScaleArgument::Kind::rule, "RULE", "another rule"},
                  {ScaleArgument::Kind::choice,
                   "TO",
                   "nearest in log2; up, so that nothing clips that RULE does not clip; down",
                   0,
                   0,
                   {"nearest", "up", "down"}}},
    .make = pow2};

}  // namespace numemu
