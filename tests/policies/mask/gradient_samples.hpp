// Samples of the laws of gradients, and how far a share of them may be off.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"

namespace numemu::policies::test {

inline const RandomSource kRandom{20, Stream::vectors, 0, 0};

inline double normal_sample(std::uint64_t i) {
  return normal::quantile((kRandom.bits(i, 32) + 0.5) * 0x1p-32);
}

inline double laplace_sample(std::uint64_t i) {
  const double u = (kRandom.bits(i, 32) + 0.5) * 0x1p-31 - 1;
  return std::copysign(-std::log1p(-std::fabs(u)), u);
}

inline double lognormal_sample(std::uint64_t i, double s) {
  const double u = (kRandom.bits(i, 32) + 0.5) * 0x1p-31;  // the sign and a uniform number
  const double z = normal::quantile(u < 1 ? u : u - 1);
  return std::copysign(std::exp(s * z), u - 1);
}

inline std::vector<float> sample(std::int64_t n, const std::function<double(std::uint64_t)>& draw) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(draw(i)));
  return x;
}

/// Four standard errors of a share.
inline double four_errors(double p, double n) { return 4 * std::sqrt(p * (1 - p) / n); }

}  // namespace numemu::policies::test
