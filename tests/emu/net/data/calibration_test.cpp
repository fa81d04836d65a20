// More calibration samples: the first of training, under a digest of their own.
#include "emu/net/data/calibration.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::calibration_test {

TEST_CASE("calibration samples are the first training samples, as many as asked for", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const std::int64_t count = data.train_count();
  REQUIRE(count > data.calibration_count());
  const Dataset more = with_calibration(data, count);
  CHECK(more.calibration_count() == count);
  CHECK(more.test_count() == data.test_count());
  CHECK(more.digest() != data.digest());
  Targets calibration, train;
  CHECK(more.calibration_batch(count - 1, 1, calibration).data ==
        data.train_batch({count - 1}, train).data);
  CHECK(with_calibration(data, data.calibration_count()).digest() == data.digest());
  for (const std::int64_t wrong : {std::int64_t{0}, count + 1})
    CHECK_THAT(numemu::test::message_of([&] { with_calibration(data, wrong); }),
               Catch::Contains("calibration: expected 1 to "));
}

}  // namespace numemu::net::calibration_test
