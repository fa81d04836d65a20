// A chain of tuning steps, stored after every part: killed at any point and started again it gives
// the same bits.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emu/net/train/state_file.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies {

/// How far a chain is.
struct TunePosition {
  std::size_t step = 0;  ///< number in the list; as many as there are steps at the end
  std::int64_t part = 0, parts = 1;
  std::vector<std::string> summaries;  ///< of the steps that are done

  bool finished(std::size_t steps) const { return step == steps; }
};

struct TuneHooks {
  /// Once, before the first part: what a resumed run did before it.
  std::function<void(const TunePosition&)> on_start;
  /// During and after every part: `share` of the part is done.
  std::function<void(const TunePosition&, double share)> on_work;
  /// After a step.
  std::function<void(const TunePosition&)> on_step;
};

/// Where a chain keeps its state; with an empty path it keeps none. The identity has what must
/// agree for it to be continued: steps and seed are added to it.
struct TuneFile {
  std::string path;
  net::RunIdentity identity;
  bool fresh = false;  ///< a state that is there is not read
};

/// Runs the steps on the tuning state. Where the file has the state of an unfinished chain the
/// chain continues from it; one of another identity is an Error naming the first difference, and a
/// finished one of another identity is replaced. A finished one of the same identity gives its
/// result without work.
TunePosition run_tune_steps(Tuning&, const std::vector<TuneStepChoice>&, const TuneFile& = {},
                            const TuneHooks& = {});

}  // namespace numemu::policies
