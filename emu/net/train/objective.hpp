// Training objectives by name: from logits and labels to a loss and its gradient.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/targets.hpp"
#include "emu/net/ops/losses.hpp"

namespace numemu::net {

/// An objective of emu/net/train/objectives/, where each file FILE.cpp defines `objective_FILE`.
struct Objective {
  std::string_view name;
  /// The loss of every target, and with `gradient` that of `scale` * mean loss along the logits
  /// [batch, ..., classes]. Throws Error for targets that do not fit.
  Classified (*evaluate)(const Tensor& logits, const Targets& targets, Tensor* gradient,
                         float scale);
};

/// Throws Error with the nearest known name.
const Objective& find_objective(std::string_view name);
std::vector<std::string> objective_names();

}  // namespace numemu::net
