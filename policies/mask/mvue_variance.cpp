// Where one probability is close to 1, its complement is summed from the others instead.
#include "policies/mask/mvue_variance.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace numemu::policies {
namespace {

using Group = std::array<double, unit::kMostGroup>;

struct Terms {
  Group p{};         ///< P(kept)
  Group variance{};  ///< of the elements
};

Group magnitudes(const unit::Sparsity& pattern, const float* x) {
  Group a{};
  for (int i = 0; i < pattern.group; ++i) a[i] = std::fabs(x[i]);
  return a;
}

/// N' times how far a falls short of S' / N', for the descending d[first..group): each of the N'
/// largest against a, then all the rest. So what nearly cancels is subtracted before it is rounded.
double shortage(const Group& d, std::size_t group, std::size_t first, std::size_t kept, double a) {
  double sum = 0;
  for (std::size_t j = group; j-- > first + kept;) sum += d[j];
  for (std::size_t j = first + kept; j-- > first;) sum += d[j] - a;
  return sum;
}

/// y_i is a_i where certain, else S' / N' with probability N' a_i / S': variance a_i (S' / N' -
/// a_i).
Terms exact_terms(const unit::Sparsity& pattern, const Group& a) {
  const auto group = static_cast<std::size_t>(pattern.group);
  Group d = a;
  std::sort(d.begin(), d.begin() + pattern.group, std::greater<>());
  const auto most = static_cast<std::size_t>(pattern.kept);
  std::size_t certain = 0;
  while (certain < most && shortage(d, group, certain, most - certain, d[certain]) <= 0) ++certain;
  Terms terms;
  if (certain == most) {
    // Equal to the last certain one is certain, too; what else is left is zero.
    for (std::size_t i = 0; i < group; ++i) terms.p[i] = a[i] >= d[most - 1] && a[i] > 0 ? 1 : 0;
    return terms;
  }
  const std::size_t kept = most - certain;
  double sum = 0;
  for (std::size_t j = group; j-- > certain;) sum += d[j];
  for (std::size_t i = 0; i < group; ++i) {
    const bool is_certain = certain > 0 && a[i] >= d[certain - 1];
    if (a[i] == 0) continue;
    terms.p[i] = is_certain ? 1 : static_cast<double>(kept) * a[i] / sum;
    terms.variance[i] =
        is_certain ? 0 : a[i] * shortage(d, group, certain, kept, a[i]) / static_cast<double>(kept);
  }
  return terms;
}

/// Sum of all but i and j (which may be equal), ascending index.
double sum_without(const Group& a, int group, int i, int j) {
  double sum = 0;
  for (int k = 0; k < group; ++k) sum += k == i || k == j ? 0 : a[k];
  return sum;
}

/// p_i = t_i (1 + sum of t_j / (1 - t_j)), 1 - p_i = sum of t_j (1 - t_i - t_j) / (1 - t_j), both
/// over j != i with t = a / S.
Terms approx_terms(const unit::Sparsity& pattern, const Group& a) {
  const int group = pattern.group;
  Terms terms;
  const double sum = sum_without(a, group, -1, -1);
  const auto present = std::count_if(a.begin(), a.end(), [](double v) { return v > 0; });
  for (int i = 0; i < group; ++i) {
    if (a[i] == 0) continue;
    if (present <= 2) {
      terms.p[i] = 1;
      continue;
    }
    double more = 1, missed = 0;
    for (int j = 0; j < group; ++j) {
      if (j == i || a[j] == 0) continue;
      const double ratio = a[j] / sum_without(a, group, j, j);
      more += ratio;
      missed += ratio * (sum_without(a, group, i, j) / sum);
    }
    terms.p[i] = a[i] / sum * more;
    terms.variance[i] = a[i] * (missed / more) * sum;
  }
  return terms;
}

Terms terms_of(Estimator estimator, const unit::Sparsity& pattern, const Group& a) {
  if (estimator == Estimator::exact) return exact_terms(pattern, a);
  if (estimator == Estimator::approx) return approx_terms(pattern, a);
  Terms terms;
  for (int i = 0; i < pattern.group; ++i) {
    terms.p[i] = static_cast<double>(pattern.kept) / pattern.group;
    terms.variance[i] = a[i] * a[i] * (pattern.group - pattern.kept) / pattern.kept;
  }
  return terms;
}

/// How much of the circle [0, 1) the arcs [from, to) of two elements share, their positions taken
/// modulo 1.
double shared_arc(double from_i, double to_i, double from_j, double to_j) {
  double shared = 0;
  for (int turn = -unit::kMostGroup; turn <= unit::kMostGroup; ++turn)
    shared += std::max(0.0, std::min(to_i, to_j + turn) - std::max(from_i, from_j + turn));
  return shared;
}

std::vector<double> joint_of(Estimator estimator, const unit::Sparsity& pattern, const Group& a,
                             const Terms& terms) {
  const int group = pattern.group;
  std::vector<double> joint(static_cast<std::size_t>(group) * group);
  // Certain elements turn the circle by a whole; they need no place on it.
  Group to{};
  double turned = 0;
  for (int i = 0; i < group; ++i) to[i] = turned += terms.p[i] < 1 ? terms.p[i] : 0;
  const double sum = sum_without(a, group, -1, -1);
  const auto present = std::count_if(a.begin(), a.end(), [](double v) { return v > 0; });
  const auto both = [&](int i, int j) {
    const double pi = terms.p[i], pj = terms.p[j];
    if (estimator == Estimator::random)
      return pi * (pattern.kept - 1) / std::max(1, pattern.group - 1);
    if (pi == 0 || pj == 0) return 0.0;
    if (estimator == Estimator::approx && present > 2)
      return a[i] / sum * a[j] / sum_without(a, group, i, i) +
             a[j] / sum * a[i] / sum_without(a, group, j, j);
    if (pi == 1 || pj == 1) return pi * pj;
    return shared_arc(to[i] - pi, to[i], to[j] - pj, to[j]);
  };
  for (int i = 0; i < group; ++i) {
    for (int j = 0; j < group; ++j)
      joint[static_cast<std::size_t>(i) * group + j] = i == j ? terms.p[i] : both(i, j);
  }
  return joint;
}

}  // namespace

