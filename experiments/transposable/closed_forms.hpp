// The loss of pruning to N:M, as integrals and binomial sums (specs/sparsity.md 2b).
#pragma once

namespace numemu::experiments {

/// Of independent standard normal elements, the expected share of the sum of magnitudes that is
/// pruned when each group of `group` keeps its `kept` largest: an integral over the distribution of
/// order statistics, relative error below 1e-9. 1:2: 1 - 1 / sqrt 2.
double group_loss(int kept, int group);
/// The same of one group without end: 1 - exp(-q^2 / 2), q the quantile that half the magnitudes
/// are below, for a share of one half.
double half_loss();
/// The same of 2 x 2 tiles that keep a diagonal: P(|a| + |b| <= s) = erf(s / 2)^2.
double diagonal_loss();

/// With each element zero with probability `zeros`, independently: the probability that a group
/// holds more than `kept` others, and the expected share of all elements that has to be pruned
/// besides.
double violation_share(int kept, int group, double zeros);
double extra_share(int kept, int group, double zeros);

}  // namespace numemu::experiments
