#include "experiments/data_free/floor.hpp"

#include <fmt/format.h>

#include <cmath>

#include "formats/analysis/distribution.hpp"
#include "formats/portable/math.hpp"
#include "policies/calibrate/norm_targets.hpp"

namespace numemu::experiments::data_free {

namespace {

/// The derivative of ln Gamma(x), x > 0: by its recurrence to x >= 10, then its asymptotic series,
/// whose next term is below 1e-13 there.
double digamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + portable::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

}  // namespace

double floor_divergence(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return count / 2 *
         (digamma((count - 1) / 2) - portable::log(count / 2) - 1 + (count + 1) / (count - 3));
}

// Independent numbers: the divergence that real data have.

void add_floor(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kGroups = 32;  // of channels, whose spread is the error of the mean
  const std::int64_t channels = run.settings.integer("channels", kGroups, 1'000'000) / kGroups;
  const Distribution law = Distribution::parse("normal", false);
  ResultTable table{
      "J n of n independent normal numbers a channel", {"n", "predicted", "measured"}, {}};
  for (const std::int64_t n : {16, 64, 256}) {
    double sum = 0, squares = 0;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      RandomSource random;
      random.seed = run.seed;
      random.stream = Stream::data;
      random.tensor = static_cast<std::uint32_t>(n);
      random.draw = static_cast<std::uint16_t>(g);
      net::Tensor x({n, channels});
      for (std::size_t i = 0; i < x.data.size(); ++i)
        x.data[i] = static_cast<float>(law.draw(random, i));
      const std::vector<double> zeros(static_cast<std::size_t>(channels)),
          ones(static_cast<std::size_t>(channels), 1.0);
      const double j = static_cast<double>(n) / static_cast<double>(channels) *
                       policies::norm_divergence({"", zeros, ones}, x, nullptr);
      sum += j;
      squares += j * j;
    }
    const double mean = sum / kGroups;
    const double error = std::sqrt(std::max(0.0, squares / kGroups - mean * mean) / (kGroups - 1));
    const double predicted = floor_divergence(n);
    conclusion.findings.push_back(
        closed_form(fmt::format("J n of {} independent numbers", n), predicted, mean, error));
    table.rows.push_back(
        {std::to_string(n), fmt::format("{:.4f}", predicted), fmt::format("{:.4f}", mean)});
  }
  conclusion.about("floor");
  conclusion.tables.push_back(std::move(table));
}

}  // namespace numemu::experiments::data_free
