// Rows of normal numbers: losses by dimension against the table of the reference measurements and
// closed forms.
#include "experiments/embeddings/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/squares.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/embedding/row_range.hpp"

namespace numemu::experiments::embeddings {

namespace {

constexpr std::array kMethods = {kSymmetric, kAsymmetric, kGreedy,  kGreedyFine,
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
struct Measured {
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
Measured measure(std::uint64_t seed, std::int64_t d, std::int64_t tables) {
  Measured measured{.losses = {}, .rows = tables * rows_of(d)};
  for (std::int64_t t = 0; t < tables; ++t) {
    const net::Tensor table = normal_table(seed, d, t);
    std::vector<double>& row = measured.losses.emplace_back();
    for (const Method& method : kMethods) {
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
  std::array<std::vector<double>, kMethods.size()> of;
  std::int64_t fallbacks = 0, worse = 0, rows = 0;

  Losses(std::int64_t dimension, const Measured& measured)
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
        closed_form(fmt::format("loss of {} at d = {}: the reference measurement", kMethods[m].name,
                                losses.d),
                    reference->loss[m], losses.mean(m), error, losses.tables() >= kFewTables),
        "table");
  }
}

void judge_closed_forms(const Losses& losses, Conclusion& conclusion) {
  constexpr double kTolerance = 0.04;  // relative: errors are not quite uniform on a step
  for (const std::size_t m : {kSym, kAsym, kTab}) {
    const double predicted = predicted_loss(m, losses.d);
    const stats::PairedInterval interval = stats::paired_interval(losses.of[m]);
    conclusion.add(interval_finding(
                       fmt::format("loss of {} at d = {} by its range", kMethods[m].name, losses.d),
                       predicted, interval, near(predicted, kTolerance * predicted)),
                   "range");
  }
}

/// The first method loses less than the second, paired by table.
Finding less(const Losses& losses, std::size_t first, std::size_t second) {
  const stats::PairedInterval difference =
      stats::paired_interval(losses.of[first], losses.of[second]);
  return interval_finding(fmt::format("loss of {} less that of {} at d = {} (below 0 predicted)",
                                      kMethods[first].name, kMethods[second].name, losses.d),
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
    conclusion.add(less(losses, kAsym, kSym), "order");
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
  for (const Method& method : kMethods) table.header.emplace_back(method.name);
  for (const char* column :
       {"SYM predicted", "ASYM predicted", "TABLE predicted", "search falls back, % of rows",
        "ASYM, % of float32's bytes", "KMEANS, % of float32's bytes"})
    table.header.emplace_back(column);
  for (const Losses& losses : all) {
    std::vector<std::string> row = {std::to_string(losses.d)};
    const Reference* const reference = reference_of(losses.d);
    for (std::size_t m = 0; m < kMethods.size(); ++m) {
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
  for (std::size_t m = 0; m < kMethods.size(); ++m) {
    ChartSeries measured{fmt::format("{} measured", kMethods[m].name), {}, false};
    ChartSeries predicted{fmt::format("{} predicted", kMethods[m].name), {}, true};
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
  std::vector<TypedTrial<Measured>> trials;
  for (const std::int64_t d : dimensions) {
    trials.push_back({{{"rows", "normal"}, {"d", d}, {"tables", tables}, {"seed", run.seed}},
                      fmt::format("normal rows, d = {}", d),
                      [seed = run.seed, d, tables] { return measure(seed, d, tables); }});
  }
  const std::vector<Measured> results = run_typed(run, trials);
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

}  // namespace numemu::experiments::embeddings
