// Parts of the experiment batch-augmentation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
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

/// The samples whose gradients are read: `single` ones, and `batches` of `batch`.
struct GradientPlan {
  std::int64_t single = 0, batch = 0, batches = 0;

  std::int64_t samples() const { return single + batch * batches; }
};
/// Of the settings gradient_samples, gradient_batch and gradient_batches.
GradientPlan gradient_plan(const Settings&);
/// How often a training is tested on the way: the setting tests.
std::int64_t test_count(const Settings&);
/// The first training sample whose gradient is read: behind those of the training from the start.
std::int64_t first_sample(const Group&, const TrainTrial&, const net::Dataset&);
/// Throws Error for a network whose samples depend on each other, folded where it can be.
void require_single_gradients(const TrainTrial&, const net::Dataset&);

/// Variance of mean gradients by copies, predicted and measured, in every format. Returns the
/// predicted variance of each number of copies over that of one.
std::vector<double> add_gradients(const ExperimentRun&, const Group&, const std::string& net,
                                  const net::Dataset&, Conclusion&);
/// Accuracy by copies in one format; `ratios` are what add_gradients() returned.
void add_training(const ExperimentRun&, const Group&, const std::string& net,
                  const std::string& format, const std::vector<double>& ratios, const net::Dataset&,
                  Conclusion&);

/// "resnet20.onnx" of a path.
inline std::string short_name(const std::string& net) {
  return net.substr(net.find_last_of('/') + 1);
}

}  // namespace numemu::experiments::batch_augmentation
