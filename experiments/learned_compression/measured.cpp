#include "experiments/learned_compression/measured.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/engine/study.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "policies/exchange/base/autoencoder.hpp"
#include "policies/exchange/base/selection.hpp"

namespace numemu::experiments::learned_compression {
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
