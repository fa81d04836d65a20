// The settings of image-sizes, and the multiply-adds of training by image size, from shapes alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "emu/net/train/options.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::image_sizes {

/// The graph with images of that size as its input; layers and weights are the same.
net::Graph& at_size(net::Graph&, std::int64_t size);

/// Of one sample in a training step on images of `size` pixels: forward and the gradient of weights
/// take each weight once per position of the result, the gradient of inputs once per position of
/// the input, which the first layer does not need.
double sample_cost(const net::Graph&, std::int64_t size);

/// Of all steps of a training, by the sizes that its seed draws.
double training_cost(const net::Graph&, const net::Dataset&, const net::TrainOptions&);

/// A step at `size` over one at the size of the data set, `own`, if images cost by their area.
double area_cost(const net::TrainOptions&, std::int64_t own, std::int64_t size);
/// That ratio from the shapes of the layers.
double step_cost(const net::Graph&, const net::TrainOptions&, std::int64_t own, std::int64_t size);

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

}  // namespace numemu::experiments::image_sizes
