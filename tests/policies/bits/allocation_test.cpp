// Allocation: the vectors of the published program, exact against exhaustive, greedy, and CBC.
#include "policies/bits/allocation.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace allocation_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

/// Losses and costs from a few values, so that sums are often equal.
AllocationTable random_table(std::uint64_t seed, std::size_t layers, std::size_t options,
                             std::size_t budgets, int values) {
  const RandomSource source{.seed = seed, .stream = Stream::probe};
  std::uint64_t i = 0;
  const auto draw = [&] { return std::floor(source.uniform(i++) * values) / 8; };
  AllocationTable table(layers);
  for (auto& layer : table) {
    layer.resize(options);
    for (LayerOption& option : layer) {
      option.loss = draw();
      for (std::size_t b = 0; b < budgets; ++b) option.costs.push_back(draw());
    }
  }
  return table;
}

std::vector<double> middle_limits(const AllocationTable& table, double share) {
  std::vector<double> limits(table[0][0].costs.size(), 0.0);
  for (std::size_t b = 0; b < limits.size(); ++b) {
    double low = 0, high = 0;
    for (const auto& layer : table) {
      double least = HUGE_VAL, most = 0;
      for (const LayerOption& o : layer) {
        least = std::min(least, o.costs[b]);
        most = std::max(most, o.costs[b]);
      }
      low += least;
      high += most;
    }
    limits[b] = low + share * (high - low);
  }
  return limits;
}

}  // namespace

TEST_CASE("three layers at 8, 4 and 2 bits under a share of float32's size", "[fast]") {
  // CalibTIP's program (specs/quantization.md 6f.3): sum P b <= 32 D sum P.
  const double sizes[] = {100, 400, 1000}, four[] = {.5, .2, .1}, two[] = {3, 1, .45};
  AllocationTable table(3);
  for (std::size_t l = 0; l < 3; ++l)
    table[l] = {{0, {8 * sizes[l]}}, {four[l], {4 * sizes[l]}}, {two[l], {2 * sizes[l]}}};
  struct Row {
    double share;
    std::vector<std::size_t> options;
    double loss, size;
  };
  for (const Row& row : {Row{.25, {0, 0, 0}, 0, .25},
                         {.20, {0, 0, 1}, .1, .166667},
                         {.16, {0, 1, 1}, .3, .133333},
                         {.14, {0, 1, 1}, .3, .133333},
                         {.125, {0, 0, 2}, .45, .125},
                         {.10, {0, 1, 2}, .65, .0916667}}) {
    for (const AllocationMethod method : {AllocationMethod::exact, AllocationMethod::exhaustive}) {
      const auto found = allocate(table, {32 * row.share * 1500}, method);
      REQUIRE(found);
      CHECK(found->options == row.options);
      CHECK(found->loss == Approx(row.loss));
      CHECK(found->costs[0] / (32 * 1500) == Approx(row.size).epsilon(1e-5));
    }
  }
  CHECK(!allocate(table, {1500 * 2 - 1.0}));
  CHECK(!allocate(table, {1500 * 2 - 1.0}, AllocationMethod::greedy));
  CHECK(allocate(table, {1500 * 2.0})->options == std::vector<std::size_t>{2, 2, 2});
}

TEST_CASE("exact is exhaustive, to the bit; greedy keeps the limits and is no better", "[fast]") {
  int better = 0, infeasible = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const std::size_t budgets = seed % 3 + 1;
    const AllocationTable table =
        random_table(seed, seed % 6 + 1, 3, budgets, seed % 2 == 0 ? 5 : 100000);
    const auto limits = middle_limits(table, 0.1 + 0.2 * static_cast<double>(seed % 5));
    const auto exact = allocate(table, limits),
               oracle = allocate(table, limits, AllocationMethod::exhaustive),
               greedy = allocate(table, limits, AllocationMethod::greedy);
    REQUIRE(exact.has_value() == oracle.has_value());
    infeasible += !oracle;
    if (!oracle) continue;
    CHECK(exact->loss == oracle->loss);
    CHECK(exact->costs == oracle->costs);
    CHECK(keeps_limits(exact->costs, limits));
    if (!greedy) continue;
    CHECK(keeps_limits(greedy->costs, limits));
    CHECK(exact->loss <= greedy->loss);
    better += exact->loss < greedy->loss;
  }
  CHECK(better > 0);  // else greedy would do
  CHECK(infeasible > 0);
}

