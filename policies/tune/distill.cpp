// Step distill: weights and biases of all layers with a weight are trained under the recipe, so
// that its class probabilities come near those of float32 (Polino et al.), without labels.
#include "policies/tune/base/distillation.hpp"

namespace numemu::policies {
namespace {

struct DistillStepOptions final : DistillOptions {
  DistillStepOptions() {
    rate = 1e-4;
    weights = falls = true;
  }
};

class Distill final : public Distillation {
 public:
  explicit Distill(const DistillStepOptions& options) : Distillation("distill", options) {}
};

}  // namespace

extern const TuneStepKind tune_distill{
    .name = "distill",
    .summary =
        "weights and biases are trained so that class probabilities come near those of float32",
    .source = "Polino et al., ICLR 2018 (arXiv 1802.05668)",
    .of_classes = true,
    .recurrent = true,
    .options = make_options<DistillStepOptions>,
    .make = make_step<Distill, DistillStepOptions>};

}  // namespace numemu::policies
