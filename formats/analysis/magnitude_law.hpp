// The laws of gradient magnitudes under which thresholds are chosen, and their fits.
#pragma once
#include <cstdint>
#include <limits>

namespace numemu {

// Sources: Ye et al., Accelerating CNN Training by Pruning Activation Gradients (normal law), and
// Chmiel et al., Neural gradients are near-lognormal, ICLR 2021; docs/experiments/
// stochastic-pruning.md. Everything here consists of IEEE operations in a fixed order: a threshold
// has the same bits on every machine and for any number of threads.

/// The law that a threshold is computed under.
enum class ThresholdLaw : std::uint8_t { normal, lognormal };

/// The law of |g| over the elements that are not zero. A share of zeros is structural (ReLU) and
/// stays zero whatever is pruned.
struct MagnitudeLaw {
  ThresholdLaw law = ThresholdLaw::normal;
  double scale = 0;    ///< normal: sigma; lognormal: e^mu, the median of |g|
  double spread = 0;   ///< lognormal: s, the standard deviation of ln |g|
  double nonzero = 1;  ///< share of the elements that are not zero
  /// lognormal: second moments count |g| up to exp(mu + cut s) only.
  double cut = std::numeric_limits<double>::infinity();

  /// Whether there is something to prune: a finite positive scale.
  bool usable() const { return scale > 0 && scale * 0 == 0 && spread * 0 == 0; }
};

/// The normal law by its mean magnitude, sigma = sqrt(pi/2) mean|g|; the lognormal law by mean and
/// standard deviation (over n) of ln |g|. Both over the non-zero elements. Not usable() where all
/// are zero or one is not finite.
MagnitudeLaw fit_law(ThresholdLaw law, const float* x, std::int64_t n);

/// The threshold with the share p of the *non-zero* elements below it: sigma Phi^-1((1 + p) / 2),
/// or exp(mu + s Phi^-1(p)). 0 for p <= 0 and where the law is not usable; p < 1.
double threshold_below(const MagnitudeLaw& law, double p);

}  // namespace numemu
