#include "policies/bits/allocation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {
namespace {

constexpr double kExhaustive = 0x1p24;

void require_table(const AllocationTable& table, const std::vector<double>& limits) {
  for (const double limit : limits) {
    if (!std::isfinite(limit))
      throw Error(fmt::format("allocation: expected finite limits, found {}", limit));
  }
  for (std::size_t l = 0; l < table.size(); ++l) {
    if (table[l].empty()) throw Error(fmt::format("allocation: layer {} has no option", l));
    for (const LayerOption& option : table[l]) {
      const auto bad = [](double x) { return !(x >= 0) || !std::isfinite(x); };
      if (option.costs.size() != limits.size() || bad(option.loss) ||
          std::ranges::any_of(option.costs, bad)) {
        throw Error(fmt::format(
            "allocation: layer {}: expected a finite loss of at least 0 and {} such costs", l,
            limits.size()));
      }
    }
  }
}

bool keeps(double cost, double limit) { return cost <= limit + kBudgetRounding * std::abs(limit); }

/// The order in which equal losses are decided.
bool better(const Allocation& a, const Allocation& b) {
  if (a.loss != b.loss) return a.loss < b.loss;
  if (a.costs != b.costs) return a.costs < b.costs;
  return a.options < b.options;
}

std::optional<Allocation> exhaustive(const AllocationTable& table,
                                     const std::vector<double>& limits) {
  double choices = 1;
  for (const auto& options : table) choices *= static_cast<double>(options.size());
  if (choices > kExhaustive)
    throw Error(fmt::format("allocation: exhaustive: {:.3g} choices, expected at most {:.0f}",
                            choices, kExhaustive));
  std::optional<Allocation> best;
  std::vector<std::size_t> chosen(table.size());
  for (bool more = true; more;) {
    Allocation now = allocation_of(table, chosen);
    if (keeps_limits(now.costs, limits) && (!best || better(now, *best))) best = std::move(now);
    more = false;
    for (std::size_t l = table.size(); l-- > 0 && !more;) {
      more = ++chosen[l] < table[l].size();
      if (!more) chosen[l] = 0;
    }
  }
  return best;
}

/// What the costs exceed the limits by, each as a share of its limit.
double excess(const std::vector<double>& costs, const std::vector<double>& limits) {
  double sum = 0;
  for (std::size_t b = 0; b < costs.size(); ++b) {
    if (!keeps(costs[b], limits[b]))
      sum += (costs[b] - limits[b]) / std::max(std::abs(limits[b]), 1e-300);
  }
  return sum;
}

std::optional<Allocation> greedy(const AllocationTable& table, const std::vector<double>& limits) {
  std::vector<std::size_t> start;
  for (const auto& options : table) {
    start.push_back(static_cast<std::size_t>(
        std::ranges::min_element(options,
                                 [](const LayerOption& a, const LayerOption& b) {
                                   return a.loss != b.loss ? a.loss < b.loss : a.costs < b.costs;
                                 }) -
        options.begin()));
  }
  Allocation now = allocation_of(table, std::move(start));
  while (!keeps_limits(now.costs, limits)) {
    const double before = excess(now.costs, limits);
    double least = std::numeric_limits<double>::infinity();
    std::size_t layer = table.size(), option = 0;
    for (std::size_t l = 0; l < table.size(); ++l) {
      const LayerOption& from = table[l][now.options[l]];
      for (std::size_t o = 0; o < table[l].size(); ++o) {
        std::vector<double> costs = now.costs;
        for (std::size_t b = 0; b < costs.size(); ++b)
          costs[b] += table[l][o].costs[b] - from.costs[b];
        const double saved = before - excess(costs, limits);
        if (!(saved > 0)) continue;
        const double price = (table[l][o].loss - from.loss) / saved;
        if (price < least) {
          least = price;
          layer = l;
          option = o;
        }
      }
    }
    if (layer == table.size()) return std::nullopt;
    now.options[layer] = option;
    now = allocation_of(table, std::move(now.options));
  }
  return now;
}

/// A lower bound on the loss of any completion, by prices on the budgets: for prices p >= 0 the
/// loss is at least sum min_o (loss + p costs) - p limits.
class Bound {
 public:
  Bound(const AllocationTable& table, const std::vector<double>& limits, double incumbent)
      : prices_(limits.size(), 0.0) {
    std::vector<double> tried(limits.size(), 0.0);
    double best = -std::numeric_limits<double>::infinity();
    constexpr int kSteps = 300;  // of the subgradient method; any prices give a bound
    for (int step = 0; step < kSteps && std::isfinite(incumbent); ++step) {
      std::vector<double> slope(limits.size(), 0.0);
      double value = 0, length = 0;
      for (const auto& options : table) {
        const LayerOption& o = *std::ranges::min_element(
            options, {}, [&](const LayerOption& x) { return priced(x.loss, x.costs, tried); });
        value += priced(o.loss, o.costs, tried);
        for (std::size_t b = 0; b < slope.size(); ++b) slope[b] += o.costs[b];
      }
      for (std::size_t b = 0; b < slope.size(); ++b) {
        value -= tried[b] * limits[b];
        slope[b] -= limits[b];
        length += slope[b] * slope[b];
      }
      if (value > best) {
        best = value;
        prices_ = tried;
      }
      if (length == 0 || value >= incumbent) break;
      const double stride = (incumbent - value) / length * (1.5 - step * 1.4 / kSteps);
      for (std::size_t b = 0; b < slope.size(); ++b)
        tried[b] = std::max(0.0, tried[b] + stride * slope[b]);
    }
    rest_.assign(table.size() + 1, 0.0);
    for (std::size_t l = table.size(); l-- > 0;) {
      double least = std::numeric_limits<double>::infinity();
      for (const LayerOption& o : table[l])
        least = std::min(least, priced(o.loss, o.costs, prices_));
      rest_[l] = rest_[l + 1] + least;
    }
    for (std::size_t b = 0; b < limits.size(); ++b)
      slack_ += prices_[b] * (limits[b] + kBudgetRounding * std::abs(limits[b]));
  }
  /// Of choices for the layers before `next` that lose and cost so much.
  double operator()(std::size_t next, double loss, const std::vector<double>& costs) const {
    return priced(loss, costs, prices_) + rest_[next] - slack_;
  }

