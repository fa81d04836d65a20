// A tuning step: one file in policies/tune/ that the build finds; nothing else names it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/policy.hpp"
#include "policies/tune/base/tuning.hpp"

namespace numemu::policies {

/// Told by a part how much of it is done, 0 to 1; for the bar alone.
using TuneProgress = std::function<void(double share)>;

/// The work of a step, cut into parts. The result is a function of the tuning state at the first
/// part and of the options: not of threads, time, or interruptions.
class TuneStep {
 public:
  virtual ~TuneStep() = default;
  /// Called once before the first part, also before the first one after a restart (then `tuning` is
  /// as the part before left it, and load_state() follows): checks that the step serves the recipe
  /// and network (throws Error naming the layer), computes what is cheap to compute again, and
  /// gives the number of parts, at least 1. A part should take seconds: the run is stored after
  /// each one, and killed runs repeat one part.
  virtual std::int64_t begin(const Tuning&) { return 1; }
  /// Does part number `part`; they come in order.
  virtual void run(Tuning&, std::int64_t part, const TuneProgress&) = 0;
  /// What later parts need beside the tuning state and begin(): moments of an optimizer, sums over
  /// batches. Default: nothing.
  virtual void save_state(net::NamedState&) const {}
  virtual void load_state(const net::NamedState&) {}
  /// One line of what was done, after the last part; empty: nothing to say.
  virtual std::string summary() const { return ""; }
};

/// A row of the table of steps.
struct TuneStepKind {
  std::string_view name;                                  ///< in --steps
  std::string_view summary;                               ///< what it does, for help and docs
  std::string_view source;                                ///< publication
  bool of_classes = false;                                ///< reads outputs as logits of classes
  bool recurrent = false;                                 ///< reaches recurrent layers, too
  std::unique_ptr<PolicyOptions> (*options)() = nullptr;  ///< defaults; see make_options()
  /// The options are those of options(), and outlive the step.
  std::unique_ptr<TuneStep> (*make)(const PolicyOptions&) = nullptr;
};

/// The usual `make` of a row whose step is made from its options.
template <class Step, class Options>
std::unique_ptr<TuneStep> make_step(const PolicyOptions& options) {
  return std::make_unique<Step>(static_cast<const Options&>(options));
}

/// Every step, in the order of file names.
const std::vector<const TuneStepKind*>& all_tune_steps();
/// Throws Error with the nearest name.
const TuneStepKind& find_tune_step(std::string_view name);

/// A chain of steps under a name of its own, as a publication has them; --steps takes it like a
/// step without options.
struct TunePipeline {
  std::string_view name;
  std::string_view steps;  ///< as in --steps
  std::string_view summary;
};
const std::vector<TunePipeline>& tune_pipelines();

/// A step with its options as read.
struct TuneStepChoice {
  const TuneStepKind* kind = nullptr;
  std::unique_ptr<PolicyOptions> options;
  std::string text;  ///< canonical: "bias(rate=0.001)", without options that have their defaults
  std::string_view pipeline = {};  ///< that it is part of
};
/// "calibrate(percentile=99.9),batch_norm,bias(epochs=4)": options as VALUE in the order of the
/// list or KEY=VALUE. A pipeline stands for its steps. Throws Error naming step and option; `where`
/// starts it.
std::vector<TuneStepChoice> parse_tune_steps(const std::string& text, const std::string& where);
/// Of a task whose outputs are no logits of classes: takes out the steps that need these.
std::vector<TuneStepChoice> take_class_steps(std::vector<TuneStepChoice>&);
/// take_class_steps() of pipelines, with one sentence for each. Throws Error naming one that stands
/// by itself.
std::vector<std::string> leave_out_class_steps(std::vector<TuneStepChoice>&,
                                               const std::string& where);
/// The canonical text of the whole list.
std::string tune_steps_text(const std::vector<TuneStepChoice>&);

}  // namespace numemu::policies
