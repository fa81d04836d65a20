// Cases with every outcome that the runner of tests tells apart; runner_test.sh runs them.
#include "tests/catch.hpp"

TEST_CASE("passes", "[fast]") { CHECK(true); }

TEST_CASE("skips", "[fast][shared]") { WARN("skipped: no such silicon"); }

TEST_CASE("fails after a skipped one", "[slow]") {
  WARN("skipped: half of it");
  CHECK(1 + 1 == 3);
}
