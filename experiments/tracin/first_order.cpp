// What influence says of the change of a loss by one step, and dot products of factored gradients
// beside whole ones.
#include <algorithm>
#include <cmath>

#include "emu/net/ops/losses.hpp"
#include "emu/stats/resampling.hpp"
#include "experiments/tracin/questions.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

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

/// The loss of sample `on` after a step along the gradient of another.
double loss_after(net::Graph& graph, const Batch& batch, const Whole& gradient, double rate,
                  std::int64_t on) {
  const std::vector<net::Parameter*> parameters = graph.parameters();
  std::vector<std::vector<float>> before;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::vector<float>& w = parameters[p]->value.data;
    before.push_back(w);
    for (std::size_t i = 0; i < gradient[p].data.size(); ++i)
      w[i] = static_cast<float>(double{w[i]} - rate * double{gradient[p].data[i]});
  }
  const double loss = loss_of(graph, batch, on);
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p]->value.data = before[p];
  return loss;
}

}  // namespace

FirstOrder first_order(net::Graph& graph, const Batch& batch,
                       const std::vector<LayerOperands>& operands) {
  FirstOrder found;
  const std::int64_t pairs = batch.x.dim(0) / 2;
  const SampleGradients factored(operands, {});
  std::int64_t positions = 0;
  for (const LayerOperands& layer : operands) positions = std::max(positions, layer.g.positions());
  // An element of a whole gradient has so many roundings; both sides have such elements.
  found.allowed = 2 * static_cast<double>(positions) * 0x1p-24;
  std::vector<double> at_rate, at_half;
  double changes = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t j = i + pairs;
    const Whole g = gradient_of(graph, batch, i), h = gradient_of(graph, batch, j);
    const double square = dot(g, g), influence = dot(g, h);
    if (!(square > 0) || !(dot(h, h) > 0)) continue;
    found.apart = std::max(found.apart, std::fabs(influence - factored.dot(i, factored, j)) /
                                            std::sqrt(square * dot(h, h)));
    const double before = loss_of(graph, batch, j),
                 rate = kFirstStep * loss_of(graph, batch, i) / square;
    // Magnitudes: where a ReLU switches on the way, which has a chance of the order of the rate, a
    // difference of that order is left. Its mean magnitude falls with the square, its root mean
    // square with the power 1.5 alone.
    const auto left = [&](double by) {
      const double change = before - loss_after(graph, batch, g, by, j);
      if (by == rate) changes += std::fabs(change);
      return std::fabs(change - by * influence);
    };
    at_rate.push_back(left(rate));
    at_half.push_back(left(rate / 2));
  }
  const auto sum_of = [](const std::vector<double>& terms, const std::vector<std::int64_t>& drawn) {
    return pairwise_sum(std::ssize(drawn), [&](std::int64_t i) {
      return terms[static_cast<std::size_t>(drawn[static_cast<std::size_t>(i)])];
    });
  };
  const auto order = [&](const std::vector<std::int64_t>& drawn) {
    return portable::log2(sum_of(at_rate, drawn) / sum_of(at_half, drawn));
  };
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < std::ssize(at_rate); ++i) all.push_back(i);
  constexpr std::int64_t kResamples = 999;
  found.left = sum_of(at_rate, all) / changes;
  found.order = order(all);
  const stats::Interval interval = stats::bootstrap_interval(std::ssize(all), kResamples, 0, order);
  found.low = interval.low;
  found.high = interval.high;
  return found;
}

}  // namespace numemu::experiments::tracin
