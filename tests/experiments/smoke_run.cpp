// The settings of a smoke run.
#include "tests/experiments/smoke_run.hpp"

namespace numemu::experiments::testing {

ExperimentRun smoke_run(const std::string& name, const test::TemporaryFolder& folder,
                        const std::vector<std::string>& settings, std::uint64_t seed) {
  return {.settings = Settings(find_experiment(name).settings, Size::smoke, settings),
          .seed = seed,
          .out = folder / "out",
          .folders = {folder.path(), folder.path()},
          .hooks = {}};
}

}  // namespace numemu::experiments::testing
