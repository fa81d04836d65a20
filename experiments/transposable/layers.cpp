#include "experiments/transposable/layers.hpp"

#include <algorithm>

#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {

std::vector<std::string> even_layers(const net::Graph& graph) {
  std::vector<std::string> names;
  for (const net::GemmLayer& layer : net::gemm_layers(graph))
    if (layer.weight != nullptr && layer.weight->shape.size() > 1 &&
        layer.weight->dim(-1) % kMostGroup == 0)
      names.push_back(layer.name);
  if (names.empty())
    throw Error("network " + graph.name + ": expected a layer whose channels are a multiple of " +
                std::to_string(kMostGroup) + ", of which every pattern keeps half");
  return names;
}

LayerErrors::LayerErrors(const std::vector<std::string>& layers) {
  for (const std::string& layer : layers) squares_[layer];
}

void LayerErrors::product(const net::Step& step, const net::Product& p) {
  net::Numerics::product(step, p);
  const auto found = squares_.find(p.layer);
  if (found == squares_.end() || p.b.role != net::Role::weight) return;
  const std::int64_t parts = p.b.stack.count(), inner = p.d_stack.inner;
  if (found->second.empty())
    found->second.assign(static_cast<std::size_t>(parts), policies::LeastSquares(p.k, p.n));
  std::vector<float> y(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    const float* const d = p.d + (i / inner * p.m * inner + i % inner) * p.n;
    for (std::int64_t r = 0; r < p.m; ++r)
      std::copy_n(d + r * inner * p.n, p.n, y.data() + r * p.n);
    found->second[static_cast<std::size_t>(parts == 1 ? 0 : i)].add(p, i, y.data());
  }
}

double LayerErrors::relative(const std::string& layer, const net::Tensor& weight) const {
  const auto found = squares_.find(layer);
  if (found == squares_.end() || found->second.empty())
    throw Error("layer " + layer + ": expected a product of its weight, found none");
  const std::vector<policies::LeastSquares>& parts = found->second;
  const std::int64_t each = weight.size() / static_cast<std::int64_t>(parts.size());
  const std::vector<float> none(static_cast<std::size_t>(each));
  double error = 0, power = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    error += parts[i].squared_error(weight.data.data() + static_cast<std::int64_t>(i) * each);
    power += parts[i].squared_error(none.data());
  }
  return error / power;
}

}  // namespace numemu::experiments
