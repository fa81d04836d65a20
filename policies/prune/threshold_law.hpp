// Thresholds from laws of gradient magnitudes: fits, and the effects of pruning in closed form.
#pragma once
#include <cstdint>
#include <limits>

#include "policies/mask_rule.hpp"

namespace numemu::policies {

// Sources: specs/sparsity.md, 'Stochastic pruning of activation gradients' (normal law), and
// specs/quantization.md, 'Neural gradients are near-lognormal'. Everything here consists of IEEE
// operations in a fixed order: a threshold has the same bits on every machine and for any number of
// threads.

/// The law of |g| over the elements that are not zero. A share of zeros is structural (ReLU) and
/// stays zero whatever is pruned.
struct MagnitudeLaw {
  Law law = Law::normal;
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
MagnitudeLaw fit_law(Law law, const float* x, std::int64_t n);

/// The law with its cut at the largest 1/300 of the non-zero elements: a lognormal law puts most of
/// its second moment where a tensor has no element, and its cosines come out too high (Chmiel et
/// al.'s code; specs/quantization.md). Any other law as it is.
MagnitudeLaw with_cut(const MagnitudeLaw& law, const float* x, std::int64_t n);

/// The threshold with the share p of the *non-zero* elements below it: sigma Phi^-1((1 + p) / 2),
/// or exp(mu + s Phi^-1(p)). 0 for p <= 0 and where the law is not usable; p < 1.
double threshold_below(const MagnitudeLaw& law, double p);
/// p such that of *all* elements a share is zero or below the threshold: (share - zeros) / (1 -
/// zeros); 0 where the structural zeros alone are more.
double share_of_nonzeros(const MagnitudeLaw& law, double share);

/// Throws Error unless the policy's share is inside (0, 1).
void require_share(const MaskPolicy& policy);

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
/// The threshold that leaves this share of all elements zero (in (0, 1)); 0 where the structural
/// zeros are as many already.
double threshold_for_zeros(Pruning pruning, const MagnitudeLaw& law, double zeros);

}  // namespace numemu::policies
