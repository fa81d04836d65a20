// Fits a distribution to a tensor: maximum likelihood for four families, with their distance from
// the sample.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/analysis/density.hpp"

namespace numemu::stats {

/// sup over x of |F_n(x) - F(x)|, exact: ties and the density's jump at zero are compared on both
/// sides. `sorted` is ascending and not empty.
double ks_distance(const std::vector<float>& sorted, const Density& density);

/// 0.03 + 1.36 / sqrt(n): the 95 % point of the distance of n values from their own law, plus the
/// model error that still predicts quantization noise within half a decibel.
double ks_threshold(std::int64_t n);

/// A fitted density and how far it is from the sample.
struct Fit {
  std::string family;  ///< normal, laplace, lognormal, uniform
  std::shared_ptr<const Density>
      density;  ///< includes the mass at zero and the truncation at the sample's extremes
  double ks_distance = 1;  ///< sup |F_n - F|
  double threshold = 0;    ///< 0.03 + 1.36 / sqrt(n): accepted at or below it
  std::int64_t n = 0;      ///< values the fit and its distance used
  bool accepted() const { return ks_distance <= threshold; }
};

/// At most this many values are fitted; of a larger tensor, that many at even distances (see
/// fit.cpp).
constexpr std::int64_t kFitSample = std::int64_t{1} << 20;

/// Fits all families to x[0..n) and returns them by ascending distance (the best first). Exact
/// zeros beyond 5 % of the sample become a point mass, the rest is fitted; every family is
/// truncated at the sample's range. Samples of one sign (zeros aside) also try the half-normal and
/// the exponential law, which compete as normal and laplace: the closer of the two represents its
/// family. A family that does not exist for the sample (no spread) is left out; a sample that is
/// constant, has fewer than two values or any that is not finite gives an empty list.
std::vector<Fit> fit_all(const float* x, std::int64_t n);

}  // namespace numemu::stats
