#include "experiments/learned_compression/measured.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "emu/stats/entropy.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "formats/portable/math.hpp"
#include "policies/exchange/base/autoencoder.hpp"
#include "policies/exchange/base/selection.hpp"

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

namespace {

constexpr std::int64_t kSteps = 64;

/// The errors of windows that come in turn from `windows(step)`: those of the last step, after the
/// autoencoder learnt from all others.
template <class Windows>
void learn(const Windows& windows, std::int64_t steps, std::uint64_t seed, Shared& shared) {
  policies::Autoencoder autoencoder(kWindow, 1, seed);
  for (std::int64_t step = 0; step < steps; ++step) autoencoder.train(windows(step));
  const std::vector<float> x = windows(steps);
  std::vector<float> decoded = x;
  autoencoder.reconstruct(decoded);
  shared.autoencoder = relative_error(x, decoded);
  shared.component = component_error(x, kWindow);
}

}  // namespace

Shared measure_normal(std::int64_t count, double rho, std::int64_t elements, std::uint64_t seed) {
  const workers::Gradients all = workers::correlated_normals(count, elements, rho, seed, 0);
  Shared shared{.correlation = rho,
                .information = binned_information(all[0], all[1], 64),
                .mean = mean_error(all)};
  // Values of a window have that correlation: those of neighbours are those of workers.
  const auto windows = [&](std::int64_t step) {
    const workers::Gradients columns = workers::correlated_normals(
        kWindow, std::min<std::int64_t>(elements, 2000), rho, seed, step + 1);
    std::vector<float> x;
    for (std::size_t i = 0; i < columns[0].size(); ++i)
      for (const std::vector<float>& column : columns) x.push_back(column[i]);
    return x;
  };
  learn(windows, kSteps, seed, shared);
  return shared;
}

Shared measure_network(const net::Dataset& data, const std::string& name, std::int64_t count,
                       double share, std::uint64_t seed) {
  constexpr std::int64_t kEach = 32, kNetSteps = 16;
  const std::int64_t samples = std::min<std::int64_t>(1024, data.train_count());
  const net::Graph graph = briefly_trained(name, data, samples, seed);
  net::Numerics float32;
  std::vector<std::vector<float>> windows;
  workers::Gradients even(static_cast<std::size_t>(count)), odd(even.size());
  for (std::int64_t step = 0; step < kNetSteps; ++step) {
    workers::Gradients own;
    for (std::int64_t w = 0; w < count; ++w) {
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < kEach; ++i)
        ids.push_back(((step * count + w) * kEach + i) % data.train_count());
      net::Targets targets;
      const net::Tensor x = data.train_batch(ids, targets);
      std::vector<net::Tensor> all =
          training_pass(graph, x, targets.classes, float32, step, seed).gradients;
      own.push_back(std::ranges::max(all, {}, [](const net::Tensor& t) { return t.size(); }).data);
    }
    const std::vector<float>& lead = own[static_cast<std::size_t>(step % count)];
    std::vector<std::size_t> places =
        policies::largest(lead, policies::sent_elements(share, lead.size()));
    policies::sort_by_value(places, lead);
    windows.emplace_back();
    for (const std::size_t i : places) windows.back().push_back(lead[i]);
    for (std::size_t w = 0; w < own.size(); ++w) {
      std::vector<float>& sum = (step % 2 == 0 ? even : odd)[w];
      sum.insert(sum.end(), own[w].begin(), own[w].end());
    }
  }
  Shared shared{.correlation = correlation(even),
                .information = binned_information(odd[0], odd[1], 16),
                .mean = mean_error(odd)};
  learn([&](std::int64_t step) { return windows[static_cast<std::size_t>(step)]; }, kNetSteps - 1,
        seed, shared);
  return shared;
}

}  // namespace numemu::experiments::learned_compression
