#include "experiments/allocation/front.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "experiments/programs/program.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"

namespace numemu::experiments {
namespace {

using policies::Allocation;
using policies::AllocationTable;

constexpr int kDigits = 4;                     // of a mean in names, where they tell means apart
constexpr std::uint32_t kTensor = 0x6f6c6c61;  // "allo" in ASCII

/// Of random mixtures: each draw of a run has an element of its own.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : source_{seed, Stream::probe, kTensor, 0} {}
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(source_.uniform(next_++) * static_cast<double>(n));
  }

 private:
  RandomSource source_;
  std::uint64_t next_ = 0;
};

/// Costs of a cell: the plan's, then the other one where that is bounded.
std::vector<double> costs_of(const TableCell& cell, const FrontPlan& plan) {
  const bool bits = plan.cost == CostKind::bits;
  std::vector<double> costs = {bits ? cell.weight_bits : cell.mac_cost};
  if (plan.other_limit) costs.push_back(bits ? cell.mac_cost : cell.weight_bits);
  return costs;
}

class Maker {
 public:
  Maker(const SensitivityTable& table, const FrontPlan& plan)
      : table_(table), plan_(plan), draws_(plan.seed) {
    const bool bits = plan.cost == CostKind::bits;
    unit_ = bits ? table.weights() : table.multiply_adds();
    other_unit_ = bits ? table.multiply_adds() : table.weights();
    other_ = plan.other_limit.value_or(0) * other_unit_;
    if (unit_ <= 0) throw usage_error("--set: cost: expected a network with weights");
    for (const auto& layer : table.cells) {
      program_.emplace_back();
      for (const TableCell& cell : layer)
        program_.back().push_back({cell.loss, costs_of(cell, plan)});
    }
  }

  Front make() {
    std::vector<double> budgets = plan_.budgets;
    if (budgets.empty()) budgets = even_budgets();
    for (std::size_t o = 0; o < table_.choices.size(); ++o) {
      const std::vector<std::size_t> options(table_.layers.size(), o);
      const Allocation uniform = policies::allocation_of(program_, options);
      const double budget = uniform.costs[0] / unit_;
      add(Method::uniform, table_.choices[o].name + " in all layers", uniform, budget);
      if (std::ranges::find(budgets, budget) == budgets.end()) budgets.push_back(budget);
    }
    budgets = distinct(std::move(budgets));
    if (keeps_other()) {
      digits_ = digits_apart(budgets);
      for (const double budget : budgets) add_budget(budget);
      const std::vector<double> decibels = distinct(plan_.decibels);
      digits_ = digits_apart(decibels);
      for (const double db : decibels) add_decibels(db);
    }
    return std::move(front_);
  }

 private:
  static std::string words(double mean, CostKind cost, int digits) {
    return fmt::format("{:.{}g} {}", mean, digits, cost == CostKind::bits ? "bits" : "per MAC");
  }
  std::string words(double budget) const { return words(budget, plan_.cost, digits_); }
  std::string other_words(double mean, int digits = kDigits) const {
    return words(mean, plan_.cost == CostKind::bits ? CostKind::mac : CostKind::bits, digits);
  }
  /// Greedy choices may get stuck where another mixture keeps the limits.
  const char* none() const {
    return plan_.solver == "greedy" ? "Greedy found no mixture that" : "No mixture";
  }

  /// Ascending, without those that differ in rounding alone.
  static std::vector<double> distinct(std::vector<double> numbers) {
    constexpr double kSame = 1e-12;
    std::ranges::sort(numbers);
    const auto same = [](double a, double b) { return std::abs(a - b) <= kSame * std::abs(b); };
    numbers.erase(std::unique(numbers.begin(), numbers.end(), same), numbers.end());
    return numbers;
  }

  /// As many digits as tell the numbers apart: each names points and a file.
  static int digits_apart(const std::vector<double>& numbers) {
    constexpr int kMost = 17;
    for (int digits = kDigits; digits < kMost; ++digits) {
      std::set<std::string> names;
      for (const double number : numbers) names.insert(fmt::format("{:.{}g}", number, digits));
      if (names.size() == numbers.size()) return digits;
    }
    return kMost;
  }

