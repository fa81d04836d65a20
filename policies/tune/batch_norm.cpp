// Step batch_norm: mean and variance of every channel become those of the float32 network again
// (Hubara et al., CalibTIP: batch normalisation put back after folding, re-estimated, folded).
#include "emu/net/ops/batch_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/tune/base/layer_statistics.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"
#include "policies/tune/batch_norm.hpp"

namespace numemu::policies {
namespace {

struct BatchNormStepOptions final : PolicyOptions {
  double epsilon = kPutBackEpsilon;
  std::vector<Option> list() override {
    return {{"epsilon", "added to the variances", &epsilon, 0, 1}};
  }
};

/// The statistics of layers that still have a batch_norm are re-estimated first, all in one part;
/// then follow layers with a bias, but for the last one, whose results are the network's. Layer
/// after layer: what comes before is corrected already.
class BatchNormStep final : public TuneStep {
 public:
  explicit BatchNormStep(const BatchNormStepOptions& options) : options_(options) {}

  std::int64_t begin(const Tuning& tuning) override {
    norms_ = std::any_of(tuning.graph.nodes.begin(), tuning.graph.nodes.end(),
                         [](const net::Node& node) {
                           return dynamic_cast<const net::BatchNorm*>(node.op.get()) != nullptr;
                         });
    layers_ = biased_layers(tuning.graph);
    std::erase_if(layers_, [&](const BiasedLayer& layer) {
      return layer.result == tuning.graph.nodes.back().name;
    });
    shared_ = left_as_they_were(leave_out_shared(tuning.graph, layers_, /*weights=*/true));
    if (!norms_ && layers_.empty())
      throw Error("batch_norm: expected a batch_norm, or a layer with a bias before the last one");
    return static_cast<std::int64_t>(layers_.size()) + norms_;
  }

  void run(Tuning& tuning, std::int64_t part, const TuneProgress&) override {
    if (norms_ && part == 0) return estimate_norms(tuning);
    const BiasedLayer& layer = layers_[static_cast<std::size_t>(part - norms_)];
    const auto [wanted, found] = channel_drift(tuning, layer);
    net::Tensor& weight = parameter_of(tuning.graph, layer.weight);
    net::Tensor& bias = parameter_of(tuning.graph, layer.bias);
    std::vector<ValueRange>& ranges = tuning.ranges[layer.name].weight;
    double largest = 0;
    const std::size_t each = weight.data.size() / bias.data.size();
    for (std::size_t c = 0; c < bias.data.size(); ++c) {
      const PutBackNorm norm = put_back_norm({wanted.mean[c], wanted.variance[c]},
                                             {found.mean[c], found.variance[c]}, options_.epsilon);
      for (std::size_t i = 0; i < each; ++i) {
        float& w = weight.data[c * each + i];
        w = static_cast<float>(w * norm.factor);
      }
      bias.data[c] = static_cast<float>(bias.data[c] * norm.factor + norm.shift);
      largest = std::max(largest, norm.factor);
      if (ranges.size() == bias.data.size()) scale(ranges[c], norm.factor);
    }
    if (ranges.size() == 1 && bias.data.size() > 1) scale(ranges[0], largest);
  }

  std::string summary() const override {
    return fmt::format("{}{}{}", norms_ ? "statistics re-estimated, and " : "statistics of ",
                       counted(std::ssize(layers_), "layer"), shared_);
  }

 private:
  static void scale(ValueRange& range, double factor) {
    range = {static_cast<float>(range.low * factor), static_cast<float>(range.high * factor)};
  }

  static void estimate_norms(Tuning& tuning) {
    std::vector<std::vector<net::Tensor>> batches;
    tuning.calibration.for_each(
        [&](std::int64_t, std::vector<net::Tensor> batch) { batches.push_back(std::move(batch)); });
    reestimate_batch_norm(tuning.graph, batches, *step_numerics(tuning));
  }

  const BatchNormStepOptions& options_;
  bool norms_ = false;
  std::vector<BiasedLayer> layers_;
  std::string shared_;
};

}  // namespace

extern const TuneStepKind tune_batch_norm{
    .name = "batch_norm",
    .summary = "mean and variance of every channel become those of the float32 network",
    .source = "Hubara et al., ICML 2021 (CalibTIP, arXiv 2006.10518)",
    .options = make_options<BatchNormStepOptions>,
    .make = make_step<BatchNormStep, BatchNormStepOptions>};

}  // namespace numemu::policies
