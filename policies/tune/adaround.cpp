// Step adaround: each weight rounded up or down so that the layer's outputs change least.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/adaround.hpp"

#include "policies/tuning/rounding_step.hpp"

namespace numemu::policies {
namespace {

struct AdaroundStepOptions final : RoundingOptions {
  AdaRoundOptions adaround;
  std::vector<Option> list() override {
    return with_inputs(
        {{"iterations", "steps of Adam for each layer", &adaround.iterations, 0, 1e6},
         {"rate", "rate of Adam", &adaround.rate, 0, 10},
         {"regulariser",
          "weight of the term that pulls to one of the two levels, in units of the error of "
          "rounding to nearest per weight",
          &adaround.regulariser, 0, 1e6},
         {"first_beta", "exponent of that term at first", &adaround.first_beta, 1, 100},
         {"last_beta", "and at last", &adaround.last_beta, 1, 100},
         {"warm_up", "share of the steps without that term", &adaround.warm_up, 0, 0.9}});
  }
};

class AdaRound final : public RoundingStep {
 public:
  explicit AdaRound(const AdaroundStepOptions& options)
      : RoundingStep("adaround", options), options_(options) {}

 private:
  net::Tensor round(const RolePolicy& role, const net::Tensor& weight,
                    const LayerHessians& hessians) const override {
    return adaround(role, weight, hessians.matrices, hessians.rows, options_.adaround);
  }
  const AdaroundStepOptions& options_;
};

}  // namespace

extern const TuneStepKind tune_adaround;
const TuneStepKind tune_adaround{
    .name = "adaround",
    .summary = "each weight rounded up or down, whichever changes the layer's outputs least",
    .source = "Nagel et al., ICML 2020 (arXiv 2004.10568)",
    .options = make_options<AdaroundStepOptions>,
    .make = make_step<AdaRound, AdaroundStepOptions>};

}  // namespace numemu::policies
