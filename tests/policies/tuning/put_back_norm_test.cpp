// A norm put back after a layer, against the published vector and its own definition.
#include "policies/tuning/put_back_norm.hpp"

#include "tests/catch.hpp"

namespace put_back_norm_test {

using namespace numemu::policies;

TEST_CASE("a norm that is put back is the published vector", "[fast]") {
  // specs/quantization.md 6f.4: gamma 2, beta .5, mean' .3, var' 1.7, b 0.
  const PutBackNorm norm = put_back_norm({.5, 4}, {.3, 1.7}, 1e-5);
  CHECK(norm.factor == Approx(1.5339273835615).epsilon(1e-13));
  CHECK(norm.shift == Approx(.0398217849316).epsilon(1e-11));
}

TEST_CASE("a norm that finds what is wanted changes nothing", "[fast]") {
  const PutBackNorm norm = put_back_norm({-1.5, .25}, {-1.5, .25});
  CHECK(norm.factor == 1);
  CHECK(norm.shift == 0);
}

TEST_CASE("a channel that does not vary any more keeps its weights", "[fast]") {
  const PutBackNorm norm = put_back_norm({2, 9}, {.5, 0});
  CHECK(norm.factor == 1);
  CHECK(norm.shift == 1.5);
}

}  // namespace put_back_norm_test
