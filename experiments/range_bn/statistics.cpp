// Standard deviations estimated from the range of n normal numbers by three constants.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/ops/batch_statistics.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/range_bn/laws.hpp"
#include "experiments/range_bn/parts.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::range_bn {
namespace {

using Constant = net::NormRule::Constant;

constexpr struct {
  Constant constant;
  const char* name;
  double (*predicted)(std::int64_t n, double d2);  ///< mean estimate
} kConstants[] = {{Constant::exact, "exact", [](std::int64_t, double) { return 1.0; }},
                  {Constant::published, "published", published_estimate},
                  {Constant::repository, "repository", repository_estimate}};
constexpr double kNear = 0.01;  // relative, of a constant that is to estimate the deviation

/// By constant the mean estimate of batch normalisation and its error, over the same samples / n
/// columns of n numbers.
Json measure(std::int64_t n, std::int64_t samples, std::uint64_t seed) {
  const std::int64_t columns = std::max<std::int64_t>(2, samples / n);
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::data;
  random.tensor = static_cast<std::uint32_t>(n);
  const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n * columns), 31);
  Json result = Json::object();
  for (const auto& one : kConstants) {
    const net::BatchStatistics batch = net::batch_statistics(
        x.data(), n, columns,
        {.statistic = net::NormRule::Statistic::range, .constant = one.constant});
    const auto estimate = [&](std::int64_t c) {
      return std::sqrt(batch.variance[static_cast<std::size_t>(c)]);
    };
    const stats::Mean mean = stats::mean_of(columns, estimate);
    result[one.name] = {{"mean", mean.value}, {"error", mean.error}, {"spread", mean.deviation}};
  }
  return result;
}

}  // namespace

void add_statistics(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> sizes = run.settings.whole_numbers("sizes", 2, 1 << 20);
  const std::int64_t samples = run.settings.integer("samples", 1000, 1'000'000'000);
  std::vector<Trial> trials;
  for (const std::int64_t n : sizes)
    trials.push_back({{{"ranges by constant", n}, {"samples", samples}, {"seed", run.seed}},
                      fmt::format("ranges of {} numbers", n),
                      [=, seed = run.seed] { return measure(n, samples, seed); }});
  const std::vector<Json> results = run_trials(run, trials);
  ResultTable table{
      fmt::format("deviations of normal numbers estimated from ranges, about {} numbers each",
                  samples),
      {"n", "E[range] / sigma", "measured", "exact: measured", "spread of one",
       "published: predicted", "measured", "repository: predicted", "measured"},
      {}};
  Chart chart;
  chart.title = "Standard deviation estimated from the range of n normal numbers";
  chart.caption =
      "Mean estimate over the true deviation, with 95 % intervals; constant times E[range] dashed. "
      "exact 1 / E[range], published 1 / sqrt(2 ln n), repository 0.5402 / sqrt(2 ln n).";
  chart.x = "n";
  chart.y = "estimate / deviation";
  chart.log_x = true;
  for (const auto& one : kConstants) {
    chart.series.push_back({fmt::format("{} measured", one.name), {}, false});
    chart.series.push_back({fmt::format("{} predicted", one.name), {}, true});
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t n = sizes[i];
    const double d2 = 1 / net::range_factor(Constant::exact, n);
    const Json& exact = results[i].at("exact");
    const double range = d2 * exact.at("mean").get<double>(),
                 half_range = stats::kNormal95 * d2 * exact.at("error").get<double>();
    std::vector<std::string> row = {std::to_string(n), fmt::format("{:.6f}", d2),
                                    fmt::format("{:.4f} +- {:.4f}", range, half_range)};
    for (std::size_t c = 0; c < std::size(kConstants); ++c) {
      const auto& [constant, name, law] = kConstants[c];
      const Json& measured = results[i].at(name);
      const double predicted = law(n, d2), mean = measured.at("mean"), error = measured.at("error");
      const std::string what = fmt::format("deviation by the {} constant, n = {}", name, n);
      conclusion.findings.push_back(closed_form(what, predicted, mean, error));
      conclusion.about("range");
      conclusion.findings.push_back(model_finding(what + " (1 claimed)", 1, mean, error, kNear));
      conclusion.about(constant == Constant::exact       ? "exact"
                       : constant == Constant::published ? "published"
                                                         : "repository");
      if (constant == Constant::exact) {
        row.push_back(fmt::format("{:.4f}", mean));
        row.push_back(fmt::format("{:.3f}", measured.at("spread").get<double>()));
      } else {
        row.push_back(fmt::format("{:.4f}", predicted));
        row.push_back(fmt::format("{:.4f}", mean));
      }
      chart.series[2 * c].points.push_back(
          with_error({.x = static_cast<double>(n), .y = mean}, error));
      chart.series[2 * c + 1].points.push_back({.x = static_cast<double>(n), .y = predicted});
    }
    for (const bool upper : {false, true}) {
      const double bound = upper ? most_range(n) : least_range(n);
      conclusion.findings.push_back(
          interval_finding(fmt::format("mean range of {} normal numbers (at {} {:.3f} claimed)", n,
                                       upper ? "most" : "least", bound),
                           bound, range, {range - half_range, range + half_range},
                           upper ? at_most(bound) : at_least(bound)));
      conclusion.about("bounds");
    }
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::range_bn
