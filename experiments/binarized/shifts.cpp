// Powers of two on normal numbers: the shift-based variance, its reciprocal root, and rounding to
// powers of two by a format.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/ops/batch_statistics.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/binarized/laws.hpp"
#include "experiments/binarized/parts.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::binarized {
namespace {

constexpr std::int64_t kParts = 64;  // independent: their spread gives the standard error

/// [samples / kParts, kParts] normal numbers: a channel is a part.
std::vector<float> normals(const ExperimentRun& run, std::int64_t samples, double deviation) {
  const RandomSource random{run.seed, Stream::vectors,
                            static_cast<std::uint32_t>(std::lround(deviation * 4096))};
  std::vector<float> x(static_cast<std::size_t>(samples / kParts * kParts));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(deviation * normal::draw(random, i));
  return x;
}

}  // namespace

void add_shifts(const ExperimentRun& run, Conclusion& conclusion) {
  using Rule = net::NormRule;
  const std::int64_t samples = run.settings.integer("samples", 64 * kParts, 1'000'000'000);
  const Conversion nearest{.format = &find_format("e5m0+finite")};
  Chart chart;
  chart.title = "Rounding to powers of two on normal numbers";
  chart.caption =
      "E[x q(x)] / E[x^2] over the standard deviation: AP2 rounds log2 x (boundary sqrt 2), the "
      "format e5m0 to the nearest value (boundary 1.5, rne). 1 would be unbiased.";
  chart.x = "standard deviation";
  chart.y = "gain";
  for (const char* name : {"AP2, predicted", "AP2, measured", "e5m0, predicted", "e5m0, measured"})
    chart.series.push_back({name, {}, std::string(name).ends_with("predicted")});
  for (const double deviation : run.settings.numbers("deviations", 0.01, 100)) {
    const std::vector<float> x = normals(run, samples, deviation);
    const std::int64_t rows = samples / kParts;
    const net::BatchStatistics exact = net::batch_statistics(x.data(), rows, kParts, {}),
                               shift = net::batch_statistics(x.data(), rows, kParts,
                                                             {.statistic = Rule::Statistic::shift});
    std::vector<float> rounded(x.size());
    quantize_values(nearest, x.data(), static_cast<std::int64_t>(x.size()), 1, rounded.data());
    std::vector<double> gains, of_nearest, deviations;
    for (std::int64_t part = 0; part < kParts; ++part) {
      double product = 0, squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::size_t i = static_cast<std::size_t>(r * kParts + part);
        product += double{x[i]} * rounded[i];
        squares += double{x[i]} * x[i];
      }
      of_nearest.push_back(product / squares);
      gains.push_back(shift.variance[part] / exact.variance[part]);
      deviations.push_back(std::sqrt(exact.variance[part]) *

                           core::power_of_two(1 / std::sqrt(shift.variance[part])));
    }
    const auto judge = [&](const char* what, double predicted, const std::vector<double>& parts,
                           std::size_t series) {
      const stats::Mean measured = stats::mean_of(parts);
      conclusion.findings.push_back(closed_form(fmt::format("{}, deviation {}", what, deviation),
                                                predicted, measured.value, measured.error));
      if (series == chart.series.size()) return;
      const Finding& finding = conclusion.findings.back();
      chart.series[series].points.push_back({.x = deviation, .y = predicted});
      chart.series[series + 1].points.push_back(
          {.x = deviation, .y = measured.value, .low = finding.low, .high = finding.high});
    };
    judge("shift-based variance over variance", power_gain(deviation, kApproximate), gains, 0);
    judge("gain of powers of two by a format without mantissa", power_gain(deviation, kNearest),
          of_nearest, 2);
    judge("deviation after the shift-based normalisation", shift_deviation(deviation), deviations,
          chart.series.size());
  }
  conclusion.about("powers of two");
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::binarized
