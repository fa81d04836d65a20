#include "api/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "experiments/engine/row_noise.hpp"
#include "experiments/engine/run_point.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "policies/recipe/role_table.hpp"

namespace numemu::api {
namespace {

using Kind = ForeignLayer::Kind;
using net::Shape;

/// Stands for the other framework's softmax, which computed what it is given: the graph shows by it
/// which products are those of attention.
class SoftmaxElsewhere final : public net::Op {
 public:
  SoftmaxElsewhere() : Op({.kind = "softmax", .inputs = net::kNoInput}) {}
  Shape output_shape(net::Shapes inputs) const override { return inputs[0]; }
  void forward(const net::OpCall&, net::OpInputs inputs, Tensor& output) const override {
    output = *inputs[0];
  }
  void backward(const net::OpCall&, const net::OpBackward& back) const override {
    back.grad_inputs[0] = back.grad_output;
  }
};

/// Numbers the products of an operator that the other framework calls once for each.
class Repeating final : public net::Forwarding {
 public:
  Repeating(net::Numerics& inner, const ProductCall& call) : Forwarding(inner), call_(call) {}
  void product(const net::Step& step, const net::Product& given) override {
    net::Product product = given;
    product.repetition = call_.repetition;
    product.repetitions = call_.repetitions;
    Forwarding::product(step, product);
  }

 private:
  const ProductCall& call_;
};

void require_weight(const Tensor& own, const Tensor& given) {
  if (given.shape != own.shape)
    throw Error(fmt::format("expected a weight {}, found {}", net::to_string(own.shape),
                            net::to_string(given.shape)));
}

/// Puts a weight of the caller in place of an operator's for one product: the operator's own is
/// what the numerics of inference have quantized, and stays.
class LentWeight {
 public:
  LentWeight(Tensor& place, const Tensor& weight)
      : place_(place), other_(Tensor::borrowed(weight.shape, weight.data.data())) {
    std::swap(place_, other_);
  }
  ~LentWeight() { std::swap(place_, other_); }
  LentWeight(const LentWeight&) = delete;
  LentWeight& operator=(const LentWeight&) = delete;

