// The noise of statistics of ghost batches beside closed forms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/ghost_bn/closed_forms.hpp"
#include "experiments/ghost_bn/questions.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::ghost_bn {
namespace {

/// Moments of statistics of n normal numbers.
struct Moments {
  Estimate mean, variance, inverse;  ///< E[mean^2], E[(v - E v)^2], E[1 / sqrt(v)]

  static void fields(auto& self, const auto& visit) {
    visit("mean", self.mean);
    visit("variance", self.variance);
    visit("inverse", self.inverse);
  }
};

Moments moments(std::int64_t n, std::int64_t samples, std::uint64_t seed) {
  const std::int64_t columns = std::max<std::int64_t>(2, samples / n);
  const RandomSource random{seed, Stream::data, static_cast<std::uint32_t>(n)};
  const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n * columns), 31);
  const net::BatchStatistics batch = net::batch_statistics(x.data(), n, columns, {});
  const auto mean = [&](const auto& term) {
    const stats::Mean of = stats::mean_of(columns, [&](std::int64_t c) {
      return term(batch.mean[static_cast<std::size_t>(c)],
                  batch.variance[static_cast<std::size_t>(c)]);
    });
    return Estimate{of.value, of.error};
  };
  const double expected = mean_variance(n);
  return {mean([](double m, double) { return m * m; }),
          mean([&](double, double v) { return (v - expected) * (v - expected); }),
          mean([](double, double v) { return 1 / std::sqrt(v); })};
}

}  // namespace

void add_statistics(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> sizes = run.settings.whole_numbers("sizes");
  const std::int64_t samples = run.settings.integer("samples");
  const auto results = run_cases<Moments>(run, sizes, [&](std::int64_t n) -> TypedTrial<Moments> {
    return {{{"statistics of ghost batches", n}, {"samples", samples}, {"seed", run.seed}},
            fmt::format("statistics of {} numbers", n),
            [=, seed = run.seed] { return moments(n, samples, seed); }};
  });
  ResultTable table{
      fmt::format("statistics of n normal numbers, about {} numbers each", samples), {"n"}, {}};
  Chart chart{.title = "Noise of the statistics of a ghost batch",
              .caption =
                  "Standard deviations over n normal numbers of variance 1, closed forms "
                  "dashed.",
              .x = "values per statistic",
              .y = "standard deviation",
              .log_x = true,
              .log_y = true};
  for (const char* name :
       {"deviation of the mean", "deviation of the variance", "E[1 / deviation]"})
    table.header.insert(table.header.end(), {name, "predicted"});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t n = sizes[i];
    std::vector<std::string> row = {fmt::format("{}", n)};
    const auto add = [&](const char* what, const Estimate& measured, double predicted, bool root) {
      const double square = root ? predicted * predicted : predicted;
      conclusion.add(
          closed_form(fmt::format("{}, n = {}", what, n), square, measured.value, measured.error),
          "statistics");
      const double shown = root ? std::sqrt(measured.value) : measured.value;
      row.insert(row.end(), {fmt::format("{:.4f}", shown), fmt::format("{:.4f}", predicted)});
      const auto x = static_cast<double>(n);
      if (root) chart.add(what, {.x = x, .y = shown}, {.x = x, .y = predicted});
    };
    add("mean square of the mean", results[i].mean, mean_noise(n), true);
    add("variance of the variance", results[i].variance, variance_noise(n), true);
    add("mean inverse deviation", results[i].inverse, mean_inverse_deviation(n), false);
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::ghost_bn
