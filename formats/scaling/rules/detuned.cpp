// Scale rule detuned: another rule's scale times a factor, to show how much depends on the scale
// (KURE tests its weights so: Shkolnik et al., NeurIPS 2020).
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {
namespace {

constexpr double kLeast = 1e-6, kMost = 1e6;

ScaleRule detuned(const ScaleArguments& arguments) {
  const ScaleRule& inner = *arguments.rule;
  const double factor = arguments.number;
  ScaleRule rule = inner;
  rule.lands_on = nullptr;
  if (inner.scale != nullptr) {
    rule.scale = [&inner, factor](const ScaleRequest& r) {
      const float scale = inner.scale(r);
      if (!has_magnitude(r)) return scale;
      const double wanted = std::clamp<double>(scale * factor, std::numeric_limits<float>::min(),
                                               std::numeric_limits<float>::max());
      const auto rounded = static_cast<float>(wanted);
      return r.block == nullptr ? rounded : round_scale(r, rounded);
    };
  }
  int exponent = 0;
  const bool power = std::frexp(factor, &exponent) == 0.5;
  if (inner.exponents != nullptr && power) {
    rule.exponents = [&inner, by = exponent - 1](const ExponentRequest& r) {
      inner.exponents(r);
      const ExponentRange range = exponent_range(*r.format->scale);
      for (std::int64_t b = 0; b < r.blocks; ++b) {
        if (r.amax[b] != 0)
          r.exponents[b] = std::clamp(r.exponents[b] + by, range.lowest, range.highest);
      }
    };
  } else {
    rule.exponents = nullptr;
  }
  if (rule.scale == nullptr && rule.exponents == nullptr) {
    throw Error(fmt::format("scale rule {}: {} chooses powers of two, expected a power of two",
                            arguments.text, inner.name));
  }
  return rule;
}

}  // namespace

extern const ScaleRule scale_detuned{
    .name = "detuned",
    .summary = "the scale of RULE times FACTOR",
    .arguments = {{ScaleArgument::Kind::rule, "RULE", "another rule"},
                  {ScaleArgument::Kind::number, "FACTOR",
                   "a power of two where RULE chooses powers of two", kLeast, kMost}},
    .make = detuned};

}  // namespace numemu
