// What influence says of the change of a loss by one step, and dot products of factored gradients
// beside whole ones.
#include <algorithm>
#include <array>
#include <cmath>

#include "emu/net/ops/losses.hpp"
#include "emu/stats/resampling.hpp"
#include "experiments/tracin/questions.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::tracin {
namespace {

net::Tensor sample_of(const Batch& batch, std::int64_t i) {
  net::Shape shape = batch.x.shape;
  shape.front() = 1;
  net::Tensor x(shape);
  std::copy_n(batch.x.data.begin() + i * x.size(), x.size(), x.data.begin());
  return x;
}

double loss_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  const net::Tensor logits = net::forward(graph, sample_of(batch, i), float32);
  return net::cross_entropy(logits, {batch.labels[static_cast<std::size_t>(i)]}).loss[0];
}

using Whole = std::vector<net::Tensor>;  // of parameters

Whole gradient_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  return training_pass(graph, sample_of(batch, i), {batch.labels[static_cast<std::size_t>(i)]},
                       float32, 0, 0)
      .gradients;
}

double dot(const Whole& a, const Whole& b) {
  double all = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::size_t i = 0; i < a[p].data.size(); ++i)
      all += double{a[p].data[i]} * double{b[p].data[i]};
  }
  return all;
}

/// The network's weights less `rate` times a gradient, until the end of this.
class Moved {
 public:
  Moved(net::Graph& graph, const Whole& gradient, double rate) : parameters_(graph.parameters()) {
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      net::Elements& w = parameters_[p]->value.data;
      before_.push_back(w);
      for (std::size_t i = 0; i < gradient[p].data.size(); ++i)
        w[i] = static_cast<float>(double{w[i]} - rate * double{gradient[p].data[i]});
    }
  }
  ~Moved() {
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      parameters_[p]->value.data = std::move(before_[p]);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

 private:
  std::vector<net::Parameter*> parameters_;
  std::vector<net::Elements> before_;
};

double median(std::vector<double> x) {
  const std::size_t half = x.size() / 2;
  std::sort(x.begin(), x.end());
  return x.size() % 2 == 1 ? x[half] : (x[half - 1] + x[half]) / 2;
}

}  // namespace

double change_of_loss(net::Graph& graph, const Batch& batch, std::int64_t by, std::int64_t on,
                      double rate) {
  const Whole gradient = gradient_of(graph, batch, by);
  const double root = std::sqrt(0.6);
  constexpr std::array<double, 3> kWeights = {5.0 / 18, 8.0 / 18, 5.0 / 18};
  const std::array<double, 3> nodes = {(1 - root) / 2, 0.5, (1 + root) / 2};
  double change = 0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Moved there(graph, gradient, nodes[k] * rate);
    change += kWeights[k] * rate * dot(gradient, gradient_of(graph, batch, on));
  }
  return change;
}

FirstOrder first_order(net::Graph& graph, const Batch& batch,
                       const std::vector<LayerOperands>& operands) {
  FirstOrder found;
  const std::int64_t pairs = batch.x.dim(0) / 2;
  const SampleGradients factored(operands, {});
  std::int64_t positions = 0;
  for (const LayerOperands& layer : operands) positions = std::max(positions, layer.g.positions());
  // An element of a whole gradient has so many roundings; both sides have such elements.
  found.allowed = 2 * static_cast<double>(positions) * 0x1p-24;
  std::vector<double> powers;
  double left = 0, changes = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t j = i + pairs;
    const Whole g = gradient_of(graph, batch, i), h = gradient_of(graph, batch, j);
    const double square = dot(g, g), influence = dot(g, h);
    if (!(square > 0) || !(dot(h, h) > 0)) continue;
    found.apart = std::max(found.apart, std::fabs(influence - factored.dot(i, factored, j)) /
                                            std::sqrt(square * dot(h, h)));
    const double whole = loss_of(graph, batch, i) / square;  // takes all of its loss
    const auto change = [&](double share) {
      return change_of_loss(graph, batch, i, j, share * whole);
    };
    const auto missed = [&](double share) {
      return std::fabs(change(share) - share * whole * influence);
    };
    left += missed(kLargeStep);
    changes += std::fabs(change(kLargeStep));
    const double power = portable::log2(missed(kSmallStep) / missed(kSmallStep / 2));
    if (std::isfinite(power)) powers.push_back(power);
  }
  found.left = left / changes;
  found.pairs = std::ssize(powers);
  if (powers.empty()) {
    found.order = found.low = found.high = NAN;
    return found;
  }
  constexpr std::int64_t kResamples = 999;
  found.order = median(powers);
  const stats::Interval interval = stats::bootstrap_interval(
      found.pairs, kResamples, 0, [&](const std::vector<std::int64_t>& drawn) {
        std::vector<double> some;
        for (const std::int64_t i : drawn) some.push_back(powers[static_cast<std::size_t>(i)]);
        return median(std::move(some));
      });
  found.low = interval.low;
  found.high = interval.high;
  return found;
}

}  // namespace numemu::experiments::tracin
