#include "experiments/layer_parallel/chain.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::layer_parallel {
namespace {

constexpr int kMostSteps = 1'000'000;
constexpr double kConverged = 1e-13;  // of a derivative over beta

double slope(double y) { return 1 - y * y; }  // of tanh where it is y

/// Derivatives along what enters each stage; the last is that of the loss along the output.
std::vector<double> adjoints(const Chain& chain, const std::vector<double>& x) {
  std::vector<double> a(x.size());
  a.back() = x.back() - chain.target;
  for (std::size_t k = chain.weights.size(); k-- > 0;) {
    const double y = portable::tanh(chain.weights[k] * x[k]);
    a[k] = a[k + 1] * slope(y) * chain.weights[k];
  }
  return a;
}

/// What enters the stages, and the output; each but the output less `shift` of its number.
template <class Shift>
std::vector<double> trajectory(const Chain& chain, const Shift& shift) {
  std::vector<double> x = {chain.input};
  const std::size_t count = chain.weights.size();
  for (std::size_t k = 0; k < count; ++k)
    x.push_back(portable::tanh(chain.weights[k] * x[k]) - (k + 1 < count ? shift(k + 1) : 0));
  return x;
}

std::vector<double> along_weights(const Chain& chain, const std::vector<double>& x) {
  const std::vector<double> a = adjoints(chain, x);
  std::vector<double> gradients;
  for (std::size_t k = 0; k < chain.weights.size(); ++k)
    gradients.push_back(a[k + 1] * slope(portable::tanh(chain.weights[k] * x[k])) * x[k]);
  return gradients;
}

}  // namespace

Chain Chain::drawn(std::int64_t stages, std::uint64_t seed, std::int64_t number) {
  const RandomSource source{seed, Stream::vectors,
                            tensor_word("layer-parallel/" + std::to_string(number))};
  Chain chain;
  chain.input = normal::draw(source, 0);
  chain.target = normal::draw(source, 1);
  for (std::int64_t k = 0; k < stages; ++k) {
    const double w = 1 + normal::draw(source, static_cast<std::uint64_t>(k + 2)) / 4;
    chain.weights.push_back(std::clamp(w, -2.0, 2.0));
  }
  return chain;
}

std::vector<double> Chain::gradients() const {
  return along_weights(*this, trajectory(*this, [](std::size_t) { return 0.0; }));
}

std::vector<double> Chain::shifted_gradients(double beta) const {
  const std::vector<double> a = adjoints(*this, trajectory(*this, [](std::size_t) { return 0.0; }));
  return along_weights(*this, trajectory(*this, [&](std::size_t k) { return a[k] / beta; }));
}

std::vector<double> Chain::penalty_gradients(double beta) const {
  const std::size_t count = weights.size();
  std::vector<double> x = trajectory(*this, [](std::size_t) { return 0.0; });
  // The curvature along a variable is at most 5 beta: |w| is at most 2.
  const double step = 1 / (5 * beta + 4);
  std::vector<double> y(count), pull(count + 1);
  for (int t = 0; t < kMostSteps; ++t) {
    for (std::size_t k = 0; k < count; ++k) y[k] = portable::tanh(weights[k] * x[k]);
    for (std::size_t k = 1; k < count; ++k) pull[k] = beta * (x[k] - y[k - 1]);
    pull[count] = target - y[count - 1];  // minus the derivative of the loss along the output
    double largest = 0;
    for (std::size_t k = 1; k < count; ++k) {
      const double derivative = pull[k] - pull[k + 1] * slope(y[k]) * weights[k];
      largest = std::max(largest, std::fabs(derivative));
      x[k] -= step * derivative;
    }
    if (largest < kConverged * beta) break;
  }
  std::vector<double> gradients;
  for (std::size_t k = 0; k < count; ++k) gradients.push_back(-pull[k + 1] * slope(y[k]) * x[k]);
  return gradients;
}

}  // namespace numemu::experiments::layer_parallel
