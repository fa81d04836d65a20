// The census of masks against a map of strings, and the history against counts by hand.
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "experiments/mask_diversity/mask_count.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;

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
