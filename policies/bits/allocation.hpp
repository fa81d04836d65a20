// One option for each layer under budgets: the least total loss, as an integer program.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::policies {

/// A way to run a layer: what it loses, and what it takes of each budget. Losses and costs are
/// finite and not negative.
struct LayerOption {
  double loss = 0;
  std::vector<double> costs;
};

/// [layer][option]; every option has as many costs as there are budgets.
using AllocationTable = std::vector<std::vector<LayerOption>>;

/// An option for each layer, with the sums over layers in their order.
struct Allocation {
  std::vector<std::size_t> options;
  double loss = 0;
  std::vector<double> costs;
};

/// Minimise sum loss[l][o_l] subject to sum costs[l][o_l][b] <= limits[b] for every budget b.
enum class AllocationMethod {
  exact,       ///< the optimum
  greedy,      ///< from the least losses down, each move the least loss for what it saves
  exhaustive,  ///< the optimum by trying everything: the oracle
};
AllocationMethod parse_allocation_method(std::string_view);

/// What a limit may be exceeded by, relative: budgets such as 0.24 of 32 bits are rounded.
inline constexpr double kBudgetRounding = 1e-9;

/// Whether the costs keep the limits.
bool keeps_limits(const std::vector<double>& costs, const std::vector<double>& limits);
/// The sums of a choice.
Allocation allocation_of(const AllocationTable&, std::vector<std::size_t> options);

/// Nothing where no choice keeps the limits (greedy: where it finds none). Of equal losses the
/// optimum has the least first cost, then second, ...; of equal costs too the first options. Throws
/// Error for a table that is no such table, for `exhaustive` beyond 2^24 choices, and where `exact`
/// would keep more than kMostStates partial choices.
///
/// `exact` goes through the layers and keeps the partial choices that no other one dominates (in
/// loss and every cost), unless a Lagrangian bound shows that none of their completions beats the
/// greedy choice. Sums are those of `exhaustive`, in the same order, so both have the same bits.
std::optional<Allocation> allocate(const AllocationTable&, const std::vector<double>& limits,
                                   AllocationMethod = AllocationMethod::exact);
inline constexpr std::size_t kMostStates = std::size_t{1} << 22;

/// That program in the LP format that solvers read, the variable x<l>_<o> being 1 where layer l
/// takes option o.
std::string allocation_lp(const AllocationTable&, const std::vector<double>& limits);
/// The choice in a solution file of the solver CBC, nothing for "Infeasible". Throws Error naming
/// `where` for any other text.
std::optional<Allocation> read_cbc_solution(const AllocationTable&, const std::string& text,
                                            const std::string& where);

}  // namespace numemu::policies
