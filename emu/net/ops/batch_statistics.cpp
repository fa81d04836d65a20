// Two passes over the batch: means, then squared deviations or extremes.
#include "emu/net/ops/batch_statistics.hpp"

#include <cmath>

#include "emu/net/math_cores.hpp"
#include "emu/net/ops/float64_sums.hpp"
#include "emu/net/sums.hpp"

namespace numemu::net {
namespace {

// rows_of[channel] = the first row whose value is before(x, best so far) of all; chunks of rows in
// parallel, then the chunks in order.
template <class Before>
std::vector<std::int64_t> first_extremes(const float* x, std::int64_t rows, std::int64_t channels,
                                         const Before& before) {
  constexpr std::int64_t kChunk = 256;
  const std::int64_t chunks = (rows + kChunk - 1) / kChunk;
  std::vector<std::int64_t> found(static_cast<std::size_t>(chunks * channels));
  for_each_row(chunks, kChunk * channels, [&](std::int64_t chunk) {
    std::int64_t* const best = found.data() + chunk * channels;
    std::fill_n(best, channels, chunk * kChunk);
    for (std::int64_t r = chunk * kChunk; r < std::min(rows, (chunk + 1) * kChunk); ++r) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (before(x[r * channels + c], x[best[c] * channels + c])) best[c] = r;
      }
    }
  });
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t r = found[chunk * channels + c];
      if (before(x[r * channels + c], x[found[c] * channels + c])) found[c] = r;
    }
  }
  found.resize(static_cast<std::size_t>(channels));
  return found;
}

}  // namespace

double range_factor(std::int64_t n) {
  return 1 / std::sqrt(2 * core::log_positive(static_cast<double>(n)));
}

BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 NormRule::Statistic statistic) {
  const auto count = static_cast<double>(rows);
  BatchStatistics result;
  result.mean = column_sums(x, rows, channels);
  for (double& mean : result.mean) mean /= count;
  if (statistic == NormRule::Statistic::variance) {
    const double* const means = result.mean.data();
    result.variance = column_tree(rows, channels, [=](std::int64_t r, double* sums) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        const double d = x[r * channels + c] - means[c];
        sums[c] += d * d;
      }
    });
    for (double& variance : result.variance) variance /= count;
    return result;
  }
  result.largest = first_extremes(x, rows, channels, [](float a, float b) { return a > b; });
  result.smallest = first_extremes(x, rows, channels, [](float a, float b) { return a < b; });
  for (std::int64_t c = 0; c < channels; ++c) {
    const double range = static_cast<double>(x[result.largest[c] * channels + c]) -
                         x[result.smallest[c] * channels + c];
    const double scale = range_factor(rows) * range;
    result.variance.push_back(scale * scale);
  }
  return result;
}

}  // namespace numemu::net
