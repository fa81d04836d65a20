// 4-bit embedding tables: losses of the ways to quantize a row, and what they cost a network that
// predicts clicks (Guan et al., arXiv 1911.02079).
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/squares.hpp"
#include "experiments/embeddings/rows.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace embeddings {

// DLRM-like networks trained on clicks, evaluated with the tables of every method.

namespace {

constexpr Method kMethods[] = {kSymmetric, kAsymmetric, kGreedy, kGreedySeen,
                               kKmeans,    kTwoTier,    kTable};
constexpr double kMargin = 0.001;  // of AUC: what counts as neutral

std::string net_of(const std::string& width) { return "dlrm(" + width + ")"; }
void check_width(const std::string& width) { net::net_kind(net_of(width)); }

/// Of one method: ||T - Q(T)|| / ||T|| over all tables of the network, their mean bits per element,
/// and scores of AUC and log loss beside float32.
struct OfMethod {
  double loss = 0, bits = 0;
  std::vector<RowScore> scores = {};

  static void fields(auto& self, const auto& visit) {
    visit("loss", self.loss);
    visit("bits", self.bits);
    visit("scores", self.scores);
  }
};
using Measured = std::vector<OfMethod>;

/// Without scores.
OfMethod table_losses(const net::Graph& graph, const policies::TableRule& rule) {
  double error = 0, signal = 0, bits = 0, elements = 0;
  for (const net::Node& node : graph.nodes) {
    const net::Tensor* const table = net::table_of(node);
    if (table == nullptr) continue;
    const net::Tensor quantized = rule.quantized(*table);
    const float *x = table->data.data(), *y = quantized.data.data();
    signal += stats::sum_of_squares(table->size(), x);
    error += stats::sum_of_squared_differences(table->size(), x, y);
    bits += rule.stored_bits(table->shape);
    elements += static_cast<double>(table->size());
  }
  return {std::sqrt(error / signal), bits / elements};
}

/// Trains in float32, then evaluates with each method's tables.
Measured measure(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const std::vector<net::OutputScore> scores = net::scores_for(data, {"auc", "log_loss"});
  const auto evaluated = [&](net::Numerics& numerics) {
    return net::evaluate(graph, data, net::Split::test, trial.eval_samples, numerics, scores);
  };
  const net::Evaluation baseline = evaluated(float32);
  Measured methods;
  for (const Method& method : kMethods) {
    const policies::Recipe recipe = policies::Recipe::make({{"table", method.rule}}, "embeddings");
    policies::RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, 0, {});
    OfMethod result = table_losses(graph, *rule_of(method));
    result.scores = scores_of(data, scores, evaluated(numerics), baseline);
    methods.push_back(std::move(result));
  }
  return methods;
}

/// What a method loses to float32 in AUC: over seeds by Student's law, of one seed over records.
stats::PairedInterval auc_loss(const std::vector<Measured>& seeds, std::size_t method) {
  std::vector<double> losses;
  for (const Measured& seed : seeds)
    losses.push_back(-seed[method].scores.at(0).difference.value_or(NAN));
  stats::PairedInterval loss = stats::paired_interval(losses);
  if (losses.size() > 1) return loss;
  const Ends ends = seeds[0][method].scores.at(0).difference_ci95.value_or(Ends());
  return {loss.mean, -ends.high.value_or(NAN), -ends.low.value_or(NAN), 1};
}

}  // namespace