 private:
  Tensor& place_;
  Tensor other_;
};

/// The elements that all products of a pass over `samples` read of one operand, as so many equal
/// shares that the operator takes. An operand that does not consist of samples is in every share.
Shape share_of(const ForeignLayer& layer, const std::vector<Shape>& shapes, std::int64_t samples) {
  const std::size_t kept = layer.kind == Kind::linear   ? 1
                           : layer.kind == Kind::matmul ? 2
                                                        : layer.conv.axes.size();
  const auto tail = [&](const Shape& shape) { return Shape(shape.end() - kept, shape.end()); };
  std::int64_t lines = 0;
  for (const Shape& shape : shapes) {
    if (shape.size() < kept || tail(shape) != tail(shapes.front()))
      throw Error(fmt::format("layer {}: expected operands of one shape, found {} and {}",
                              layer.name, net::to_string(shapes.front()), net::to_string(shape)));
    lines += net::element_count({shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(kept)});
  }
  Shape share = tail(shapes.front());
  share.insert(share.begin(), lines % samples == 0 ? lines / samples : lines);
  return share;
}

std::unique_ptr<net::Op> operator_of(ForeignLayer& layer) {
  switch (layer.kind) {
    case Kind::linear:
      if (layer.weight.shape.size() != 2)
        throw Error(fmt::format("layer {}: expected a weight [out, in], found {}", layer.name,
                                net::to_string(layer.weight.shape)));
      return std::make_unique<net::Linear>(std::move(layer.weight), false);
    case Kind::conv: {
      net::ConvOptions& o = layer.conv;
      const Shape& shape = layer.weight.shape;
      if (shape.size() != o.axes.size() + 2)
        throw Error(fmt::format("layer {}: expected a weight [out, kernel.., in], found {}",
                                layer.name, net::to_string(shape)));
      o.bias = false;
      o.out_channels = shape.front();
      o.in_channels = shape.back() * o.groups;
      for (std::size_t i = 0; i < o.axes.size(); ++i) o.axes[i].kernel = shape[i + 1];
      return std::make_unique<net::Conv>(o, std::move(layer.weight));
    }
    case Kind::matmul:
      break;
  }
  return std::make_unique<net::MatMul>(net::MatMulOptions{.transpose_b = layer.transpose_b});
}

/// The inputs of all layers come first, then the operators.
Graph graph_of(std::vector<ForeignLayer>& layers, std::int64_t samples) {
  if (layers.empty()) throw Error("no layer multiplies");
  if (samples < 1) throw Error(fmt::format("samples: expected at least 1, found {}", samples));
  Graph graph;
  graph.name = "products";
  for (const ForeignLayer& layer : layers) {
    Shape left = share_of(layer, layer.left, samples);
    if (layer.kind != Kind::matmul) {
      graph.inputs.push_back({layer.name + "/input", std::move(left)});
      continue;
    }
    Shape right = share_of(layer, layer.right, samples);
    // One matrix that serves all is there for each.
    const std::int64_t matrices = std::max(left[0], right[0]);
    if (std::min(left[0], right[0]) != matrices && std::min(left[0], right[0]) != 1)
      throw Error(fmt::format("layer {}: expected as many right as left matrices, found {} and {}",
                              layer.name, right[0], left[0]));
    left[0] = right[0] = matrices;
    graph.inputs.push_back({layer.name + "/left", std::move(left)});
    graph.inputs.push_back({layer.name + "/right", std::move(right)});
  }
  int input = 0;
  for (ForeignLayer& layer : layers) {
    int left = input++;
    const std::string softmax = layer.name + "/softmax";
    if (layer.second == net::Role::value)
      left = graph.add(softmax, std::make_unique<SoftmaxElsewhere>(), {left});
    std::vector<int> reads{left};
    if (layer.kind == Kind::matmul) reads.push_back(input++);
    graph.add(layer.name, operator_of(layer), std::move(reads));
    if (layer.second == net::Role::key) graph.add(softmax, std::make_unique<SoftmaxElsewhere>());
  }
  return graph;
}

Recipe of_one_stage(const Recipe& recipe, const std::string& where) {
  if (recipe.stages().empty()) return recipe;
  throw Error(where + ": stages: expected the recipe of one stage");
}

/// The error with the layer at its start.
template <class F>
auto in_layer(const ForeignLayer& layer, const F& compute) {
  try {
    return compute();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find("layer " + layer.name) != std::string::npos) throw;
    throw Error(fmt::format("layer {}: {}", layer.name, text), error.kind());
  }
}

}  // namespace

Products::Products(const Recipe& recipe, std::vector<ForeignLayer> layers, std::int64_t samples,
                   const std::string& where)
    : layers_(std::move(layers)),
      graph_(graph_of(layers_, samples)),
      bound_(of_one_stage(recipe, where), graph_, where),
      inference_(bound_),
      training_(bound_),
      records_(graph_.inputs.size()),
      compared_(layers_.size()) {
  std::size_t input = 0;
  for (const ForeignLayer& layer : layers_) {
    const auto named = [&](const net::Node& node) { return node.name == layer.name; };
    const auto found = std::ranges::find_if(graph_.nodes, named);
    places_.push_back({static_cast<std::size_t>(found - graph_.nodes.begin()), input});
    input += layer.kind == Kind::matmul ? 2 : 1;
  }
}

