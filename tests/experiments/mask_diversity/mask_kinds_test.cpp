// Kinds of masks: every mask of small tiles is sorted into kinds, each of its stated size.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "experiments/mask_diversity/mask_count.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;

namespace {

struct Seen {
  std::int64_t masks = 0, size = 0;
};

using Kinds = std::map<std::uint64_t, Seen>;

/// Every mask with `kept` in each row and column, row by row.
void sort_masks(int m, int kept, int row, std::uint64_t mask, std::vector<int>& columns,
                Kinds& kinds) {
  if (row == m) {
    const MaskKind kind = kind_of(mask, m);
    Seen& seen = kinds[kind.canonical];
    ++seen.masks;
    if (seen.size == 0) seen.size = kind.size;
    if (seen.size != kind.size) seen.size = -1;  // masks of a kind agree on its size
    return;
  }
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << m; ++bits) {
    if (std::popcount(bits) != kept) continue;
    bool good = true;
    for (int j = 0; j < m; ++j) {
      columns[j] += static_cast<int>(bits >> j & 1U);
      good = good && columns[j] <= kept && kept - columns[j] <= m - 1 - row;
    }
    if (good) sort_masks(m, kept, row + 1, mask | bits << (row * m), columns, kinds);
    for (int j = 0; j < m; ++j) columns[j] -= static_cast<int>(bits >> j & 1U);
  }
}

Kinds kinds_of(int kept, int m) {
  std::vector<int> columns(static_cast<std::size_t>(m));
  Kinds kinds;
  sort_masks(m, kept, 0, 0, columns, kinds);
  return kinds;
}

void check_kinds(int kept, int m, std::size_t count) {
  INFO(kept << ":" << m);
  const Kinds kinds = kinds_of(kept, m);
  CHECK(kinds.size() == count);
  std::int64_t masks = 0;
  for (const auto& [canonical, seen] : kinds) {
    CHECK(seen.masks == seen.size);
    masks += seen.masks;
  }
  CHECK(std::to_string(masks) == transposable_count({{kept, m}, false}).decimal);
}

}  // namespace

TEST_CASE("2:4-T: 72 masks are one cycle, 18 two", "[fast]") {
  const Kinds kinds = kinds_of(2, 4);
  REQUIRE(kinds.size() == 2);
  std::vector<std::int64_t> sizes;
  for (const auto& [canonical, seen] : kinds) sizes.push_back(seen.size);
  std::sort(sizes.begin(), sizes.end());
  CHECK(sizes == std::vector<std::int64_t>{18, 72});
}

TEST_CASE("every mask of small tiles has a kind as large as it says", "[fast]") {
  // Two in each row and column: the ways to write M as a sum of cycles of at least 2.
  check_kinds(1, 1, 1);
  check_kinds(1, 2, 1);
  check_kinds(1, 5, 1);
  check_kinds(2, 2, 1);
  check_kinds(2, 3, 1);
  check_kinds(2, 5, 2);
  check_kinds(3, 5, 2);
}

TEST_CASE("every mask of 6 x 6 tiles", "[slow]") {
  check_kinds(2, 6, 4);
  check_kinds(3, 6, 7);
}

TEST_CASE("permutations keep the kind of 8 x 8 masks", "[fast]") {
  constexpr int kSize = 8;
  std::mt19937_64 random(6);
  for (int round = 0; round < 200; ++round) {
    // Any mask at all: sums need not be equal.
    const std::uint64_t mask = random() & random();
    int rows[kSize], columns[kSize];
    std::iota(rows, rows + kSize, 0);
    std::iota(columns, columns + kSize, 0);
    std::shuffle(rows, rows + kSize, random);
    std::shuffle(columns, columns + kSize, random);
    std::uint64_t permuted = 0;
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j)
        permuted |= (mask >> (rows[i] * kSize + columns[j]) & 1U) << (i * kSize + j);
    }
    const MaskKind kind = kind_of(mask, kSize), same = kind_of(permuted, kSize);
    CHECK(kind.canonical == same.canonical);
    CHECK(kind.size == same.size);
    CHECK(kind_of(mask ^ 1U, kSize).canonical != kind.canonical);  // another number of elements
  }
}

TEST_CASE("kinds of 8 x 8 masks with symmetries", "[fast]") {
  // Two full 4 x 4 tiles on the diagonal: choose four rows and four columns, halved.
  std::uint64_t blocks = 0;
  for (int i = 0; i < 8; ++i)
    blocks |= (i < 4 ? std::uint64_t{0x0F} : std::uint64_t{0xF0}) << 8 * i;
  CHECK(kind_of(blocks, 8).size == 70 * 70 / 2);
  CHECK(kind_of(0, 8).size == 1);
  CHECK(kind_of(~std::uint64_t{0}, 8).size == 1);
  CHECK(kind_of(1, 8).size == 64);
  CHECK(kind_of(0x8040201008040201U, 8).size == 40320);  // permutation matrices
  CHECK(kind_of(1, 1).size == 1);
}

TEST_CASE("tiles beyond a word are refused", "[fast]") {
  CHECK(test::message_of([] { kind_of(0, 9); }) ==
        "mask kinds: expected tiles of 1 to 8 rows, not 9");
  CHECK_THAT(test::message_of([] { kind_of(0, 0); }), Catch::EndsWith("not 0"));
}
