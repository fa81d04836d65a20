// Density and distribution of the standard normal law from IEEE operations alone: the same bits
// everywhere.
#pragma once

namespace numemu::experiments::stochastic_pruning::normal {

/// exp(-z^2/2) / sqrt(2 pi); 0 beyond |z| = 37, where it is below 1e-297.
double density(double z);
/// P(Z <= z), relative error below 1e-13 + 1e-16 z^2 in the lower tail too; 0 below -37.
double probability(double z);
/// P(|Z| < t), E[|Z|; |Z| < t] and E[Z^2; |Z| < t] for t >= 0, free of cancellation.
double within(double t);
double first_moment_within(double t);
double second_moment_within(double t);

}  // namespace numemu::experiments::stochastic_pruning::normal
