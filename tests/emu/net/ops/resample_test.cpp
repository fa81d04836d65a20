// Weighted sums of neighbours along axes, and their gradients.
#include "emu/net/ops/resample.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

const Resampling kRows{
    .axis = 1, .taps = 2, .places = {0, 1, 1, 2, 2, 2}, .weights = {0.5, 0.5, 0.25, 0.75, 1, 0.5}};
const Resampling kColumns{.axis = 2, .taps = 1, .places = {1, 0}, .weights = {2, -1}};

TEST_CASE("resampling two axes and its gradient", "[fast]") {
  const Shape shape{2, 3, 2};
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (std::size_t t = 0; t < 2; ++t)
            sum += kRows.weights[2 * i + t] * kColumns.weights[j] *
                   arguments[0][n * 6 + kRows.places[2 * i + t] * 2 + kColumns.places[j]];
          y.push_back(sum);
        }
      }
    }
    return y;
  };
  Resample op({kRows, kColumns});
  constexpr double kTolerance = 4 * 0x1p-24;  // one rounding of sums below 4
  test::check_op(op, {test::random_tensor(shape, 1)}, reference, kTolerance);
}

TEST_CASE("resampling has the same bits on any number of threads", "[fast]") {
  test::check_threads(Resample({kRows}), {test::random_tensor({100, 3, 50}, 2)});
}

TEST_CASE("resampling refuses places that are not there", "[fast]") {
  const std::vector<Shape> narrow{{2, 2, 2}};
  CHECK_THROWS_WITH(Resample({kRows}).output_shape(narrow), Catch::Contains("axis 1"));
  CHECK_THROWS_WITH(Resample({{.axis = 0, .taps = 2, .places = {0, 1}, .weights = {1}}}),
                    Catch::Contains("every tap"));
}

}  // namespace
}  // namespace numemu::net
