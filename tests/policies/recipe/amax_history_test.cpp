// The largest magnitudes of the last steps.
#include "policies/recipe/amax_history.hpp"

#include "tests/catch.hpp"

using namespace numemu::policies;

TEST_CASE("a history keeps the largest magnitude of each of its steps", "[fast]") {
  AmaxHistory history;
  CHECK_FALSE(history.largest().has_value());
  history.see(3);
  history.see(2);
  CHECK_FALSE(history.largest().has_value());
  history.end_step(2);
  CHECK(history.largest() == 3);
  history.end_step(2);  // nothing seen: nothing kept
  history.see(1);
  history.end_step(2);
  AmaxHistory resumed;
  resumed.load("h", history.state());
  resumed.see(0.5);
  resumed.end_step(2);
  CHECK(resumed.largest() == 1);
  CHECK(history.largest() == 3);
}
