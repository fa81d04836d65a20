#include "policies/tune/base/distillation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/math.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/masks.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/shuffle.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/state_bytes.hpp"
#include "policies/tune/base/layer_statistics.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::policies {

StraightThroughNumerics::StraightThroughNumerics(const Tuning& tuning, bool weights)
    : OwnedNumerics{step_numerics(tuning, tuning.reference)}, Forwarding(*owned) {
  weights_changed(tuning);
  for (const net::GemmLayer& layer : net::gemm_layers(tuning.graph)) {
    // Of two activations the gradient of the second is no weight's.
    if (!weights && layer.weight != nullptr) unread_.insert(layer.name);
    const std::optional<RolePolicy>& role = owned->roles().recipe(layer.name)[RolePart::activation];
    if (!role) continue;
    if (const std::optional<TensorScale> fixed = role->fixed_scale())
      reach_[layer.name] = range_of(*role, *fixed);
  }
}

void StraightThroughNumerics::weights_changed(const Tuning& tuning) {
  owned->freeze_weights(tuning.graph, tuning.calibration);
  rounded_.clear();
}

void StraightThroughNumerics::begin_step(const net::Step& step) {
  Forwarding::begin_step(step);
  beyond_.clear();  // the first layer has no backward
}

const net::Tensor& StraightThroughNumerics::rounded(std::string_view layer,
                                                    const net::Tensor& weight) {
  const auto found = rounded_.find(layer);
  if (found != rounded_.end()) return found->second;
  const PlainOperand* const operand = owned->roles().frozen_weight(layer);
  if (operand == nullptr) return weight;
  net::Tensor& values = rounded_[std::string(layer)];
  values = net::Tensor(weight.shape);
  if (operand->dequantized) {
    values.data = operand->values;
  } else {
    operand->codes.values(values.data.data());
  }
  return values;
}

void StraightThroughNumerics::product(const net::Step& step, const net::Product& product) {
  const auto reach = reach_.find(product.layer);
  if (product.kind == net::GemmKind::fprop) {
    Forwarding::product(step, product);
    if (reach == reach_.end()) return;
    const net::Elements& x = product.a.source->data;
    std::vector<bool>& beyond = beyond_[reach->first].emplace_back(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      beyond[i] = x[i] < reach->second.low || x[i] > reach->second.high;
    return;
  }
  if (product.kind == net::GemmKind::wgrad) {
    if (!unread_.contains(product.layer)) Numerics::product(step, product);
    return;
  }
  net::Product backward = product;
  if (product.b.role == net::Role::weight)
    backward.b.source = &rounded(product.layer, *product.b.source);
  Numerics::product(step, backward);
  if (reach == reach_.end()) return;
  std::vector<std::vector<bool>>& kept = beyond_[reach->first];
  const std::vector<bool> beyond = std::move(kept.back());
  kept.pop_back();
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    if (beyond[i]) product.d[i] = 0;
  }
}

namespace {

/// ln of the probabilities of a row of logits, and the probabilities.
struct Probabilities {
  std::vector<double> log, value;
};

void set(Probabilities& p, const float* z, std::int64_t classes) {
  p.log.resize(static_cast<std::size_t>(classes));
  p.value.resize(static_cast<std::size_t>(classes));
  const float largest = *std::max_element(z, z + classes);
  if (!std::isfinite(largest))
    throw Error("kl_divergence: expected logits with a finite largest one in every row");
  for (std::int64_t c = 0; c < classes; ++c) p.value[c] = net::exp(z[c] - largest);
  const double sum = pairwise_sum(classes, [&](std::int64_t c) { return p.value[c]; });
  const double log_sum = net::log(static_cast<float>(sum));
  for (std::int64_t c = 0; c < classes; ++c) {
    p.value[c] /= sum;
    p.log[c] = double{z[c]} - largest - log_sum;
  }
}

}  // namespace

