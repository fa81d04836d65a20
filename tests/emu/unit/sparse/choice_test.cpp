// Every group of every pattern up to M = 12, and sampled ones beyond, against a search.
#include "emu/unit/sparse/choice.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace choice_test {

using namespace numemu::unit;

namespace {

/// What must be kept, whole pairs where pairwise.
std::uint32_t needed(const Pattern& p, std::uint32_t bits) {
  std::uint32_t all = 0;
  for (int i = 0; i < p.group; ++i)
    if (test::has_bit(bits, i) || (p.pairwise && test::has_bit(bits, i ^ 1))) all |= 1u << i;
  return all;
}

int count(std::uint32_t bits) {
  int ones = 0;
  for (int i = 0; i < 32; ++i) ones += test::has_bit(bits, i);
  return ones;
}

void check(const Pattern& p, std::uint32_t bits, const Choice& choice) {
  const std::uint32_t must = needed(p, bits);
  REQUIRE(choice.count == count(must));
  if (choice.count > p.kept) return;
  // Taking free positions from the lowest on, in whole pairs.
  std::uint32_t all = must;
  for (int i = 0; i < p.group && count(all) < p.kept; ++i)
    if (!test::has_bit(all, i)) all |= 1u << i;
  std::vector<std::uint8_t> expected;
  test::append_index(p, all, expected);
  REQUIRE(test::is_mask(p, all));
  REQUIRE(std::vector<std::uint8_t>(choice.index, choice.index + p.kept) == expected);
  REQUIRE(choice.filled == (all & ~bits));
}

}  // namespace

TEST_CASE("sparse choice: every group of every pattern up to M = 12", "[fast]") {
  for (const Pattern& p : test::patterns(1, 12)) {
    for (std::uint32_t bits = 0; bits < 1u << p.group; ++bits) check(p, bits, choose(p, bits));
  }
}

TEST_CASE("sparse choice: sampled groups up to M = 16", "[fast]") {
  test::Dice dice(1);
  for (const Pattern& p : test::patterns(13, kMostGroup)) {
    for (int i = 0; i < 2000; ++i) {
      const auto bits = static_cast<std::uint32_t>(dice.below(1 << p.group));
      check(p, bits, choose(p, bits));
    }
  }
}

TEST_CASE("sparse choice: the table holds every group up to M = 8", "[fast]") {
  for (const Pattern& p : test::patterns(1, kMostGroup)) {
    const std::vector<Choice> table = choice_table(p);
    REQUIRE(table.size() == (p.group <= 8 ? std::size_t{1} << p.group : 0));
    for (std::uint32_t bits = 0; bits < table.size(); ++bits) check(p, bits, table[bits]);
  }
}

}  // namespace choice_test
