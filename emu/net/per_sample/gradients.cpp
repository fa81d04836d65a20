#include "emu/net/per_sample/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "formats/quantize.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu::net::per_sample {
namespace {

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

namespace {

constexpr std::uint32_t kTensors = 1000;  // numbers of random tensors of a checkpoint's operands

std::int64_t count_of(const Batch& batch) { return batch.x.dim(0); }

}  // namespace

Influences::Influences(std::vector<const Format*> formats, const Rounding& drawn, Batch training,
                       Batch targets, std::int64_t ranked, std::uint64_t seed)
    : formats_(std::move(formats)),
      drawn_(drawn),
      training_(std::move(training)),
      targets_(std::move(targets)),
      ranked_(ranked),
      seed_(seed),
      scores_(1 + 3 * formats_.size()),
      laws_(scores_.size()) {}

void Influences::add(const Graph& graph, double rate) {
  const std::vector<LayerOperands> operands = operands_of(graph, training_),
                                   targets = operands_of(graph, targets_);
  const std::uint32_t first = checkpoint_++ * 2 * kTensors;
  const auto stored = [&](const Format* format, bool drawn, std::uint16_t draw) -> Stored {
    return {format, drawn ? drawn_ : Rounding{}, seed_, first, draw};
  };
  const auto of_targets = [&](Stored how) {
    how.first_tensor += kTensors;
    return SampleGradients(targets, how);
  };
  const SampleGradients exact(operands, {});
  add_scores(rate, exact, exact, of_targets({}), scores_[0]);
  std::size_t way = 1;
  for (const Format* format : formats_) {
    const SampleGradients nearest(operands, stored(format, false, 0));
    add_scores(rate, nearest, nearest, of_targets(stored(format, false, 0)), scores_[way]);
    const SampleGradients once(operands, stored(format, true, 0)),
        again(operands, stored(format, true, 1));
    add_scores(rate, once, once, of_targets(stored(format, true, 0)), scores_[way + 1]);
    add_scores(rate, once, again, {}, scores_[way + 2]);
    add_laws(rate, operands, targets, *format, way);
    way += 3;
  }
}

bool Influences::finite() const {
  return std::all_of(scores_[0].self.begin(), scores_[0].self.end(),
                     [](double s) { return std::isfinite(s); });
}

/// Self-influence by `a` and `b`, influence on the targets by `a`; no targets: none.
void Influences::add_scores(double rate, const SampleGradients& a, const SampleGradients& b,
                            const std::optional<SampleGradients>& targets, Scores& scores) const {
  scores.self.resize(static_cast<std::size_t>(a.samples()));
  for (std::int64_t i = 0; i < a.samples(); ++i)
    scores.self[static_cast<std::size_t>(i)] += rate * a.dot(i, b, i);
  if (!targets) return;
  const auto ranked = static_cast<std::size_t>(ranked_);
  scores.targets.resize(static_cast<std::size_t>(targets->samples()), std::vector<double>(ranked));
  for (std::size_t t = 0; t < scores.targets.size(); ++t) {
    for (std::size_t i = 0; i < ranked; ++i)
      scores.targets[t][i] +=
          rate * a.dot(static_cast<std::int64_t>(i), *targets, static_cast<std::int64_t>(t));
  }
}

/// Of one draw and of two.
void Influences::add_laws(double rate, const std::vector<LayerOperands>& operands,
                          const std::vector<LayerOperands>& targets, const Format& format,
                          std::size_t nearest) {
  const std::int64_t samples = count_of(training_), others = count_of(targets_);
  const GradientLaws law(operands, format, drawn_, samples);
  ScoreLaws &one = laws_[nearest + 1], &two = laws_[nearest + 2];
  one.self.resize(static_cast<std::size_t>(samples));
  two.self.resize(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const SelfLaw self = law.self(i);
    one.self[at] = sum(one.self[at], self.one, rate);
    two.self[at] = sum(two.self[at], self.two, rate);
  }
  if (!all_factored(operands)) return;
  const GradientLaws of_targets(targets, format, drawn_, others);
  const auto ranked = static_cast<std::size_t>(ranked_);
  one.targets.resize(static_cast<std::size_t>(others), std::vector<Moments>(ranked));
  for (std::size_t t = 0; t < one.targets.size(); ++t) {
    for (std::size_t i = 0; i < ranked; ++i) {
      Moments& all = one.targets[t][i];
      all =
          sum(all, law.two(static_cast<std::int64_t>(i), of_targets, static_cast<std::int64_t>(t)),
              rate);
    }
  }
}

}  // namespace numemu::net::per_sample