 private:
  static double priced(double loss, const std::vector<double>& costs,
                       const std::vector<double>& prices) {
    for (std::size_t b = 0; b < costs.size(); ++b) loss += prices[b] * costs[b];
    return loss;
  }
  std::vector<double> prices_, rest_;
  double slack_ = 0;
};

struct State {
  double loss = 0;
  std::vector<double> costs;
  std::uint32_t before = 0,
                option = 0;  ///< the state of the layers before, and this layer's option
};

/// Of states in the order of preference those that no earlier one dominates.
std::vector<State> undominated(std::vector<State> states) {
  std::ranges::stable_sort(states, [](const State& a, const State& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.costs < b.costs;
  });
  std::vector<State> kept;
  for (State& state : states) {
    const auto dominates = [&](const State& other) {
      for (std::size_t b = 0; b < state.costs.size(); ++b) {
        if (other.costs[b] > state.costs[b]) return false;
      }
      return true;
    };
    // Along one budget the kept ones get cheaper, so that the last is the cheapest.
    const bool dominated = state.costs.size() <= 1 ? !kept.empty() && dominates(kept.back())
                                                   : std::ranges::any_of(kept, dominates);
    if (!dominated) kept.push_back(std::move(state));
  }
  return kept;
}

std::optional<Allocation> exact(const AllocationTable& table, const std::vector<double>& limits) {
  const std::optional<Allocation> incumbent = greedy(table, limits);
  const double most = incumbent ? incumbent->loss : std::numeric_limits<double>::infinity();
  const Bound bound(table, limits, most);
  // The bound's sums are rounded in another order than the losses.
  const double cut = most + 1e-9 * std::abs(most);
  std::vector<std::vector<double>> least(table.size() + 1, std::vector<double>(limits.size(), 0.0));
  for (std::size_t l = table.size(); l-- > 0;) {
    for (std::size_t b = 0; b < limits.size(); ++b) {
      double cost = std::numeric_limits<double>::infinity();
      for (const LayerOption& o : table[l]) cost = std::min(cost, o.costs[b]);
      least[l][b] = least[l + 1][b] + cost;
    }
  }
  std::vector<std::vector<State>> layers(1);
  layers[0].push_back({0, std::vector<double>(limits.size(), 0.0), 0, 0});
  std::size_t kept = 0;
  for (std::size_t l = 0; l < table.size(); ++l) {
    std::vector<State> next;
    for (std::size_t s = 0; s < layers[l].size(); ++s) {
      for (std::size_t o = 0; o < table[l].size(); ++o) {
        State state = layers[l][s];
        state.loss += table[l][o].loss;
        bool fits = true;
        for (std::size_t b = 0; b < limits.size(); ++b) {
          state.costs[b] += table[l][o].costs[b];
          const double limit = limits[b] + 2 * kBudgetRounding * std::abs(limits[b]);
          fits = fits && state.costs[b] + least[l + 1][b] <= limit;
        }
        if (!fits || bound(l + 1, state.loss, state.costs) > cut) continue;
        state.before = static_cast<std::uint32_t>(s);
        state.option = static_cast<std::uint32_t>(o);
        next.push_back(std::move(state));
        if (next.size() + kept > kMostStates)
          throw Error(
              fmt::format("allocation: exact: more than {} partial choices; expected fewer "
                          "options or budgets, or the method greedy or cbc",
                          kMostStates));
      }
    }
    layers.push_back(undominated(std::move(next)));
    kept += layers.back().size();
  }
  // In the order of preference, but for limits that rounding moves: the first that keeps them.
  for (const State& last : layers.back()) {
    if (!keeps_limits(last.costs, limits)) continue;
    std::vector<std::size_t> options(table.size());
    const State* state = &last;
    for (std::size_t l = table.size(); l-- > 0;) {
      options[l] = state->option;
      state = &layers[l][state->before];
    }
    return allocation_of(table, std::move(options));
  }
  return std::nullopt;
}

}  // namespace

