#include "emu/stats/resampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "emu/stats/mean.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::stats {
namespace {

constexpr std::uint32_t kTensor = 0x746f6f62;
constexpr std::int64_t kOneIn = 40;  // 2.5 % on each side

}  // namespace

Interval bootstrap_interval(
    std::int64_t n, std::int64_t resamples, std::uint64_t seed,
    const std::function<double(const std::vector<std::int64_t>& drawn)>& statistic) {
  if (n < 1 || n >= std::int64_t{1} << 31 || resamples < 1) {
    throw Error("bootstrap: expected 1 to 2^31 - 1 members and at least one resample, found " +
                std::to_string(n) + " and " + std::to_string(resamples));
  }
  const RandomSource random{.seed = seed, .stream = Stream::probe, .tensor = kTensor, .draw = 0};
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  std::vector<double> values;
  std::uint64_t element = 0;
  for (std::int64_t r = 0; r < resamples; ++r) {
    for (std::int64_t& member : drawn) {
      member = static_cast<std::int64_t>(
          (std::uint64_t{random.bits(element++, 32)} * static_cast<std::uint64_t>(n)) >> 32);
    }
    const double value = statistic(drawn);
    if (!std::isnan(value)) values.push_back(value);
  }
  if (values.empty()) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    return {kNaN, kNaN};
  }
  std::sort(values.begin(), values.end());
  const std::size_t skipped = std::max<std::size_t>(1, (values.size() + 1) / kOneIn) - 1;
  return {values[skipped], values[values.size() - 1 - skipped]};
}

double jackknife_error(std::int64_t groups,
                       const std::function<double(std::int64_t left_out)>& statistic) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < groups; ++i) values.push_back(statistic(i));
  return mean_of(values).deviation * static_cast<double>(groups - 1) /
         std::sqrt(static_cast<double>(groups));
}

}  // namespace numemu::stats
