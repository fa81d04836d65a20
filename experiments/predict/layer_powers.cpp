#include "experiments/predict/layer_powers.hpp"

#include <algorithm>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/mean.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments {
namespace {

/// Sums over a fixed tree of (a[i] - b[i])^2 and b[i]^2.
Power sums(std::int64_t n, const float* a, const float* b) {
  return {stats::sum_of_squared_differences(n, a, b), stats::sum_of_squares(n, b)};
}

}  // namespace

Power power_of(std::int64_t n, const float* y, const float* x) {
  const Power power = sums(n, y, x);
  const auto count = static_cast<double>(std::max<std::int64_t>(1, n));
  return {power.noise / count, power.signal / count};
}

LayerPowers::LayerPowers(const net::Graph& graph, const policies::FloatReference& reference,
                         std::int64_t first, std::int64_t count)
    : reference_(reference), first_(first), count_(count) {
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto clean = reference.outputs.find(layer.name);
    if (clean == reference.outputs.end()) continue;
    layers_[layer.name].clean = &clean->second;
    layers_[layer.name].samples.resize(static_cast<std::size_t>(count));
    if (layer.name != layer.node->name) parts_.insert(layer.name);
  }
}

void LayerPowers::add(const net::Node& node, const net::Tensor& output) {
  const auto found = layers_.find(node.name);
  if (found == layers_.end() || parts_.contains(node.name)) return;
  Part& part = found->second;
  // Where the result does not consist of samples, one share is all of it.
  const std::int64_t shares = count_ > 0 && output.size() % count_ == 0 ? count_ : 1;
  const std::int64_t each = output.size() / shares;
  const float* const clean =
      part.clean->data.data() + first_ * (part.clean->size() / reference_.samples());
  part.samples.resize(static_cast<std::size_t>(shares));
  for (std::int64_t i = 0; i < shares; ++i)
    part.samples[static_cast<std::size_t>(i)] =
        sums(each, output.data.data() + i * each, clean + i * each);
  part.elements = each;
  part.heard = true;
}

void LayerPowers::add(const net::Product& p) {
  if (!parts_.contains(p.layer)) return;
  Part& part = layers_.find(p.layer)->second;
  const std::int64_t each = p.d_stack.count() * p.m * p.n / count_;
  const std::int64_t all = part.clean->size() / part.clean->dim(0);
  const float* const clean = part.clean->data.data() + first_ * all + part.products++ * each;
  for (std::int64_t i = 0; i < count_; ++i) {
    const Power power = sums(each, p.d + i * each, clean + i * all);
    part.samples[static_cast<std::size_t>(i)].noise += power.noise;
    part.samples[static_cast<std::size_t>(i)].signal += power.signal;
  }
  part.elements += each;
}

std::map<std::string, std::vector<Power>> LayerPowers::of_samples() const {
  std::map<std::string, std::vector<Power>> out;
  for (const auto& [layer, part] : layers_) {
    if (!part.heard && !parts_.contains(layer)) continue;
    const auto n =
        static_cast<double>(part.heard ? std::max<std::int64_t>(1, part.elements) : part.elements);
    for (const Power& sum : part.samples) out[layer].push_back({sum.noise / n, sum.signal / n});
  }
  return out;
}

std::map<std::string, Power> LayerPowers::means() const {
  std::map<std::string, Power> out;
  for (const auto& [layer, samples] : of_samples()) {
    const auto n = std::ssize(samples);
    const auto mean = [&, &all = samples](double Power::*part) {
      return pairwise_sum(n,
                          [&](std::int64_t i) { return all[static_cast<std::size_t>(i)].*part; }) /
             static_cast<double>(std::max<std::int64_t>(1, n));
    };
    out[layer] = {mean(&Power::noise), mean(&Power::signal)};
  }
  return out;
}

}  // namespace numemu::experiments
