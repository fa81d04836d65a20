#include "tests/experiments/smoke_run.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace numemu::experiments::testing {

ExperimentRun smoke_run(const std::string& name, const test::TemporaryFolder& folder,
                        const std::vector<std::string>& settings, std::uint64_t seed) {
  return {.settings = Settings(find_experiment(name).settings, Size::smoke, settings),
          .seed = seed,
          .out = folder / "out",
          .folders = {folder.path(), folder.path()},
          .hooks = {}};
}

std::pair<int, int> held(const Conclusion& conclusion, const std::string& claim) {
  std::pair<int, int> counts;
  for (const Finding& finding : conclusion.findings) {
    if (finding.claim != claim) continue;
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK(std::isfinite(finding.measured));
    ++counts.first;
    counts.second += finding.verdict == Verdict::holds;
  }
  return counts;
}

}  // namespace numemu::experiments::testing