double kl_divergence(const net::Tensor& f, const net::Tensor& q, net::Tensor* gradient) {
  if (f.shape != q.shape || f.shape.empty() || f.size() == 0)
    throw Error("kl_divergence: expected logits of equal shapes, found " + net::to_string(f.shape) +
                " and " + net::to_string(q.shape));
  const std::int64_t classes = f.dim(-1), rows = f.size() / classes;
  if (gradient != nullptr) *gradient = net::Tensor(q.shape);
  Probabilities of_f, of_q;
  std::vector<double> losses;
  for (std::int64_t r = 0; r < rows; ++r) {
    set(of_f, f.data.data() + r * classes, classes);
    set(of_q, q.data.data() + r * classes, classes);
    losses.push_back(pairwise_sum(classes, [&](std::int64_t c) {
      return of_f.value[c] == 0 ? 0 : of_f.value[c] * (of_f.log[c] - of_q.log[c]);
    }));
    if (gradient == nullptr) continue;
    for (std::int64_t c = 0; c < classes; ++c)
      gradient->data[r * classes + c] =
          static_cast<float>((of_q.value[c] - of_f.value[c]) / static_cast<double>(rows));
  }
  return pairwise_sum(rows, [&](std::int64_t r) { return losses[r]; }) / static_cast<double>(rows);
}

namespace {

constexpr std::int64_t kDistillationBatch = 32;

/// Lets gradients reach parameters until it ends.
class AsTrained {
 public:
  template <class Chosen>
  AsTrained(const std::vector<net::Parameter*>& parameters, const Chosen& chosen) {
    for (net::Parameter* parameter : parameters) {
      if (parameter->trained || !chosen(parameter->name)) continue;
      parameter->trained = true;
      changed_.push_back(parameter);
    }
  }
  ~AsTrained() {
    for (net::Parameter* parameter : changed_) parameter->trained = false;
  }
  AsTrained(const AsTrained&) = delete;

 private:
  std::vector<net::Parameter*> changed_;
};

/// Numbers of the batches in the order of an epoch.
std::vector<std::int64_t> order(std::int64_t batches, bool shuffled, std::uint64_t seed,
                                std::int64_t epoch) {
  if (shuffled) return net::shuffled(batches, seed, epoch);
  std::vector<std::int64_t> all(static_cast<std::size_t>(batches));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::vector<Option> DistillOptions::list() {
  return {{"epochs", "passes over the calibration samples", &epochs, 1, 1e6},
          {"rate",
           falls ? "learning rate of Adam at first; it falls to 0 along half a cosine"
                 : "learning rate of Adam",
           &rate, 1e-9, 10}};
}

std::int64_t Distillation::begin(const Tuning& tuning) {
  for (const net::Node& node : tuning.graph.nodes) {
    const auto* const dropout = dynamic_cast<const net::Dropout*>(node.op.get());
    if (dynamic_cast<const net::BatchNorm*>(node.op.get()) != nullptr ||
        (dropout != nullptr && dropout->probability() > 0))
      throw Error(fmt::format(
          "{}: layer {}: expected a network without {}, which training computes otherwise", name_,
          node.name, dropout ? "dropout" : "batch_norm (it has to be folded)"));
  }
  const auto add = [&](std::string_view name) {
    if (!is_trained(std::string(name))) trained_.emplace_back(name);
  };
  const auto add_bias = [&](const std::string& name) {
    for (const net::Parameter* parameter : tuning.graph.parameters())
      if (parameter->name == name) add(net::trained_for(*parameter));
  };
  if (options_.weights) {
    std::set<const net::Node*> nodes;  // recurrent ones have several products
    for (const net::GemmLayer& layer : net::gemm_layers(tuning.graph)) {
      if (layer.weight == nullptr || !nodes.insert(layer.node).second) continue;
      for (const net::Parameter& parameter : std::as_const(*layer.node->op).parameters())
        if (parameter.trained || parameter.is_tied()) add(net::trained_for(parameter));
    }
    // Those that a sum adds behind a product.
    for (const BiasedLayer& layer : biased_layers(tuning.graph)) {
      add_bias(layer.bias);
    }
    layers_ = nodes.size();
  } else {
    for (const BiasedLayer& layer : biased_layers(tuning.graph)) add_bias(layer.bias);
    layers_ = trained_.size();
  }
  if (trained_.empty())
    throw Error(fmt::format("{}: expected a layer with a {}, found none", name_,
                            options_.weights ? "weight" : "bias"));
  net::TrainOptions adam;
  adam.optimizer = "adam";
  adam.weight_decay = 0;
  std::vector<net::Parameter> parameters;  // only what is trained has a state
  for (const net::Parameter* parameter : tuning.graph.parameters()) {
    net::Parameter& copy = parameters.emplace_back(*parameter);
    copy.trained = is_trained(copy.name);
  }
  std::vector<const net::Parameter*> pointers;
  for (const net::Parameter& parameter : parameters) pointers.push_back(&parameter);
  places_ = parameters.size();
  optimizer_ = net::make_optimizer(adam, pointers);
  return options_.epochs;
}

void Distillation::run(Tuning& tuning, std::int64_t part, const TuneProgress& progress) {
  const std::vector<net::Parameter*> parameters = tuning.graph.parameters();
  // Constants of the file that sums add as biases have gradients here alone.
  const AsTrained as_trained(parameters,
                             [this](const std::string& name) { return is_trained(name); });
  StraightThroughNumerics numerics(tuning, options_.weights);
  net::Numerics float32;
  std::vector<float> delta;
  loss_ = 0;
  const std::int64_t all = tuning.calibration.samples,
                     batches = (all + kDistillationBatch - 1) / kDistillationBatch;
  const std::uint64_t seed = tuning.seed + tensor_word(name_);
  std::int64_t done = 0;
  for (const std::int64_t number : order(batches, options_.falls, seed, part)) {
    const std::int64_t first = number * kDistillationBatch,
                       count = std::min(kDistillationBatch, all - first);
    const std::vector<net::Tensor> batch = tuning.calibration.batch(first, count);
    const CalibrationStep step(first, count);
    const net::Tensor wanted = net::forward(tuning.reference, batch, float32, step);
    if (options_.weights) numerics.weights_changed(tuning);
    numerics.begin_step(step);
    net::Tape tape = net::forward_training(tuning.graph, batch, numerics, step);
    net::Tensor gradient;
    loss_ += kl_divergence(wanted, tape.output, &gradient) * static_cast<double>(count) /
             static_cast<double>(all);
    const std::vector<net::Tensor> gradients =
        net::backward(tuning.graph, std::move(tape), std::move(gradient), numerics);
    numerics.end_step(step);
    optimizer_->begin_step(rate_at(part * batches + done, options_.epochs * batches));
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!is_trained(parameters[p]->name)) continue;
      optimizer_->step(p, *parameters[p], gradients[p], delta);
      for (std::size_t i = 0; i < delta.size(); ++i) parameters[p]->value.data[i] += delta[i];
    }
    net::follow_tied(tuning.graph);
    progress(static_cast<double>(++done) / static_cast<double>(batches));
  }
}

