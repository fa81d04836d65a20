// Kinds of masks: every mask of small tiles is sorted into kinds, each of its stated size. The
// census of masks against a map of strings, and the history against counts by hand.
#include "experiments/mask_diversity/pieces.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace mask_census_test {

using namespace numemu;
using namespace numemu::experiments;
using policies::transposable_count;

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
  constexpr std::size_t kKinds[5][5] = {{1}, {1, 1}, {1, 1, 1}, {1, 2, 1, 1}, {1, 2, 2, 1, 1}};
  for (int m = 1; m <= 5; ++m)
    for (int n = 1; n <= m; ++n) check_kinds(n, m, kKinds[m - 1][n - 1]);
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

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Pieces of so many elements, each one of `kinds` random masks.
Bytes random_pieces(std::int64_t piece, std::int64_t pieces, std::int64_t kinds,
                    std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes masks(static_cast<std::size_t>(piece * kinds)), keep;
  for (std::uint8_t& k : masks) k = random() >> 63;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const auto from = static_cast<std::ptrdiff_t>(random() % static_cast<std::uint64_t>(kinds));
    keep.insert(keep.end(), masks.begin() + from * piece, masks.begin() + (from + 1) * piece);
  }
  return keep;
}

}  // namespace

TEST_CASE("a census counts what a map counts, for any size of piece", "[fast]") {
  for (const std::int64_t piece : {1, 2, 4, 16, 63, 64, 65, 128, 200, 256, 1023, 1024}) {
    INFO("piece of " << piece);
    constexpr std::int64_t kPieces = 500;
    const Bytes keep = random_pieces(piece, kPieces, 120, static_cast<std::uint64_t>(piece));
    MaskCensus census(piece);
    census.add(keep.data(), 300);
    census.add(keep.data() + 300 * piece, kPieces - 300);
    std::map<std::string, std::int64_t> expected;
    std::vector<std::string> order;
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < kPieces; ++i) {
      const std::string key(keep.begin() + i * piece, keep.begin() + (i + 1) * piece);
      if (expected[key]++ == 0) order.push_back(key);
    }
    for (const std::uint8_t k : keep) kept += k;
    CHECK(census.pieces() == kPieces);
    REQUIRE(census.distinct() == static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(census.counts()[i] == expected[order[i]]);
    CHECK(census.kept() == static_cast<double>(kept) / static_cast<double>(keep.size()));
  }
}

TEST_CASE("masks that differ in one element are different", "[fast]") {
  for (const std::int64_t piece : {5, 64, 100, 1024}) {
    MaskCensus census(piece);
    for (std::int64_t i = 0; i < piece; ++i) {
      Bytes keep(static_cast<std::size_t>(piece));
      keep[static_cast<std::size_t>(i)] = 1;
      census.add(keep.data(), 1);
      census.add(keep.data(), 1);
    }
    CHECK(census.distinct() == piece);
    CHECK(census.entropy().plug_in == Approx(std::log2(piece)));
  }
}

TEST_CASE("entropy of a census by hand", "[fast]") {
  // 1:2 pairs: three keep the first, one keeps the second.
  const Bytes keep = {1, 0, 1, 0, 0, 1, 1, 0};
  MaskCensus census(2);
  CHECK(census.kept() == 0);
  census.add(keep.data(), 4);
  CHECK(census.kept() == 0.5);
  CHECK(census.mask(0) == 1);
  CHECK(census.mask(1) == 2);
  const double plug_in = 0.75 * std::log2(4 / 3.0) + 0.25 * 2;
  CHECK(census.entropy().plug_in == Approx(plug_in).epsilon(1e-15));
  CHECK(census.bits_per_element() ==
        Approx((plug_in + 1 / (8 * std::log(2.0))) / 2).epsilon(1e-15));
  CHECK(census.collision_entropy().collisions == 3);
  CHECK(test::message_of([] { MaskCensus(3).bits_per_element(); }) ==
        "entropy: expected at least one draw");
}

TEST_CASE("flips and distinct masks over training", "[fast]") {
  const Bytes first = {1, 0, 0, 1, 1, 0, 1, 0}, second = {1, 0, 1, 0, 1, 0, 1, 0};
  CHECK(flip_rate(first.data(), second.data(), 8) == 0.25);
  CHECK(flip_rate(first.data(), first.data(), 8) == 0);
  CHECK(flip_rate(nullptr, nullptr, 0) == 0);
  MaskHistory history(2, 8);
  CHECK(history.pieces() == 4);
  CHECK(history.distinct_per_piece() == 0);
  history.add(first.data());
  CHECK(history.flip_rates().empty());
  CHECK(history.distinct_per_piece() == 1);
  history.add(second.data());
  history.add(first.data());
  history.add(first.data());
  CHECK(history.masks() == 4);
  CHECK(history.flip_rates() == std::vector<double>{0.25, 0.25, 0});
  CHECK(history.distinct_per_piece() == 5.0 / 4);  // one of the four pairs had two
}

TEST_CASE("a history tells pieces apart, for any size of piece", "[fast]") {
  for (const std::int64_t piece : {4, 64, 256, 1024}) {
    constexpr std::int64_t kPieces = 30, kMasks = 20;
    MaskHistory history(piece, piece * kPieces);
    std::set<std::pair<std::int64_t, std::string>> expected;
    for (std::uint64_t m = 0; m < kMasks; ++m) {
      const Bytes keep = random_pieces(piece, kPieces, 3, m % 7);
      history.add(keep.data());
      for (std::int64_t i = 0; i < kPieces; ++i)
        expected.emplace(i, std::string(keep.begin() + i * piece, keep.begin() + (i + 1) * piece));
    }
    CHECK(history.distinct_per_piece() ==
          static_cast<double>(expected.size()) / static_cast<double>(kPieces));
    CHECK(history.flip_rates().size() == kMasks - 1);
  }
}

TEST_CASE("pieces that cannot be are refused", "[fast]") {
  CHECK(test::message_of([] { MaskCensus(0); }) ==
        "mask census: expected pieces of 1 to 1024 elements, not 0");
  CHECK_THAT(test::message_of([] { MaskCensus(1025); }), Catch::EndsWith("not 1025"));
  CHECK(test::message_of([] { MaskHistory(4, 10); }) ==
        "mask history: expected a multiple of 4 elements, found 10");
}

}  // namespace mask_census_test
