// Gradients of a network as its training has them: of single samples, and of batches in formats.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"

namespace numemu::experiments::batch_augmentation {

/// Networks that share settings and a data set: those of "" are trained from the start, those of
/// "tuned_" are files of trained networks.
struct Group {
  std::string prefix;
  std::vector<std::string> nets;
  std::vector<std::int64_t> copies;  ///< 1 and others, ascending
  std::vector<std::string> formats;  ///< of the tensors in `roles`; float32 first
  std::vector<std::string> roles;
  net::Augmentation augment;

  bool trained_before() const { return !prefix.empty(); }
  /// Of one seed and one copy.
  TrainTrial trial(const Settings&, const std::string& net, const std::string& format) const;
};

/// "resnet20.onnx" of a path.
inline std::string short_name(const std::string& net) {
  return net.substr(net.find_last_of('/') + 1);
}

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
struct MeasuredCopies {
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
  OfCopies single;                         ///< in float32
  std::vector<MeasuredCopies> in_formats;  ///< of batches
};
/// As trials.
ReadGradients read_gradients(const ExperimentRun&, const Group&, const std::string& net,
                             const net::Dataset&);

/// The samples whose gradients are read: `single` ones, and `batches` of `batch`.
struct GradientPlan {
  std::int64_t single = 0, batch = 0, batches = 0;

  std::int64_t samples() const { return single + batch * batches; }
};
/// Of the settings gradient_samples, gradient_batch and gradient_batches.
GradientPlan gradient_plan(const Settings&);
/// The first training sample whose gradient is read: behind those of the training from the start.
std::int64_t first_sample(const Group&, const TrainTrial&, const net::Dataset&);
/// Throws Error for a network whose samples depend on each other, folded where it can be.
void require_single_gradients(const TrainTrial&, const net::Dataset&);

/// Variance of mean gradients by copies, predicted and measured, in every format. Returns the
/// predicted variance of each number of copies over that of one.
std::vector<double> add_gradients(const ExperimentRun&, const Group&, const std::string& net,
                                  const net::Dataset&, Conclusion&);
}  // namespace numemu::experiments::batch_augmentation
