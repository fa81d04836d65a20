#include "emu/stats/paired.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "formats/error.hpp"

namespace numemu::stats {
namespace {

constexpr double kEqual = 1e-14;  // relative: equal but for the rounding of sums

}  // namespace

PairedInterval paired_interval(const std::vector<double>& all) {
  if (all.empty()) throw Error("paired interval: expected at least one difference");
  std::vector<double> differences = all;
  std::erase_if(differences, [](double d) { return std::isnan(d); });
  PairedInterval result;
  result.n = std::ssize(differences);
  result.left_out = std::ssize(all) - result.n;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (result.n == 0) return {std::nan(""), -kInfinity, kInfinity, 0, result.left_out};
  const Mean mean = mean_of(differences);
  result.mean = mean.value;
  double largest = 0;
  for (const double d : differences) largest = std::max(largest, std::fabs(d));
  double half = std::numeric_limits<double>::infinity();
  if (result.n > 1 && !(mean.deviation <= kEqual * largest))
    half = student_quantile(static_cast<double>(result.n - 1), 0.025) * mean.error;
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

PairedInterval paired_interval(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) {
    throw Error("paired interval: expected as many values on both sides, found " +
                std::to_string(a.size()) + " and " + std::to_string(b.size()));
  }
  std::vector<double> differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i] = a[i] - b[i];
    const double size = std::max(std::fabs(a[i]), std::fabs(b[i]));
    if (std::fabs(differences[i]) <= kEqual * size) differences[i] = 0;
  }
  return paired_interval(differences);
}

std::vector<bool> holm(const std::vector<double>& p_values, double level) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (p_values[i] == p_values[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    // The smallest must pass level / m, the next level / (m - 1), until one does not.
    if (p_values[order[rank]] > level / static_cast<double>(order.size() - rank)) break;
    rejected[order[rank]] = true;
  }
  return rejected;
}

}  // namespace numemu::stats
