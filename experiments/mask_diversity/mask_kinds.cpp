#include "experiments/mask_diversity/mask_kinds.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "experiments/mask_diversity/mask_count.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

/// The columns of some rows in their order: one byte each, a row's bit below those of the rows
/// before it.
using Columns = std::array<std::uint8_t, kMostKindTile>;

struct Order {
  Columns columns = {};
  unsigned used = 0;  ///< bit r: row r is in the order
};

/// What is left of an order when columns may be permuted: the columns sorted, the largest first.
std::uint64_t word_of(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m, std::greater<>());
  std::uint64_t word = 0;
  for (int j = 0; j < m; ++j) word = word << 8 | columns[static_cast<std::size_t>(j)];
  return word;
}

/// Column permutations that change nothing: of equal columns among themselves.
std::int64_t equal_columns(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m);
  std::int64_t permutations = 1;
  for (int j = 0, run = 0; j < m; ++j) {
    run = j > 0 && columns[j] == columns[j - 1] ? run + 1 : 1;
    permutations *= run;
  }
  return permutations;
}

}  // namespace

MaskKind kind_of(std::uint64_t mask, int m) {
  if (m < 1 || m > kMostKindTile) {
    throw Error("mask kinds: expected tiles of 1 to " + std::to_string(kMostKindTile) +
                " rows, not " + std::to_string(m));
  }
  // The canonical mask is the one with the largest word. A prefix of its rows has the largest word
  // of all prefixes, so that others need not be followed.
  std::vector<Order> orders(1), next;
  std::uint64_t best = 0;
  for (int depth = 0; depth < m; ++depth) {
    next.clear();
    best = 0;
    for (const Order& order : orders) {
      for (int r = 0; r < m; ++r) {
        if (order.used >> r & 1U) continue;
        Order longer = order;
        longer.used |= 1U << r;
        for (int j = 0; j < m; ++j) {
          longer.columns[j] =
              static_cast<std::uint8_t>(order.columns[j] << 1 | (mask >> (r * m + j) & 1U));
        }
        const std::uint64_t word = word_of(longer.columns, m);
        if (word < best) continue;
        if (word > best) next.clear();
        best = word;
        next.push_back(longer);
      }
    }
    orders.swap(next);
  }
  // Row orders that end at the canonical mask differ by symmetries of the mask; each goes with the
  // permutations of its equal columns.
  const std::int64_t symmetries =
      static_cast<std::int64_t>(orders.size()) * equal_columns(orders[0].columns, m);
  const auto orders_of_lines = factorial<std::int64_t>(m);
  return {best, orders_of_lines * orders_of_lines / symmetries};
}

}  // namespace numemu::experiments
