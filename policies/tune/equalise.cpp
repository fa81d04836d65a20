// Step equalise: the ranges of weights made equal across the layers that share channels.
#include "policies/tune/base/equalise.hpp"

#include <fmt/format.h>

#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies {
namespace {

struct EqualiseStepOptions final : PolicyOptions {
  std::int64_t rounds = 20;
  std::string scales = "real";
  std::vector<Option> list() override {
    return {{"rounds", "passes over the network at most", &rounds, 1, 1000},
            scale_steps_option(scales)};
  }
};

class Equalise final : public TuneStep {
 public:
  explicit Equalise(const EqualiseStepOptions& options) : options_(options) {}

  void run(Tuning& tuning, std::int64_t, const TuneProgress&) override {
    net::Graph* const graphs[] = {&tuning.graph, &tuning.reference};
    report_ = equalise_weights(graphs, options_.rounds, scale_steps(options_.scales));
    forget_moved_ranges(tuning, "equalise", report_);
  }
  std::string summary() const override { return summary_of(report_); }

 private:
  const EqualiseStepOptions& options_;
  std::vector<ScaledLink> report_;
};

}  // namespace

extern const TuneStepKind tune_equalise{
    .name = "equalise",
    .summary = "ranges of weights made equal across layers; the network computes the same",
    .source = "Nagel et al., ICCV 2019 (arXiv 1906.04721)",
    .options = make_options<EqualiseStepOptions>,
    .make = make_step<Equalise, EqualiseStepOptions>};

}  // namespace numemu::policies
