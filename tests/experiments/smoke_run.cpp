#include "tests/experiments/smoke_run.hpp"

#include <cmath>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::experiments::testing {

ExperimentRun smoke_run(const std::string& name, const test::TemporaryFolder& folder,
                        const std::vector<std::string>& settings, std::uint64_t seed) {
  const std::string cache = folder / "cache";
  if (!std::filesystem::exists(cache)) test::share_glyphs(cache);
  return {.settings = settings_of(find_experiment(name), Size::smoke, settings),
          .seed = seed,
          .out = folder / "out",
          .folders = {folder.path(), cache},
          .hooks = {}};
}

bool agrees(const Finding& finding) {
  constexpr double kRounding = 1e-6;
  const double size = std::fabs(finding.predicted), error = half_width(finding) / stats::kNormal95;
  const bool near =
      std::fabs(finding.measured - finding.predicted) <= kErrors * error + kRounding * size;
  const Finding form = closed_form("", finding.predicted, finding.measured, error);
  if (finding.tolerance == form.tolerance) return near;
  return finding.verdict == Verdict::holds ||
         (finding.verdict == Verdict::undecided && !std::isnan(finding.tolerance) && near);
}

std::pair<int, int> held(const Conclusion& conclusion, const std::string& claim) {
  std::pair<int, int> counts;
  for (const Finding& finding : conclusion.findings) {
    if (finding.claim != claim) continue;
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK(std::isfinite(finding.measured));
    ++counts.first;
    counts.second += agrees(finding) ? 1 : 0;
  }
  return counts;
}

}  // namespace numemu::experiments::testing
