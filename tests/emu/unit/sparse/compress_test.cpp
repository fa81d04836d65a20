// Round trips through compressed operands, exhaustive up to M = 8, and what is refused.
#include "emu/unit/sparse/compress.hpp"

#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "emu/unit/sparse/kept_index.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace compress_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

template <class T>
const Format& format_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return find_format("float8_e4m3fn");
  if constexpr (std::is_same_v<T, std::uint16_t>) return find_format("float16");
  return find_format("float32");
}

template <class T>
T code_of(std::uint32_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
struct Compressed {
  std::vector<T> kept;
  std::vector<std::uint8_t> index;
};

template <class T>
Compressed<T> compressed(const Pattern& p, const DenseOperand<T>& x) {
  const auto count = static_cast<std::size_t>(x.rows * kept_depth(p, x.depth));
  Compressed<T> result{std::vector<T>(count), std::vector<std::uint8_t>(count)};
  compress(p, x, result.kept.data(), result.index.data());
  return result;
}

template <class T>
std::vector<T> expanded(const Pattern& p, const DenseOperand<T>& x, const Compressed<T>& c) {
  std::vector<T> dense(static_cast<std::size_t>(x.rows * x.depth));
  expand(p, *x.format, c.kept.data(), c.index.data(), x.rows, x.depth, dense.data());
  return dense;
}

/// Non-zero codes where bits are set: no two neighbours alike.
template <class T>
std::vector<T> group_of(const Pattern& p, std::uint32_t bits) {
  std::vector<T> group;
  for (int i = 0; i < p.group; ++i)
    group.push_back(test::has_bit(bits, i) ? code_of<T>(static_cast<std::uint32_t>(i + 1))
                                           : code_of<T>(0));
  return group;
}

bool fits(const Pattern& p, std::uint32_t bits) {
  int count = 0;
  for (int i = 0; i < p.group; ++i)
    count += test::has_bit(bits, i) || (p.pairwise && test::has_bit(bits, i ^ 1));
  return count <= p.kept;
}

/// Every group that fits, one row of them all; every one that does not, alone.
template <class T>
void check_groups(const Pattern& p) {
  std::vector<T> row;
  for (std::uint32_t bits = 0; bits < 1u << p.group; ++bits) {
    const std::vector<T> group = group_of<T>(p, bits);
    const DenseOperand<T> alone{&format_of<T>(), group.data(), 1, p.group};
    REQUIRE(first_violation(p, alone).has_value() != fits(p, bits));
    if (fits(p, bits)) row.insert(row.end(), group.begin(), group.end());
  }
  const DenseOperand<T> x{&format_of<T>(), row.data(), 1, static_cast<std::int64_t>(row.size())};
  REQUIRE_FALSE(first_violation(p, x).has_value());
  const Compressed<T> c = compressed(p, x);
  REQUIRE_NOTHROW(check_index(p, c.index.data(), 1, x.depth));
  for (std::size_t j = 0; j < c.kept.size(); ++j)
    REQUIRE(c.kept[j] == row[j / p.kept * p.group + c.index[j]]);
  REQUIRE(same_bits(expanded(p, x, c), row));
}

}  // namespace

TEST_CASE("sparse compress: every group of every pattern up to M = 8", "[fast]") {
  for (const Pattern& p : test::patterns(1, 8)) {
    INFO(to_string(p));
    check_groups<std::uint8_t>(p);
    check_groups<std::uint16_t>(p);
    check_groups<float>(p);
  }
}

