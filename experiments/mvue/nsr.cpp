// Quadrature by the trapezoidal rule after a substitution that makes the integrand die out on both
// sides: it converges then faster than any power of the step.
#include "experiments/mvue/nsr.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "policies/mask/mvue_variance.hpp"

namespace numemu::experiments::mvue {
namespace {

using policies::Estimator;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Distribution folded(const Distribution& law) {
  if (!law.name().starts_with("normal") && !law.name().starts_with("laplace") &&
      !law.name().starts_with("lognormal"))
    throw Error("a law of gradients: expected normal, laplace or lognormal:S, found " + law.name());
  return Distribution::parse(law.name(), true);
}

/// Laws below are folded: of magnitudes.
struct Node {
  double a, weight;
};

/// Expectations over a magnitude: sum of weight f(a). Lognormal: steps of its normal score. Others:
/// a = exp(t - exp(-t)) (Takahasi and Mori 1974).
std::vector<Node> nodes(const Distribution& law, double step) {
  std::vector<Node> out;
  const Density& density = law.density();
  constexpr double kTail = 8.3;  // beyond, less than 1e-16 of a normal law
  if (law.name().starts_with("|lognormal")) {
    const auto [p0, p1, p2] = density.moments(0, kInfinity);
    const double sigma = std::sqrt(portable::log(p2 / (p1 * p1)));
    // Weighed with a^2 the law is the same, 2 sigma further up.
    for (double z = -kTail; z <= kTail + 2 * sigma; z += step)
      out.push_back({portable::exp(sigma * z), normal::pdf(z) * step});
    return out;
  }
  for (double t = -3.7; t <= 3.9; t += step) {
    const double a = portable::exp(t - portable::exp(-t));
    out.push_back({a, density.pdf(a) * a * (1 + portable::exp(-t)) * step});
  }
  return out;
}

/// P(at least `least` of n independent events of probability p).
double at_least(int least, int n, double p) {
  double sum = 0;
  for (int k = least; k <= n; ++k) {
    double term = 1;
    for (int i = 0; i < k; ++i) term *= p * (n - i) / (i + 1);
    sum += term * portable::pow(1 - p, n - k);
  }
  return sum;
}

/// E a^power over the elements that greedy prunes.
double pruned_moment(const unit::Sparsity& pattern, const Distribution& law, int power) {
  double sum = 0;
  for (const Node& n : nodes(law, 1.0 / 64)) {
    const double above = law.density().moments(n.a, kInfinity).p0;
    sum += n.weight * portable::pow(n.a, power) * at_least(pattern.kept, pattern.group - 1, above);
  }
  return sum;
}

/// E max(a - b - c - d, 0)^2.
double excess_square(const Distribution& law) {
  const std::vector<Node> at = nodes(law, 1.0 / 8);
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t k = 0; k <= j; ++k) {
        const int orders = i == j && j == k ? 1 : i == j || j == k ? 3 : 6;
        const double weight = orders * at[i].weight * at[j].weight * at[k].weight;
        if (weight < 1e-18) continue;
        const double t = at[i].a + at[j].a + at[k].a;
        const auto [p0, p1, p2] = law.density().moments(t, kInfinity);
        sum += weight * (p2 - 2 * t * p1 + t * t * p0);
      }
    }
  }
  return sum;
}

/// E of the variance of an approximate 2:4 group, which grows as the square of a common factor.
double approx_variance(const Distribution& law) {
  constexpr double kNegligible = 1e-11;
  const std::vector<Node> at = nodes(law, 1.0 / 4);
  const double scale = law.density().moments(0, kInfinity).p2;
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double square = at[i].a * at[i].a;
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t k = 0; k <= j; ++k) {
        const double three = square * at[i].weight * at[j].weight * at[k].weight;
        if (three < kNegligible * scale) continue;
        for (std::size_t l = 0; l <= k; ++l) {
          if (three * at[l].weight < kNegligible * scale) continue;
          const std::array<std::size_t, 4> index = {i, j, k, l};
          std::array<float, 4> x{};
          int run = 1, orders = 24;  // 4! over the factorials of equal runs
          for (std::size_t e = 0; e < 4; ++e) {
            x[e] = static_cast<float>(at[index[e]].a / at[i].a);
            run = e > 0 && index[e] == index[e - 1] ? run + 1 : 1;
            orders /= run;
          }
          sum += orders * three * at[l].weight *
                 policies::estimator_variance(Estimator::approx, {2, 4}, x.data());
        }
      }
    }
  }
  return sum;
}

bool is(const unit::Sparsity& pattern, int kept, int group) {
  return pattern.kept == kept && pattern.group == group;
}

}  // namespace

std::string_view to_string(PruneMethod method) {
  constexpr std::string_view kNames[] = {"mvue", "mvue-approx", "random-unbiased", "greedy"};
  return kNames[static_cast<std::size_t>(method)];
}

MagnitudeMoments magnitude_moments(const Distribution& law) {
  const auto [p0, p1, p2] = folded(law).density().moments(0, kInfinity);
  return {p1, p2};
}

double greedy_shrink(const unit::Sparsity& pattern, const Distribution& law) {
  return 1 - pruned_moment(pattern, folded(law), 1) / magnitude_moments(law).first;
}

std::optional<double> predicted_nsr(PruneMethod method, const unit::Sparsity& pattern,
                                    const Distribution& law) {
  const Distribution magnitude = folded(law);
  const auto [first, second] = magnitude_moments(law);
  switch (method) {
    case PruneMethod::random:
      return static_cast<double>(pattern.group) / pattern.kept - 1;
    case PruneMethod::greedy:
      return pruned_moment(pattern, magnitude, 2) / second;
    case PruneMethod::approx:
      if (!is(pattern, 2, 4)) return {};
      return approx_variance(magnitude) / (4 * second);
    case PruneMethod::exact:
      break;
  }
  if (pattern.kept == pattern.group) return 0;
  if (is(pattern, 1, 2)) return first * first / second;
  if (is(pattern, 2, 4))  // E S^2 = 4 second + 12 first^2; any of the four may exceed the others
    return (6 * first * first - 2 * second + 2 * excess_square(magnitude)) / (4 * second);
  return {};
}

}  // namespace numemu::experiments::mvue
