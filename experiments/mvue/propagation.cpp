// A gradient that is pruned in every dgrad on its way down: bias compounds with depth, noise does
// not.
#include <fmt/format.h>

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
#include "experiments/mvue/parts.hpp"
#include "experiments/mvue/pruned_sample.hpp"
#include "experiments/mvue/recipes.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::mvue {
namespace {

constexpr const char* kRules[] = {"mvue(1:2)",        "mvue(2:4)",
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
  for (const char* rule : kRules) {
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
