// Ranks of noisy figures that are known without noise or for two of them.
#include "emu/stats/expected_ranks.hpp"

#include <cmath>

#include "emu/stats/spearman.hpp"
#include "tests/catch.hpp"

namespace numemu::expected_ranks_test {

using namespace numemu::stats;

TEST_CASE("expected shares and correlations", "[fast]") {
  // Two places for three figures, one of which is certain.
  const std::vector<Moments> figures = {{0, 1}, {0, 1}, {100, 1}};
  CHECK(expected_share(figures, {1, 0, 0}, 2) == Approx(0.5));
  CHECK(expected_share(figures, {0, 0, 1}, 2) == Approx(1));
  CHECK(share_of_top({1, 3, 2, 3}, {0, 1, 0, 1}, 1) == 0.5);
  CHECK(share_of_top({1, 3, 2, 3}, {1, 0, 0, 1}, 2) == 0.5);
  // Without noise the order of the means is certain.
  const std::vector<double> exact = {1, 5, 3, 2};
  std::vector<Moments> certain;
  for (const double x : {2.0, 3.0, 4.0, 1.0}) certain.push_back({x, 0});
  CHECK(expected_correlation(exact, certain) == Approx(spearman(exact, {2, 3, 4, 1})));
  // Two figures: P(X > Y) = Phi(1) is right, so that 2 Phi(1) - 1 is expected.
  CHECK(expected_correlation({1, 2}, {{0, 0.5}, {1, 0.5}}) == Approx(std::erf(1 / std::sqrt(2.0))));
}

}  // namespace numemu::expected_ranks_test
