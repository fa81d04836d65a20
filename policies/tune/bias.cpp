// Step bias: biases alone are trained, so that the network's class probabilities come near those of
// float32 (Hubara et al., CalibTIP).
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/dropout.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "policies/state_bytes.hpp"
#include "policies/tuning/kl_divergence.hpp"
#include "policies/tuning/layer_statistics.hpp"
#include "policies/tuning/straight_through_numerics.hpp"
#include "policies/tuning/tune_step.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kBatch = 32;

struct Options final : PolicyOptions {
  std::int64_t epochs = 10;
  double rate = 1e-3;
  std::vector<Option> list() override {
    return {{"epochs", "passes over the calibration samples", &epochs, 1, 1e6},
            {"rate", "learning rate of Adam", &rate, 1e-9, 10}};
  }
};

/// Adam on mean KL(softmax(float32) || softmax(quantized)), in batches of 32; a part is an epoch.
class Bias final : public TuneStep {
 public:
  explicit Bias(const Options& options) : options_(options) {}

  std::int64_t begin(const Tuning& tuning) override {
    for (const net::Node& node : tuning.graph.nodes) {
      const auto* const dropout = dynamic_cast<const net::Dropout*>(node.op.get());
      if (dynamic_cast<const net::BatchNorm*>(node.op.get()) != nullptr ||
          (dropout != nullptr && dropout->probability() > 0))
        throw Error(fmt::format(
            "bias: layer {}: expected a network without {}, which training computes otherwise",
            node.name, dropout ? "dropout" : "batch_norm (it has to be folded)"));
    }
    for (const BiasedLayer& layer : biased_layers(tuning.graph)) names_.push_back(layer.bias);
    if (names_.empty()) throw Error("bias: expected a layer with a bias, found none");
    net::TrainOptions adam;
    adam.optimizer = "adam";
    adam.weight_decay = 0;
    std::vector<net::Parameter> parameters;  // only the biases have a state
    for (const net::Parameter* parameter : tuning.graph.parameters()) {
      net::Parameter& copy = parameters.emplace_back(*parameter);
      copy.trained = is_bias(copy.name);
    }
    std::vector<const net::Parameter*> pointers;
    for (const net::Parameter& parameter : parameters) pointers.push_back(&parameter);
    places_ = parameters.size();
    optimizer_ = net::make_optimizer(adam, pointers);
    return options_.epochs;
  }

  void run(Tuning& tuning, std::int64_t, const TuneProgress& progress) override {
    const std::vector<net::Parameter*> parameters = tuning.graph.parameters();
    StraightThroughNumerics numerics(tuning, /*weights=*/false);
    net::Numerics float32;
    std::vector<float> delta;
    loss_ = 0;
    const std::int64_t all = tuning.calibration.samples;
    for (std::int64_t first = 0; first < all; first += kBatch) {
      const std::int64_t count = std::min(kBatch, all - first);
      const std::vector<net::Tensor> batch = tuning.calibration.batch(first, count);
      const CalibrationStep step(first, count);
      const net::Tensor wanted = net::forward(tuning.reference, batch, float32, step);
      numerics.begin_step(step);
      net::Tape tape = net::forward_training(tuning.graph, batch, numerics, step);
      net::Tensor gradient;
      loss_ += kl_divergence(wanted, tape.output, &gradient) * static_cast<double>(count) /
               static_cast<double>(all);
      const std::vector<net::Tensor> gradients =
          net::backward(tuning.graph, std::move(tape), std::move(gradient), numerics);
      numerics.end_step(step);
      optimizer_->begin_step(options_.rate);
      for (std::size_t p = 0; p < parameters.size(); ++p) {
        if (!is_bias(parameters[p]->name)) continue;
        optimizer_->step(p, *parameters[p], gradients[p], delta);
        for (std::size_t i = 0; i < delta.size(); ++i) parameters[p]->value.data[i] += delta[i];
      }
      progress(static_cast<double>(first + count) / static_cast<double>(all));
    }
  }

  void save_state(net::NamedState& state) const override {
    StateTensors tensors;
    for_each_state(
        [&](const std::string& name, std::vector<float>& values) { tensors[name] = values; });
    save_tensors("adam", tensors, state);
    for (std::size_t i = 0; i < optimizer_->scalars().size(); ++i)
      state.emplace_back(fmt::format("scalar/{}", i),
                         to_bytes({bits_of(*optimizer_->scalars()[i])}));
  }

  void load_state(const net::NamedState& state) override {
    StateTensors tensors;
    load_tensors("adam", state, tensors);
    for_each_state([&](const std::string& name, std::vector<float>& values) {
      const auto found = tensors.find(name);
      if (found == tensors.end() || found->second.size() != values.size())
        throw Error("bias: state " + name + ": expected that of the biases");
      values = found->second;
    });
    for (const auto& [name, bytes] : state) {
      for (std::size_t i = 0; i < optimizer_->scalars().size(); ++i) {
        if (name == fmt::format("scalar/{}", i) && bytes.size() == 8)
          *optimizer_->scalars()[i] = double_of(from_bytes(name, bytes)[0]);
      }
    }
  }

  std::string summary() const override {
    return fmt::format("biases of {} layers, mean divergence {:.5f} in the last epoch",
                       names_.size(), loss_);
  }

 private:
  bool is_bias(const std::string& name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  template <class Use>
  void for_each_state(const Use& use) const {
    for (std::size_t p = 0; p < places_; ++p) {
      for (const net::StateTensor& tensor : optimizer_->state(p)) {
        if (!tensor.value->data.empty())
          use(fmt::format("{}/{}", p, tensor.name), tensor.value->data);
      }
    }
  }

  const Options& options_;
  std::vector<std::string> names_;
  std::size_t places_ = 0;
  std::unique_ptr<net::Optimizer> optimizer_;
  double loss_ = 0;
};

}  // namespace

extern const TuneStepKind tune_bias;
const TuneStepKind tune_bias{
    .name = "bias",
    .summary = "biases are trained so that class probabilities come near those of float32",
    .source = "Hubara et al., ICML 2021 (CalibTIP, arXiv 2006.10518)",
    .options = make_options<Options>,
    .make = make_step<Bias, Options>};

}  // namespace numemu::policies
