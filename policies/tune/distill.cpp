// Step distill: weights and biases of all layers that have both are trained under the recipe, so
// that its class probabilities come near those of float32 (Polino et al.), without labels.
#include "policies/tuning/distillation.hpp"

namespace numemu::policies {
namespace {

struct Options final : PolicyOptions {
  DistillOptions training{.epochs = 10, .rate = 1e-4, .weights = true, .falls = true};
  std::vector<Option> list() override {
    return {{"epochs", "passes over the calibration samples", &training.epochs, 1, 1e6},
            {"rate", "learning rate of Adam at first; it falls to 0 along half a cosine",
             &training.rate, 1e-9, 10}};
  }
};

class Distill final : public Distillation {
 public:
  explicit Distill(const Options& options) : Distillation("distill", options.training) {}
};

}  // namespace

extern const TuneStepKind tune_distill;
const TuneStepKind tune_distill{
    .name = "distill",
    .summary =
        "weights and biases are trained so that class probabilities come near those of float32",
    .source = "Polino et al., ICLR 2018 (arXiv 1802.05668)",
    .of_classes = true,
    .options = make_options<Options>,
    .make = make_step<Distill, Options>};

}  // namespace numemu::policies
