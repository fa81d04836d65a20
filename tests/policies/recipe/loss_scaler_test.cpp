// Loss scales: none, fixed, dynamic.
#include "policies/recipe/loss_scaler.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("a dynamic loss scale halves on overflow and doubles after its interval", "[fast]") {
  LossScaler scaler({LossScale::Kind::dynamic, 1024, 3});
  const std::vector<net::Tensor> good = {net::Tensor({4}, 1)};
  std::vector<net::Tensor> bad = good;
  bad[0].data[3] = -1.0f / 0.0f;
  CHECK(scaler.accept(good));
  CHECK_FALSE(scaler.accept(bad));
  CHECK(scaler.value() == 512);
  CHECK(scaler.skipped() == 1);
  CHECK((scaler.accept(good) && scaler.accept(good)));
  CHECK(scaler.value() == 512);
  LossScaler resumed({LossScale::Kind::dynamic, 1, 3});
  resumed.load("s", scaler.state());
  CHECK(resumed.accept(good));
  CHECK(resumed.value() == 1024);
  CHECK(resumed.skipped() == 1);
  bad[0].data[3] = 0.0f / 0.0f;
  CHECK_FALSE(resumed.accept(bad));
  CHECK_THROWS_AS(resumed.load("s", "12345678"), Error);
}

TEST_CASE("no loss scale and a fixed one skip nothing", "[fast]") {
  const std::vector<net::Tensor> bad = {net::Tensor({1}, 1.0f / 0.0f)};
  LossScaler none({LossScale::Kind::none, 8, 1}), fixed({LossScale::Kind::fixed, 8, 1});
  CHECK(none.value() == 1);
  CHECK(fixed.value() == 8);
  CHECK((none.accept(bad) && fixed.accept(bad)));
  CHECK(fixed.value() == 8);
}