AllocationMethod parse_allocation_method(std::string_view name) {
  constexpr std::string_view kNames[] = {"exact", "greedy", "exhaustive"};
  return static_cast<AllocationMethod>(index_named("method", name, kNames));
}

bool keeps_limits(const std::vector<double>& costs, const std::vector<double>& limits) {
  for (std::size_t b = 0; b < limits.size(); ++b) {
    if (!keeps(costs[b], limits[b])) return false;
  }
  return true;
}

Allocation allocation_of(const AllocationTable& table, std::vector<std::size_t> options) {
  Allocation out{std::move(options), 0, {}};
  if (!table.empty()) out.costs.resize(table[0][0].costs.size());
  for (std::size_t l = 0; l < table.size(); ++l) {
    const LayerOption& option = table[l][out.options[l]];
    out.loss += option.loss;
    for (std::size_t b = 0; b < out.costs.size(); ++b) out.costs[b] += option.costs[b];
  }
  return out;
}

std::optional<Allocation> allocate(const AllocationTable& table, const std::vector<double>& limits,
                                   AllocationMethod method) {
  require_table(table, limits);
  if (table.empty()) return Allocation{{}, 0, std::vector<double>(limits.size(), 0.0)};
  if (method == AllocationMethod::exhaustive) return exhaustive(table, limits);
  return method == AllocationMethod::greedy ? greedy(table, limits) : exact(table, limits);
}

namespace {

/// "+ 0.5 x0_1 + 2 x0_2": a sum over all variables.
template <class Coefficient>
std::string sum_of(const AllocationTable& table, const Coefficient& coefficient) {
  std::string out;
  for (std::size_t l = 0; l < table.size(); ++l) {
    for (std::size_t o = 0; o < table[l].size(); ++o)
      out += fmt::format(" + {:.17g} x{}_{}\n", coefficient(table[l][o]), l, o);
  }
  return out;
}

bool read_index(std::string_view& text, std::size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string allocation_lp(const AllocationTable& table, const std::vector<double>& limits) {
  std::string out =
      "Minimize\n loss:\n" + sum_of(table, [](const LayerOption& o) { return o.loss; });
  out += "Subject To\n";
  for (std::size_t l = 0; l < table.size(); ++l) {
    out += fmt::format(" layer{}:", l);
    for (std::size_t o = 0; o < table[l].size(); ++o) out += fmt::format("\n + x{}_{}", l, o);
    out += "\n = 1\n";
  }
  for (std::size_t b = 0; b < limits.size(); ++b) {
    const std::string sum = sum_of(table, [&](const LayerOption& o) { return o.costs[b]; });
    out += fmt::format(" budget{}:\n{} <= {:.17g}\n", b, sum, limits[b]);
  }
  out += "Binaries\n";
  for (std::size_t l = 0; l < table.size(); ++l) {
    for (std::size_t o = 0; o < table[l].size(); ++o) out += fmt::format(" x{}_{}\n", l, o);
  }
  return out + "End\n";
}

std::optional<Allocation> read_cbc_solution(const AllocationTable& table, const std::string& text,
                                            const std::string& where) {
  if (text.starts_with("Infeasible") || text.starts_with("Integer infeasible")) return std::nullopt;
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("{}: expected a solution of cbc, {}", where, what));
  };
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (!line.starts_with("Optimal")) throw fail("found '" + line.substr(0, 60) + "'");
  std::vector<std::size_t> options(table.size()), found(table.size(), 0);
  // "      3 x1_2        1        0.5": place, variable, value, reduced cost.
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string place, name;
    double value = 0;
    if (!(words >> place >> name >> value) || value < 0.5) continue;
    std::string_view at = name;
    std::size_t l = 0, o = 0;
    if (!at.starts_with('x')) throw fail("found the variable " + name);
    at.remove_prefix(1);
    const bool first = read_index(at, l) && at.starts_with('_');
    if (first) at.remove_prefix(1);
    if (!first || !read_index(at, o) || !at.empty() || l >= table.size() || o >= table[l].size())
      throw fail("found the variable " + name);
    options[l] = o;
    ++found[l];
  }
  for (std::size_t l = 0; l < table.size(); ++l) {
    if (found[l] != 1) throw fail(fmt::format("with one option of layer {}", l));
  }
  return allocation_of(table, std::move(options));
}

}  // namespace numemu::policies