TEST_CASE("sparse compress: random operands of every pattern, masked and not", "[fast]") {
  const auto check = []<class TestType>(TestType) {
    test::Dice dice(5);
    for (const Pattern& p : test::patterns(1, kMostGroup)) {
      INFO(to_string(p));
      const auto all = test::masks(p);
      const std::int64_t rows = 3, groups = 1 + dice.below(9), depth = groups * p.group;
      std::vector<TestType> full(rows * depth), pruned(rows * depth);
      std::vector<std::uint8_t> mask(rows * depth), index;
      for (std::int64_t g = 0; g < rows * groups; ++g) {
        const std::uint32_t bits = all[dice.below(static_cast<std::int64_t>(all.size()))];
        test::append_index(p, bits, index);
        for (int i = 0; i < p.group; ++i) {
          const std::int64_t at = g * p.group + i;
          full[at] = code_of<TestType>(1 + dice.bits() % 100);
          mask[at] = test::has_bit(bits, i) ? static_cast<std::uint8_t>(1 + dice.below(255)) : 0;
          pruned[at] = mask[at] != 0 ? full[at] : code_of<TestType>(0);
        }
      }
      const DenseOperand<TestType> x{&format_of<TestType>(), pruned.data(), rows, depth};
      const DenseOperand<TestType> masked{&format_of<TestType>(), full.data(), rows, depth,
                                          mask.data()};
      const Compressed<TestType> by_zeros = compressed(p, x), by_mask = compressed(p, masked);
      REQUIRE(by_zeros.index == index);
      REQUIRE(by_mask.index == index);
      REQUIRE(same_bits(by_zeros.kept, by_mask.kept));
      REQUIRE(same_bits(expanded(p, x, by_zeros), pruned));
      REQUIRE(first_violation(p, masked).has_value() == false);
      REQUIRE(first_violation(
                  p, DenseOperand<TestType>{&format_of<TestType>(), full.data(), rows, depth})
                  .has_value() == (p.kept < p.group));
    }
  };
  check(std::uint8_t{});
  check(std::uint16_t{});
  check(float{});
}

TEST_CASE("sparse compress: -0 counts as zero where the format has it, and stays when kept",
          "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::uint8_t minus = 0x80;
  const std::vector<std::uint8_t> codes = {minus, minus, 1, minus, 1, minus, minus, 2};
  const DenseOperand<std::uint8_t> e4m3{&find_format("float8_e4m3fn"), codes.data(), 1, 8};
  const Compressed<std::uint8_t> c = compressed(p, e4m3);
  CHECK(c.index == std::vector<std::uint8_t>{0, 2, 0, 3});
  CHECK(c.kept == std::vector<std::uint8_t>{minus, 1, 1, 2});
  CHECK(expanded(p, e4m3, c) == std::vector<std::uint8_t>{minus, 0, 1, 0, 1, 0, 0, 2});

  // The same bits are NaN in a fnuz format, and -128 in int8.
  for (const char* name : {"float8_e4m3fnuz", "int8"}) {
    const auto violation =
        first_violation(p, DenseOperand<std::uint8_t>{&find_format(name), codes.data(), 1, 8});
    REQUIRE(violation.has_value());
    CHECK(violation->kept == 4);
  }
  const std::vector<float> floats = {-0.0f, 1, -0.0f, -0.0f};
  const Compressed<float> f =
      compressed(p, DenseOperand<float>{&find_format("float32"), floats.data(), 1, 4});
  CHECK(same_bits(f.kept, std::vector<float>{-0.0f, 1}));
}

TEST_CASE("sparse compress: what a mask drops is +0, even where it fills up", "[fast]") {
  const std::vector<std::uint8_t> codes = {11, 12, 13, 14, 15, 16, 17, 18};
  const std::vector<std::uint8_t> mask = {0, 0, 1, 0, 0, 0, 0, 0};
  const DenseOperand<std::uint8_t> x{&find_format("int8"), codes.data(), 1, 8, mask.data()};
  const Compressed<std::uint8_t> c = compressed(parse_pattern("2:4"), x);
  CHECK(c.index == std::vector<std::uint8_t>{0, 2, 0, 1});
  CHECK(c.kept == std::vector<std::uint8_t>{0, 13, 0, 0});
  const Compressed<std::uint8_t> pairs = compressed(parse_pattern("4:8.pairwise"), x);
  CHECK(pairs.index == std::vector<std::uint8_t>{0, 1, 2, 3});
  CHECK(pairs.kept == std::vector<std::uint8_t>{0, 0, 13, 0});

  const std::vector<std::uint8_t> signs = {1, 0, 1, 0, 1, 0, 1, 0};
  const DenseOperand<std::uint8_t> no_zero{&find_format("sign1"), signs.data(), 1, 8, mask.data()};
  CHECK_THROWS_WITH(
      compressed(parse_pattern("2:4"), no_zero),
      "row 0, group 0 (k 0 to 3): the mask keeps 1 elements, and sign1 has no zero to "
      "pad them to 2");
}

