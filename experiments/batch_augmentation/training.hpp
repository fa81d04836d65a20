// Trainings of batch-augmentation: groups of networks, their settings, and accuracy by copies.
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

/// How often a training is tested on the way: the setting tests.
std::int64_t test_count(const Settings&);
/// Accuracy by copies in one format; `ratios` are what add_gradients() returned.
void add_training(const ExperimentRun&, const Group&, const std::string& net,
                  const std::string& format, const std::vector<double>& ratios, const net::Dataset&,
                  Conclusion&);

/// "resnet20.onnx" of a path.
inline std::string short_name(const std::string& net) {
  return net.substr(net.find_last_of('/') + 1);
}

}  // namespace numemu::experiments::batch_augmentation
