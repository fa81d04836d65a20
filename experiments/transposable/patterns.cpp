#include "experiments/transposable/patterns.hpp"

#include <fmt/format.h>

#include "experiments/transposable/closed_forms.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {

const std::vector<HalfPattern>& half_patterns() {
  // 4:8-T and 2:4-T: measured by another program (specs/sparsity.md 2b). Its figures for 8 x 8
  // elements are off by 0.0015 and those for 4 x 4 by 0.0003 where there is a closed form.
  static const std::vector<HalfPattern> patterns = {
      {"unstructured", "unstructured(0.5)", false, group_loss(32, 64)},
      {"4:8", "greedy(4:8,remainder=pad)", true, group_loss(4, 8)},
      {"2:4", "greedy(2:4,remainder=pad)", true, group_loss(2, 4)},
      {"4:8-T", "transposable(4:8,remainder=pad)", true, 0.2595, 0.0015},
      {"1:2", "greedy(1:2,remainder=pad)", true, group_loss(1, 2)},
      {"2:4-T", "transposable(2:4,remainder=pad)", true, 0.2976, 0.0003},
      {"1:2-T", "transposable(1:2,remainder=pad)", true, diagonal_loss()}};
  return patterns;
}

const HalfPattern& half_pattern(std::string_view name) {
  std::string known;
  for (const HalfPattern& pattern : half_patterns()) {
    if (pattern.name == name) return pattern;
    known += (known.empty() ? "" : ", ") + pattern.name;
  }
  throw Error(fmt::format("--set: patterns: expected one of {}, not '{}'", known, name));
}

}  // namespace numemu::experiments
