// Bits by the greedy algorithm against the optimum of the same items.
#include "policies/bits/allocation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/actnn/parts.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"
#include "policies/bits/greedy_bits.hpp"

namespace numemu::experiments::actnn {
namespace {

using policies::AllocationMethod;
using policies::BitItem;

constexpr std::size_t kFew = 6, kMany = 64;  // items: what trying everything can do, and a batch
constexpr double kRounding = 1e-12;          // relative, of sums in another order
constexpr double kNear = 1.01;               // of the least loss, where sizes differ

/// Sensitivities of lognormal law; sizes are equal, or those of layers.
std::vector<BitItem> items_of(std::size_t count, bool sized, std::uint64_t seed,
                              std::int64_t instance) {
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::probe;
  random.tensor = static_cast<std::uint32_t>(instance);
  constexpr double kSpread = 2, kSizes[] = {1, 4, 16, 64};
  std::vector<BitItem> items(count);
  for (std::size_t i = 0; i < count; ++i) {
    items[i].sensitivity = portable::exp(kSpread * normal::draw(random, 2 * i, 31));
    if (sized) items[i].weight = kSizes[random.bits(2 * i + 1, 2)];
  }
  return items;
}

double least_loss(const std::vector<BitItem>& items, double budget, AllocationMethod method) {
  policies::AllocationTable table;
  for (const BitItem& item : items) {
    table.emplace_back();
    for (int b = 1; b <= policies::kMostItemBits; ++b)
      table.back().push_back({policies::item_loss(item, b), {item.weight * b}});
  }
  return policies::allocate(table, {budget}, method)->loss;
}

}  // namespace

void add_allocation(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t instances = run.settings.integer("instances", 1, 100'000);
  ResultTable table{
      fmt::format("greedy bits of {} instances, sensitivities of lognormal law", instances),
      {"items", "sizes", "average bits", "optimum by", "optimal", "mean loss / least",
       "worst loss / least", "loss of equal bits / greedy"},
      {}};
  struct Case {
    std::size_t count;
    bool sized;
    AllocationMethod method;
  };
  for (const Case& c :
       {Case{kFew, false, AllocationMethod::exhaustive},
        Case{kMany, false, AllocationMethod::exact}, Case{kFew, true, AllocationMethod::exhaustive},
        Case{kMany, true, AllocationMethod::exact}}) {
    for (const int average : {2, 4}) {
      std::int64_t optimal = 0;
      double sum = 0, worst = 0, gain = 0;
      for (std::int64_t i = 0; i < instances; ++i) {
        const std::vector<BitItem> items = items_of(c.count, c.sized, run.seed, i);
        double budget = 0;
        for (const BitItem& item : items) budget += item.weight * average;
        const double loss = policies::bits_loss(items, policies::greedy_bits(items, budget));
        const double ratio = loss / least_loss(items, budget, c.method);
        optimal += std::fabs(ratio - 1) <= kRounding;
        sum += ratio / static_cast<double>(instances);
        worst = std::max(worst, ratio);
        gain += policies::bits_loss(items, std::vector<int>(c.count, average)) / loss /
                static_cast<double>(instances);
      }
      const std::string where = fmt::format("{} items of {} size, {} bits on average", c.count,
                                            c.sized ? "unequal" : "equal", average);
      conclusion.findings.push_back(exact_finding(
          "instances where greedy finds the least loss, " + where, static_cast<double>(instances),
          static_cast<double>(optimal), optimal == instances));
      conclusion.about(c.sized ? "greedy, layers" : "greedy");
      if (c.sized && c.count == kMany) {
        conclusion.findings.push_back(exact_finding(
            fmt::format("mean loss over the least, {} (at most {} claimed)", where, kNear), 1, sum,
            sum <= kNear, at_most(kNear)));
        conclusion.about("greedy, near");
      }
      table.rows.push_back(
          {std::to_string(c.count), c.sized ? "1 to 64" : "equal", std::to_string(average),
           c.method == AllocationMethod::exhaustive ? "trying everything" : "dominance",
           fmt::format("{} of {}", optimal, instances), fmt::format("{:.4f}", sum),
           fmt::format("{:.3f}", worst), fmt::format("{:.2f}", gain)});
    }
  }
  conclusion.tables.push_back(std::move(table));
}

}  // namespace numemu::experiments::actnn
