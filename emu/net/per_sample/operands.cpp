#include "emu/net/per_sample/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net::per_sample {
namespace {

constexpr std::int64_t kBatch = 64;  // samples of a pass

/// Keeps the operands of weight gradients, which it does not multiply.
class Kept final : public Numerics {
 public:
  Kept(std::map<std::string, LayerOperands, std::less<>>& layers, std::int64_t samples)
      : layers_(&layers), samples_(samples) {}

  float loss_scale(const Step&) override { return static_cast<float>(samples_); }
  void product(const Step& step, const Product& p) override {
    if (p.kind != GemmKind::wgrad) return Numerics::product(step, p);
    LayerOperands& layer = (*layers_)[std::string(p.layer)];
    append(p.a, layer.g);
    append(p.b, layer.x);
  }

 private:
  void append(const ProductSide& side, SampleOperand& operand) const {
    const Elements& data = side.source->data;
    operand.elements = std::ssize(data) / samples_;
    operand.data.insert(operand.data.end(), data.begin(), data.end());
    if (samples_ == 1 && operand.gather.row.empty()) operand.gather = *side.gather;
  }

  std::map<std::string, LayerOperands, std::less<>>* layers_;
  std::int64_t samples_;
};

Tensor part_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  Shape shape = x.shape;
  shape.front() = count;
  Tensor part(shape);
  const std::int64_t each = x.size() / x.dim(0);
  std::copy_n(x.data.begin() + first * each, count * each, part.data.begin());
  return part;
}

}  // namespace

const float* SampleOperand::bordered(const float* sample, std::vector<float>& scratch) const {
  if (gather.padding.identity()) return sample;
  scratch.resize(static_cast<std::size_t>(gather.padding.padded_size()));
  unit::pad(gather.padding, sample, scratch.data(), 0.0f);
  return scratch.data();
}

Batch first_of_training(const Dataset& data, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  Targets targets;
  Tensor x = data.train_batch(ids, targets);
  return {std::move(x), std::move(targets.classes)};
}

Batch first_of_test(const Dataset& data, std::int64_t count) {
  Targets targets;
  Tensor x = data.test_batch(0, count, targets);
  return {std::move(x), std::move(targets.classes)};
}

void require_separable(const Graph& graph, const std::string& where) {
  for (const Node& node : graph.nodes) {
    const std::string_view kind = node.op->kind();
    const auto refuse = [&](const char* why) {
      throw usage_error(
          fmt::format("{}: {}: layer {} ({}) {}", where, graph.name, node.name, kind, why));
    };
    if (kind.find("norm") != std::string_view::npos)
      refuse("normalises: expected networks without normalisation, such as mlp or lenet");
    const bool multiplies = kind == "linear" || kind == "conv2d";
    const auto parameters = std::as_const(*node.op).parameters();
    const bool trained = std::any_of(parameters.begin(), parameters.end(),
                                     [](const Parameter& p) { return p.trained; });
    if (!multiplies && (trained || !node.op->products().empty()))
      refuse("is neither fully connected nor a convolution");
  }
}

std::vector<LayerOperands> operands_of(const Graph& graph, const Batch& batch) {
  const FloatGuard guard;
  std::map<std::string, LayerOperands, std::less<>> layers;
  const std::int64_t n = batch.x.dim(0);
  // The first sample alone shows how a sample's operands are read.
  for (std::int64_t first = 0; first < n;) {
    const std::int64_t count = first == 0 ? 1 : std::min(kBatch, n - first);
    Kept numerics(layers, count);
    const Step step{.phase = Phase::training};
    Tape tape = forward_training(graph, part_of(batch.x, first, count), numerics, step);
    const std::vector<std::int32_t> labels(batch.labels.begin() + first,
                                           batch.labels.begin() + first + count);
    Tensor gradient;
    cross_entropy(tape.output, labels, &gradient, numerics.loss_scale(step));
    backward(graph, std::move(tape), std::move(gradient), numerics);
    first += count;
  }
  std::vector<LayerOperands> found;
  for (const Node& node : graph.nodes) {
    const auto at = layers.find(node.name);
    if (at == layers.end()) continue;
    LayerOperands layer = std::move(at->second);
    layer.layer = node.name;
    layer.bias = std::as_const(*node.op).parameters().size() > 1;
    if (layer.g.positions() != layer.x.positions() ||
        layer.g.rows() * layer.g.positions() != layer.g.elements)
      throw Error(fmt::format("{}: layer {} has groups: expected convolutions without", graph.name,
                              node.name));
    found.push_back(std::move(layer));
  }
  return found;
}

bool all_factored(const std::vector<LayerOperands>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const LayerOperands& layer) { return layer.factored(); });
}

}  // namespace numemu::net::per_sample