std::vector<double> inclusion_probabilities(Estimator estimator, const unit::Sparsity& pattern,
                                            const float* x) {
  const Terms terms = terms_of(estimator, pattern, magnitudes(pattern, x));
  return {terms.p.begin(), terms.p.begin() + pattern.group};
}

double estimator_variance(Estimator estimator, const unit::Sparsity& pattern, const float* x) {
  const Terms terms = terms_of(estimator, pattern, magnitudes(pattern, x));
  double sum = 0;
  for (int i = 0; i < pattern.group; ++i) sum += terms.variance[i];
  return sum;
}

std::vector<double> joint_probabilities(Estimator estimator, const unit::Sparsity& pattern,
                                        const float* x) {
  const Group a = magnitudes(pattern, x);
  return joint_of(estimator, pattern, a, terms_of(estimator, pattern, a));
}

std::array<double, 6> pair_probabilities(const std::array<double, 4>& ascending) {
  const auto [a1, a2, a3, a4] = ascending;
  const double three = a1 + a2 + a3, sum = three + a4;
  if (a4 >= three) {
    if (three == 0) return {0, 0, 0, 0, 0, 1};
    return {0, 0, a1 / three, 0, a2 / three, a3 / three};
  }
  const double largest_two = (a3 + a4 - a1 - a2) / sum;
  if (2 * a1 + a3 - a4 > 0)
    return {0,
            (2 * a1 + a3 - a4) / (2 * sum),
            (2 * a1 - a3 + a4) / (2 * sum),
            (2 * a2 + a3 - a4) / (2 * sum),
            (2 * a2 - a3 + a4) / (2 * sum),
            largest_two};
  return {0, 0, 2 * a1 / sum, (three - a4) / sum, (a2 - a1 - a3 + a4) / sum, largest_two};
}

std::vector<double> estimator_covariance(Estimator estimator, const unit::Sparsity& pattern,
                                         const float* x) {
  const int group = pattern.group;
  const Group a = magnitudes(pattern, x);
  const Terms terms = terms_of(estimator, pattern, a);
  std::vector<double> covariance = joint_of(estimator, pattern, a, terms);
  for (int i = 0; i < group; ++i) {
    for (int j = 0; j < group; ++j) {
      double& c = covariance[static_cast<std::size_t>(i) * group + j];
      const double both = terms.p[i] * terms.p[j];
      c = i == j ? terms.variance[i] : both == 0 ? 0 : double{x[i]} * x[j] * (c / both - 1);
    }
  }
  return covariance;
}

double product_variance(Estimator estimator, const unit::Sparsity& pattern, const float* x,
                        const float* weight, std::int64_t groups) {
  const int group = pattern.group;
  double sum = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const float* const w = weight + g * group;
    const std::vector<double> c = estimator_covariance(estimator, pattern, x + g * group);
    for (int i = 0; i < group; ++i) {
      for (int j = 0; j < group; ++j)
        sum += double{w[i]} * w[j] * c[static_cast<std::size_t>(i) * group + j];
    }
  }
  return sum;
}

}  // namespace numemu::policies