TEST_CASE("sparse compress: the first violation is named", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  std::vector<std::uint16_t> codes(3 * 80);
  codes[1 * 80 + 76] = codes[1 * 80 + 77] = codes[1 * 80 + 79] = 1;  // row 1, group 19
  codes[2 * 80] = codes[2 * 80 + 1] = codes[2 * 80 + 2] = 1;
  DenseOperand<std::uint16_t> x{&find_format("bfloat16"), codes.data(), 3, 80};
  const auto violation = first_violation(p, x);
  REQUIRE(violation.has_value());
  CHECK(violation->row == 1);
  CHECK(violation->group == 19);
  CHECK(violation->kept == 3);
  CHECK_THROWS_WITH(compressed(p, x),
                    "row 1, group 19 (k 76 to 79): 3 elements are not zeros; 2:4 keeps at most 2");
  const std::vector<std::uint8_t> mask(3 * 80, 1);
  x.mask = mask.data();
  CHECK_THROWS_WITH(
      compressed(p, x),
      "row 0, group 0 (k 0 to 3): 4 elements are kept by the mask; 2:4 keeps at most 2");
  x.mask = nullptr;
  codes.assign(codes.size(), 0);
  codes[80] = codes[82] = codes[84] = 1;
  CHECK_THROWS_WITH(compressed(parse_pattern("4:8.pairwise"), x),
                    "row 1, group 0 (k 0 to 7): 6 elements are in non-zero pairs; "
                    "4:8.pairwise keeps at most 4");
}

TEST_CASE("sparse compress: tails, containers and formats without zero are refused", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::vector<std::uint8_t> codes(12);
  std::vector<std::uint8_t> out(12), index = {0, 1, 0, 1};
  const Format &int8 = find_format("int8"), &sign = find_format("sign1");
  const std::string tail = "2:4: K = 6 is not a multiple of the group, 4 elements";
  const DenseOperand<std::uint8_t> short_rows{&int8, codes.data(), 2, 6};
  CHECK_THROWS_WITH(first_violation(p, short_rows), tail);
  CHECK_THROWS_WITH(compress(p, short_rows, out.data(), index.data()), tail);
  CHECK_THROWS_WITH(expand(p, int8, codes.data(), index.data(), 2, 6, out.data()), tail);
  const DenseOperand<std::uint8_t> wide{&find_format("float16"), codes.data(), 1, 4};
  CHECK_THROWS_WITH(first_violation(p, wide),
                    "format float16 is stored in 2 byte(s): expected an array of these, got 1");
  CHECK_THROWS_AS(first_violation(Pattern{}, DenseOperand<std::uint8_t>{&int8, codes.data(), 1, 4}),
                  Error);
  CHECK_THROWS_WITH(expand(p, sign, codes.data(), index.data(), 1, 8, out.data()),
                    "format sign1 has no zero to expand 2:4 with");
  // Every code of sign1 is a number other than zero.
  CHECK(first_violation(p, DenseOperand<std::uint8_t>{&sign, codes.data(), 1, 4})->kept == 4);
}

TEST_CASE("sparse compress: hostile indices never leave their group", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::vector<std::uint8_t> kept = {1, 2, 3, 4}, hostile = {0, 1, 2, 200};
  std::vector<std::uint8_t> dense(8, 9);
  CHECK_THROWS_WITH(expand(p, find_format("int8"), kept.data(), hostile.data(), 1, 8, dense.data()),
                    Catch::StartsWith("meta row 0, position 3: index 200"));
  CHECK(dense == std::vector<std::uint8_t>(8, 9));
}

TEST_CASE("sparse compress: empty operands", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const DenseOperand<float> none{&find_format("float32"), nullptr, 0, 4};
  CHECK_FALSE(first_violation(p, none).has_value());
  CHECK_NOTHROW(compress<float>(p, none, nullptr, nullptr));
  const DenseOperand<float> flat{&find_format("float32"), nullptr, 3, 0};
  CHECK_NOTHROW(compress<float>(p, flat, nullptr, nullptr));
}

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

}  // namespace compress_test
