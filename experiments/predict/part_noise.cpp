#include "experiments/predict/part_noise.hpp"

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/pairwise.hpp"

namespace numemu::experiments {

PartNoise::PartNoise(const net::Graph& graph, const policies::FloatReference& reference) {
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto clean = reference.outputs.find(layer.name);
    if (layer.name != layer.node->name && clean != reference.outputs.end())
      parts_[layer.name].clean = &clean->second;
  }
}

void PartNoise::add(const net::Product& p) {
  const auto found = parts_.find(p.layer);
  if (found == parts_.end()) return;
  Part& part = found->second;
  const std::int64_t batch = part.clean->dim(0), size = p.d_stack.count() * p.m * p.n;
  const std::int64_t each = size / batch, all = part.clean->size() / batch;
  const float* const clean = part.clean->data.data() + part.products++ * each;
  part.squares += stats::pairwise_sum(size, [&](std::int64_t i) {
    const double error = double{p.d[i]} - clean[i / each * all + i % each];
    return error * error;
  });
  part.elements += size;
}

std::map<std::string, double> PartNoise::mean_squares() const {
  std::map<std::string, double> out;
  for (const auto& [layer, part] : parts_)
    out[layer] = part.elements > 0 ? part.squares / static_cast<double>(part.elements) : 0;
  return out;
}

}  // namespace numemu::experiments
