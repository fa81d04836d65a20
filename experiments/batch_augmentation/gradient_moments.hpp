// The variance of mean gradients of samples with several copies each: the closed form, and what it
// reads, by U-statistics of single gradients with errors by jackknife.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "experiments/engine/judge.hpp"

namespace numemu::experiments::batch_augmentation {

/// E|g - mu|^2 of the mean g over `samples` samples with `copies` copies each: sigma2 is that of
/// one gradient, rho the correlation of two copies of a sample.
double mean_variance(double sigma2, double rho, double samples, double copies);

/// Sums over a group of samples, each of which has as many copies. Samples of all groups are
/// independent.
struct MomentGroup {
  std::int64_t samples = 0;
  double squares = 0;  ///< of |g|^2, the mean over a sample's copies
  double means = 0;    ///< of |m|^2, m the mean over a sample's copies
  double along = 0;    ///< <S, T>, S the sum of m over the group, T that over all groups
  double own = 0;      ///< |S|^2

  static void fields(auto& self, const auto& visit) {
    visit("samples", self.samples);
    visit("squares", self.squares);
    visit("means", self.means);
    visit("along", self.along);
    visit("own", self.own);
  }
};

/// Inner products of gradients; each is unbiased.
struct Moments {
  double one = 0;    ///< E|g|^2
  double same = 0;   ///< of two copies of a sample; NaN of one copy
  double other = 0;  ///< of two samples: |mu|^2

  double sigma2() const { return one - other; }
  double rho() const { return (same - other) / (one - other); }
};

using MomentGroups = std::vector<MomentGroup>;

inline constexpr std::int64_t kNone = -1;
/// Of all groups but one. At least two samples must be left.
Moments moments(const MomentGroups&, std::int64_t copies, std::int64_t left_out = kNone);

/// The statistic of all groups, with the error by leaving one out at a time.
Estimate estimate(std::int64_t groups, const std::function<double(std::int64_t left_out)>&);

/// Gradients as they come.
class GradientSums {
 public:
  explicit GradientSums(std::size_t groups) : groups_(groups), sums_(groups) {}
  /// A sample's gradients, one for each copy, all of one length.
  void add(std::size_t group, std::span<const std::vector<float>> copies);
  MomentGroups groups() const;

 private:
  MomentGroups groups_;                    // without `along` and `own`
  std::vector<std::vector<double>> sums_;  // S, by group
};

}  // namespace numemu::experiments::batch_augmentation
