// 4-bit embedding tables: losses of the ways to quantize a row, and what they cost a network that
// predicts clicks (Guan et al., arXiv 1911.02079).
#include "experiments/embeddings/embeddings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/table/base/row_range.hpp"

namespace numemu::experiments::embeddings {

// Rows of normal numbers: losses by dimension against the table of the reference measurements and
// closed forms.
namespace {

constexpr std::array kRowMethods = {kSymmetric, kAsymmetric, kGreedy,  kGreedyFine,
                                    kKmeans,    kTable,      kTwoTier, kGreedySeen};
enum Which : std::size_t { kSym, kAsym, kGre, kFine, kMeans, kTab, kTier, kSeen };
constexpr std::size_t kPublished = 6;  // the first methods have columns in the reference table

/// Reference measurements on one table of 60 rows (20 above d = 128), to four digits; NAN: none.
struct Reference {
  std::int64_t d;
  std::array<double, kPublished> loss;
};
constexpr Reference kReferences[] = {{8, {.0702, .0477, .0422, .0423, .0196, .1154}},
                                     {16, {.0777, .0660, .0591, .0594, .0395, .1401}},
                                     {32, {.0889, .0765, .0684, .0685, .0530, .1371}},
                                     {64, {.1010, .0894, .0821, .0822, .0740, .1373}},
                                     {128, {.1091, .1000, .0900, .0899, .0861, .1441}},
                                     {256, {.1156, .1058, .0956, .0957, .0952, .1469}},
                                     {512, {.1223, .1151, .1018, NAN, .1011, .1459}},
                                     {1024, {.1297, .1231, .1173, NAN, .1060, .1493}}};
constexpr double kLastDigit = 0.5e-4;   // of the reference
constexpr std::int64_t kFewTables = 8;  // fewer do not tell how much tables differ

std::int64_t rows_of(std::int64_t d) { return d <= 128 ? 60 : 20; }

const Reference* reference_of(std::int64_t d) {
  for (const Reference& reference : kReferences) {
    if (reference.d == d) return &reference;
  }
  return nullptr;
}

net::Tensor normal_table(std::uint64_t seed, std::int64_t d, std::int64_t number) {
  const Distribution law = Distribution::parse("normal", false);
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::data;
  random.tensor = static_cast<std::uint32_t>(d);
  random.draw = static_cast<std::uint16_t>(number);
  net::Tensor table({rows_of(d), d});
  for (std::size_t i = 0; i < table.data.size(); ++i)
    table.data[i] = static_cast<float>(law.draw(random, i));
  return table;
}

/// Of the tables of a dimension.
struct MeasuredRows {
  std::vector<std::vector<double>> losses;  ///< [table][method]
  std::int64_t fallbacks = 0, worse = 0, rows = 0;

  static void fields(auto& self, const auto& visit) {
    visit("losses", self.losses);
    visit("fallbacks", self.fallbacks);
    visit("worse", self.worse);
    visit("rows", self.rows);
  }
};

/// Per table the loss of every method; rows where the reference procedure falls back to [min, max]
/// though it met a better range; rows that GREEDY makes worse.
MeasuredRows measure_rows(std::uint64_t seed, std::int64_t d, std::int64_t tables) {
  MeasuredRows measured{.losses = {}, .rows = tables * rows_of(d)};
  for (std::int64_t t = 0; t < tables; ++t) {
    const net::Tensor table = normal_table(seed, d, t);
    std::vector<double>& row = measured.losses.emplace_back();
    for (const Method& method : kRowMethods) {
      const net::Tensor quantized = rule_of(method)->quantized(table);
      row.push_back(std::sqrt(stats::sum_of_squared_differences(table.size(), table.data.data(),
                                                                quantized.data.data()) /
                              stats::sum_of_squares(table.size(), table.data.data())));
    }
    for (std::int64_t r = 0; r < table.dim(0); ++r) {
      const std::span<const float> x(table.data.data() + r * d, static_cast<std::size_t>(d));
      const policies::RowRange whole = policies::asymmetric_range(x);
      bool optimum = false;
      const policies::RowRange found = policies::greedy_range(x, 4, {}, &optimum);
      measured.fallbacks += !optimum;
      measured.worse += policies::row_loss(x, found, 4) > policies::row_loss(x, whole, 4);
    }
  }
  return measured;
}

/// Of the tables: the mean, and the spread of a single table.
struct Losses {
  std::int64_t d = 0;
  std::array<std::vector<double>, kRowMethods.size()> of;
  std::int64_t fallbacks = 0, worse = 0, rows = 0;