  /// The least sum of that cost.
  double least(std::size_t cost) const {
    double sum = 0;
    for (const auto& layer : program_) {
      sum += std::ranges::min(layer, {}, [=](const policies::LayerOption& option) {
               return option.costs[cost];
             }).costs[cost];
    }
    return sum;
  }

  /// Whether some mixture keeps the other limit; else a sentence says so.
  bool keeps_other() {
    if (!plan_.other_limit || policies::keeps_limits({least(1)}, {other_})) return true;
    const double cheapest = least(1) / other_unit_;
    const int digits = digits_apart({*plan_.other_limit, cheapest});
    front_.sentences.push_back(fmt::format("No mixture keeps other_limit, {}: the least is {}.",
                                           other_words(*plan_.other_limit, digits),
                                           other_words(cheapest, digits)));
    return false;
  }

  std::vector<double> limits(double budget) const {
    std::vector<double> out = {budget * unit_};
    if (plan_.other_limit) out.push_back(other_);
    return out;
  }

  std::vector<double> even_budgets() const {
    double low = 0, high = 0;
    for (const auto& layer : program_) {
      const auto [least, most] = std::ranges::minmax(
          layer, {}, [](const policies::LayerOption& option) { return option.costs[0]; });
      low += least.costs[0];
      high += most.costs[0];
    }
    std::vector<double> out;
    for (std::int64_t i = 1; i <= plan_.points; ++i) {
      out.push_back(
          (low + (high - low) * static_cast<double>(i) / static_cast<double>(plan_.points + 1)) /
          unit_);
    }
    return out;
  }

  void add(Method method, const std::string& name, const Allocation& allocation, double budget,
           const std::string& file = "") {
    FrontPoint point{method, name, file, allocation.options, table_.base, 0, 0, budget, 0};
    for (std::size_t l = 0; l < table_.layers.size(); ++l) {
      const TableCell& cell = table_.cells[l][allocation.options[l]];
      point.loss += cell.loss;
      point.bits += cell.weight_bits;
      point.mac += cell.mac_cost;
    }
    point.bits /= std::max(1.0, table_.weights());
    point.mac /= std::max(1.0, table_.multiply_adds());
    front_.points.push_back(std::move(point));
  }

  void add_budget(double budget) {
    const auto best = solve(program_, limits(budget), plan_.solver);
    if (!best) {
      const double cheapest = least(0);
      if (policies::keeps_limits({cheapest}, {budget * unit_})) {
        front_.sentences.push_back(
            plan_.other_limit ? fmt::format("{} keeps both {} and other_limit, {}.", none(),
                                            words(budget), other_words(*plan_.other_limit))
                              : fmt::format("{} keeps {}.", none(), words(budget)));
        return;
      }
      const int digits = std::max(digits_, digits_apart({budget, cheapest / unit_}));
      front_.sentences.push_back(fmt::format("No mixture keeps {}: the least is {}.",
                                             words(budget, plan_.cost, digits),
                                             words(cheapest / unit_, plan_.cost, digits)));
      return;
    }
    std::string file =
        fmt::format("{:.{}g}-{}", budget, digits_, plan_.cost == CostKind::bits ? "bits" : "mac");
    add(Method::optimal, "optimal at " + words(budget), *best, budget, file);
    const auto greedy =
        policies::allocate(program_, limits(budget), policies::AllocationMethod::greedy);
    if (greedy && greedy->options != best->options)
      add(Method::greedy, "greedy at " + words(budget), *greedy, budget);
    for (std::int64_t i = 0; i < plan_.random; ++i) {
      add(Method::random, fmt::format("random {} at {}", i + 1, words(budget)),
          random_mixture(limits(budget), *best), budget);
    }
  }

