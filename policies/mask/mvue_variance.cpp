// Where one probability is close to 1, its complement is summed from the others instead.
#include "policies/mask/mvue_variance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace numemu::policies {
namespace {

/// A number for each element: its magnitude, its variance.
using Group = std::array<double, unit::kMostGroup>;

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
Group exact_variances(const unit::Sparsity& pattern, const Group& a) {
  const auto group = static_cast<std::size_t>(pattern.group);
  Group d = a;
  std::sort(d.begin(), d.begin() + pattern.group, std::greater<>());
  const auto most = static_cast<std::size_t>(pattern.kept);
  std::size_t certain = 0;
  while (certain < most && shortage(d, group, certain, most - certain, d[certain]) <= 0) ++certain;
  Group variance{};
  // Equal to the last certain one is certain, too; what else is left is zero.
  if (certain == most) return variance;
  const std::size_t kept = most - certain;
  for (std::size_t i = 0; i < group; ++i) {
    const bool is_certain = certain > 0 && a[i] >= d[certain - 1];
    if (a[i] == 0 || is_certain) continue;
    variance[i] = a[i] * shortage(d, group, certain, kept, a[i]) / static_cast<double>(kept);
  }
  return variance;
}

/// Sum of all but i and j (which may be equal), ascending index.
double sum_without(const Group& a, int group, int i, int j) {
  double sum = 0;
  for (int k = 0; k < group; ++k) sum += k == i || k == j ? 0 : a[k];
  return sum;
}

/// p_i = t_i (1 + sum of t_j / (1 - t_j)), 1 - p_i = sum of t_j (1 - t_i - t_j) / (1 - t_j), both
/// over j != i with t = a / S.
Group approx_variances(const unit::Sparsity& pattern, const Group& a) {
  const int group = pattern.group;
  Group variance{};
  const double sum = sum_without(a, group, -1, -1);
  const auto present = std::count_if(a.begin(), a.end(), [](double v) { return v > 0; });
  if (present <= 2) return variance;  // all are certain
  for (int i = 0; i < group; ++i) {
    if (a[i] == 0) continue;
    double more = 1, missed = 0;
    for (int j = 0; j < group; ++j) {
      if (j == i || a[j] == 0) continue;
      const double ratio = a[j] / sum_without(a, group, j, j);
      more += ratio;
      missed += ratio * (sum_without(a, group, i, j) / sum);
    }
    variance[i] = a[i] * (missed / more) * sum;
  }
  return variance;
}

Group variances_of(Estimator estimator, const unit::Sparsity& pattern, const Group& a) {
  if (estimator == Estimator::exact) return exact_variances(pattern, a);
  if (estimator == Estimator::approx) return approx_variances(pattern, a);
  Group variance{};
  for (int i = 0; i < pattern.group; ++i)
    variance[i] = a[i] * a[i] * (pattern.group - pattern.kept) / pattern.kept;
  return variance;
}

}  // namespace

double estimator_variance(Estimator estimator, const unit::Sparsity& pattern, const float* x) {
  const Group variance = variances_of(estimator, pattern, magnitudes(pattern, x));
  double sum = 0;
  for (int i = 0; i < pattern.group; ++i) sum += variance[i];
  return sum;
}

}  // namespace numemu::policies
