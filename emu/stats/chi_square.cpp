#include "emu/stats/chi_square.hpp"

#include <algorithm>
#include <limits>

#include "emu/stats/laws.hpp"
#include "formats/error.hpp"

namespace numemu::stats {
namespace {

__extension__ typedef __int128 Wide;

struct Cell {
  double seen = 0, expected = 0;
};

struct Cells {
  std::vector<Cell> list;   ///< in the order given, those taken together last
  bool impossible = false;  ///< something of probability 0 was seen
};

Cells cells_of(const std::vector<std::int64_t>& counts, const std::vector<double>& probabilities,
               std::int64_t others) {
  if (counts.size() != probabilities.size())
    throw Error("chi-square: expected as many probabilities as counts");
  // What is left of 1 by rounding alone is not an outcome.
  constexpr double kRounding = 1e-12;
  constexpr double kLeast = 5;
  std::int64_t n = others;
  double left = 1;
  bool valid = others >= 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    valid = valid && counts[i] >= 0 && probabilities[i] >= 0;
    n += counts[i];
    left -= probabilities[i];
  }
  if (!valid) throw Error("chi-square: expected counts and probabilities of at least 0");
  if (n < 1) throw Error("chi-square: expected at least one draw");
  Cells cells;
  const auto draws = static_cast<double>(n);
  Cell pool{static_cast<double>(others), left > kRounding ? left * draws : 0};
  cells.impossible = others > 0 && pool.expected == 0;
  std::vector<std::size_t> order;  // of what can happen, the least likely first
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] > 0) order.push_back(i);
    cells.impossible = cells.impossible || (probabilities[i] == 0 && counts[i] > 0);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return probabilities[a] < probabilities[b];
  });
  std::size_t pooled = 0;
  for (; pooled < order.size(); ++pooled) {
    const double expected = probabilities[order[pooled]] * draws;
    const bool enough = pool.expected == 0 || pool.expected >= kLeast;
    if (expected >= kLeast && enough) break;
    pool.seen += static_cast<double>(counts[order[pooled]]);
    pool.expected += expected;
  }
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(pooled), order.end());
  for (std::size_t k = pooled; k < order.size(); ++k) {
    const std::size_t i = order[k];
    cells.list.push_back({static_cast<double>(counts[i]), probabilities[i] * draws});
  }
  if (pool.expected > 0) cells.list.push_back(pool);
  return cells;
}

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
  const Cells cells = cells_of(counts, probabilities, others);
  ChiSquare result;
  if (cells.impossible) {
    result.statistic = std::numeric_limits<double>::infinity();
    result.degrees = static_cast<std::int64_t>(counts.size());
    result.p = 0;
    return result;
  }
  for (const Cell& cell : cells.list) {
    const double distance = cell.seen - cell.expected;
    result.statistic += distance * distance / cell.expected;
  }
  result.degrees = std::max<std::int64_t>(0, static_cast<std::int64_t>(cells.list.size()) - 1);
  if (result.degrees > 0)
    result.p = chi_square_tail(result.statistic, static_cast<double>(result.degrees));
  else
    result.statistic = 0;
  return result;
}

}  // namespace numemu::stats