  /// Any options, made cheaper one by one until the limits hold, then dearer as long as they do.
  Allocation random_mixture(const std::vector<double>& limits, const Allocation& fallback) {
    std::vector<std::size_t> options;
    for (const auto& layer : program_) options.push_back(draws_.below(layer.size()));
    constexpr std::size_t kTries = 64;  // for each layer
    for (std::size_t i = 0; i < kTries * program_.size(); ++i) {
      const bool over =
          !policies::keeps_limits(policies::allocation_of(program_, options).costs, limits);
      const std::size_t layer = draws_.below(program_.size()),
                        option = draws_.below(program_[layer].size());
      const double change =
          program_[layer][option].costs[0] - program_[layer][options[layer]].costs[0];
      std::vector<std::size_t> other = options;
      other[layer] = option;
      const bool fits =
          policies::keeps_limits(policies::allocation_of(program_, other).costs, limits);
      if (over ? fits || change < 0 : fits && change > 0) options = std::move(other);
    }
    Allocation out = policies::allocation_of(program_, options);
    return policies::keeps_limits(out.costs, limits) ? out : fallback;
  }

  /// The other way round: the least cost under a limit of the losses.
  void add_decibels(double db) {
    if (table_.kind == LossKind::cross_entropy)
      throw usage_error("--set: sqnr: expected beside it loss=noise or loss=predicted");
    AllocationTable program = program_;
    for (auto& layer : program) {
      for (policies::LayerOption& option : layer) std::swap(option.loss, option.costs[0]);
    }
    std::vector<double> limits = {portable::pow(10.0, -db / 10) - table_.base};
    if (plan_.other_limit) limits.push_back(other_);
    const std::string words = fmt::format("{:.{}g} dB", db, digits_);
    const auto best = solve(program, limits, plan_.solver);
    if (!best) {
      front_.sentences.push_back(fmt::format(
          "{} has a predicted SQNR of {}{}.", none(), words,
          plan_.other_limit ? " within other_limit, " + other_words(*plan_.other_limit) : ""));
      return;
    }
    add(Method::optimal, "optimal for " + words, *best, 0, fmt::format("{:.{}g}-db", db, digits_));
  }

  const SensitivityTable& table_;
  const FrontPlan& plan_;
  Draws draws_;
  AllocationTable program_;
  double unit_ = 1, other_unit_ = 1, other_ = 0;
  int digits_ = kDigits;
  Front front_;
};

}  // namespace

std::string_view to_string(Method method) {
  constexpr std::string_view kNames[] = {"optimal", "greedy", "uniform", "random"};
  return kNames[static_cast<std::size_t>(method)];
}

Front make_front(const SensitivityTable& table, const FrontPlan& plan) {
  return Maker(table, plan).make();
}

Json entries_of(const SensitivityTable& table, const std::vector<std::size_t>& options) {
  Json entries = Json::array();
  for (std::size_t l = 0; l < table.layers.size(); ++l)
    entries.push_back(layer_entry(table.layers[l].name, table.choices[options[l]]));
  return entries;
}

// Solvers of allocations by name: our own, and the program cbc if it is installed.

namespace {

/// Runs cbc on the program without gaps, silently.
void run_cbc(const std::string& program, const std::string& solution) {
  const EndedProgram ended = run_program(
      {"cbc", program, "ratioGap", "0", "allowableGap", "0", "solve", "solution", solution},
      ProgramOutput::kept);
  if (ended.fine()) return;
  if (ended.missing())
    throw Error(
        "--set: solver: the program cbc is not installed (Debian: apt-get install coinor-cbc); "
        "solver=exact needs none");
  throw file_error(fmt::format("cbc failed ({})", ended.error != 0
                                                      ? std::strerror(ended.error)
                                                      : fmt::format("status {}", ended.status)));
}

}  // namespace

std::optional<policies::Allocation> solve(const policies::AllocationTable& table,
                                          const std::vector<double>& limits,
                                          const std::string& solver) {
  if (solver == "exact" || solver == "greedy")
    return policies::allocate(table, limits, policies::parse_allocation_method(solver));
  if (solver != "cbc")
    throw usage_error("--set: solver: " +
                      unknown_name("solver", solver, {"exact", "greedy", "cbc"}));
  const WorkFolder folder;
  const std::string program = folder / "program.lp", solution = folder / "solution.txt";
  write_atomically(program, {policies::allocation_lp(table, limits)});
  run_cbc(program, solution);
  const auto found = policies::read_cbc_solution(table, read_text(solution), "cbc");
  // The solver keeps limits to 1e-7 of their size only.
  if (found && !policies::keeps_limits(found->costs, limits))
    return policies::allocate(table, limits);
  return found;
}

}  // namespace numemu::experiments
