// Gradients of networks, pruned along batch and space as weight gradients read them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/mvue/parts.hpp"
#include "experiments/mvue/pruned_sample.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::mvue {
namespace {

constexpr const char* kRules[] = {"mvue(1:2)",        "mvue(2:4)",
                                  "mvue-approx(2:4)", "random-unbiased(2:4)",
                                  "greedy(1:2)",      "greedy(2:4)"};
constexpr int kLargestGroup = 4;

/// [channels, rows]: groups of neighbours run along the rows, whole ones only.
std::vector<float> along_rows(const LayerGradient& layer) {
  const std::int64_t rows = layer.rows / kLargestGroup * kLargestGroup;
  std::vector<float> x(static_cast<std::size_t>(rows * layer.channels));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < layer.channels; ++c)
      x[c * rows + r] = layer.g[r * layer.channels + c];
  }
  return x;
}

/// Share of zeros, and the standard deviation of ln |x| over the others.
std::pair<double, double> shape_of(const std::vector<float>& x) {
  std::vector<double> logs;
  for (const float v : x) {
    if (v != 0) logs.push_back(portable::log(std::fabs(v)));
  }
  const auto n = static_cast<std::int64_t>(logs.size());
  if (n == 0) return {1, 0};
  const double mean = pairwise_sum(n, [&](std::int64_t i) { return logs[i]; }) / n;
  const double variance =
      pairwise_sum(n, [&](std::int64_t i) { return (logs[i] - mean) * (logs[i] - mean); }) /
      static_cast<double>(n);
  return {1 - static_cast<double>(n) / static_cast<double>(x.size()), std::sqrt(variance)};
}

/// A figure over the layers where enough groups carry it.
struct Mean {
  double sum = 0, squares = 0, layers = 0;
  void add(const Estimate& e, double effective) {
    if (effective < kFewestGroups || !std::isfinite(e.error)) return;
    sum += e.value;
    squares += e.error * e.error;
    ++layers;
  }
  void judge_as(const std::string& what, std::vector<Finding>& findings) const {
    if (layers > 0)
      findings.push_back(
          judged(what, 1, {sum / layers, std::sqrt(squares) / layers}, kFewestGroups));
  }
};

void add_network(const std::string& name, const net::Dataset& data, const ExperimentRun& run,
                 Conclusion& conclusion) {
  const std::int64_t batch = run.settings.integer("gradient_batch", 4, 65536);
  const std::int64_t draws = run.settings.integer("draws", 2, 100'000);
  const std::int64_t samples = run.settings.integer("gradient_train", 32, data.train_count());
  run.say(fmt::format("gradients of {}", name));
  const net::Graph graph = briefly_trained(name, data, samples, run.seed);
  ResultTable table{
      fmt::format("gradients of {} on {} (batch {}, after {} training samples), {} draws", name,
                  data.name(), batch, samples, draws),
      {"layer", "zeros", "std of ln|g|", "rule", "NSR closed form", "error / closed form",
       "error of the mean x draws / closed form", "projection"},
      {}};
  RandomSource random;
  random.seed = run.seed;
  random.stream = Stream::mask;
  struct Means {
    Mean variance, mean, projection;
  };
  std::map<std::string, Means> means;
  double least = 1, most = 0;     // projection under greedy(1:2)
  std::vector<std::string> free;  // layers that mvue(2:4) prunes without error
  for (const LayerGradient& layer : layer_gradients(graph, data, batch, 1, run.seed)) {
    if (layer.g.empty()) continue;
    const std::vector<float> x = along_rows(layer);
    const auto [zeros, sigma] = shape_of(x);
    ++random.tensor;
    for (const char* rule : kRules) {
      const policies::MaskPolicy policy = policies::parse_mask(rule);
      const PrunedSample s = prune_and_measure(policy, x, draws, random);
      const bool unbiased = policy.rule->unbiased;
      table.rows.push_back({layer.layer, fmt::format("{:.1f} %", 100 * zeros),
                            fmt::format("{:.2f}", sigma), rule, fmt::format("{:.4f}", s.closed_nsr),
                            unbiased ? shown(s.variance) : "-", unbiased ? shown(s.mean) : "-",
                            shown(s.projection)});
      if (std::string_view(rule) == "greedy(1:2)") {
        least = std::min(least, s.projection.value);
        most = std::max(most, s.projection.value);
      }
      if (std::string_view(rule) == "mvue(2:4)" && s.closed_nsr == 0) free.push_back(layer.layer);
      if (!unbiased) continue;
      Means& of_rule = means[rule];
      of_rule.variance.add(s.variance, s.effective_error);
      of_rule.mean.add(s.mean, s.effective_error);
      of_rule.projection.add(s.projection, s.effective_error);
    }
  }
  for (const auto& [rule, of_rule] : means) {
    const std::string where = fmt::format("{}, mean over layers of {}", rule, name);
    std::vector<Finding>& findings = conclusion.findings;
    of_rule.variance.judge_as("squared error over its closed form, " + where, findings);
    of_rule.mean.judge_as("squared error of the mean times draws, " + where, findings);
    of_rule.projection.judge_as("projection on the unpruned, " + where, findings);
  }
  conclusion.sentences.push_back(fmt::format(
      "Gradients of {}: greedy 1:2 keeps between {:.1f} % and {:.1f} % of a layer's gradient "
      "(projection); the unbiased rules all of it on average.",
      name, 100 * least, 100 * most));
  if (!free.empty())
    conclusion.sentences.push_back(fmt::format(
        "In {} of {} no four neighbours along space have more than two non-zeros: 2:4 pruning "
        "costs nothing there (max-pooling passes a gradient to one of its inputs).",
        joined(free, ", "), name));
  conclusion.tables.push_back(std::move(table));
}

}  // namespace

void add_gradients(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  for (const std::string& name : run.settings.list("gradient_nets"))
    add_network(name, data, run, conclusion);
}

}  // namespace numemu::experiments::mvue
