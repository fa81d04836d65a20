// Pruning of gradients in mvue: its noise in closed form, tensors pruned many times, recipes, and
// the questions, each of which adds its tables, findings, charts and sentences.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/random.hpp"
#include "formats/storage/json.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::experiments {
struct LayerGradient;
}

namespace numemu::experiments::mvue {

/// Sums over the groups of a tensor x, y its pruned form, e = y - x. Standard errors come from the
/// spread over groups, which are pruned independently.
struct PrunedSample {
  Estimate projection;  ///< <mean y, x> / <x, x>: 1 without bias
  Estimate variance;    ///< mean of |e|^2 over its closed form
  Estimate mean;  ///< D times |mean e|^2 of D draws over the closed form of |e|^2: 1 without bias,
                  ///< else it grows with D
  Estimate nsr;   ///< mean of |e|^2 over |x|^2, as an estimate for the law that x is of
  Estimate shrink;             ///< sum of |y| over sum of |x|, the same
  double closed_nsr = 0;       ///< closed form of |e|^2 over |x|^2
  double effective = 0;        ///< groups that carry |x|^2: (sum s)^2 / sum s^2
  double effective_error = 0;  ///< groups that carry the closed form of |e|^2, the same
};

/// [channels, rows]: groups of neighbours run along the rows, whole ones only.
std::vector<float> along_rows(const LayerGradient&);
/// x[0..count) in whole groups, all finite, pruned `draws` times (rules without chance: once).
PrunedSample prune_and_measure(const policies::MaskPolicy&, const std::vector<float>& x,
                               std::int64_t draws, const RandomSource&);

/// With fewer groups the error of a figure cannot be estimated.
inline constexpr double kFewestGroups = 200;

/// A closed form (engine/judge.hpp), undecided below kFewestGroups.
Finding judged(std::string what, double predicted, const Estimate& measured, double effective,
               double tolerance = NAN);

/// "0.9987 +- 0.0004": with the 95 % half-width.
std::string shown(const Estimate&);

// Noise-to-signal ratios of N:M pruning under the named laws, by closed forms and quadrature.

enum class PruneMethod : std::uint8_t { exact, approx, random, greedy };
/// "mvue", "mvue-approx", "random-unbiased", "greedy": the names of the mask rules.
std::string_view to_string(PruneMethod);

/// E sum (y - x)^2 / E sum x^2 over groups of independent elements under a law: normal, laplace or
/// lognormal:S (Error for others).
///
/// exact 1:2: (E a)^2 / E a^2. exact 2:4: of a group S^2 / 2 - sum a^2, plus (a - T)^2 / 2 where
/// one a exceeds the sum T of the others; three integrals. approx: four integrals. random: M / N
/// - 1. greedy, any N:M: one integral over an element and how likely N others beat it. Relative
/// error about 1e-6. Empty for the other patterns of exact.
std::optional<double> predicted_nsr(PruneMethod, const unit::Sparsity&, const Distribution&);

/// E of the sum of what greedy keeps over E of the sum of all magnitudes: what remains of an
/// average in which every element counts with its sign.
double greedy_shrink(const unit::Sparsity&, const Distribution&);

/// E |x| and E x^2.
struct MagnitudeMoments {
  double first, second;
};
MagnitudeMoments magnitude_moments(const Distribution&);

// Recipes that prune the gradients of a network, and its weights.

/// What is pruned, by mask texts; an empty one prunes nothing.
struct Pruning {
  std::string dgrad, wgrad;     ///< the gradient as that product reads it: "mvue(1:2)"
  std::string weight = {};      ///< "transposable(2:4,refresh=40)"
  std::string activation = {};  ///< "greedy(2:4)"
};

/// A float32 recipe with these masks everywhere but in the last layer of the network; activations
/// are pruned where they meet a weight. Gradients are pruned along batch and space; tails as if
/// zeros followed.
Json recipe_of(const Pruning&, const net::Graph&);

/// Numbers of known laws: mean, variance and noise-to-signal ratio against closed forms (settings
/// samples, draws).
void add_laws(const ExperimentRun&, Conclusion&);

/// Gradients of networks, layer by layer, grouped along batch and space: mean and variance against
/// closed forms (settings gradient_nets, gradient_train, gradient_batch,
/// draws).
void add_gradients(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// How a gradient changes that is pruned in every dgrad it passes (settings propagation_net,
/// gradient_batch, passes).
void add_propagation(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// The error of dW averaged over batches: noise averages out, bias stays (settings batches,
/// repeats).
void add_averaging(const ExperimentRun&, Conclusion&);

/// Networks trained with pruned gradients (settings net, optimizer, epochs, batch,
/// train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::mvue
