// A workbench small enough for tests: a random mlp on random images.
#pragma once
#include "experiments/engine/bench/workbench.hpp"

namespace numemu::experiments::testing {

/// Bright and dark blocks whose place depends on the label, so that accuracy means something.
net::Images small_images(std::int64_t count, std::uint32_t tensor);

net::Dataset small_dataset();

TrainedNet small_net();

}  // namespace numemu::experiments::testing
