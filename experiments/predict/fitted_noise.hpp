// The closed form of a tensor's noise: one density for the tensor, integrated over the cells of the
// format.
#pragma once
#include <compare>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"
#include "emu/stats/fit.hpp"
#include "formats/analysis/error_moments.hpp"

namespace numemu::experiments {

struct TensorSource {
  std::string layer;
  net::Role role = net::Role::weight;
  friend auto operator<=>(const TensorSource&, const TensorSource&) = default;
};

/// A closed form of the noise, and whether its density was near enough to the sample to be trusted.
struct FittedNoise {
  std::string family;
  double ks_distance = 1, threshold = 0;
  bool accepted = false;
  ErrorMoments moments;
};

/// The format's step function and how to integrate over it.
struct Grid {
  std::vector<Cell> cells;
  bool stochastic = false;

  ErrorMoments moments(double scale, const Density&) const;
  ErrorMoments moments(double scale, const float* x, std::int64_t n) const;
};

/// Densities of the float32 tensors, fitted once. A tensor is cut into scale groups (equal parts
/// along axis 0); the largest magnitude of each group is a parameter, not a sample: a scale rule
/// puts it on the grid on purpose. All other elements, each divided by the root mean square of its
/// group's, share one density.
class FitCache {
 public:
  /// nullopt for a tensor that is constant but for its extremes.
  std::optional<FittedNoise> predict(const TensorSource&, const net::Tensor& x,
                                     const std::vector<float>& scales, const Grid&);
  /// A mixture: lines of elements whose root mean squares are within a quarter of an octave make a
  /// part, and all elements, each divided by the root mean square of its part, share one density.
  struct Part {
    double rms = 0, share = 0;  ///< of the elements
    float largest = 0;          ///< magnitude
  };
  struct Mixture {
    std::vector<Part> parts;  ///< lines of zeros are in none
    std::optional<stats::Fit> best;
  };
  /// Of lines of `width` elements, extremes too; without a density for a tensor that is constant.
  /// `taps` > 1: x is the tensor tap by tap (block_noise.hpp), whose lines are others.
  const Mixture& mixture(const TensorSource&, const float* x, std::int64_t n, std::int64_t width,
                         std::int64_t taps = 1);

 private:
  struct Group {
    float extreme = 0;  ///< the element of largest magnitude
    double rms = 0;     ///< of the others
  };
  struct TensorFit {
    std::vector<Group> groups;
    std::optional<stats::Fit> best;
  };
  const TensorFit& fit(const TensorSource&, const net::Tensor& x, std::int64_t groups);

  std::mutex mutex_;
  std::map<std::pair<TensorSource, std::int64_t>, TensorFit> fits_;
  std::map<std::tuple<TensorSource, std::int64_t, std::int64_t>, Mixture> mixtures_;
};

/// Adds `share` of moments measured in units of `unit` (means scale with it, squares with its
/// square).
void accumulate(ErrorMoments& total, const ErrorMoments& part, double share, double unit);

}  // namespace numemu::experiments
