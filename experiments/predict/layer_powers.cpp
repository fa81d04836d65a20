#include "experiments/predict/layer_powers.hpp"

#include <algorithm>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/squares.hpp"

namespace numemu::experiments {
namespace {

/// Sums over a fixed tree of (a[i] - b[i])^2 and b[i]^2.
Power sums(std::int64_t n, const float* a, const float* b) {
  return {stats::sum_of_squared_differences(n, a, b), stats::sum_of_squares(n, b)};
}

}  // namespace

LayerPowers::LayerPowers(const net::Graph& graph, const policies::FloatReference& reference,
                         std::int64_t first, std::int64_t count)
    : reference_(reference), first_(first), count_(count) {
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto clean = reference.outputs.find(layer.name);
    if (layer.name != layer.node->name && clean != reference.outputs.end())
      parts_[layer.name].clean = &clean->second;
  }
}

void LayerPowers::add(const net::Node& node, const net::Tensor& output) {
  const auto clean = reference_.outputs.find(node.name);
  if (clean == reference_.outputs.end()) return;
  const std::int64_t n = output.size();
  const float* const x =
      clean->second.data.data() + first_ * (clean->second.size() / reference_.samples());
  Power power = sums(n, output.data.data(), x);
  if (n > 0) power = {power.noise / n, power.signal / n};
  whole_[node.name] = power;
}

void LayerPowers::add(const net::Product& p) {
  const auto found = parts_.find(p.layer);
  if (found == parts_.end()) return;
  Part& part = found->second;
  const std::int64_t size = p.d_stack.count() * p.m * p.n;
  const std::int64_t each = size / count_, all = part.clean->size() / part.clean->dim(0);
  const float* const clean = part.clean->data.data() + first_ * all + part.products++ * each;
  std::vector<float> expected;
  expected.reserve(static_cast<std::size_t>(size));
  for (std::int64_t sample = 0; sample < count_; ++sample)
    expected.insert(expected.end(), clean + sample * all, clean + sample * all + each);
  const Power power = sums(size, p.d, expected.data());
  part.noise += power.noise;
  part.signal += power.signal;
  part.elements += size;
}

std::map<std::string, Power> LayerPowers::means() const {
  std::map<std::string, Power> out = whole_;
  for (const auto& [layer, part] : parts_) {
    const auto n = static_cast<double>(part.elements);
    out[layer] = {part.noise / n, part.signal / n};
  }
  return out;
}

}  // namespace numemu::experiments
