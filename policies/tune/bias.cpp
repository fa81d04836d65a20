// Step bias: biases alone are trained, so that the network's class probabilities come near those of
// float32 (Hubara et al., CalibTIP).
#include "policies/tuning/distillation.hpp"

namespace numemu::policies {
namespace {

struct Options final : PolicyOptions {
  DistillOptions training;
  std::vector<Option> list() override {
    return {{"epochs", "passes over the calibration samples", &training.epochs, 1, 1e6},
            {"rate", "learning rate of Adam", &training.rate, 1e-9, 10}};
  }
};

class Bias final : public Distillation {
 public:
  explicit Bias(const Options& options) : Distillation("bias", options.training) {}
};

}  // namespace

extern const TuneStepKind tune_bias;
const TuneStepKind tune_bias{
    .name = "bias",
    .summary = "biases are trained so that class probabilities come near those of float32",
    .source = "Hubara et al., ICML 2021 (CalibTIP, arXiv 2006.10518)",
    .of_classes = true,
    .options = make_options<Options>,
    .make = make_step<Bias, Options>};

}  // namespace numemu::policies
