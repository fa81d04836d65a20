// Trainings of image-sizes: the settings, and accuracy by the size of test images.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::image_sizes {

struct Method {
  std::string name;
  net::ImageSizes sizes;
};
enum : std::size_t { kFixed, kSmall, kBatch, kCopies, kSmoothed };

/// The settings, read and checked.
struct Question {
  TrainTrial trial = {};  ///< of the first method in float32
  std::vector<Method> methods = {};
  std::vector<std::int64_t> tests = {};
  std::int64_t own = 0, norm_samples = 0;
};

/// What steps cost by image size, and what smoothing makes of their copies.
void add_steps(const ExperimentRun&, const net::Dataset&, const Question&, Conclusion&);
/// Weights and activations in a format.
Json recipe_in(const std::string& format);
/// Accuracy by the size of test images in a format.
void add_training(const ExperimentRun&, const net::Dataset&, const Question&,
                  const std::string& format, Conclusion&);

}  // namespace numemu::experiments::image_sizes
