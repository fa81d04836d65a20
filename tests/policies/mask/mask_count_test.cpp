// Mask counts: the published table, its log10, brute force for small tiles, and the bound.
#include "policies/mask/mask_count.hpp"

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
using namespace numemu::policies;
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
  CHECK(numemu::test::message_of([&] { transposable_count(pairs); }) ==
        "mask diversity: expected a pattern of single elements, not 4:8.pairwise");
  CHECK(numemu::test::message_of([] { unstructured_count(4, 5); }) ==
        "mask diversity: expected 0 to 4 kept elements, found 5");
  CHECK(numemu::test::message_of([] {
          mask_diversity(MaskFamily::transposable, pattern(2, 4), 40);
        }) == "mask diversity: expected a multiple of 16 elements, found 40");
  CHECK(numemu::test::message_of([] {
          mask_diversity(MaskFamily::unstructured, pattern(2, 4), 6);
        }) == "mask diversity: expected a multiple of 4 elements for 2:4, found 6");
  CHECK(numemu::test::message_of([] { piece_count(MaskFamily::unstructured, pattern(1, 2)); }) ==
        "mask diversity: an unstructured mask has no pieces");
  CHECK_FALSE(numemu::test::message_of([] { transposable_count(pattern(8, 17)); }).empty());
}

}  // namespace mask_count_test