void add_clicks(const ExperimentRun& run, Conclusion& conclusion) {
  StudyPlan plan{{}, seeds_of(run)};
  for (const std::string& width : run.settings.list("widths"))
    plan.methods.push_back(net_of(width));
  const net::Dataset data = net::load_dataset("clicks", run.folders.cache);
  const auto study =
      run_study<Measured>(run, plan, [&](std::size_t n, std::uint64_t seed) -> StudyRun<Measured> {
        TrainTrial trial = training_of(run.settings, plan.methods[n]);
        trial.seed = seed;
        Json point = point_of(trial, data);
        for (const Method& method : kMethods) point["tables"].push_back(method.rule);
        return {std::move(point), [trial, &data] { return measure(trial, data); }};
      });
  ResultTable table{
      fmt::format("4-bit tables of networks trained on clicks, {}",
                  counted(std::ssize(plan.seeds), "seed")),
      {"network", "method", "bits per element", "% of float32's bytes", "||T - Q(T)|| / ||T||",
       "AUC in float32", "AUC", "AUC lost", "95 % interval", "log loss added"},
      {}};
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title = "AUC lost by 4-bit tables against their size";
  chart.caption =
      "Difference to float32 on the same records, with 95 % intervals (over seeds; of one seed "
      "over records). All else of the network is float32.";
  chart.x = "stored bits per element";
  chart.y = "AUC lost";
  for (std::size_t n = 0; n < study.methods.size(); ++n) {
    ChartSeries series{study.methods[n], {}, false};
    for (std::size_t m = 0; m < std::size(kMethods); ++m) {
      const stats::PairedInterval loss = auc_loss(study.runs[n], m);
      const auto mean = [&](const auto& get) {
        double sum = 0;
        for (const Measured& one : study.runs[n]) sum += get(one[m]);
        return sum / static_cast<double>(study.seeds());
      };
      const auto mean_score = [&](std::size_t score, Member<double> RowScore::*figure) {
        return mean(
            [&](const OfMethod& one) { return (one.scores.at(score).*figure).value_or(NAN); });
      };
      const double bits = mean([](const OfMethod& one) { return one.bits; });
      conclusion.add(interval_finding(fmt::format("AUC lost by {} in {} (at most {} predicted)",
                                                  kMethods[m].name, study.methods[n], kMargin),
                                      0, loss, at_most(kMargin)),
                     kMethods[m].published ? "auc" : "auc, other methods");
      table.rows.push_back(
          {study.methods[n], kMethods[m].name, fmt::format("{:.2f}", bits),
           fmt::format("{:.1f}", 100 * bits / 32),
           fmt::format("{:.4f}", mean([](const OfMethod& one) { return one.loss; })),
           fmt::format("{:.4f}", mean_score(0, &RowScore::baseline)),
           fmt::format("{:.4f}", mean_score(0, &RowScore::value)),
           fmt::format("{:+.5f}", loss.mean), ends_text(loss.low, loss.high, 5),
           fmt::format("{:+.5f}", mean_score(1, &RowScore::difference))});
      series.points.push_back(gain_point(bits, kMethods[m].name, loss));
    }
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace embeddings

namespace {

Conclusion run_embeddings(const ExperimentRun& run) {
  Conclusion conclusion;
  embeddings::add_rows(run, conclusion);
  embeddings::add_clicks(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_embeddings;
const Experiment experiment_embeddings = {
    "embeddings",
    "what do 4-bit embedding tables lose, by the way a row is quantized and by its length",
    "Guan et al. (arXiv 1911.02079) claim that 4-bit tables with a greedy search for the range of "
    "each row, or with codebooks, shrink a model to 13.89 % of its size in float32 at neutral "
    "quality, and that k-means wins on short rows and meets the greedy search on long ones.",
    {{"table",
      "Losses on normal rows are those of the reference measurements, by dimension (derived "
      "here)."},
     {"range",
      "Losses of uniform codes follow from the expected range of normal rows, to 4 % (derived "
      "here)."},
     {"order",
      "GREEDY is never worse than ASYM, ASYM loses less than SYM, KMEANS less than GREEDY up to "
      "d = 64, and both meet at large d (published)."},
     {"fallback",
      "At d = 1024 the published search meets no local optimum and returns [min, max]; the best "
      "range seen loses less (derived here)."},
     {"size", "Stored bytes are 1/8 + 1/d of float32's, with codebooks 1/8 + 8/d (published)."},
     {"auc",
      "A network with 4-bit tables of the published search or codebooks loses at most 0.001 of AUC "
      "(published; the margin is ours).",
      "seeds"},
     {"auc, other methods",
      "So does one with the range of a row or of a table, or the best range seen (a contrast).",
      "seeds"}},
    {{"dimensions", "8,64,1024", "8,16,32,64,128,256,512,1024", "8,16,32,64,128,256,512,1024",
      "elements of a row", wholes(2, 65536)},
     {"tables", "8", "100", "300", "tables of normal rows at each dimension", whole(1, 65536)},
     {"widths", "16", "16,64", "8,16,32,64,128", "of a DLRM-like network's rows",
      list_of(embeddings::check_width)},
     training_settings({"1", "3", "6"}, "128", {"8192", "0", "0"}, {"2000", "0", "0"},
                       {.of = "record"}),
     {"seeds", "1", "5", "8", "networks of each width", whole(1, 1000)}},
    run_embeddings};

}  // namespace numemu::experiments
