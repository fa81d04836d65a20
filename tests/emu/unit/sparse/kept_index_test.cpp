// Every tuple of indices of small groups, and random ones, against the rules in words.
#include "emu/unit/sparse/kept_index.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "emu/unit/sparse/compress.hpp"
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

TEST_CASE("sparse gather: offsets of every pattern", "[fast]") {
  test::Dice dice(2);
  for (const Pattern& p : test::patterns(1, kMostGroup)) {
    const std::int64_t groups = 5, rows = 3, depth = groups * p.group;
    const auto all = test::masks(p);
    std::vector<std::uint8_t> index;
    std::vector<std::int32_t> expected;
    Gather b = Gather::matrix(4, depth, dice.below(2) == 0);
    for (std::int32_t& offset : b.depth) offset += static_cast<std::int32_t>(dice.below(7));
    const std::int64_t row = dice.below(rows);
    for (std::int64_t g = 0; g < rows * groups; ++g) {
      const std::uint32_t mask = all[dice.below(static_cast<std::int64_t>(all.size()))];
      test::append_index(p, mask, index);
      for (int i = 0; i < p.group; ++i)
        if (g / groups == row && test::has_bit(mask, i))
          expected.push_back(b.depth[g % groups * p.group + i]);
    }
    const Gather kept = gather_kept(p, index.data(), row, b);
    REQUIRE(kept.depth == expected);
    REQUIRE(kept.row == b.row);
    const std::uint8_t* of_row = index.data() + row * groups * p.kept;
    for (std::int64_t j = 0; j < groups * p.kept; ++j)
      REQUIRE(b.depth[j / p.kept * p.group + of_row[j]] == expected[j]);
  }
}

TEST_CASE("sparse gather: compressed rows times gathered columns, dropped elements unread",
          "[fast]") {
  const Unit& unit = find_unit("f32.sequential");
  const Format& f32 = find_format("float32");
  for (const char* name : {"1:2", "2:4", "4:8.pairwise", "3:7", "8:16"}) {
    const Pattern p = parse_pattern(name);
    const auto all = test::masks(p);
    const std::int64_t m = 4, n = 5, depth = p.group * 6, count = kept_depth(p, depth);
    test::Dice dice(13);
    std::vector<float> dense(m * depth), b(n * depth), kept(m * count);
    std::vector<std::uint8_t> mask(m * depth), index(m * count);
    for (float& x : b) x = static_cast<float>(dice.below(2001) - 1000) / 7;
    for (std::int64_t g = 0; g < m * 6; ++g) {
      const std::uint32_t bits = all[dice.below(static_cast<std::int64_t>(all.size()))];
      for (int i = 0; i < p.group; ++i) {
        dense[g * p.group + i] = static_cast<float>(dice.below(2001) - 1000) / 3;
        mask[g * p.group + i] = test::has_bit(bits, i);
      }
    }
    compress(p, DenseOperand<float>{&f32, dense.data(), m, depth, mask.data()}, kept.data(),
             index.data());
    const Gather plain_b = Gather::matrix(n, depth), one = Gather::matrix(1, count);
    for (std::int64_t i = 0; i < m; ++i) {
      // NaN opposite every dropped element: a unit that read it would show it.
      std::vector<float> poisoned = b;
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t k = 0; k < depth; ++k)
          if (mask[i * depth + k] == 0)
            poisoned[j * depth + k] = std::numeric_limits<float>::quiet_NaN();
      const Gather columns = gather_kept(p, index.data(), i, plain_b);
      std::vector<float> d(n);
      Gemm gemm;
      gemm.m = 1, gemm.n = n, gemm.k = count;
      gemm.a = {&f32, kept.data() + i * count, &one};
      gemm.b = {&f32, poisoned.data(), &columns};
      gemm.d = d.data();
      unit.multiply(gemm);
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          if (mask[i * depth + k] != 0) sum = std::fma(dense[i * depth + k], b[j * depth + k], sum);
        REQUIRE(std::bit_cast<std::uint32_t>(d[j]) == std::bit_cast<std::uint32_t>(sum));
      }
    }
  }
}

TEST_CASE("sparse gather: illegal indices and tails are refused", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::vector<std::uint8_t> index = {0, 1, 3, 3};
  CHECK_NOTHROW(gather_kept(p, index.data(), 0, Gather::matrix(1, 4)));
  CHECK_THROWS_WITH(gather_kept(p, index.data(), 1, Gather::matrix(1, 4)),
                    Catch::StartsWith("meta row 1, position 1"));
  CHECK_THROWS_WITH(gather_kept(p, index.data(), 0, Gather::matrix(1, 6)),
                    Catch::Contains("K = 6"));
}

}  // namespace kept_index_test