std::vector<std::string> Products::ignored() const {
  static const std::vector<std::string> others = {"update",     "penalty", "norm",  "saved",
                                                  "exchange",   "drop",    "table", "objectives",
                                                  "quantizers", "learn"};
  const Json plain = Recipe().json();
  std::vector<std::string> keys;
  const auto add = [&](const Json& part) {
    for (const std::string& key : others) {
      const bool said = part.contains(key) && (!plain.contains(key) || part[key] != plain[key]);
      if (said && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
    if (!part.contains("roles") || !part["roles"].is_object()) return;
    for (const policies::RoleRow& row : policies::role_table()) {
      const std::string key = fmt::format("roles.{}", net::to_string(row.role));
      const auto found = part["roles"].find(std::string(net::to_string(row.role)));
      const bool said = row.stored && found != part["roles"].end() && !found->is_null();
      if (said && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  };
  add(recipe().json());
  if (recipe().json().contains("layers")) {
    for (const Json& entry : recipe().json()["layers"]) add(entry);
  }
  return keys;
}

std::int64_t Products::calibration_samples(std::int64_t available) const {
  return experiments::calibration_samples(bound_, available);
}

void Products::freeze(std::int64_t available,
                      const std::function<void(std::int64_t, std::int64_t)>& run) {
  for (std::vector<float>& record : records_) record.clear();
  inference_.freeze(graph_, available, [&](std::int64_t first, std::int64_t count) {
    recording_ = true;
    run(first, count);
    recording_ = false;
    return take_records(count);
  });
  frozen_ = true;
  for (Place& place : places_) place.fresh = false;
}

std::vector<Tensor> Products::take_records(std::int64_t count) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    Shape shape = graph_.inputs[i].shape;
    shape.insert(shape.begin(), count);
    Tensor input(shape);
    std::vector<float>& record = records_[i];
    const std::size_t all = input.data.size();
    if (record.empty() || all % record.size() != 0)
      throw Error(fmt::format(
          "layer {}: expected samples that it reads {} of each as in the first pass, found {} "
          "elements of {} samples",
          graph_.inputs[i].name, net::to_string(graph_.inputs[i].shape), record.size(), count));
    for (std::size_t at = 0; at < all; at += record.size())
      std::ranges::copy(record, input.data.begin() + static_cast<std::ptrdiff_t>(at));
    record.clear();
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void Products::begin_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (!trainable_) training_.require_trainable(bound_.where());
  trainable_ = true;
  training_.begin_step({.phase = net::Phase::training, .index = step});
}

void Products::end_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  training_.end_step({.phase = net::Phase::training, .index = step});
}

net::Numerics& Products::numerics(ProductMode mode, bool backward) {
  if (mode == ProductMode::reference) return reference_;
  if (mode == ProductMode::training || backward) return training_;
  if (!frozen_) throw std::logic_error("products of inference before freeze()");
  return inference_;
}

void Products::place(const ProductCall& call, const Tensor& weight) {
  const ForeignLayer& layer = layers_.at(call.layer);
  Place& place = places_[call.layer];
  Tensor& own = op(call.layer).parameters()[0].value;
  const std::size_t bytes = own.data.size() * sizeof(float);
  if (std::memcmp(own.data.data(), weight.data.data(), bytes) != 0) {
    own = weight;
    place.fresh = true;
  }
  if (!place.fresh || call.mode != ProductMode::inference || !frozen_) return;
  const std::optional<policies::MaskPolicy>& mask =
      bound_.layer(layer.name).masks[policies::RolePart::weight];
  if (mask && mask->repair == policies::Repair::adaprune)
    throw Error(
        "roles.weight.mask: expected weights that stay as they are, which adaprune repairs");
  inference_.freeze_weights(graph_, {});
  for (Place& each : places_) each.fresh = false;
}

Tensor Products::forward(const ProductCall& call, const Tensor& left, const Tensor& right) {
  const std::lock_guard lock(mutex_);
  const FloatGuard guard;
  const ForeignLayer& layer = layers_.at(call.layer);
  return in_layer(layer, [&] {
    Repeating numerics(this->numerics(call.mode, false), call);
    std::vector<const Tensor*> inputs{&left};
    std::vector<Shape> shapes{left.shape};
    const bool training = call.mode == ProductMode::training;
    std::optional<LentWeight> lent;
    if (layer.kind == Kind::matmul) {
      inputs.push_back(&right);
      shapes.push_back(right.shape);
    } else {
      Tensor& own = op(call.layer).parameters()[0].value;
      require_weight(own, right);
      if (training) {
        lent.emplace(own, right);
      } else {
        place(call, right);
      }
    }
    if (recording_) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        std::vector<float>& record = records_[places_[call.layer].input + i];
        record.insert(record.end(), inputs[i]->data.begin(), inputs[i]->data.end());
      }
    }
    const std::vector<std::int64_t> samples{call.first_sample};
    const net::Step step{.phase = training ? net::Phase::training : net::Phase::inference,
                         .index = call.step,
                         .samples = training ? nullptr : &samples};
    Tensor output(op(call.layer).output_shape(shapes));
    op(call.layer)
        .forward({.layer = layer.name, .numerics = numerics, .step = step}, inputs, output);
    return output;
  });
}

