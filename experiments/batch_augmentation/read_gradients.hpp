// Gradients of a network as its training has them: of single samples, and of batches in formats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/batch_augmentation/gradient_moments.hpp"
#include "experiments/batch_augmentation/questions.hpp"

namespace numemu::experiments::batch_augmentation {

inline constexpr std::int64_t kGroups = 20;  // of the jackknife

/// Gradients of samples, or mean gradients of batches, with so many copies.
struct OfCopies {
  std::int64_t copies = 0;
  MomentGroups groups;

  /// Of mean gradients: the variance, and the mean square.
  double variance(std::int64_t left_out) const { return moments(groups, 1, left_out).sigma2(); }
  double square(std::int64_t left_out) const { return moments(groups, 1, left_out).one; }
  static void fields(auto& self, const auto& visit) {
    visit("copies", self.copies);
    visit("groups", self.groups);
  }
};
/// In one format.
struct Measured {
  std::vector<OfCopies> by_copies;

  /// The rho that the first and the last variance have by the closed form.
  double rho(std::int64_t left_out) const {
    const OfCopies& last = by_copies.back();
    const auto m = static_cast<double>(last.copies);
    return (m * last.variance(left_out) / by_copies.front().variance(left_out) - 1) / (m - 1);
  }
  static void fields(auto& self, const auto& visit) { visit("by_copies", self.by_copies); }
};

struct ReadGradients {
  OfCopies single;                   ///< in float32
  std::vector<Measured> in_formats;  ///< of batches
};
/// As trials.
ReadGradients read_gradients(const ExperimentRun&, const Group&, const std::string& net,
                             const net::Dataset&);

}  // namespace numemu::experiments::batch_augmentation
