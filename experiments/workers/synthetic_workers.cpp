#include "experiments/workers/synthetic_workers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "emu/net/ops/linear.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments::workers {
namespace {

constexpr const char* kLayer = "matrix";

net::Graph one_matrix(std::int64_t rows, std::int64_t columns) {
  net::Graph graph;
  graph.name = "synthetic";
  graph.inputs = {{"input", {columns}}};
  graph.add(kLayer, std::make_unique<net::Linear>(columns, rows, /*bias=*/false), {0});
  return graph;
}

}  // namespace

Gradients correlated_normals(std::int64_t workers, std::int64_t elements, double rho,
                             std::uint64_t seed, std::int64_t step) {
  const auto drawn = [&](std::int64_t draw) {
    return normal::sample({.seed = seed,
                           .stream = Stream::data,
                           .tensor = static_cast<std::uint32_t>(step),
                           .draw = static_cast<std::uint16_t>(draw)},
                          static_cast<std::size_t>(elements));
  };
  const auto common = static_cast<float>(std::sqrt(rho)),
             own = static_cast<float>(std::sqrt(1 - rho));
  Gradients gradients;
  std::vector<float> shared;
  if (rho > 0) shared = drawn(0);
  for (std::int64_t w = 0; w < workers; ++w) {
    gradients.push_back(drawn(w + 1));
    if (rho == 0) continue;
    for (std::size_t i = 0; i < shared.size(); ++i)
      gradients.back()[i] = common * shared[i] + own * gradients.back()[i];
  }
  return gradients;
}

std::vector<float> mean_of(const Gradients& gradients) {
  std::vector<float> mean(gradients.front().size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& of_worker : gradients) sum += of_worker[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(gradients.size()));
  }
  return mean;
}

SyntheticWorkers::SyntheticWorkers(const Json& rule, std::int64_t rows, std::int64_t columns,
                                   std::uint64_t seed)
    : graph_(one_matrix(rows, columns)),
      // Nothing is updated; some rules serve sgd alone.
      numerics_(policies::Recipe::make({{"exchange", rule}, {"update", {{"optimizer", "sgd"}}}},
                                       "synthetic workers", seed),
                graph_) {}

SyntheticWorkers::Result SyntheticWorkers::exchange(std::int64_t step, const Gradients& gradients) {
  std::vector<net::WorkerGradient> sent;
  for (const std::vector<float>& own : gradients) {
    net::Tensor tensor(graph_.parameters().front()->value.shape);
    tensor.data = own;
    sent.push_back({std::ssize(sent), {std::move(tensor)}});
  }
  net::Exchanged exchanged =
      net::exchange_all(numerics_, {.phase = net::Phase::training, .index = step}, std::move(sent));
  return {exchanged.gradients[0].data.take(), exchanged.wire[0]};
}

std::vector<float> SyntheticWorkers::kept(const std::string& prefix, std::int64_t worker) const {
  net::NamedState state;
  numerics_.save_state(state);
  policies::StateTensors tensors;
  policies::load_tensors(prefix, state, tensors);
  return tensors.at(fmt::format("worker{}/{}.weight", worker, kLayer));
}

}  // namespace numemu::experiments::workers