  Losses(std::int64_t dimension, const MeasuredRows& measured)
      : d(dimension), fallbacks(measured.fallbacks), worse(measured.worse), rows(measured.rows) {
    for (const std::vector<double>& table : measured.losses) {
      for (std::size_t m = 0; m < of.size(); ++m) of[m].push_back(table.at(m));
    }
  }
  std::int64_t tables() const { return static_cast<std::int64_t>(of[0].size()); }
  double mean(std::size_t m) const {
    double sum = 0;
    for (const double x : of[m]) sum += x;
    return sum / static_cast<double>(tables());
  }
  double spread(std::size_t m) const {
    double sum = 0;
    for (const double x : of[m]) sum += (x - mean(m)) * (x - mean(m));
    return tables() < 2 ? HUGE_VAL : std::sqrt(sum / static_cast<double>(tables() - 1));
  }
  double error(std::size_t m) const { return spread(m) / std::sqrt(static_cast<double>(tables())); }
};

/// The closed form of a method; NAN where it has none.
double predicted_loss(std::size_t m, std::int64_t d) {
  if (m == kSym) return uniform_loss(4 * squared_largest(d), d, 1);
  if (m == kAsym) return uniform_loss(squared_range(d), d, 2);
  if (m == kTab) {
    const std::int64_t n = rows_of(d) * d;
    return uniform_loss(squared_range(n), n, 2);
  }
  return NAN;
}

void judge_references(const Losses& losses, Conclusion& conclusion) {
  const Reference* const reference = reference_of(losses.d);
  if (reference == nullptr) return;
  for (std::size_t m = 0; m < kPublished; ++m) {
    if (std::isnan(reference->loss[m])) continue;
    // The reference is one table more.
    const double error = portable::hypot(losses.spread(m), losses.error(m)) + kLastDigit;
    conclusion.add(
        closed_form(fmt::format("loss of {} at d = {}: the reference measurement",
                                kRowMethods[m].name, losses.d),
                    reference->loss[m], losses.mean(m), error, losses.tables() >= kFewTables),
        "table");
  }
}

void judge_closed_forms(const Losses& losses, Conclusion& conclusion) {
  constexpr double kTolerance = 0.04;  // relative: errors are not quite uniform on a step
  for (const std::size_t m : {kSym, kAsym, kTab}) {
    const double predicted = predicted_loss(m, losses.d);
    const stats::PairedInterval interval = stats::paired_interval(losses.of[m]);
    conclusion.add(interval_finding(fmt::format("loss of {} at d = {} by its range",
                                                kRowMethods[m].name, losses.d),
                                    predicted, interval, near(predicted, kTolerance * predicted)),
                   "range");
  }
}

/// The first method loses less than the second, paired by table.
Finding less(const Losses& losses, std::size_t first, std::size_t second) {
  const stats::PairedInterval difference =
      stats::paired_interval(losses.of[first], losses.of[second]);
  return interval_finding(fmt::format("loss of {} less that of {} at d = {} (below 0 predicted)",
                                      kRowMethods[first].name, kRowMethods[second].name, losses.d),
                          0, difference, at_most(0));
}

void judge_order(const std::vector<Losses>& all, Conclusion& conclusion) {
  constexpr double kConverged = 0.05;  // relative
  for (const Losses& losses : all) {
    conclusion.add(
        exact_finding(fmt::format("rows that GREEDY makes worse than ASYM at d = {}, of {}",
                                  losses.d, losses.rows),
                      0, static_cast<double>(losses.worse), losses.worse == 0),
        "order");
    conclusion.add(less(losses, kAsym, kSym), "ranges");
    if (losses.d <= 64) conclusion.add(less(losses, kMeans, kGre), "order");
  }
  const Losses& last = all.back();
  if (last.d < 512) return;
  std::vector<double> apart;
  for (std::size_t t = 0; t < last.of[kMeans].size(); ++t)
    apart.push_back(last.of[kFine][t] / last.of[kMeans][t] - 1);
  const stats::PairedInterval interval = stats::paired_interval(apart);
  conclusion.add(interval_finding(
                     fmt::format("loss of {} over that of KMEANS less 1 at d = {} (they converge)",
                                 kGreedyFine.name, last.d),
                     0, interval, near(0, kConverged)),
                 "order");
}

void judge_fallback(const Losses& losses, Conclusion& conclusion) {
  if (losses.d < 1024) return;
  constexpr double kReference = 0.75, kReferenceRows = 8;
  const double share = static_cast<double>(losses.fallbacks) / static_cast<double>(losses.rows);
  conclusion.add(
      closed_form(
          fmt::format(
              "share of rows at d = {} whose search meets no local optimum: 6 of 8 rows of the "
              "reference measurement",
              losses.d),
          kReference, share,
          std::sqrt(kReference * (1 - kReference) *
                    (1 / kReferenceRows + 1 / static_cast<double>(losses.rows)))),
      "fallback");
  conclusion.add(less(losses, kSeen, kGre), "fallback");
}

/// Bytes of a row over those in float32.
double size_share(const Method& method, std::int64_t rows, std::int64_t d) {
  return rule_of(method)->stored_bits({rows, d}) / (32.0 * static_cast<double>(rows * d));
}

void judge_sizes(const std::vector<std::int64_t>& dimensions, Conclusion& conclusion) {
  const auto exact = [&](const std::string& what, double predicted, double measured) {
    conclusion.add(exact_finding("share of float32's bytes: " + what, predicted, measured,
                                 std::fabs(predicted - measured) < 1e-12),
                   "size");
  };
  for (const std::int64_t d : dimensions) {
    const auto width = static_cast<double>(d);
    exact(fmt::format("ASYM at d = {}, 1/8 + 1/d", d), 0.125 + 1 / width,
          size_share(kAsymmetric, 1000, d));
    exact(fmt::format("KMEANS at d = {}, 1/8 + 8/d", d), 0.125 + 8 / width,
          size_share(kKmeans, 1000, d));
  }
  exact("GREEDY at d = 72, the published 13.89 %", 5.0 / 36, size_share(kGreedy, 1000, 72));
}

ResultTable table_of(const std::vector<Losses>& all) {
  ResultTable table{fmt::format("||X - Q(X)|| / ||X|| of normal rows, mean of {} tables of 60 rows "
                                "(20 above d = 128); in brackets the reference measurement",
                                all[0].tables()),
                    {"d"},
                    {}};
  for (const Method& method : kRowMethods) table.header.emplace_back(method.name);
  for (const char* column :
       {"SYM predicted", "ASYM predicted", "TABLE predicted", "search falls back, % of rows",
        "ASYM, % of float32's bytes", "KMEANS, % of float32's bytes"})
    table.header.emplace_back(column);
  for (const Losses& losses : all) {
    std::vector<std::string> row = {std::to_string(losses.d)};
    const Reference* const reference = reference_of(losses.d);
    for (std::size_t m = 0; m < kRowMethods.size(); ++m) {
      const bool known = reference != nullptr && m < kPublished && !std::isnan(reference->loss[m]);
      row.push_back(fmt::format("{:.4f}", losses.mean(m)) +
                    (known ? fmt::format(" ({:.4f})", reference->loss[m]) : ""));
    }
    for (const std::size_t m : {kSym, kAsym, kTab})
      row.push_back(fmt::format("{:.4f}", predicted_loss(m, losses.d)));
    row.push_back(fmt::format(
        "{:.1f}", 100 * static_cast<double>(losses.fallbacks) / static_cast<double>(losses.rows)));
    for (const Method& method : {kAsymmetric, kKmeans})
      row.push_back(fmt::format("{:.2f}", 100 * size_share(method, 1000, losses.d)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Chart chart_of(const std::vector<Losses>& all) {
  Chart chart;
  chart.title = "Loss of 4-bit tables by dimension";
  chart.caption =
      "Normal rows, 16 levels with float16 parameters, 95 % intervals over tables. KMEANS and "
      "GREEDY(1000, 0.5) meet at large d; GREEDY(200, 0.16) returns to ASYM where the best range "
      "is beyond its search.";
  chart.x = "d, elements of a row";
  chart.y = "||X - Q(X)|| / ||X||";
  chart.log_x = true;
  for (std::size_t m = 0; m < kRowMethods.size(); ++m) {
    ChartSeries measured{fmt::format("{} measured", kRowMethods[m].name), {}, false};
    ChartSeries predicted{fmt::format("{} predicted", kRowMethods[m].name), {}, true};
    for (const Losses& losses : all) {
      const double mean = losses.mean(m), reach = stats::kNormal95 * losses.error(m);
      const auto d = static_cast<double>(losses.d);
      measured.points.push_back({.x = d, .y = mean, .low = mean - reach, .high = mean + reach});
      const double law = predicted_loss(m, losses.d);
      if (std::isfinite(law)) predicted.points.push_back({.x = d, .y = law});
    }
    chart.series.push_back(std::move(measured));
    if (!predicted.points.empty()) chart.series.push_back(std::move(predicted));
  }
  return chart;
}

}  // namespace

std::shared_ptr<const policies::TableRule> rule_of(const Method& method) {
  const Json text = method.rule;
  const std::optional<policies::PolicyChoice> choice =
      policies::read_policy(JsonReader(text, "table"), "table");
  return std::static_pointer_cast<const policies::TableRule>(choice->options);
}

void add_rows(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> dimensions = run.settings.whole_numbers("dimensions");
  const std::int64_t tables = run.settings.integer("tables");
  std::vector<TypedTrial<MeasuredRows>> trials;
  for (const std::int64_t d : dimensions) {
    trials.push_back({{{"rows", "normal"}, {"d", d}, {"tables", tables}, {"seed", run.seed}},
                      fmt::format("normal rows, d = {}", d),
                      [seed = run.seed, d, tables] { return measure_rows(seed, d, tables); }});
  }
  const std::vector<MeasuredRows> results = run_typed(run, trials);
  std::vector<Losses> all;
  for (std::size_t i = 0; i < dimensions.size(); ++i) all.emplace_back(dimensions[i], results[i]);
  for (const Losses& losses : all) judge_references(losses, conclusion);
  for (const Losses& losses : all) judge_closed_forms(losses, conclusion);
  judge_order(all, conclusion);
  for (const Losses& losses : all) judge_fallback(losses, conclusion);
  judge_sizes(dimensions, conclusion);
  const Losses& last = all.back();
  conclusion.sentences.push_back(fmt::format(
      "At d = {} the greedy search meets no local optimum in {:.1f} % of the rows and returns "
      "[min, max]: loss {:.4f}, {:.4f} where it returns the best range seen, {:.4f} where it may "
      "cut half of the range.",
      last.d, 100 * static_cast<double>(last.fallbacks) / static_cast<double>(last.rows),
      last.mean(kGre), last.mean(kSeen), last.mean(kFine)));
  conclusion.tables.push_back(table_of(all));
  conclusion.charts.push_back(chart_of(all));
}

namespace {

// The trapezoidal rule, corrected for the slope at the end where the integrands have one (Euler and
// Maclaurin): h^2 / 12 of it. What is left is of order h^4.
constexpr double kStep = 0x1p-5;
constexpr int kNodes = 10 * 32;  // on either side of zero; beyond, n up to 1e6 leaves below 1e-16

}  // namespace

double squared_range(std::int64_t n) {
  const auto power = static_cast<double>(n);
  std::vector<double> below, smallest, largest;  // P(x <= t), P(min > t), P(max < t)
  for (int i = -kNodes; i <= kNodes; ++i) {
    const double p = normal::cdf(i * kStep), q = normal::cdf(-i * kStep);
    below.push_back(p);
    smallest.push_back(portable::pow(q, power));
    largest.push_back(portable::pow(p, power));
  }
  double sum = 0;
  for (std::size_t s = 0; s < below.size(); ++s) {
    for (std::size_t t = s; t < below.size(); ++t) {
      const double chance =
          1 - smallest[s] - largest[t] + portable::pow(below[t] - below[s], power);
      sum += t == s ? chance / 2 : chance;
    }
  }
  // The slope of the inner integrand at t = s is -n P(x <= s)^(n - 1) pdf(s), whose integral is -1.
  return 2 * kStep * kStep * sum - kStep * kStep / 6;
}

double squared_largest(std::int64_t n) {
  double sum = 0;
  for (int i = 1; i <= kNodes; ++i) {
    const double t = i * kStep;
    sum += 2 * t * (1 - portable::pow(1 - 2 * normal::cdf(-t), static_cast<double>(n)));
  }
  return kStep * sum + kStep * kStep / 6;
}

double uniform_loss(double square, std::int64_t n, std::int64_t exact, int levels) {
  const double share = 1 - static_cast<double>(exact) / static_cast<double>(n);
  return std::sqrt(share * square / 12) / (levels - 1);
}

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

}  // namespace numemu::experiments::embeddings

namespace numemu::experiments {

extern const Experiment experiment_embeddings = {
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
      "GREEDY is never worse than ASYM, KMEANS loses less than GREEDY up to d = 64, and both meet "
      "at large d, within 5 % (published; the margin is ours)."},
     {"ranges", "ASYM loses less than SYM (published)."},
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
    conclude<embeddings::add_rows, embeddings::add_clicks>};

}  // namespace numemu::experiments
