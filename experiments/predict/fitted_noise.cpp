#include "experiments/predict/fitted_noise.hpp"

#include <algorithm>
#include <cmath>

#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments {

namespace {

std::int64_t index_of_extreme(const float* x, std::int64_t n) {
  return std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); }) -
         x;
}

}  // namespace

ErrorMoments Grid::moments(double scale, const Density& density) const {
  return stochastic ? stochastic_error_moments(cells, scale, density)
                    : error_moments(cells, scale, density);
}

ErrorMoments Grid::moments(double scale, const float* x, std::int64_t n) const {
  return stochastic ? stochastic_error_moments(cells, scale, x, n)
                    : error_moments(cells, scale, x, n);
}

void accumulate(ErrorMoments& total, const ErrorMoments& part, double share, double unit) {
  total.mean += share * unit * part.mean;
  total.mse += share * unit * unit * part.mse;
  total.mse_normal += share * unit * unit * part.mse_normal;
  total.signal += share * unit * unit * part.signal;
  total.saturated += share * part.saturated;
  total.flushed += share * part.flushed;
}

const FitCache::TensorFit& FitCache::fit(const TensorSource& source, const net::Tensor& x,
                                         std::int64_t groups) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = fits_.try_emplace({source, groups});
  TensorFit& fit = at->second;
  if (!added) return fit;
  const std::int64_t size = x.size() / groups;
  std::vector<float> standard;
  standard.reserve(x.data.size());
  for (std::int64_t g = 0; g < groups; ++g) {
    const float* group = x.data.data() + g * size;
    const std::int64_t extreme = index_of_extreme(group, size);
    const double others = pairwise_sum(
        size, [&](std::int64_t i) { return i == extreme ? 0 : double{group[i]} * group[i]; });
    const double rms = size > 1 ? std::sqrt(others / (size - 1)) : 0;
    fit.groups.push_back({group[extreme], rms});
    for (std::int64_t i = 0; i < size; ++i) {
      if (i != extreme) standard.push_back(static_cast<float>(rms > 0 ? group[i] / rms : 0));
    }
  }
  if (standard.size() < 2) return fit;
  const std::vector<stats::Fit> ranked =
      stats::fit_all(standard.data(), static_cast<std::int64_t>(standard.size()));
  if (!ranked.empty()) fit.best = ranked.front();
  return fit;
}

const FitCache::Mixture& FitCache::mixture(const TensorSource& source, const float* x,
                                           std::int64_t n, std::int64_t width, std::int64_t taps) {
  constexpr double kParts = 4;  // of an octave
  const std::lock_guard lock(mutex_);
  const auto [at, added] = mixtures_.try_emplace({source, width, taps});
  Mixture& mixture = at->second;
  if (!added || width == 0) return mixture;
  struct Lines {
    std::vector<std::int64_t> first;
    double squares = 0;
    float largest = 0;
  };
  std::map<int, Lines> parts;
  for (std::int64_t first = 0; first < n; first += width) {
    const float* const line = x + first;
    const double squares =
        pairwise_sum(width, [&](std::int64_t i) { return double{line[i]} * line[i]; });
    if (squares == 0) continue;
    const double rms = std::sqrt(squares / static_cast<double>(width));
    Lines& part = parts[static_cast<int>(std::lround(kParts * portable::log2(rms)))];
    part.first.push_back(first);
    part.squares += squares;
    part.largest = std::max(part.largest, std::fabs(line[index_of_extreme(line, width)]));
  }
  std::vector<float> standard;
  standard.reserve(static_cast<std::size_t>(n));
  for (const auto& [octave, part] : parts) {
    const double elements = static_cast<double>(width) * static_cast<double>(part.first.size());
    const double rms = std::sqrt(part.squares / elements);
    mixture.parts.push_back({rms, elements / static_cast<double>(n), part.largest});
    for (const std::int64_t first : part.first) {
      for (std::int64_t i = 0; i < width; ++i)
        standard.push_back(static_cast<float>(x[first + i] / rms));
    }
  }
  const std::vector<stats::Fit> ranked =
      stats::fit_all(standard.data(), static_cast<std::int64_t>(standard.size()));
  if (!ranked.empty()) mixture.best = ranked.front();
  return mixture;
}

std::optional<FittedNoise> FitCache::predict(const TensorSource& source, const net::Tensor& x,
                                             const std::vector<float>& scales, const Grid& grid) {
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  const TensorFit& tensor = fit(source, x, groups);
  if (!tensor.best) return std::nullopt;
  const stats::Fit& best = *tensor.best;
  FittedNoise noise{best.family, best.ks_distance, best.threshold, best.accepted(), {}};
  const double n = static_cast<double>(x.size());
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto [extreme, rms] = tensor.groups[g];
    accumulate(noise.moments, grid.moments(scales[g], &extreme, 1), 1 / n, 1);
    const double bound = rms > 0 ? std::fabs(extreme) / rms : 0;
    if (!(bound > 0)) continue;
    // No element of the group lies beyond its extreme: neither may the density's share.
    accumulate(noise.moments,
               grid.moments(scales[g] / rms, *truncated(best.density, -bound, bound)),
               (n / groups - 1) / n, rms);
  }
  return noise;
}

}  // namespace numemu::experiments
