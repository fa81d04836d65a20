#include "experiments/tracin/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "emu/net/numerics.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::experiments::tracin {
namespace {

constexpr std::int64_t kBatch = 64;  // samples of a pass

/// Keeps the operands of weight gradients, which it does not multiply.
class Kept final : public net::Numerics {
 public:
  Kept(std::map<std::string, LayerOperands, std::less<>>& layers, std::int64_t samples)
      : layers_(&layers), samples_(samples) {}

  float loss_scale(const net::Step&) override { return static_cast<float>(samples_); }
  void product(const net::Step& step, const net::Product& p) override {
    if (p.kind != net::GemmKind::wgrad) return Numerics::product(step, p);
    LayerOperands& layer = (*layers_)[std::string(p.layer)];
    append(p.a, layer.g);
    append(p.b, layer.x);
  }

 private:
  void append(const net::ProductSide& side, SampleOperand& operand) const {
    const std::vector<float>& data = side.source->data;
    operand.elements = std::ssize(data) / samples_;
    operand.data.insert(operand.data.end(), data.begin(), data.end());
    if (samples_ == 1 && operand.gather.row.empty()) operand.gather = *side.gather;
  }

  std::map<std::string, LayerOperands, std::less<>>* layers_;
  std::int64_t samples_;
};

net::Tensor part_of(const net::Tensor& x, std::int64_t first, std::int64_t count) {
  net::Shape shape = x.shape;
  shape.front() = count;
  net::Tensor part(shape);
  const std::int64_t each = x.size() / x.dim(0);
  std::copy_n(x.data.begin() + first * each, count * each, part.data.begin());
  return part;
}

std::vector<float> stored(const SampleOperand& operand, const Stored& how, std::uint32_t tensor,
                          std::int64_t count) {
  std::vector<float> data(operand.data.begin(), operand.data.begin() + count * operand.elements);
  if (how.format == nullptr) return data;
  const Conversion conversion{
      .format = how.format,
      .rounding = how.rounding,
      .random = {how.seed, Stream::quantize, how.first_tensor + tensor, how.draw}};
  quantize_values(conversion, data.data(), std::ssize(data), scale_of(operand, *how.format),
                  data.data());
  return data;
}

double dot_of(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace

const float* SampleOperand::bordered(const float* sample, std::vector<float>& scratch) const {
  if (gather.padding.identity()) return sample;
  scratch.resize(static_cast<std::size_t>(gather.padding.padded_size()));
  unit::pad(gather.padding, sample, scratch.data(), 0.0f);
  return scratch.data();
}

Batch first_of_training(const net::Dataset& data, std::int64_t count) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  net::Targets targets;
  net::Tensor x = data.train_batch(ids, targets);
  return {std::move(x), std::move(targets.classes)};
}

Batch first_of_test(const net::Dataset& data, std::int64_t count) {
  net::Targets targets;
  net::Tensor x = data.test_batch(0, count, targets);
  return {std::move(x), std::move(targets.classes)};
}

void require_separable(const net::Graph& graph) {
  for (const net::Node& node : graph.nodes) {
    const std::string_view kind = node.op->kind();
    const auto refuse = [&](const char* why) {
      throw usage_error(
          fmt::format("--set: nets: {}: layer {} ({}) {}", graph.name, node.name, kind, why));
    };
    if (kind.find("norm") != std::string_view::npos)
      refuse("normalises: expected networks without normalisation, such as mlp or lenet");
    const bool multiplies = kind == "linear" || kind == "conv2d";
    const auto parameters = std::as_const(*node.op).parameters();
    const bool trained = std::any_of(parameters.begin(), parameters.end(),
                                     [](const net::Parameter& p) { return p.trained; });
    if (!multiplies && (trained || !node.op->products().empty()))
      refuse("is neither fully connected nor a convolution");
  }
}

std::vector<LayerOperands> operands_of(const net::Graph& graph, const Batch& batch) {
  const FloatGuard guard;
  std::map<std::string, LayerOperands, std::less<>> layers;
  const std::int64_t n = batch.x.dim(0);
  // The first sample alone shows how a sample's operands are read.
  for (std::int64_t first = 0; first < n;) {
    const std::int64_t count = first == 0 ? 1 : std::min(kBatch, n - first);
    Kept numerics(layers, count);
    const net::Step step{.phase = net::Phase::training};
    net::Tape tape = net::forward_training(graph, part_of(batch.x, first, count), numerics, step);
    const std::vector<std::int32_t> labels(batch.labels.begin() + first,
                                           batch.labels.begin() + first + count);
    net::Tensor gradient;
    net::cross_entropy(tape.output, labels, &gradient, numerics.loss_scale(step));
    net::backward(graph, std::move(tape), std::move(gradient), numerics);
    first += count;
  }
  std::vector<LayerOperands> found;
  for (const net::Node& node : graph.nodes) {
    const auto at = layers.find(node.name);
    if (at == layers.end()) continue;
    LayerOperands layer = std::move(at->second);
    layer.layer = node.name;
    layer.bias = std::as_const(*node.op).parameters().size() > 1;
    if (layer.g.positions() != layer.x.positions() ||
        layer.g.rows() * layer.g.positions() != layer.g.elements)
      throw usage_error(
          fmt::format("--set: nets: {}: layer {} has groups: expected convolutions "
                      "without",
                      graph.name, node.name));
    found.push_back(std::move(layer));
  }
  return found;
}

float scale_of(const SampleOperand& operand, const Format& format) {
  return absmax_scale(largest_magnitude(operand.data.data(), std::ssize(operand.data)),
                      {.format = &format});
}

SampleGradients::SampleGradients(const std::vector<LayerOperands>& operands, const Stored& how,
                                 std::int64_t count) {
  const SampleOperand& any = operands.front().g;
  samples_ = count > 0 ? count : std::ssize(any.data) / any.elements;
  std::uint32_t tensor = 0;
  std::vector<float> padded, g, x;
  for (const LayerOperands& from : operands) {
    Layer layer{from.factored(),
                from.bias,
                from.g.rows(),
                from.x.rows(),
                stored(from.g, how, tensor, samples_),
                stored(from.x, how, tensor + 1, samples_),
                {}};
    tensor += 2;
    if (!layer.factored) {
      const std::int64_t positions = from.g.positions(), whole = layer.channels * layer.depth;
      layer.whole.assign(static_cast<std::size_t>(samples_ * (whole + layer.channels)), 0);
      for (std::int64_t s = 0; s < samples_; ++s) {
        from.g.read(from.g.bordered(layer.g.data() + s * from.g.elements, padded), g);
        from.x.read(from.x.bordered(layer.x.data() + s * from.x.elements, padded), x);
        double* weight = layer.whole.data() + s * whole;
        double* bias = layer.whole.data() + samples_ * whole + s * layer.channels;
        for (std::int64_t c = 0; c < layer.channels; ++c) {
          const float* const row = g.data() + c * positions;
          bias[c] = from.bias ? std::accumulate(row, row + positions, 0.0) : 0;
          for (std::int64_t k = 0; k < layer.depth; ++k)
            *weight++ = dot_of(row, x.data() + k * positions, positions);
        }
      }
      layer.g.clear();
      layer.x.clear();
    }
    layers_.push_back(std::move(layer));
  }
}

double SampleGradients::dot(std::int64_t i, const SampleGradients& other, std::int64_t j) const {
  double sum = 0;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer &a = layers_[l], &b = other.layers_[l];
    if (a.factored) {
      const double g = dot_of(a.g.data() + i * a.channels, b.g.data() + j * a.channels, a.channels),
                   x = dot_of(a.x.data() + i * a.depth, b.x.data() + j * a.depth, a.depth);
      sum += g * (x + (a.bias ? 1 : 0));
      continue;
    }
    const std::int64_t whole = a.channels * a.depth;
    const double *w = a.whole.data() + i * whole, *v = b.whole.data() + j * whole;
    sum = std::inner_product(w, w + whole, v, sum);
    w = a.whole.data() + samples_ * whole + i * a.channels;
    v = b.whole.data() + other.samples_ * whole + j * a.channels;
    sum = std::inner_product(w, w + a.channels, v, sum);
  }
  return sum;
}

}  // namespace numemu::experiments::tracin
