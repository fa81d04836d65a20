// Step adaquant: weight, bias and ranges of each layer trained until its quantized outputs come
// nearest to those of the float32 network.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/adaquant.hpp"

#include <fmt/format.h>

#include "formats/digest.hpp"
#include "policies/tuning/tune_step.hpp"
#include "policies/tuning/tuned_layers.hpp"

namespace numemu::policies {
namespace {

struct AdaquantStepOptions final : PolicyOptions {
  AdaQuantOptions training;
  std::string mode = "sequential";
  std::int64_t samples = 0;
  std::vector<Option> list() override {
    return {{"iterations", "steps of Adam for each layer", &training.iterations, 0, 1e6},
            {"mode",
             "sequential: layers read the network as quantized and tuned so far; parallel: the "
             "float32 one",
             &mode,
             0,
             0,
             {"sequential", "parallel"}},
            {"batch", "samples of a step", &training.batch, 1, 1e6},
            {"samples", "calibration samples used, 0 for all", &samples, 0, 1e9},
            {"activation_rate", "rate of the activation's range", &training.activation_rate, 0, 1},
            {"range_rate", "rate of the weight's ranges", &training.range_rate, 0, 1},
            {"weight_rate", "rate of the weight", &training.weight_rate, 0, 1},
            {"bias_rate", "rate of the bias", &training.bias_rate, 0, 1}};
  }
};

class AdaQuant final : public TuneStep {
 public:
  explicit AdaQuant(const AdaquantStepOptions& options) : options_(options) {}

  std::int64_t begin(const Tuning& tuning) override {
    layers_ = tuned_layers(tuning, "adaquant");
    return static_cast<std::int64_t>(layers_.size());
  }

  void run(Tuning& tuning, std::int64_t part, const TuneProgress& progress) override {
    const TunedLayer& layer = layers_[static_cast<std::size_t>(part)];
    const LayerSamples samples = layer_samples(
        tuning, layer, options_.mode == "parallel" ? Inputs::reference : Inputs::tuned,
        options_.samples);
    const LayerRecipe roles = tuned_recipe(tuning).layer(layer.name);
    AdaQuantOptions training = options_.training;
    training.seed = tuning.seed + tensor_word(layer.name + "/adaquant");
    const AdaQuantResult result =
        adaquant({.op = *tuning.graph.nodes[layer.node].op,
                  .x = samples.x,
                  .target = samples.target,
                  .relu = layer.relu,
                  .weight = roles[RolePart::weight],
                  .activation = roles[RolePart::activation]},
                 training, [&](std::int64_t done) {
                   progress(static_cast<double>(done) / static_cast<double>(training.iterations));
                 });
    if (!result.weight_scales.empty()) set_weight_scales(tuning, layer, result.weight_scales);
    if (result.activation) {
      tuning.ranges[layer.name].activation =
          range_of(*tuning.recipe.layer(layer.name)[RolePart::activation], *result.activation);
    }
    errors_.insert(errors_.end(), {result.predicted, result.rounded, result.before, result.after});
  }

  void save_state(net::NamedState& state) const override { save_numbers("errors", errors_, state); }
  void load_state(const net::NamedState& state) override {
    errors_ = load_numbers("errors", state);
  }

  std::string summary() const override {
    double before = 0, after = 0, off = 0;
    for (std::size_t i = 0; i + 3 < errors_.size(); i += 4) {
      if (errors_[i] > 0) off = std::max(off, std::abs(errors_[i + 1] / errors_[i] - 1));
      before += errors_[i + 2];
      after += errors_[i + 3];
    }
    return fmt::format(
        "{} layers: sum of mean squared errors {:.4g} before, {:.4g} after; error of rounding the "
        "weights as predicted within {:.1e}",
        layers_.size(), before, after, off);
  }

 private:
  const AdaquantStepOptions& options_;
  std::vector<TunedLayer> layers_;
  std::vector<double> errors_;  ///< of each layer: predicted, rounded, before, after
};

}  // namespace

extern const TuneStepKind tune_adaquant;
const TuneStepKind tune_adaquant{
    .name = "adaquant",
    .summary = "weights, biases and ranges trained layer by layer on the outputs of float32",
    .source = "Hubara et al. 2020 (arXiv 2006.10518)",
    .options = make_options<AdaquantStepOptions>,
    .make = make_step<AdaQuant, AdaquantStepOptions>};

}  // namespace numemu::policies
