// What the steps of a tuning run share: a trained network that is made fit for a recipe.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "emu/net/graph.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/fixed_ranges.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// The state that steps change. Everything here that is not const is stored between two parts of a
/// step and restored after an interruption, bit for bit.
struct Tuning {
  /// The network that is tuned: its parameters in float32, which the recipe rounds when it reads
  /// them. Steps change values of parameters, never nodes. Batch normalisation is folded into the
  /// layers before it, or not, as the user asked.
  net::Graph graph;
  /// The float32 network that `graph` is compared with: the same nodes and parameters. Steps leave
  /// it alone, unless they keep its function: these change both (equalisation).
  net::Graph reference;
  /// Ranges that inference will use instead of calibrating. Complete for activations with static
  /// scales before the first step; those of weights are empty until a step sets them (then the
  /// scale rule reads the tuned weight).
  FixedRanges ranges;

  /// Without ranges of its own; `where` is its file, which starts messages.
  const Recipe& recipe;
  const std::string where;
  /// The only samples that steps may read: `samples` of them, batch(first, count) gives the inputs
  /// [count, ...] of the graph. for_each() passes over all.
  const Calibration calibration;
  /// Where a step draws random bits: stream and names as docs/random.md has them.
  const std::uint64_t seed = 0;
};

/// The recipe with the current ranges.
Recipe tuned_recipe(const Tuning&);
/// Numerics under which `graph` runs as eval will run it: frozen, each weight rounded once, when it
/// is first read. Made anew after weights or ranges change. The tuning state outlives them.
std::unique_ptr<RecipeNumerics> tuned_numerics(const Tuning&);
/// tuned_numerics(), static scales that no range fixes being those of this network.
std::unique_ptr<RecipeNumerics> tuned_numerics(const Tuning&, const net::Graph& calibrated);

/// Inference steps for numerics (net::Step): samples first .. first + count - 1 of calibration.
class CalibrationStep {
 public:
  CalibrationStep(std::int64_t first, std::int64_t count);
  operator const net::Step&() const { return step_; }

 private:
  std::vector<std::int64_t> ids_;
  net::Step step_;
};

/// The ranges of static activation scales that calibration gives a graph in float32.
FixedRanges calibrated_ranges(const Recipe&, const net::Graph&, const Calibration&);
/// Gives ranges to the activations that have static scales under the recipe and no range yet: what
/// the recipe's calibration gives for the reference.
void complete_ranges(Tuning&);

/// The parameter of that name. Throws Error naming it.
net::Tensor& parameter_of(net::Graph&, std::string_view name);

}  // namespace numemu::policies