TEST_CASE("a network of 60 layers with 15 options under two budgets", "[fast]") {
  AllocationTable table = random_table(5, 60, 15, 2, 100000);
  // Fewer bits lose more, as formats do.
  for (auto& layer : table) {
    for (LayerOption& o : layer) {
      o.costs[1] = 0.5 * o.costs[0] + 0.1 * o.costs[1];
      o.loss = 1e8 / (1 + o.costs[0] * o.costs[0]) + o.loss / 100;
    }
  }
  const auto limits = middle_limits(table, 0.4);
  const auto exact = allocate(table, limits),
             greedy = allocate(table, limits, AllocationMethod::greedy);
  REQUIRE(exact);
  CHECK(keeps_limits(exact->costs, limits));
  if (greedy) CHECK(exact->loss <= greedy->loss);
}

TEST_CASE("mistakes in a table", "[fast]") {
  CHECK(allocate({}, {1})->options.empty());
  CHECK_THAT(message_of([] { allocate({{}}, {1}); }), Contains("layer 0 has no option"));
  CHECK_THAT(message_of([] { allocate({{{0, {1}}}, {{0, {}}}}, {1}); }), Contains("layer 1"));
  CHECK_THAT(message_of([] { allocate({{{-1, {1}}}}, {1}); }), Contains("layer 0"));
  CHECK_THAT(message_of([] { allocate({{{0, {HUGE_VAL}}}}, {1}); }), Contains("layer 0"));
  CHECK_THAT(message_of([] { allocate({{{0, {1}}}}, {NAN}); }), Contains("nan"));
  CHECK_THAT(message_of([] { parse_allocation_method("exactly"); }), Contains("'exact'"));
  const AllocationTable wide(30, std::vector<LayerOption>(3, {0, {1}}));
  CHECK_THAT(message_of([&] { allocate(wide, {1}, AllocationMethod::exhaustive); }),
             Contains("exhaustive"));
}

TEST_CASE("the solver CBC reads the program and finds the same optimum", "[fast]") {
  const AllocationTable small = {{{0, {2}}, {1.5, {1}}}, {{0.25, {3}}}};
  CHECK(read_cbc_solution(small,
                          "Optimal - objective value 1.75000000\n      1 x0_1 1 1.5\n"
                          "      2 x1_0 1 0\n",
                          "s")
            ->options == std::vector<std::size_t>{1, 0});
  CHECK(!read_cbc_solution(small, "Infeasible - objective value 0\n", "s"));
  for (const char* bad : {"", "Stopped", "Optimal\n 1 x0_2 1 0\n 2 x1_0 1 0\n",
                          "Optimal\n 1 x0_1 1 0\n", "Optimal\n 1 y 1 0\n"})
    CHECK_THAT(message_of([&] { read_cbc_solution(small, bad, "s.txt"); }), Contains("s.txt: "));
  if (std::system("command -v cbc >/dev/null 2>&1") != 0) {
    WARN("skipped: the program cbc is not installed (apt-get install coinor-cbc)");
    return;
  }
  const TemporaryFolder folder;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const AllocationTable table = random_table(seed, 20, 6, seed % 2 + 1, 100000);
    const auto limits = middle_limits(table, 0.3);
    std::ofstream(folder / "p.lp") << allocation_lp(table, limits);
    const std::string command = "cbc '" + (folder / "p.lp") +
                                "' ratioGap 0 allowableGap 0 solve solution '" + (folder / "s") +
                                "' >/dev/null 2>&1";
    REQUIRE(std::system(command.c_str()) == 0);
    std::ostringstream text;
    text << std::ifstream(folder / "s").rdbuf();
    const auto other = read_cbc_solution(table, text.str(), "s"), exact = allocate(table, limits);
    REQUIRE(other.has_value() == exact.has_value());
    // CBC works to 1e-7 of the whole.
    if (exact) CHECK(other->loss == Approx(exact->loss).epsilon(1e-6));
  }
}

}  // namespace allocation_test
