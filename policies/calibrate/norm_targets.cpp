// Cold: a negligible share of any run (docs/build.md).
#include "policies/calibrate/norm_targets.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::policies {

std::vector<NormTarget> fold_to_targets(net::Graph& graph) {
  std::vector<NormTarget> targets;
  for (const net::Node& node : graph.nodes) {
    const auto* norm = dynamic_cast<const net::BatchNorm*>(node.op.get());
    if (norm == nullptr) continue;
    const std::span<const net::Parameter> p = std::as_const(*norm).parameters();
    NormTarget target;
    target.value = graph.value_name(node.inputs[0]);
    for (std::size_t c = 0; c < p[0].value.data.size(); ++c) {
      const double gain = p[0].value.data[c], variance = p[3].value.data[c];
      target.mean.push_back(p[1].value.data[c]);
      target.variance.push_back(gain * gain * variance / (variance + norm->options().epsilon));
    }
    targets.push_back(std::move(target));
  }
  if (targets.empty())
    throw Error("network " + graph.name +
                ": expected batch normalisation, its statistics are what "
                "data is made from");
  net::fold_batch_norm(graph);
  for (const net::Node& node : graph.nodes) {
    if (dynamic_cast<const net::BatchNorm*>(node.op.get()) != nullptr)
      throw Error("layer " + node.name +
                  ": expected batch normalisation that folds into the layer before it");
  }
  return targets;
}

double norm_divergence(const NormTarget& target, const net::Tensor& x, net::Tensor* gradient) {
  const auto channels = static_cast<std::int64_t>(target.mean.size());
  const std::int64_t rows = x.size() / channels;
  const net::BatchStatistics batch = net::batch_statistics(x.data.data(), rows, channels, {});
  double sum = 0;
  std::vector<double> shift(target.mean.size()), slope(target.mean.size());
  for (std::size_t c = 0; c < target.mean.size(); ++c) {
    const double s2 = target.variance[c], v = batch.variance[c];
    if (!(s2 > 0 && v > 0)) continue;
    const double off = batch.mean[c] - target.mean[c];
    sum += (portable::log(v / s2) + (s2 + off * off) / v - 1) / 2;
    shift[c] = off / v / static_cast<double>(rows);
    slope[c] = (1 / v - (s2 + off * off) / (v * v)) / static_cast<double>(rows);
  }
  if (gradient == nullptr) return sum;
  *gradient = net::Tensor(x.shape);
  net::for_each_row(rows, channels, [&](std::int64_t r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      gradient->data[i] = net::neutral(
          static_cast<float>(shift[c] + slope[c] * (double{x.data[i]} - batch.mean[c])));
    }
  });
  return sum;
}

double norm_divergence(const net::Graph& folded, const std::vector<NormTarget>& targets,
                       const net::Tensor& batch) {
  std::map<std::string, const NormTarget*, std::less<>> of;
  double channels = 0, sum = 0;
  for (const NormTarget& target : targets) {
    of[target.value] = &target;
    channels += static_cast<double>(target.mean.size());
  }
  const net::Observer observer = [&](const net::Node& node, const net::Tensor& x) {
    const auto found = of.find(node.name);
    if (found != of.end()) sum += norm_divergence(*found->second, x, nullptr);
  };
  net::Numerics float32;
  net::forward(folded, batch, float32, {}, &observer);
  return sum / channels;
}

}  // namespace numemu::policies
