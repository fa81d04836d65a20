#include "experiments/transposable/closed_forms.hpp"

#include <cmath>

#include "emu/stats/laws.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace {

using stats::binomial_probability;

constexpr double kPi = 3.14159265358979323846;

/// Mean of |x| of a standard normal x.
double mean_magnitude() { return std::sqrt(2 / kPi); }

/// Simpson's rule over what matters of a normal law's half.
template <class Term>
double integral(Term&& term) {
  constexpr int kSteps = 4000;
  constexpr double kEnd = 10, kStep = kEnd / kSteps;
  double sum = term(0.0) + term(kEnd);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 0 ? 2 : 4) * term(i * kStep);
  return sum * kStep / 3;
}

}  // namespace

double group_loss(int kept, int group) {
  // An element is pruned if fewer than group - kept of the others are smaller.
  const double lost = integral([&](double x) {
    const double smaller = portable::erf(x / std::sqrt(2.0));
    double chance = 0;
    for (int i = 0; i < group - kept; ++i) chance += binomial_probability(group - 1, i, smaller);
    return x * std::sqrt(2 / kPi) * portable::exp(-x * x / 2) * chance;
  });
  return lost / mean_magnitude();
}

double half_loss() {
  const double q = normal::quantile(0.75);
  return 1 - portable::exp(-q * q / 2);
}

double diagonal_loss() {
  const double larger = integral([](double s) {
    const double both = portable::erf(s / 2);
    return 1 - both * both * both * both;
  });
  return 1 - larger / (4 * mean_magnitude());
}

double violation_share(int kept, int group, double zeros) {
  double sum = 0;
  for (int i = kept + 1; i <= group; ++i) sum += binomial_probability(group, i, 1 - zeros);
  return sum;
}

double extra_share(int kept, int group, double zeros) {
  double sum = 0;
  for (int i = kept + 1; i <= group; ++i)
    sum += (i - kept) * binomial_probability(group, i, 1 - zeros);
  return sum / group;
}

}  // namespace numemu::experiments
