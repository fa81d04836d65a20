#include "policies/calibrate/running_statistics.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// A running statistic of a node: what it was, and the sum of samples * statistic.
struct Statistic {
  net::Tensor* value = nullptr;
  net::Tensor before;
  double momentum = 1;
  std::vector<double> sum;
};

/// By node and parameter.
using Statistics = std::map<std::pair<std::size_t, std::size_t>, Statistic>;

Statistics statistics_of(net::Graph& graph) {
  Statistics statistics;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    auto* norm = dynamic_cast<net::BatchNorm*>(graph.nodes[i].op.get());
    if (norm == nullptr) continue;
    if (!(norm->options().momentum > 0)) {
      throw Error("layer " + graph.nodes[i].name +
                  ": expected a momentum above 0, running statistics cannot be estimated");
    }
    const std::span<net::Parameter> parameters = norm->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].trained || parameters[p].is_tied()) continue;
      net::Tensor& value = parameters[p].value;
      statistics[{i, p}] = {&value, value, norm->options().momentum,
                            std::vector<double>(value.data.size())};
    }
  }
  return statistics;
}

/// What `groups` updates from zero with equal statistics of 1 leave.
double reached(double momentum, std::int64_t groups) {
  double missing = 1;
  for (std::int64_t i = 0; i < groups; ++i) missing *= 1 - momentum;
  return 1 - missing;
}

/// From zero, a training step leaves a known share of the batch's statistics; where there are ghost
/// batches, of their mean in which later ones weigh more.
void add_batch(const net::Graph& graph, const std::vector<net::Tensor>& batch,
               std::int64_t first_sample, net::Numerics& numerics, Statistics& statistics) {
  for (auto& [place, statistic] : statistics)
    std::fill(statistic.value->data.begin(), statistic.value->data.end(), 0.0f);
  const std::int64_t samples = batch.empty() ? 0 : batch[0].dim(0);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(samples));
  std::iota(ids.begin(), ids.end(), first_sample);
  const net::Step step{net::Phase::inference, 0, &ids};
  numerics.begin_step(step);
  const net::Tape tape = net::forward_training(graph, batch, numerics, step);
  numerics.end_step(step);
  for (const net::NodeBuffer& buffer : tape.buffers) {
    const auto found = statistics.find({buffer.node, buffer.update.parameter});
    if (found == statistics.end()) continue;
    Statistic& statistic = found->second;
    const std::int64_t ghost = numerics.norm(step, graph.nodes[buffer.node].name).ghost_batch;
    const std::int64_t groups = ghost > 0 ? (samples + ghost - 1) / ghost : 1;
    const double weight = static_cast<double>(samples) / reached(statistic.momentum, groups);
    net::Tensor value({static_cast<std::int64_t>(statistic.sum.size())});
    net::apply(buffer.update, value);
    for (std::size_t c = 0; c < statistic.sum.size(); ++c)
      statistic.sum[c] += weight * static_cast<double>(value.data[c]);
  }
}

}  // namespace

int reestimate_batch_norm(net::Graph& graph, const std::vector<std::vector<net::Tensor>>& batches,
                          net::Numerics& numerics) {
  if (batches.empty()) throw Error("batch normalisation: expected at least one batch");
  Statistics statistics = statistics_of(graph);
  if (statistics.empty()) return 0;
  std::int64_t samples = 0;
  try {
    for (const std::vector<net::Tensor>& batch : batches) {
      add_batch(graph, batch, samples, numerics, statistics);
      samples += batch[0].dim(0);
    }
  } catch (...) {
    for (auto& [place, statistic] : statistics) *statistic.value = std::move(statistic.before);
    throw;
  }
  std::set<std::size_t> nodes;
  for (auto& [place, statistic] : statistics) {
    nodes.insert(place.first);
    for (std::size_t c = 0; c < statistic.sum.size(); ++c)
      statistic.value->data[c] =
          static_cast<float>(statistic.sum[c] / static_cast<double>(samples));
  }
  return static_cast<int>(nodes.size());
}

}  // namespace numemu::policies
