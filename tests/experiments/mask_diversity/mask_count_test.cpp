// Mask counts: the published table, its log10, brute force for small tiles, and the bound. Kinds of
// masks: every mask of small tiles is sorted into kinds, each of its stated size. The census of
// masks against a map of strings, and the history against counts by hand.
#include "experiments/mask_diversity/mask_count.hpp"

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

namespace mask_count_test {

using namespace numemu;
using namespace numemu::experiments;
using unit::Pattern;

namespace {

Pattern pattern(int kept, int group) {
  Pattern p;
  p.kept = kept;
  p.group = group;
  return p;
}

std::string exact(int m, int n) { return transposable_count(pattern(n, m)).decimal; }

std::string diversity(MaskFamily family, int kept, int group) {
  return mask_diversity(family, pattern(kept, group), 64).decimal;
}

}  // namespace

TEST_CASE("transposable masks, exactly (specification 2b)", "[fast]") {
  CHECK(exact(2, 1) == "2");
  CHECK(exact(4, 1) == "24");
  CHECK(exact(4, 2) == "90");
  CHECK(exact(6, 3) == "297200");
  CHECK(exact(8, 2) == "187530840");
  CHECK(exact(8, 4) == "116963796250");
  CHECK(exact(16, 8) == "34812290428176298285394893936773707951192224124239796250");
}

TEST_CASE("4 x 4 tiles: 90 of the 65536 matrices", "[fast]") {
  int count = 0;
  for (std::uint32_t tile = 0; tile < 1U << 16; ++tile) {
    bool good = true;
    for (int i = 0; i < 4; ++i) {
      good = good && std::popcount(tile >> 4 * i & 0xFU) == 2 &&
             std::popcount(tile >> i & 0x1111U) == 2;
    }
    count += good;
  }
  CHECK(std::to_string(count) == exact(4, 2));
}

TEST_CASE("what is pruned of a transposable mask is one, too", "[fast]") {
  for (const int m : {7, 8, 12}) {
    for (int n = 1; n < m; ++n) CHECK(exact(m, n) == exact(m, m - n));
    CHECK(exact(m, m) == "1");
  }
  // Permutation matrices; and 2-regular ones by the recurrence of Anand, Dumir and Gupta (1966):
  // H(n) = n (n - 1) / 2 (2 H(n - 1) + (n - 1) H(n - 2)).
  CHECK(exact(16, 1) == "20922789888000");
  std::int64_t before = 1, last = 0;  // n = 0, 1
  for (std::int64_t n = 2; n <= 12; ++n) {
    const std::int64_t next = n * (n - 1) / 2 * (2 * last + (n - 1) * before);
    CHECK(exact(static_cast<int>(n), 2) == std::to_string(next));
    before = last;
    last = next;
  }
}

TEST_CASE("the published count is an upper bound but for two of ten or more", "[fast]") {
  CHECK(transposable_bound(pattern(1, 2)).decimal == "2");
  CHECK(transposable_bound(pattern(2, 4)).decimal == "144");
  CHECK(transposable_bound(pattern(4, 8)).decimal == "17557585920000");
  for (int m = 3; m <= 12; ++m) {
    CHECK(transposable_bound(pattern(1, m)).decimal == exact(m, 1));
    for (int n = 2; n <= m; ++n) {
      INFO(n << ":" << m);
      const bool holds =
          transposable_bound(pattern(n, m)).log10 > transposable_count(pattern(n, m)).log10;
      // 10! 9! = 1316818944000 is less than R(10, 2).
      CHECK(holds == !(n == 2 && m >= 10));
    }
  }
  CHECK(exact(10, 2) == "1371785398200");
}

TEST_CASE("mask diversity of 64 elements (specification 2b)", "[fast]") {
  using F = MaskFamily;
  CHECK(diversity(F::unstructured, 2, 4) == "1832624140942590534");
  CHECK(diversity(F::unstructured, 1, 2) == "1832624140942590534");
  CHECK(diversity(F::group, 1, 2) == "4294967296");
  CHECK(diversity(F::group, 2, 4) == "2821109907456");
  CHECK(diversity(F::group, 4, 8) == "576480100000000");
  CHECK(diversity(F::group, 1, 4) == "4294967296");
  CHECK(diversity(F::group, 8, 16) == "27435582641610000");  // 12870^4
  CHECK(diversity(F::transposable, 1, 2) == "65536");
  CHECK(diversity(F::transposable, 2, 4) == "65610000");
  CHECK(diversity(F::transposable, 4, 8) == "116963796250");
  CHECK(diversity(F::transposable, 1, 4) == "331776");
  CHECK(diversity(F::sequential, 1, 2) == "4294967296");
  CHECK(diversity(F::sequential, 2, 4) == "43046721");
  CHECK(diversity(F::sequential, 4, 8) == "390625");
  // With the bound the published order of 4:8-T and 2:4; the exact count reverses it.
  CHECK(diversity(F::transposable_bound, 1, 2) == "65536");
  CHECK(diversity(F::transposable_bound, 2, 4) == "429981696");
  CHECK(diversity(F::transposable_bound, 4, 8) == "17557585920000");
  CHECK(log10_per_block(F::transposable_bound, pattern(4, 8)) >
        log10_per_block(F::group, pattern(2, 4)));
  CHECK(log10_per_block(F::transposable, pattern(4, 8)) < log10_per_block(F::group, pattern(2, 4)));
}

TEST_CASE("log10 per 8 x 8 block (specification 2f.6)", "[fast]") {
  using F = MaskFamily;
  constexpr double kPrinted = 5e-6;
  const struct {
    F family;
    int kept, group;
    double log10;
  } rows[] = {{F::unstructured, 1, 2, 18.26307},
              {F::group, 4, 8, 14.76078},
              {F::group, 2, 4, 12.45042},
              {F::transposable, 4, 8, 11.06805},
              {F::transposable, 2, 4, 7.81697}};
  for (const auto& row : rows) {
    const Pattern p = pattern(row.kept, row.group);
    INFO(to_string(row.family) << " " << to_string(p));
    CHECK(std::fabs(log10_per_block(row.family, p) - row.log10) <= kPrinted);
    CHECK(std::fabs(mask_diversity(row.family, p, 64).log10 - row.log10) <= kPrinted);
  }
  // A tile of 256 elements spreads over four blocks.
  CHECK(log10_per_block(F::transposable, pattern(8, 16)) ==
        Approx(transposable_count(pattern(8, 16)).log10 / 4).epsilon(1e-15));
}

TEST_CASE("logarithms are those of the digits", "[fast]") {
  for (const MaskCount& count :
       {transposable_count(pattern(8, 16)), unstructured_count(1000, 500),
        group_count(pattern(8, 16)), mask_diversity(MaskFamily::group, pattern(2, 4), 1024)}) {
    const double leading = std::stod("0." + count.decimal.substr(0, 17));
    const double digits = static_cast<double>(count.decimal.size());
    CHECK(count.log10 == Approx(digits + std::log10(leading)).epsilon(1e-14));
    CHECK(count.log2 == Approx(count.log10 * std::log2(10.0)).epsilon(1e-14));
  }
  CHECK(sequential_count(pattern(4, 4)).log10 == 0);
  CHECK(sequential_count(pattern(1, 4)).decimal == "2");
}

TEST_CASE("large tensors have logarithms without digits", "[fast]") {
  // Exact up to 6000 elements, from log-gamma above: the steps between neighbours agree.
  const MaskCount digits = unstructured_count(6000, 3000), logs = unstructured_count(6002, 3001);
  CHECK_FALSE(digits.decimal.empty());
  CHECK(logs.decimal.empty());
  const double step = std::log10(6001.0 * 6002.0 / (3001.0 * 3001.0));
  // log-gamma of 6000 is 5e4, known to a few 1e-16 of it.
  CHECK(std::fabs(logs.log10 - digits.log10 - step) < 1e-10);
  CHECK(logs.log2 - digits.log2 == Approx(step * std::log2(10.0)).epsilon(1e-8));
  const MaskCount tensor = mask_diversity(MaskFamily::group, pattern(2, 4), 1 << 20);
  CHECK(tensor.decimal.empty());
  CHECK(tensor.log10 == Approx((1 << 18) * std::log10(6.0)).epsilon(1e-15));
}

TEST_CASE("pieces and what does not fit", "[fast]") {
  CHECK(piece_size(MaskFamily::group, pattern(2, 4)) == 4);
  CHECK(piece_size(MaskFamily::transposable, pattern(2, 4)) == 16);
  CHECK(piece_count(MaskFamily::sequential, pattern(4, 8)).decimal == "5");
  Pattern pairs = pattern(4, 8);
  pairs.pairwise = true;
  CHECK(group_count(pairs).decimal == "6");
  CHECK(test::message_of([&] { transposable_count(pairs); }) ==
        "mask diversity: expected a pattern of single elements, not 4:8.pairwise");
  CHECK(test::message_of([] { unstructured_count(4, 5); }) ==
        "mask diversity: expected 0 to 4 kept elements, found 5");
  CHECK(test::message_of([] { mask_diversity(MaskFamily::transposable, pattern(2, 4), 40); }) ==
        "mask diversity: expected a multiple of 16 elements, found 40");
  CHECK(test::message_of([] { mask_diversity(MaskFamily::unstructured, pattern(2, 4), 6); }) ==
        "mask diversity: expected a multiple of 4 elements for 2:4, found 6");
  CHECK(test::message_of([] { piece_count(MaskFamily::unstructured, pattern(1, 2)); }) ==
        "mask diversity: an unstructured mask has no pieces");
  CHECK_FALSE(test::message_of([] { transposable_count(pattern(8, 17)); }).empty());
}

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

}  // namespace mask_count_test
