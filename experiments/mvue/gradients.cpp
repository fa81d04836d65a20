// Pruned gradients of networks, layer by layer and on their way down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/cross_entropy.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/mvue/pruning.hpp"
#include "formats/float_guard.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/numerics/recipe_numerics.hpp"

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

// A gradient that is pruned in every dgrad on its way down: bias compounds with depth, noise does
// not.

namespace {

constexpr const char* kPropagated[] = {"mvue(1:2)",        "mvue(2:4)",
                                       "mvue-approx(2:4)", "random-unbiased(1:2)",
                                       "greedy(1:2)",      "greedy(2:4)"};

using Gradients = std::map<std::string, std::vector<float>>;

/// Keeps the gradients that wgrad reads, before pruning.
class Recorder final : public policies::RecipeNumerics {
 public:
  using RecipeNumerics::RecipeNumerics;
  void product(const net::Step& step, const net::Product& p) override {
    if (p.kind == net::GemmKind::wgrad) gradients[std::string(p.layer)] = p.a.source->data;
    RecipeNumerics::product(step, p);
  }
  Gradients gradients;
};

/// One batch, forward and backward. The step gives each pass its own draws.
const Gradients& pass(const net::Graph& graph, const net::Tensor& x,
                      const std::vector<std::int32_t>& labels, std::uint64_t seed,
                      std::int64_t step, Recorder& numerics) {
  const FloatGuard guard;
  const net::Step begun{.phase = net::Phase::training, .index = step};
  numerics.begin_step(begun);
  net::Tape tape = net::forward_training(graph, x, numerics, begun, seed);
  net::Tensor grad_output;
  net::cross_entropy(tape.output, labels, &grad_output, 1);
  net::backward(graph, std::move(tape), std::move(grad_output), numerics);
  numerics.end_step(begun);
  return numerics.gradients;
}

/// <g, h> / <h, h>; NaN where h is nothing but zeros.
double projection(const std::vector<float>& g, const std::vector<float>& h) {
  const auto n = static_cast<std::int64_t>(h.size());
  return pairwise_sum(n, [&](std::int64_t i) { return double{g[i]} * h[i]; }) /
         pairwise_sum(n, [&](std::int64_t i) { return double{h[i]} * h[i]; });
}

/// With the width that Student's t law gives what 4 standard errors are of a normal one.
Finding judged_mean(std::string what, const stats::PairedInterval& t) {
  constexpr double kTail = 3.167e-5;  // of a normal law beyond kErrors
  constexpr double kTwoSided95 = 0.025;
  constexpr std::int64_t kFewest = 10;  // passes
  const auto degrees = static_cast<double>(t.n - 1);
  const double error = (t.high - t.mean) / stats::student_quantile(degrees, kTwoSided95);
  const double width = error * stats::student_quantile(degrees, kTail);
  Finding finding = judged(std::move(what), 1, {t.mean, width / kErrors}, t.n >= kFewest ? 1e9 : 0);
  finding.low = t.low;
  finding.high = t.high;
  return finding;
}

}  // namespace

void add_propagation(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::string& name = run.settings.text("propagation_net");
  const std::int64_t batch = run.settings.integer("gradient_batch", 4, 65536);
  const std::int64_t passes = run.settings.integer("passes", 2, 1'000'000);
  run.say(fmt::format("gradients of {} pruned on their way down", name));
  net::Graph graph = net::build_net(name, data);
  net::initialize(graph, run.seed);
  const std::vector<std::string> layers = net::gemm_layer_names(graph);
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), run.seed, 0);
  ids.resize(static_cast<std::size_t>(std::min(batch, data.train_count())));
  net::Targets targets;
  const net::Tensor x = data.train_batch(ids, targets);
  Recorder float32(policies::Recipe(), graph);
  const Gradients dense = pass(graph, x, targets.classes, run.seed, 0, float32);

  ResultTable table{fmt::format("gradients of {} (initial weights) pruned in every dgrad but that "
                                "of the output layer: projection on the dense gradient, {} passes",
                                name, passes),
                    {"layer"},
                    {}};
  for (auto l = layers.rbegin(); l != layers.rend(); ++l) table.rows.push_back({*l});
  Chart chart;
  chart.title = fmt::format("What is left of the gradients of {} on their way down", name);
  chart.caption = fmt::format(
      "Projection <pruned, dense> / <dense, dense> of the gradient that reaches a layer, pruned in "
      "every dgrad above it but that of the output layer; initial weights, one batch, {} passes, "
      "95 % intervals. Predicted without bias: 1.",
      passes);
  chart.x = "layer, counted from the output";
  chart.y = "projection on the dense gradient";
  for (const char* rule : kPropagated) {
    Json json = recipe_of({rule, "", ""}, layers.back());
    json["numemu_recipe"] = 1;
    json["seed"] = run.seed;
    Recorder numerics(policies::Recipe::parse(json, "recipe of mvue"), graph);
    const bool unbiased = policies::parse_mask(rule).rule->unbiased;
    std::map<std::string, std::vector<double>> projections;
    for (std::int64_t p = 0; p < passes; ++p) {
      for (const auto& [layer, g] : pass(graph, x, targets.classes, run.seed, p, numerics))
        projections[layer].push_back(projection(g, dense.at(layer)));
    }
    table.header.emplace_back(rule);
    ChartSeries series{rule, {}, false};
    for (std::size_t depth = 0; depth < layers.size(); ++depth) {
      const std::string& layer = layers[layers.size() - 1 - depth];
      const stats::PairedInterval t = stats::paired_interval(projections[layer]);
      table.rows[depth].push_back(fmt::format("{:.3f} +- {:.3f}", t.mean, t.high - t.mean));
      series.points.push_back({.x = static_cast<double>(depth),
                               .name = layer,
                               .y = t.mean,
                               .low = t.low,
                               .high = t.high});
      if (unbiased && depth + 1 == layers.size())
        conclusion.findings.push_back(judged_mean(
            fmt::format("projection of the gradient at {} of {} after {}", layer, name, rule), t));
    }
    if (std::string_view(rule) == "greedy(1:2)")
      conclusion.sentences.push_back(fmt::format(
          "Pruned by greedy 1:2 in every dgrad, {:.1f} % of the gradient (projection) is left at "
          "{}, {} layers below the output of {}.",
          100 * series.points.back().y, series.points.back().name, layers.size() - 1, name));
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::mvue
