// Mixtures of options over layers: the best ones at each budget, and others beside them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/allocation/table.hpp"

namespace numemu::experiments {

/// The mean over weights of their stored bits, or over multiply-adds of their cost.
enum class CostKind : std::uint8_t { bits, mac };

enum class Method : std::uint8_t { optimal, greedy, uniform, random };
std::string_view to_string(Method);

struct FrontPlan {
  CostKind cost = CostKind::bits;
  std::vector<double> budgets;  ///< means; empty: `points` of them, evenly over the possible costs
  std::int64_t points = 4;
  std::vector<double> decibels;       ///< further points: the cheapest with that predicted SQNR
  std::optional<double> other_limit;  ///< of the other cost, a mean too
  std::int64_t random = 0;            ///< random mixtures for each budget
  std::uint64_t seed = 0;
  std::string solver = "exact";  ///< exact, greedy or cbc
};

struct FrontPoint {
  Method method = Method::optimal;
  std::string name, file;  ///< "optimal at 4 bits", "4-bits"
  std::vector<std::size_t> options;
  double loss = 0;           ///< the recipe's own and the sum of the layers'
  double bits = 0, mac = 0;  ///< means
  double budget = 0;         ///< of the plan's cost; 0 for those by decibels
  std::size_t row = 0;       ///< of the sweep that measures it
};

struct Front {
  std::vector<FrontPoint> points;
  std::vector<std::string> sentences;  ///< budgets that no mixture keeps
};

/// Every option in all layers, then for each budget (those of the uniform mixtures too) the
/// optimum, the greedy choice where it is another, and random mixtures that fill the budget. Throws
/// Error for a solver that is not known or, cbc, not installed.
Front make_front(const SensitivityTable&, const FrontPlan&);

/// The entries of `layers` that give each layer its option.
Json entries_of(const SensitivityTable&, const std::vector<std::size_t>& options);

/// The optimum by a solver of that name; nothing where no choice keeps the limits.
std::optional<policies::Allocation> solve(const policies::AllocationTable&,
                                          const std::vector<double>& limits,
                                          const std::string& solver);

}  // namespace numemu::experiments