ProductGradients Products::backward(const ProductCall& call, const Tensor& left,
                                    const Tensor& right, const Tensor& gradient, bool want_left,
                                    bool want_right) {
  const std::lock_guard lock(mutex_);
  const FloatGuard guard;
  const ForeignLayer& layer = layers_.at(call.layer);
  return in_layer(layer, [&] {
    Repeating numerics(this->numerics(call.mode, true), call);
    std::vector<const Tensor*> inputs{&left};
    std::vector<Tensor> parameters(1), grad_inputs;
    std::optional<LentWeight> lent;
    const bool two = layer.kind == Kind::matmul, want_inputs = want_left || (two && want_right);
    if (two) {
      inputs.push_back(&right);
    } else {
      Tensor& own = op(call.layer).parameters()[0].value;
      require_weight(own, right);
      lent.emplace(own, right);
      if (want_right) parameters[0] = Tensor(right.shape);
    }
    for (const Tensor* input : inputs)
      grad_inputs.push_back(want_inputs ? Tensor(input->shape) : Tensor());
    const net::Step step{.phase = net::Phase::training, .index = call.step};
    op(call.layer)
        .backward({.layer = layer.name,
                   .numerics = numerics,
                   .phase = net::Phase::training,
                   .step = step},
                  {.inputs = inputs,
                   .output = nullptr,
                   .grad_output = gradient,
                   .grad_inputs = grad_inputs,
                   .grad_parameters = parameters,
                   .want_inputs = want_inputs});
    return ProductGradients{std::move(grad_inputs[0]),
                            std::move(two ? grad_inputs[1] : parameters[0])};
  });
}

void Products::compare(std::size_t layer, const Tensor& clean, const Tensor& quantized) {
  if (clean.shape != quantized.shape || clean.shape.empty())
    throw Error(fmt::format(
        "layer {}: expected outputs [samples, ..] of one shape, found {} and {}",
        layers_.at(layer).name, net::to_string(clean.shape), net::to_string(quantized.shape)));
  const std::int64_t samples = clean.shape[0], all = net::element_count(clean.shape);
  const std::int64_t each = samples > 0 ? all / samples : 0;
  const std::lock_guard lock(mutex_);
  for (std::int64_t i = 0; i < samples; ++i)
    compared_.at(layer).push_back(experiments::power_of(each, quantized.data.data() + i * each,
                                                        clean.data.data() + i * each));
}

void Products::reset() {
  const std::lock_guard lock(mutex_);
  for (std::vector<experiments::Power>& powers : compared_) powers.clear();
  inference_.roles().reset_counts();
}

std::vector<experiments::RowLayer> Products::rows() const {
  const std::lock_guard lock(mutex_);
  experiments::NoiseFigures figures{
      .predictions = false, .tensors = {}, .predicted = {}, .measured = {}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const experiments::Sqnr sqnr = experiments::sqnr_of(compared_[i]);
    figures.measured.db[layers_[i].name] = sqnr.db;
    figures.measured.error[layers_[i].name] = sqnr.error;
    figures.measured.samples =
        std::max<std::int64_t>(figures.measured.samples, std::ssize(compared_[i]));
  }
  experiments::Row row;
  experiments::add_noise(row, figures, graph_, inference_);
  return row.layers;
}

net::NamedState Products::state() const {
  const std::lock_guard lock(mutex_);
  net::NamedState state;
  training_.save_state(state);
  return state;
}

void Products::load_state(const net::NamedState& state) {
  const std::lock_guard lock(mutex_);
  training_.load_state(state);
}

}  // namespace numemu::api
