// What training-recipes compares: events in curves of loss, and the noise of weight gradients.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments::training_recipes {

/// The shipped recipes that train.
inline constexpr const char* kRecipes =
    "bf16-train,fp8-delayed,fp8-current,fp8-current-h100,fp8-current-h100-promoted,fp8-block,"
    "fp8-block-h100,mxfp8-train,hfp8,e4m3-e5m2-chunked,mxfp4-sr,mxfp4-train,nvfp4-train";

/// Every recipe beside float32 over the seeds: training, noise of the first gradients, findings,
/// tables and the figures.
void add_recipes(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Where a curve of losses first leaves what is usual; -1: nowhere.
struct Events {
  std::int64_t spike = -1;       ///< last step of the first window whose mean loss is more than the
                                 ///< threshold above the least such mean before it
  std::int64_t not_finite = -1;  ///< first NaN or infinite loss
};
/// `window`: losses of a mean, at least 1. Single losses differ by what their batches differ.
Events events_of(const std::vector<double>& losses, double threshold, std::size_t window);

/// Noise-to-signal ratios of the gradients of all weights together, in one step.
struct GradientNoise {
  /// Of what the products of wgrad round alone: predicted from float32 tensors, and measured
  /// against the float32 products of the same operands.
  double predicted = 0, own = 0;
  double total = 0;  ///< of the gradients against those of the float32 network

  static void fields(auto& self, const auto& visit) {
    visit("predicted", self.predicted);
    visit("own", self.own);
    visit("total", self.total);
  }
};

/// In the step after `batch` samples were seen once (so that delayed scales have a history), on the
/// same samples and weights. The prediction of a layer is the expected square of what the rows t of
/// its product add up to: e_g x + g e_x + e_g e_x of the gradient g and the input x. The means of
/// the errors and of the numbers of a column add up over t; what is left of the errors is taken as
/// independent. A column of nearly equal gradients has nearly equal errors.
GradientNoise gradient_noise(const net::Graph&, const net::Dataset&, const policies::Recipe&,
                             std::int64_t batch, std::uint64_t seed);

/// What is expected of the error of every element.
struct ElementErrors {
  std::vector<double> mean, square;
};
/// Of an operand [lines, length] under a role, by the cells of its format at the scales of its
/// rule; zeros for float32. Of sr(n) the limit of many random bits.
ElementErrors element_errors(const std::optional<policies::RolePolicy>&, std::int64_t length,
                             const std::vector<float>& x);

}  // namespace numemu::experiments::training_recipes
