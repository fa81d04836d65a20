// Hyperspherical energy of neurons, and closed forms of what changes it: the mean of random
// neurons, rounding, and steps that are not quite rotations.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "formats/format.hpp"
#include "policies/update/base/orthogonal_step.hpp"

namespace numemu::experiments::orthogonal {

/// Sum over ordered pairs of rows i != j of |u_i - u_j|^-power, u = row / |row| (Liu et al. 2018,
/// 2021); 16 random neurons of 8 elements have about 181 at power 1.
double energy(const policies::Matrix& neurons, double power);

/// Its derivatives along every element: first, and second along the element alone.
struct EnergySlopes {
  double energy = 0;
  policies::Matrix first, second;
};
EnergySlopes energy_slopes(const policies::Matrix& neurons, double power);

/// The mean energy of n neurons whose directions are uniform in d > power + 1 dimensions:
/// n (n - 1) 2^(d-s-2) Gamma(d/2) Gamma((d-1-s)/2) / (sqrt(pi) Gamma(d-1-s/2)).
double expected_energy(std::int64_t n, std::int64_t d, double power);

/// A change of the energy, as a law of errors that are independent.
struct EnergyChange {
  double mean = 0, variance = 0;

  double mean_square() const { return mean * mean + variance; }
};

/// What rounding every element to nearest does: errors uniform over the spacing u of the format at
/// the element, of variance u^2 / 12, give sum(E'' u^2) / 24 and sum(E'^2 u^2) / 12. Throws Error
/// for formats that are not floating.
EnergyChange rounding_change(const policies::Matrix& neurons, const Format&, double power);
/// The elements rounded to nearest even, saturating.
policies::Matrix rounded(const policies::Matrix& neurons, const Format&);

/// M^T M - I of what a rule multiplies W by, M, from its series: -4 (A/2)^(k+2) for descent with an
/// even number k of iterations, 4 (A/2)^(k+3) with an odd one, to leading order; loewdin has
/// -A^2, k times under x -> -3/4 x^2 + x^3 / 4; others 0.
policies::Matrix left_over(const policies::RotationRule&, const policies::Matrix& a);
/// The change of the energy by such a step: half of <E', left over W>.
double series_change(const EnergySlopes&, const policies::Matrix& neurons,
                     const policies::Matrix& left);

/// The mean energy (settings neurons, elements, power, draws, repeats, here and below).
void add_random(const ExperimentRun&, Conclusion&);
/// Mean squares of its change by steps that are rounded (settings formats, turns, angle).
void add_rounding(const ExperimentRun&, Conclusion&);
/// What a step of each way changes in float64 (setting series_angle).
void add_ways(const ExperimentRun&, Conclusion&);

/// Whether the rule, "orthogonal(WAY,...)", turns neurons exactly up to rounding.
bool keeps_energy(std::string_view rule);

}  // namespace numemu::experiments::orthogonal
