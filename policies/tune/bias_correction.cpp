// Step bias_correction: each channel's mean is that of the float32 network again (Nagel et al.,
// Data-Free Quantization, ICCV 2019, there from batch-norm statistics).
#include <fmt/format.h>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/tune/base/layer_statistics.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::policies {
namespace {

struct BiasCorrectionStepOptions final : PolicyOptions {};

/// b += E[W X] - E[Q(W) Q(X)] per channel, layer after layer: X is what the network before the
/// layer gives, corrected already, and the float32 network's in the first term.
class BiasCorrection final : public TuneStep {
 public:
  explicit BiasCorrection(const BiasCorrectionStepOptions&) {}

  std::int64_t begin(const Tuning& tuning) override {
    layers_ = biased_layers(tuning.graph);
    shared_ = left_as_they_were(leave_out_shared(tuning.graph, layers_, /*weights=*/false));
    if (layers_.empty())
      throw Error("bias_correction: expected a layer with a bias of its own, found none");
    return static_cast<std::int64_t>(layers_.size());
  }

  void run(Tuning& tuning, std::int64_t part, const TuneProgress&) override {
    const BiasedLayer& layer = layers_[static_cast<std::size_t>(part)];
    const auto [wanted, found] = channel_drift(tuning, layer);
    net::Tensor& bias = parameter_of(tuning.graph, layer.bias);
    for (std::size_t c = 0; c < bias.data.size(); ++c)
      bias.data[c] = static_cast<float>(bias.data[c] + (wanted.mean[c] - found.mean[c]));
  }

  std::string summary() const override {
    return fmt::format("biases of {}{}", counted(std::ssize(layers_), "layer"), shared_);
  }

 private:
  std::vector<BiasedLayer> layers_;
  std::string shared_;
};

}  // namespace

extern const TuneStepKind tune_bias_correction{
    .name = "bias_correction",
    .summary = "the mean of every channel becomes that of the float32 network",
    .source = "Nagel et al., ICCV 2019 (arXiv 1906.04721)",
    .options = make_options<BiasCorrectionStepOptions>,
    .make = make_step<BiasCorrection, BiasCorrectionStepOptions>};

}  // namespace numemu::policies
