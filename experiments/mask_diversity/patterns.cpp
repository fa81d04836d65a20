#include "experiments/mask_diversity/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::experiments {

DiversityPattern::DiversityPattern(std::string called, MaskFamily of, int kept, int group,
                                   std::string rule)
    : name(std::move(called)),
      family(of),
      pattern{{kept, group}, false},
      mask(std::move(rule)),
      masks_(structured() ? piece_count(family, pattern)
                          : mask_diversity(family, pattern, kReferenceBlock)),
      log10_exact_(structured() ? masks_.log10 * static_cast<double>(kReferenceBlock) /
                                      static_cast<double>(piece())
                                : masks_.log10),
      log10_bound_(family == MaskFamily::transposable
                       ? log10_per_block(MaskFamily::transposable_bound, pattern)
                       : log10_exact_) {}

const std::vector<DiversityPattern>& half_density_patterns() {
  static const std::vector<DiversityPattern> patterns = [] {
    using F = MaskFamily;
    // Rows beyond a tensor count as zeros in tiles: each row that is there keeps half all the same.
    std::vector<DiversityPattern> made = {
        {"unstructured", F::unstructured, 1, 2, "unstructured(0.5)"},
        {"8:16", F::group, 8, 16, "greedy(8:16)"},
        {"4:8", F::group, 4, 8, "greedy(4:8)"},
        {"2:4", F::group, 2, 4, "greedy(2:4)"},
        {"1:2", F::group, 1, 2, "greedy(1:2)"},
        {"8:16-T", F::transposable, 8, 16, "transposable(8:16,remainder=pad)"},
        {"4:8-T", F::transposable, 4, 8, "transposable(4:8,remainder=pad)"},
        {"2:4-T", F::transposable, 2, 4, "transposable(2:4,remainder=pad)"},
        {"1:2-T", F::transposable, 1, 2, "transposable(1:2,remainder=pad)"},
        {"2:4 seq", F::sequential, 2, 4, "sequential(2:4)"},
        {"4:8 seq", F::sequential, 4, 8, "sequential(4:8)"}};
    std::stable_sort(made.begin(), made.end(),
                     [](const DiversityPattern& a, const DiversityPattern& b) {
                       return a.log10_exact() > b.log10_exact();
                     });
    return made;
  }();
  return patterns;
}

const DiversityPattern& diversity_pattern(std::string_view name) {
  for (const DiversityPattern& pattern : half_density_patterns()) {
    if (pattern.name == name) return pattern;
  }
  throw Error(fmt::format("no pattern of mask-diversity is called '{}'", name));
}

}  // namespace numemu::experiments
