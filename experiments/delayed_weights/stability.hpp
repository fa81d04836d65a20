// Where gradient descent with momentum on a quadratic is stable if its gradients are n updates old.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::delayed_weights {

/// SGD that adds v(t+1) = momentum v(t) - rate g, g the gradient of the weights `delay` updates
/// ago.
struct Descent {
  int delay = 0;  ///< 0 to 16
  double momentum = 0;

  std::string name() const;  ///< "delay 1, momentum 0.9"
};

/// On a curvature of eta / rate a weight follows w(t+1) = (1 + momentum) w(t) - momentum w(t-1) -
/// eta w(t-delay). The polynomial of its geometric solutions, the highest power first, of degree
/// max(2, delay + 1).
std::vector<double> characteristic(const Descent&, double eta);

/// Whether all roots of a polynomial, the highest power first, lie inside of a circle around 0: the
/// conditions of Jury (1962), by the recursion of Schur and Cohn.
bool roots_within(std::vector<double> polynomial, double radius = 1);

/// The largest magnitude of a root, to the last bits, for roots within 2^10: what a weight is
/// multiplied by in a step, in the long run.
double spectral_radius(const std::vector<double>& polynomial);

/// The eta up to which a descent is stable: 2 (1 + momentum) without delay and 1 - momentum for a
/// delay of 1, else by bisection of roots_within(). Roots leave the unit circle only as eta grows
/// (on it r^(delay-1) (r - 1)(r - momentum) = -eta has a positive real part of d ln eta / d ln r),
/// so that there is one such eta.
double stability_limit(const Descent&);
/// That eta by bisection for every delay.
double jury_limit(const Descent&);

/// What became of a weight that began at 1.
struct Course {
  /// Largest magnitude in the first and the last tenth of the steps; infinite beyond float32.
  double first = 0, last = 0;

  bool decays() const { return last < first / 2; }
  bool grows() const { return std::isinf(last) || last > 2 * first; }
};

/// Runs the optimizer sgd under the update rule delayed(n), one weight for each eta, in float32.
std::vector<Course> descend(const Descent&, std::span<const double> etas, std::int64_t steps);
/// The steps in which the slower of two etas about a limit changes by a factor of e^3.
std::int64_t telling_steps(const Descent&, double below, double above);

// The largest rate at which training stays near a minimum, by bisection.

/// Octaves of the rates between which the largest stable one is bisected, and how far.
inline constexpr double kLowestRate = -16, kHighestRate = 12, kRateResolution = 0.25;
/// A training has left its minimum where a step's loss exceeds that of the first so many times.
inline constexpr double kDiverged = 2;

struct StableRate {
  double octaves = 0;  ///< log2 of the rate, to half of the resolution; NaN outside the bounds

  static void fields(auto& self, const auto& visit) { visit("octaves", self.octaves); }
};

/// Of the trial's training, which begins at the minimum that `before` epochs of adam-l2 in float32
/// reach with the same weight decay: without decay the cross-entropy of images that a network has
/// learnt goes to zero and takes the curvature with it, so that a training that began beyond its
/// limit settles. The trial's weight decay is to be that of its loss (sgd).
StableRate largest_stable_rate(TrainTrial, const net::Dataset&, std::int64_t before);

}  // namespace numemu::experiments::delayed_weights
