#include "emu/stats/entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "emu/stats/laws.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::stats {
namespace {

constexpr double kLn2 = 0.693147180559945309;

/// The 97.5 % (2.5 %) point of a chi-squared law where z is that of the normal law; for many
/// degrees by Wilson and Hilferty (1931), then right to 1e-13 of itself,
/// where Boost needs up to a million terms.
double chi_square_point(double degrees, double z) {
  constexpr double kMany = 1e8;
  if (degrees > kMany) {
    const double root = 1 - 2 / (9 * degrees) + z * std::sqrt(2 / (9 * degrees));
    return degrees * root * root * root;
  }
  return chi_square_quantile(degrees, z > 0 ? 0.975 : 0.025);
}

}  // namespace

double Entropy::effective() const { return portable::exp2(corrected); }

Entropy entropy(std::vector<std::int64_t> counts) {
  if (std::any_of(counts.begin(), counts.end(), [](std::int64_t c) { return c < 0; }))
    throw Error("entropy: expected counts of at least 0");
  std::sort(counts.begin(), counts.end());
  counts.erase(counts.begin(), std::upper_bound(counts.begin(), counts.end(), std::int64_t{0}));
  if (counts.empty()) throw Error("entropy: expected at least one draw");
  Entropy e;
  e.n = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  e.distinct = static_cast<std::int64_t>(counts.size());
  const auto n = static_cast<double>(e.n);
  const auto surprise = [&](std::int64_t i) {
    return portable::log2(n / static_cast<double>(counts[i]));
  };
  const auto mean = [&](auto&& of) {
    return pairwise_sum(
               e.distinct,
               [&](std::int64_t i) { return static_cast<double>(counts[i]) * of(surprise(i)); }) /
           n;
  };
  e.plug_in = mean([](double s) { return s; });
  const double spread = mean([&](double s) { return (s - e.plug_in) * (s - e.plug_in); });
  const double free = static_cast<double>(e.distinct - 1);
  e.corrected = e.plug_in + free / (2 * n * kLn2);
  const double half = kNormal95 * std::sqrt(spread / n + free / (2 * n * n * kLn2 * kLn2));
  e.interval = {std::max(0.0, e.corrected - half), e.corrected + half};
  const auto once =
      std::upper_bound(counts.begin(), counts.end(), std::int64_t{1}) - counts.begin();
  e.coverage = 1 - static_cast<double>(once) / n;
  return e;
}

CollisionEntropy collision_entropy(const std::vector<std::int64_t>& counts) {
  CollisionEntropy e;
  for (const std::int64_t count : counts) {
    e.n += count;
    e.collisions += count * (count - 1) / 2;
  }
  if (e.n < 2) throw Error("collision entropy: expected at least two draws");
  const double pairs = static_cast<double>(e.n) * static_cast<double>(e.n - 1) / 2;
  const auto bits = [&](double collisions) { return portable::log2(pairs / collisions); };
  // The ends of a Poisson mean are half the points of chi-squared laws.
  const auto found = static_cast<double>(e.collisions);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  e.bits = e.collisions == 0 ? kInfinite : bits(found);
  e.interval = {std::max(0.0, bits(chi_square_point(2 * found + 2, kNormal95) / 2)),
                e.collisions == 0 ? kInfinite : bits(chi_square_point(2 * found, -kNormal95) / 2)};
  return e;
}

double expected_distinct(double outcomes, std::int64_t n) {
  if (outcomes <= 1) return n > 0 ? 1 : 0;
  return -outcomes * portable::expm1(static_cast<double>(n) * portable::log1p(-1 / outcomes));
}

}  // namespace numemu::stats
