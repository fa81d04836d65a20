// The smallest parameters that tell optimizers apart: a weight, a bias and one that is not trained.
#pragma once
#include <string>
#include <vector>

#include "emu/net/train/optimizer.hpp"

namespace numemu::net::test {

// One 1x1 weight, one bias, one running statistic.
struct Three {
  Parameter weight{"w", Tensor({1, 1}, 4), 1, 0, true}, bias{"b", Tensor({1}, 4), 0, 0, true},
      buffer{"r", Tensor({1}, 4), 0, 0, false};
  std::vector<const Parameter*> all{&weight, &bias, &buffer};
};

inline TrainOptions options_of(const std::string& optimizer, double decay) {
  TrainOptions options;
  options.optimizer = optimizer;
  options.weight_decay = decay;
  return options;
}

}  // namespace numemu::net::test
