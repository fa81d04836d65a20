// Every tuple of indices of small groups, and random ones, against the rules in words.
#include "emu/unit/sparse/kept_index.hpp"

#include <optional>
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace kept_index_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

/// The first position of a row that breaks a rule.
std::optional<std::size_t> first_wrong(const Pattern& p, const std::vector<std::uint8_t>& index) {
  for (std::size_t i = 0; i < index.size(); ++i) {
    const bool begins = i % p.kept == 0;
    const bool ascends = begins || index[i] > index[i - 1];
    const bool paired =
        !p.pairwise || (i % 2 == 0 ? index[i] % 2 == 0 : index[i] == index[i - 1] + 1);
    if (index[i] >= p.group || !ascends || !paired) return i;
  }
  return std::nullopt;
}

void check(const Pattern& p, const std::vector<std::uint8_t>& index) {
  const auto depth = static_cast<std::int64_t>(index.size()) / p.kept * p.group;
  const auto wrong = first_wrong(p, index);
  if (!wrong) {
    REQUIRE_NOTHROW(check_index(p, index.data(), 1, depth));
  } else {
    REQUIRE_THROWS_WITH(check_index(p, index.data(), 1, depth),
                        Catch::StartsWith("meta row 0, position " + std::to_string(*wrong) +
                                          ": index " + std::to_string(index[*wrong])));
  }
}

/// Calls visit with every tuple of `length` values below `values`.
template <class Visit>
void for_each_tuple(int length, int values, const Visit& visit) {
  std::vector<std::uint8_t> tuple(length);
  for (;;) {
    visit(tuple);
    int i = 0;
    while (i < length && ++tuple[i] == values) tuple[i++] = 0;
    if (i == length) return;
  }
}

}  // namespace

TEST_CASE("sparse index: every tuple of groups up to 5, of three kept elements up to 8", "[fast]") {
  for (const Pattern& p : test::patterns(1, 8)) {
    if (p.group > 5 && p.kept > 3) continue;
    for_each_tuple(p.kept, p.group + 1, [&](const auto& index) { check(p, index); });
  }
}

TEST_CASE("sparse index: every pair of bytes as 2:4 metadata", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  std::vector<std::uint8_t> index(2);
  int legal = 0;
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      index = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second)};
      try {
        check_index(p, index.data(), 1, 4);
        ++legal;
        CHECK((first < second && second < 4));
      } catch (const Error&) {
      }
    }
  CHECK(legal == 6);
}

TEST_CASE("sparse index: all masks pass, one change anywhere is found", "[fast]") {
  test::Dice dice(3);
  for (const Pattern& p : test::patterns(1, kMostGroup)) {
    const auto all = test::masks(p);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<std::uint8_t> index;
      for (int g = 0; g < 7; ++g)
        test::append_index(p, all[dice.below(static_cast<std::int64_t>(all.size()))], index);
      check(p, index);
      index[dice.below(static_cast<std::int64_t>(index.size()))] =
          static_cast<std::uint8_t>(dice.below(repeat % 2 == 0 ? 256 : p.group));
      check(p, index);
    }
  }
}

TEST_CASE("sparse index: the error says row, position and rule", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::vector<std::uint8_t> index = {0, 1, 2, 3, 0, 3, 2, 2};
  CHECK_THROWS_WITH(
      check_index(p, index.data(), 2, 8),
      "meta row 1, position 3: index 2 after 2; 2:4 expects indices below 4, strictly "
      "ascending inside their group");
  const std::vector<std::uint8_t> pairs = {0, 1, 3, 4};
  CHECK_THROWS_WITH(
      check_index(parse_pattern("4:8.pairwise"), pairs.data(), 1, 8),
      "meta row 0, position 2: index 3 after 1; 4:8.pairwise expects indices below 8, "
      "strictly ascending inside their group, an even one and the next in turn");
  CHECK_THROWS_WITH(check_index(p, index.data(), 1, 6), Catch::Contains("K = 6"));
}

}  // namespace kept_index_test
