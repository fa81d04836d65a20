// A mean, its standard error and the deviation of the numbers, by hand.
#include "emu/stats/mean.hpp"

#include "tests/catch.hpp"

namespace mean_test {

using numemu::stats::Mean;
using numemu::stats::mean_of;

TEST_CASE("mean: its standard error and the deviation of the numbers", "[fast]") {
  const Mean mean = mean_of({1.0, 2.0, 4.0, 9.0});  // squared distances 9, 4, 0, 25
  CHECK(mean.value == 4);
  CHECK(mean.deviation == std::sqrt(38.0 / 3));
  CHECK(mean.error == std::sqrt(38.0 / 3 / 4));
  CHECK(mean_of(3, [](std::int64_t i) { return 2.0 * static_cast<double>(i); }).deviation == 2);
}

TEST_CASE("mean: a single number has no error", "[fast]") {
  const Mean mean = mean_of({5.0});
  CHECK(mean.value == 5);
  CHECK((std::isnan(mean.error) && std::isnan(mean.deviation)));
}

}  // namespace mean_test
