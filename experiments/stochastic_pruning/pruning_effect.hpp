// What pruning below a threshold does to a gradient: in closed form under the laws of its
// magnitudes, measured beside its expectation from the elements, and shared between the layers of a
// network; the questions of stochastic-pruning and ways to train, as masks of recipes.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "formats/analysis/magnitude_law.hpp"
#include "formats/random.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::stochastic_pruning {

// IEEE operations in a fixed order, as in magnitude_law.hpp: the same bits on every machine.

/// The law with its cut at the largest 1/300 of the non-zero elements: a lognormal law puts most of
/// its second moment where a tensor has no element, and its cosines come out too high (Chmiel et
/// al.'s code). Any other law as it is.
MagnitudeLaw with_cut(const MagnitudeLaw& law, const float* x, std::int64_t n);

enum class Pruning : std::uint8_t { stochastic, hard };

/// What pruning at a threshold does to a tensor of that law.
struct PruningEffect {
  double below = 0;    ///< share of the non-zero elements below the threshold
  double zeros = 0;    ///< share of all elements that are zero afterwards, structural ones too
  double density = 1;  ///< 1 - zeros
  double error = 0;    ///< E[(y - g)^2] / E[g^2]: stochastic, the variance added
  double cosine = 1;   ///< of g and y in expectation: 1 / sqrt(1 + error), hard sqrt(1 - error)
};

PruningEffect effect(Pruning pruning, const MagnitudeLaw& law, double threshold);
/// E[g^2] over all elements.
double second_moment(const MagnitudeLaw& law);

/// The largest threshold whose effect keeps at least this cosine (in (0, 1)).
double threshold_for_cosine(Pruning pruning, const MagnitudeLaw& law, double cosine);

// Measured effects of pruning below a threshold, beside their expectations from the elements.

/// Sums over one tensor. "expected": given the elements, over the draws of the pruning alone.
struct PrunedTensor {
  std::int64_t n = 0, below = 0, zeros = 0;
  double squares = 0, pruned_squares = 0, products = 0, error = 0;
  Estimate expected_zeros, expected_error;  ///< counts and sums of squares, with deviations

  double zero_share() const { return static_cast<double>(zeros) / static_cast<double>(n); }
  double relative_error() const { return squares > 0 ? error / squares : 0; }
  double cosine() const {
    return pruned_squares > 0 ? products / std::sqrt(squares * pruned_squares) : 1;
  }
};

PrunedTensor prune_and_measure(Pruning pruning, const float* x, std::int64_t n, double threshold,
                               const RandomSource& random);

/// Distance of zero shares on real gradients that a law is trusted with.
inline constexpr double kLawHolds = 0.02;

// Distributes a total share of zeros over the layers of a network: one threshold per layer, from
// their laws alone.

/// A layer's gradient: its law, its elements, and what a unit of its error costs.
struct LayerMagnitudes {
  MagnitudeLaw law;
  double elements = 1;
  double weight = 1;  ///< 1: errors add as they are; 1 / second_moment(law): relative to each layer
};

/// Over all layers at these thresholds: share of elements that are zero, and the weighted sum of
/// squared errors over the weighted sum of squares.
struct TotalEffect {
  double zeros = 0, error = 0;
};
TotalEffect total_effect(Pruning pruning, const std::vector<LayerMagnitudes>& layers,
                         const std::vector<double>& thresholds);

/// Every layer at the same cosine, in (0, 1).
std::vector<double> thresholds_at_cosine(Pruning pruning,
                                         const std::vector<LayerMagnitudes>& layers, double cosine);
/// Every layer at the same cosine, that which leaves the share `zeros` of all elements zero.
std::vector<double> thresholds_of_equal_cosine(Pruning pruning,
                                               const std::vector<LayerMagnitudes>& layers,
                                               double zeros);
/// The least weighted sum of squared errors with the share `zeros` of all elements zero. Moving a
/// threshold costs d error / d zeros = tau^2 under any law, for stochastic pruning (m / (m /
/// tau^2), m = E[|g|; |g| < tau]) and for hard pruning (tau^2 f / f) alike; so the optimum has
/// weight * tau^2 the same everywhere: with equal weights one threshold for the whole network.
std::vector<double> thresholds_of_least_error(Pruning pruning,
                                              const std::vector<LayerMagnitudes>& layers,
                                              double zeros);

/// Numbers of a known law: closed forms against samples, and the normal law where it does not hold
/// (settings samples, shares).
void add_synthetic(const ExperimentRun&, Conclusion&);

/// A gradient of float32 training in the middle of the run.
struct ObservedLayer {
  std::string layer;
  LayerMagnitudes magnitudes;
};

/// Gradients of a network in float32 training: both laws against what pruning does, layer by layer
/// and step by step, and thresholds predicted from earlier steps (settings share, history,
/// observations). Returns the laws of the setting `plan_law`, in the order of forward.
std::vector<ObservedLayer> add_gradients(const ExperimentRun&, const std::string& net,
                                         const net::Dataset&, Conclusion&);

/// Methods with one of these names lie on one line of the chart.
inline constexpr const char* kDense = "dense";
inline constexpr const char* kStochastic = "stochastic";
inline constexpr const char* kHard = "hard";
inline constexpr const char* kInput = "stochastic, of what dgrad gives";
inline constexpr const char* kShared = "shared by layers";

/// One way to train; masks are those of the role gradient.
struct Method {
  std::string name, series;
  std::string mask;                           ///< of every layer; "" none
  std::map<std::string, std::string> layers;  ///< instead of it
  double share = 0;                           ///< 0: not one of the sweep over p

  const std::string& mask_of(const std::string& layer) const {
    const auto found = layers.find(layer);
    return found == layers.end() ? mask : found->second;
  }
};

/// Dense first; then the sweeps, pruning of what dgrad gives, and the plans, equal p first
/// (settings shares, share, plan_share, history).
std::vector<Method> methods_of(const ExperimentRun&, const std::vector<ObservedLayer>&);
Json recipe_of(const Method&);

/// What every plan shares between the layers: the zeros that the setting plan_share leaves as the p
/// of all of them.
double planned_zeros(const ExperimentRun&, const std::vector<ObservedLayer>&);

}  // namespace numemu::experiments::stochastic_pruning
