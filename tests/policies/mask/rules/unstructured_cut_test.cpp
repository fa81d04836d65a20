// Unstructured pruning: against a stable sort.
#include <algorithm>
#include <numeric>

#include "policies/mask/kept_bits.hpp"
#include "policies/mask/rules/unstructured.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/group_cases.hpp"

namespace unstructured_cut_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// Positions by magnitude, largest first, equal ones in order.
std::vector<std::size_t> ranked(const std::vector<float>& x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return magnitude_bits(x[a]) > magnitude_bits(x[b]);
  });
  return order;
}

std::vector<std::uint8_t> first_of(const std::vector<std::size_t>& order, std::int64_t kept) {
  std::vector<std::uint8_t> keep(order.size());
  for (std::int64_t i = 0; i < kept; ++i) keep[order[static_cast<std::size_t>(i)]] = 1;
  return keep;
}

Outcome wanted(const std::vector<float>& x, std::int64_t kept) {
  Outcome want{x, first_of(ranked(x), kept)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (want.keep[i] == 0) want.y[i] = 0;
  }
  return want;
}

}  // namespace

TEST_CASE("unstructured: every count of small tensors keeps the first of a stable sort", "[fast]") {
  for (const std::int64_t n : {0, 1, 2, 5, 64, 211}) {
    const std::vector<float> x = mixed_elements(n, static_cast<std::uint32_t>(n));
    const std::vector<std::size_t> order = ranked(x);
    for (std::int64_t kept = 0; kept <= n; ++kept) {
      const Cut cut = find_cut(x.data(), n, kept);
      std::vector<std::uint8_t> keep(x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        keep[i] = cut.keeps(magnitude_bits(x[i]), static_cast<std::int64_t>(i)) ? 1 : 0;
      CAPTURE(n, kept);
      REQUIRE(keep == first_of(order, kept));
    }
  }
}

TEST_CASE("unstructured: larger tensors equal a stable sort, asked in any way", "[fast]") {
  constexpr std::int64_t kSize = 50'001;
  std::vector<float> distinct(kSize);
  std::mt19937 generator(8);
  for (float& v : distinct) v = static_cast<float>(static_cast<std::int32_t>(generator())) * 1e-9F;
  for (const std::vector<float>& x : {mixed_elements(kSize, 9), distinct}) {
    for (const double share : {1e-6, 0.05, 0.5, 0.9, 1 - 1e-6}) {
      const Prune prune = [&](const MaskRun& run) { keep_share(share, run); };
      const Outcome want = wanted(x, kept_of(share, kSize));
      CAPTURE(share);
      REQUIRE(pruned(prune, x, kSize) == want);
      REQUIRE(same_asked_apart(prune, x, kSize, want));
    }
  }
}

TEST_CASE("unstructured: equal elements are kept from the front", "[fast]") {
  const std::vector<float> x = {-1, 1, 1, -1, 1};
  const Outcome got = pruned([](const MaskRun& run) { keep_share(0.5, run); }, x, 5);
  CHECK(got == Outcome{{-1, 1, 1, 0, 0}, {1, 1, 1, 0, 0}});
}

TEST_CASE("unstructured: halves round up", "[fast]") {
  CHECK(kept_of(0.5, 5) == 3);
  CHECK(kept_of(0.5, 4) == 2);
  CHECK(kept_of(0.25, 5) == 1);
  CHECK(kept_of(0.25, 6) == 2);
  CHECK(kept_of(0.1, 4) == 0);
  CHECK(kept_of(0.9, 4) == 4);
  CHECK(kept_of(0.5, 0) == 0);
}

}  // namespace unstructured_cut_test