double Distillation::rate_at(std::int64_t batch, std::int64_t batches) const {
  if (!options_.falls) return options_.rate;
  const double share = static_cast<double>(batch) / static_cast<double>(batches);
  return options_.rate * 0.5 * (1 + net::cos_pi(share));
}

void Distillation::save_state(net::NamedState& state) const {
  StateTensors tensors;
  for_each_state(
      [&](const std::string& name, const net::Elements& values) { tensors[name] = values; });
  save_tensors("adam", tensors, state);
  for (std::size_t i = 0; i < optimizer_->scalars().size(); ++i)
    state.emplace_back(fmt::format("scalar/{}", i), to_bytes({bits_of(*optimizer_->scalars()[i])}));
}

void Distillation::load_state(const net::NamedState& state) {
  StateTensors tensors;
  load_tensors("adam", state, tensors);
  for_each_state([&](const std::string& name, net::Elements& values) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.size() != values.size())
      throw Error(name_ + ": state " + name + ": expected that of what is trained");
    values = found->second;
  });
  for (const auto& [name, bytes] : state) {
    for (std::size_t i = 0; i < optimizer_->scalars().size(); ++i) {
      if (name == fmt::format("scalar/{}", i) && bytes.size() == 8)
        *optimizer_->scalars()[i] = double_of(from_bytes(name, bytes)[0]);
    }
  }
}

std::string Distillation::summary() const {
  return fmt::format("{} of {} layers, mean divergence {:.5f} in the last epoch",
                     options_.weights ? "weights and biases" : "biases", layers_, loss_);
}

bool Distillation::is_trained(const std::string& parameter) const {
  return std::find(trained_.begin(), trained_.end(), parameter) != trained_.end();
}

template <class Use>
void Distillation::for_each_state(const Use& use) const {
  for (std::size_t p = 0; p < places_; ++p) {
    for (const net::StateTensor& tensor : optimizer_->state(p)) {
      if (!tensor.value->data.empty())
        use(fmt::format("{}/{}", p, tensor.name), tensor.value->data);
    }
  }
}

}  // namespace numemu::policies
