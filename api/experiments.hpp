// Published experiments: run one by name, with its conclusion and the files of its folder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "api/studies.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::api {

struct ExperimentRequest {
  std::string name = {};                   ///< one of experiments::all_experiments()
  std::string size = "default";            ///< smoke, default, full
  std::string out = {};                    ///< folder; "" is out/NAME-SIZE
  std::vector<std::string> settings = {};  ///< "key=value"
  std::int64_t seed = 0;
  Existing existing = Existing::resume;
};
struct ExperimentResult {
  std::string out;
  experiments::Conclusion conclusion;
  Json json;  ///< experiment.json

  bool failed() const;  ///< a finding failed
};
/// Context::on_work hears of what points share before the first one, the hooks of points and
/// trials.
ExperimentResult run_experiment(const ExperimentRequest&, const Context&,
                                const experiments::SweepHooks& = {});

}  // namespace numemu::api
