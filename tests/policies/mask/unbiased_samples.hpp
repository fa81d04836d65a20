// Shared by the tests of the unbiased rules: samples, means over draws, and tolerances.
#pragma once
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "formats/analysis/distribution.hpp"
#include "policies/mask/mask_rule.hpp"
#include "tests/catch.hpp"

namespace numemu::policies::testing {

inline RandomSource mask_source(std::uint32_t tensor, std::uint64_t seed = 17) {
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::mask;
  random.tensor = tensor;
  return random;
}

inline std::vector<float> sample(const std::string& law, std::int64_t n, std::uint32_t tensor = 1) {
  const Distribution distribution = Distribution::parse(law, false);
  RandomSource random;
  random.stream = Stream::vectors;
  random.tensor = tensor;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = static_cast<float>(distribution.draw(random, i));
  return x;
}

/// Calls check() under every instruction set of this machine.
template <class Check>
void on_every_target(Check&& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

using Pruner = std::function<void(const RandomSource&, const MaskRun&)>;

/// Groups next to each other made of every kind of number, `count` elements: values of all
/// magnitudes, zeros of both signs, subnormals, repeated values, infinities and NaN.
inline std::vector<float> mixed(std::int64_t count, bool specials, std::uint32_t tensor = 3) {
  RandomSource random;
  random.stream = Stream::vectors;
  random.tensor = tensor;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto u = [&](std::uint64_t k) {
      return random.bits(8 * static_cast<std::uint64_t>(i) + k, 32);
    };
    const float sign = (u(0) & 1U) != 0 ? -1.0F : 1.0F;
    // The same kind over 64 elements, so that whole groups are of it; kind 7 mixes all.
    std::uint32_t kind = random.bits(1'000'000'000U + static_cast<std::uint64_t>(i / 64), 32) % 8;
    if (kind == 7) kind = u(1) % 7;
    float value = 0;
    switch (kind) {
      case 0:
        value = static_cast<float>(u(2) * 0x1p-32);
        break;
      case 1:
        value = static_cast<float>(u(2) % 4);
        break;
      case 2:
        value = std::ldexp(1 + static_cast<float>(u(2) >> 9) * 0x1p-23F,
                           static_cast<int>(u(3) % 276) - 149);
        break;
      case 3:
        value = static_cast<float>(u(2) % 9) * 0x1p-149F;
        break;
      case 4:
        value = std::ldexp(1 + static_cast<float>(u(2) >> 9) * 0x1p-23F,
                           122 + static_cast<int>(u(3) % 6));
        break;
      case 5:
        value = std::ldexp(static_cast<float>(u(2) % 5), -static_cast<int>(u(3) % 40));
        break;
      default:
        value = std::ldexp(1 + static_cast<float>(u(2) >> 9) * 0x1p-23F,
                           -56 - static_cast<int>(u(3) % 8));
    }
    if (specials && u(4) % 64 == 0) value = u(5) % 2 == 0 ? INFINITY : NAN;
    x[static_cast<std::size_t>(i)] = sign * value;
  }
  return x;
}

/// Means and central moments of y over draws of one group, which stands in many copies.
struct Moments {
  std::vector<double> mean, variance;  ///< of the elements
  double error = 0;                    ///< mean of the sum of (y - x)^2
  double error_variance = 0;           ///< of that sum, one draw
};

inline Moments moments(const Pruner& prune, const std::vector<float>& group, std::int64_t draws,
                       const RandomSource& random) {
  const std::size_t m = group.size();
  std::vector<float> x, y(m * static_cast<std::size_t>(draws));
  for (std::int64_t i = 0; i < draws; ++i) x.insert(x.end(), group.begin(), group.end());
  prune(random, MaskRun{x.data(), y.data(), nullptr, draws, 0});
  Moments out{std::vector<double>(m), std::vector<double>(m), 0, 0};
  const auto n = static_cast<double>(draws);
  double fourth = 0;
  for (std::size_t g = 0; g < y.size(); g += m) {
    double squares = 0;
    for (std::size_t i = 0; i < m; ++i) {
      const double e = double{y[g + i]} - x[g + i];
      out.mean[i] += e / n;
      out.variance[i] += e * e / n;
      squares += e * e;
    }
    out.error += squares / n;
    fourth += squares * squares / n;
  }
  for (std::size_t i = 0; i < m; ++i) out.mean[i] += group[i];
  out.error_variance = std::max(0.0, fourth - out.error * out.error);
  return out;
}

}  // namespace numemu::policies::testing
