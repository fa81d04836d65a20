#include "experiments/learned_compression/shared.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emu/stats/entropy.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::learned_compression {
namespace {

/// Which of the equally likely bins each number lies in.
std::vector<std::size_t> bins_of(const std::vector<float>& x, std::int64_t bins) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
  std::vector<std::size_t> bin(x.size());
  for (std::size_t r = 0; r < order.size(); ++r)
    bin[order[r]] = r * static_cast<std::size_t>(bins) / order.size();
  return bin;
}

}  // namespace

double information(double rho) { return -0.5 * portable::log2(1 - rho * rho); }

double mean_error(double rho, std::int64_t count) {
  return (1 - rho) * (1 - 1 / static_cast<double>(count));
}

double correlation(const Vectors& all) {
  const auto n = static_cast<double>(all.size());
  double squares = 0, of_sums = 0;
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& own : all) {
      sum += own[i];
      squares += double{own[i]} * own[i];
    }
    of_sums += sum * sum;
  }
  return squares > 0 ? (of_sums - squares) / ((n - 1) * squares) : 0;
}

double mean_error(const Vectors& all) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    double mean = 0;
    for (const std::vector<float>& own : all) mean += own[i] / static_cast<double>(all.size());
    for (const std::vector<float>& own : all) {
      error += (own[i] - mean) * (own[i] - mean);
      power += double{own[i]} * own[i];
    }
  }
  return error / power;
}

double binned_information(const std::vector<float>& x, const std::vector<float>& y,
                          std::int64_t bins) {
  const std::vector<std::size_t> a = bins_of(x, bins), b = bins_of(y, bins);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins * bins));
  for (std::size_t i = 0; i < a.size(); ++i) ++counts[a[i] * static_cast<std::size_t>(bins) + b[i]];
  return 2 * portable::log2(static_cast<double>(bins)) - stats::entropy(counts).corrected;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& decoded) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - decoded[i]) * (double{x[i]} - decoded[i]);
    power += double{x[i]} * x[i];
  }
  return error / power;
}

double component_error(const std::vector<float>& x, std::int64_t window) {
  constexpr int kIterations = 1000;
  const auto s = static_cast<std::size_t>(window);
  std::vector<double> moments(s * s), v(s);
  for (std::size_t first = 0; first + s <= x.size(); first += s) {
    for (std::size_t i = 0; i < s; ++i)
      for (std::size_t j = 0; j < s; ++j) moments[i * s + j] += double{x[first + i]} * x[first + j];
  }
  double trace = 0, largest = 0;
  for (std::size_t i = 0; i < s; ++i) {
    trace += moments[i * s + i];
    v[i] = 1 + static_cast<double>(i) / static_cast<double>(s);  // orthogonal to no usual component
  }
  // Power iteration: |M v| / |v|.
  for (int k = 0; k < kIterations && trace > 0; ++k) {
    std::vector<double> next(s);
    double norm = 0;
    for (std::size_t i = 0; i < s; ++i) {
      for (std::size_t j = 0; j < s; ++j) next[i] += moments[i * s + j] * v[j];
      norm += next[i] * next[i];
    }
    largest = std::sqrt(norm);
    for (std::size_t i = 0; i < s; ++i) v[i] = next[i] / largest;
  }
  return trace > 0 ? 1 - largest / trace : 0;
}

}  // namespace numemu::experiments::learned_compression
