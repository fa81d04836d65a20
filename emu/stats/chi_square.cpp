// Pearson's chi-square test that outcomes are equally, or so and so likely.
#include "emu/stats/chi_square.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>

#include "formats/error.hpp"

namespace numemu::stats {
namespace {

__extension__ typedef __int128 Wide;

}  // namespace

ChiSquare uniform_chi_square(const std::vector<std::int64_t>& counts) {
  const auto outcomes = static_cast<std::int64_t>(counts.size());
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t n = 0;
  Wide squares = 0;
  for (const std::int64_t count : counts) {
    if (count < 0 || count > kMost) throw Error("chi-square: expected counts from 0 to 2^31");
    n += count;
    squares += Wide{count} * count;
  }
  if (n < 1 || n > kMost) throw Error("chi-square: expected 1 to 2^31 draws");
  // sum (c - n/K)^2 / (n/K) = (K sum c^2 - n^2) / n, whole until the division.
  ChiSquare result;
  result.degrees = outcomes - 1;
  result.statistic = static_cast<double>(squares * outcomes - Wide{n} * n) / static_cast<double>(n);
  if (result.degrees > 0)
    result.p = chi_square_tail(result.statistic, static_cast<double>(result.degrees));
  return result;
}

ChiSquare chi_square(const std::vector<std::int64_t>& counts,
                     const std::vector<double>& probabilities, std::int64_t others) {
  if (counts.size() != probabilities.size())
    throw Error("chi-square: expected as many probabilities as counts");
  std::int64_t n = others;
  for (const std::int64_t count : counts) n += count;
  if (n < 1) throw Error("chi-square: expected at least one draw");
  constexpr double kLeast = 5;
  ChiSquare result;
  const auto cell = [&](double seen, double expected) {
    result.statistic += (seen - expected) * (seen - expected) / expected;
    ++result.degrees;
  };
  auto rest = static_cast<double>(others);
  double left = 1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(n);
    if (expected < kLeast) {
      rest += static_cast<double>(counts[i]);
      continue;
    }
    left -= probabilities[i];
    cell(static_cast<double>(counts[i]), expected);
  }
  // What is left of 1 by rounding alone is no outcome.
  constexpr double kRounding = 1e-12;
  if (rest > 0 || left > kRounding) cell(rest, std::max(left, kRounding) * static_cast<double>(n));
  --result.degrees;
  if (result.degrees > 0)
    result.p = chi_square_tail(result.statistic, static_cast<double>(result.degrees));
  return result;
}

double chi_square_tail(double statistic, double degrees) {
  return statistic <= 0 ? 1 : boost::math::gamma_q(degrees / 2, statistic / 2);
}

}  // namespace numemu::stats
