// Errors of many draws, summed group by group.
#include "experiments/mvue/pruned_sample.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/stats/interval.hpp"
#include "experiments/engine/judge.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::mvue {
namespace {

/// What one group contributes.
struct GroupSums {
  double signal = 0, magnitude = 0;  ///< of x^2, |x|
  double error = 0, kept = 0;        ///< means over draws of |e|^2, |y|
  double closed = 0;                 ///< closed form of |e|^2
  double mean_error = 0;             ///< |mean e|^2
  double projected = 0;              ///< <mean e, x>
};

/// sum of a over sum of b, and the standard error from the spread of a - ratio b.
template <class A, class B>
Estimate ratio_of(const std::vector<GroupSums>& groups, double ratio, const A& a, const B& b) {
  const auto n = static_cast<std::int64_t>(groups.size());
  const double over = pairwise_sum(n, [&](std::int64_t i) { return a(groups[i]); });
  const double under = pairwise_sum(n, [&](std::int64_t i) { return b(groups[i]); });
  if (under == 0) return {NAN, NAN};
  const double about = std::isnan(ratio) ? over / under : ratio;
  const double spread = pairwise_sum(n, [&](std::int64_t i) {
    const double d = a(groups[i]) - about * b(groups[i]);
    return d * d;
  });
  return {over / under, std::sqrt(spread) / under};
}

}  // namespace

PrunedSample prune_and_measure(const policies::MaskPolicy& policy, const std::vector<float>& x,
                               std::int64_t draws, const RandomSource& random) {
  const std::int64_t size = policies::decision_size(policy);
  const std::int64_t count = static_cast<std::int64_t>(x.size()) / size, n = count * size;
  if (!policy.rule->random) draws = 1;
  std::vector<float> y(static_cast<std::size_t>(n));
  std::vector<double> mean(static_cast<std::size_t>(n));
  std::vector<GroupSums> groups(static_cast<std::size_t>(count));
  for (std::int64_t d = 0; d < draws; ++d) {
    policy.rule->prune(policy, random,
                       {.x = x.data(),
                        .y = y.data(),
                        .keep = nullptr,
                        .count = count,
                        .first = static_cast<std::uint64_t>(d * count)});
    for (std::int64_t i = 0; i < n; ++i) {
      const double e = double{y[i]} - x[i];
      mean[i] += e / static_cast<double>(draws);
      groups[i / size].error += e * e / static_cast<double>(draws);
      groups[i / size].kept += std::fabs(y[i]) / static_cast<double>(draws);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    GroupSums& g = groups[i / size];
    g.signal += double{x[i]} * x[i];
    g.magnitude += std::fabs(x[i]);
    g.mean_error += mean[i] * mean[i];
    g.projected += mean[i] * x[i];
  }
  for (std::int64_t g = 0; g < count; ++g)
    groups[g].closed = policy.rule->error(policy, x.data() + g * size, size, 0);

  PrunedSample out;
  const auto signal = [](const GroupSums& g) { return g.signal; };
  const auto closed = [](const GroupSums& g) { return g.closed; };
  const auto error = [](const GroupSums& g) { return g.error; };
  // Given x, the error of a ratio is that of its numerator about what is predicted.
  out.projection = ratio_of(
      groups, 0, [](const GroupSums& g) { return g.projected; }, signal);
  out.projection.value += 1;
  out.variance = ratio_of(groups, 1, error, closed);
  out.mean = ratio_of(
      groups, 1, [draws](const GroupSums& g) { return g.mean_error * static_cast<double>(draws); },
      closed);
  // Of a law, x varies too.
  out.nsr = ratio_of(groups, NAN, error, signal);
  out.shrink = ratio_of(
      groups, NAN, [](const GroupSums& g) { return g.kept; },
      [](const GroupSums& g) { return g.magnitude; });
  out.closed_nsr = ratio_of(groups, NAN, closed, signal).value;
  const auto effective = [&](const auto& of) {
    const double sum = pairwise_sum(count, [&](std::int64_t g) { return of(groups[g]); });
    const double squares =
        pairwise_sum(count, [&](std::int64_t g) { return of(groups[g]) * of(groups[g]); });
    return squares > 0 ? sum * sum / squares : 0;
  };
  out.effective = effective(signal);
  out.effective_error = effective(closed);
  return out;
}

Finding judged(std::string what, double predicted, const Estimate& measured, double effective) {
  return closed_form(std::move(what), predicted, measured.value, measured.error,
                     !(effective < kFewestGroups));
}

std::string shown(const Estimate& e) {
  if (!std::isfinite(e.value)) return "-";
  return fmt::format("{:.4f} +- {:.4f}", e.value, stats::kNormal95 * e.error);
}

}  // namespace numemu::experiments::mvue
