// The table of scale rules, made from the files of policies/scale/, and the arithmetic they share.
#include "policies/scale_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {

#define NUMEMU_SCALE_RULE(stem) extern const ScaleRule scale_##stem;
#include "policies/scale/table.inc"
#undef NUMEMU_SCALE_RULE

std::vector<const ScaleRule*> all_scale_rules() {
  return {
#define NUMEMU_SCALE_RULE(stem) &scale_##stem,
#include "policies/scale/table.inc"
#undef NUMEMU_SCALE_RULE
  };
}

const ScaleRule& find_scale_rule(std::string_view name) {
  std::vector<std::string> known;
  for (const ScaleRule* rule : all_scale_rules()) {
    if (rule->name == name) return *rule;
    known.emplace_back(rule->name);
  }
  throw Error(unknown_name("scale rule", name, known));
}

double largest_element(const Conversion& conversion) { return largest_value(*conversion.format); }

double largest_magnitude(const float* x, std::int64_t n) {
  float amax = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    if (magnitude > amax && magnitude <= std::numeric_limits<float>::max()) amax = magnitude;
  }
  return amax;
}

float absmax_scale(double amax, const Conversion& conversion) {
  if (amax == 0) return 1;
  const double largest = largest_element(conversion);
  // scale * largest is exact in double (24 + 11 bits), so the comparison below decides the upward
  // rounding exactly.
  float scale = static_cast<float>(amax / largest);
  while (static_cast<double>(scale) * largest < amax) {
    scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
  }
  for (float below = std::nextafter(scale, 0.0f); static_cast<double>(below) * largest >= amax;
       below = std::nextafter(below, 0.0f)) {
    scale = below;
  }
  return std::min(scale, std::numeric_limits<float>::max());
}

}  // namespace numemu::policies
