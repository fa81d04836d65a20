// Greedy bits: the published vectors, the optimum by trying everything, budgets that cannot be met.
#include "policies/bits/sample_bits.hpp"

#include "formats/random.hpp"
#include "policies/bits/allocation.hpp"
#include "tests/catch.hpp"

namespace greedy_bits_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

std::vector<BitItem> items_of(const std::vector<double>& sensitivities) {
  std::vector<BitItem> items;
  for (const double c : sensitivities) items.push_back({c, 1});
  return items;
}

double least(const std::vector<BitItem>& items, double budget) {
  AllocationTable table;
  for (const BitItem& item : items) {
    table.emplace_back();
    for (int b = 1; b <= kMostItemBits; ++b)
      table.back().push_back({item_loss(item, b), {item.weight * b}});
  }
  return allocate(table, {budget}, AllocationMethod::exhaustive)->loss;
}

}  // namespace

TEST_CASE("greedy bits: vectors of the specification", "[fast]") {
  struct Row {
    std::vector<double> sensitivities;
    double budget;
    std::vector<int> bits;
    double loss;
  };
  constexpr double kDigits = 2e-6;  // of the losses, relative
  for (const Row& row : {Row{{1, 4, 16, 64}, 8, {1, 2, 2, 3}, 4.528345},
                         Row{{1, 4, 16, 64}, 12, {2, 3, 3, 4}, 0.80372},
                         Row{{1, 10, 100, 1000, 10000}, 10, {1, 1, 1, 3, 4}, 175.85261},
                         // Items 1 and 2 tie: the larger index loses its bit first.
                         Row{{0.01, 1, 1, 100}, 8, {1, 2, 1, 4}, 1.565556}}) {
    const std::vector<BitItem> items = items_of(row.sensitivities);
    const std::vector<int> bits = greedy_bits(items, row.budget);
    CHECK(bits == row.bits);
    CHECK(bits_loss(items, bits) == Approx(row.loss).epsilon(kDigits));
    CHECK(bits_loss(items, bits) == Approx(least(items, row.budget)).epsilon(1e-12));
  }
  CHECK(bits_loss(items_of({1, 4, 16, 64}), {2, 2, 2, 2}) == Approx(9.44444).epsilon(kDigits));
  CHECK(bits_loss(items_of({1, 10, 100, 1000, 10000}), {2, 2, 2, 2, 2}) ==
        Approx(1234.556).epsilon(kDigits));
}

TEST_CASE("greedy bits: the optimum for equal weights, within the budget for any", "[fast]") {
  int worse = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomSource random{.seed = seed, .stream = Stream::probe};
    std::vector<BitItem> items(4);
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i].sensitivity =
          std::ldexp(random.uniform(i), static_cast<int>(random.bits(10 + i, 4)));
    const double budget = 4 + static_cast<double>(seed);
    CHECK(bits_loss(items, greedy_bits(items, budget)) ==
          Approx(least(items, budget)).epsilon(1e-12));
    double most = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].weight = static_cast<double>(1 + random.bits(20 + i, 3));
      most += 2.5 * items[i].weight;
    }
    const std::vector<int> bits = greedy_bits(items, most);
    double used = 0;
    for (std::size_t i = 0; i < items.size(); ++i) used += items[i].weight * bits[i];
    CHECK(used <= most);
    worse += bits_loss(items, bits) > least(items, most) * (1 + 1e-12);
  }
  CHECK(worse > 0);  // with unequal weights it is no optimum
}

TEST_CASE("greedy bits: never below 1 bit, never above 8", "[fast]") {
  CHECK(greedy_bits(items_of({1, 2}), 0) == std::vector<int>{1, 1});
  CHECK(greedy_bits(items_of({0, 0}), 100) == std::vector<int>{8, 8});
  CHECK(greedy_bits({}, 3).empty());
}

}  // namespace greedy_bits_test
