// Places chosen by correlated workers: published digits, limits, and drawn workers.
#include "experiments/scalecom/scalecom.hpp"

#include <cmath>
#include <cstdint>

#include "formats/analysis/normal_law.hpp"
#include "tests/catch.hpp"

namespace numemu::chosen_places_test {

using namespace numemu::experiments::scalecom;

TEST_CASE("scalecom: contraction and union by correlation", "[fast]") {
  struct Row {
    double rho, contraction, places;
  };
  for (const Row& row : {Row{0, .98069, 7.726}, Row{.5, .94810, 6.129}, Row{.9, .92203, 2.826}}) {
    INFO(row.rho);
    CHECK(contraction(.01, {8, row.rho}) == Approx(row.contraction).margin(6e-6));
    CHECK(union_of_places(.01, {8, row.rho}) == Approx(row.places).margin(6e-4));
  }
}

TEST_CASE("scalecom: limits of equal workers, one worker and independent ones", "[fast]") {
  CHECK(contraction(.01, {8, 1}) == Approx(least_contraction(.01)).epsilon(1e-12));
  CHECK(contraction(.01, {1, 0}) == Approx(least_contraction(.01)).epsilon(1e-12));
  CHECK(contraction(.01, {1'000'000'000, 0}) == Approx(.99).epsilon(1e-9));
  CHECK(union_of_places(.01, {8, 1}) == 1);
  CHECK(union_of_places(.01, {8, .99999}) == Approx(1).margin(0.02));
  CHECK(union_of_places(.01, {1, .7}) == Approx(1).epsilon(1e-9));
  CHECK(union_of_places(.01, {8, 0}) == Approx((1 - std::pow(.99, 8)) / .01).epsilon(1e-9));
}

TEST_CASE("scalecom: places of drawn workers add up as predicted", "[fast]") {
  constexpr std::uint64_t kDraws = 40'000;
  const double share = 0.1, rho = 0.6, t = normal::quantile(1 - share / 2);
  const RandomSource random{.seed = 5, .stream = Stream::vectors};
  double chosen = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    bool any = false;
    const double c = normal::draw(random, 4 * i);
    for (std::uint64_t w = 1; w < 4; ++w)
      any |=
          std::fabs(std::sqrt(rho) * c + std::sqrt(1 - rho) * normal::draw(random, 4 * i + w)) > t;
    chosen += any;
  }
  const double p = share * union_of_places(share, {3, rho});
  CHECK(std::fabs(chosen / kDraws - p) < 4 * std::sqrt(p * (1 - p) / kDraws));
}

}  // namespace numemu::chosen_places_test
