// Training objectives by name: from logits and labels to a loss and its gradient.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/samples.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/storage/options.hpp"

namespace numemu::net {

/// An objective of emu/net/train/objectives/, where each file FILE.cpp defines `objective_FILE`.
struct Objective {
  /// The loss of every target, and with `gradient` that of `scale` * mean loss along the logits
  /// [batch, ..., classes]. Throws Error for targets that do not fit.
  using Evaluate = std::function<Classified(const Tensor& logits, const Targets& targets,
                                            Tensor* gradient, float scale)>;

  std::string_view name;
  Evaluate evaluate = nullptr;  ///< of a row with options null: `with` makes it
  /// Of an objective with options, which are arguments of its name: "label_smoothing(0.2)".
  std::unique_ptr<OptionSet> (*options)() = nullptr;
  Evaluate (*with)(const OptionSet&) = nullptr;
  TargetKind target = TargetKind::classes;  ///< what it compares with
};

/// Of a name or a name with arguments; `evaluate` is there. Throws Error with the nearest known
/// name, and for arguments that the objective does not take.
Objective find_objective(std::string_view text);
/// The text without arguments at the end that are defaults. Throws Error as find_objective().
std::string canonical_objective(std::string_view text);
std::vector<std::string> objective_names();

}  // namespace numemu::net
