// Step bias: biases alone are trained, so that the network's class probabilities come near those of
// float32 (Hubara et al., CalibTIP).
#include "policies/tune/base/distillation.hpp"

namespace numemu::policies {
namespace {

class Bias final : public Distillation {
 public:
  explicit Bias(const DistillOptions& options) : Distillation("bias", options) {}
};

}  // namespace

extern const TuneStepKind tune_bias{
    .name = "bias",
    .summary = "biases are trained so that class probabilities come near those of float32",
    .source = "Hubara et al., ICML 2021 (CalibTIP, arXiv 2006.10518)",
    .of_classes = true,
    .options = make_options<DistillOptions>,
    .make = make_step<Bias, DistillOptions>};

}  // namespace numemu::policies
