// power under broadcasting: values, gradients, special values, threads.
#include "emu/net/ops/power.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("power and its gradients under broadcasting", "[fast]") {
  Power op;
  // Sums of at most 24 gradients below 8, each rounded.
  constexpr double kTolerance = 8 * 24 * 0x1p-23;
  constexpr double kThird = 10 * 24 /* of 24 terms, each below 8 ln(2)^3 and 6 */;
  const std::vector<std::vector<Shape>> cases{{{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}},
                                              {{1}, {2, 3, 4}},       {{2, 1, 4}, {3, 1}},
                                              {{2, 3, 1}, {2, 1, 4}}, {{}, {5}}};
  for (const std::vector<Shape>& shapes : cases) {
    std::vector<Tensor> inputs{test::random_tensor(shapes[0], 1),
                               test::random_tensor(shapes[1], 2)};
    for (Tensor& input : inputs) {
      for (float& v : input.data) v = 1.5f + 0.5f * v;
    }
    // Indices by the definition: coordinates from the last axis on, 0 along axes of extent 1.
    const Shape y = op.output_shape(shapes);
    const auto place = [&](const Shape& shape, std::int64_t i) {
      std::int64_t offset = 0, stride = 1;
      for (std::size_t back = 1; back <= y.size(); ++back) {
        const std::int64_t coordinate = i % y[y.size() - back];
        i /= y[y.size() - back];
        if (back > shape.size()) continue;
        const std::int64_t extent = shape[shape.size() - back];
        offset += extent == 1 ? 0 : coordinate * stride;
        stride *= extent;
      }
      return offset;
    };
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles result;
      for (std::int64_t i = 0; i < element_count(y); ++i) {
        const double a = arguments[0][place(shapes[0], i)], b = arguments[1][place(shapes[1], i)];
        result.push_back(std::pow(a, b));
      }
      return result;
    };
    CAPTURE(to_string(shapes[0]), to_string(shapes[1]));
    test::check_op(op, inputs, reference, kTolerance, {.third = kThird});
  }
}

TEST_CASE("power of special values", "[fast]") {
  Tensor a({4}), b({4});
  a.data = {-2, 0, -1, kAnyNan};
  b.data = {2, -1, 0.5f, 0};
  Numerics numerics;
  CHECK(test::bits(test::run_op(Power(), {a, b}, numerics).output) ==
        std::vector<std::uint32_t>{0x40800000, 0x7f800000, 0x7fc00000, 0x3f800000});
}

TEST_CASE("power has the same bits on any number of threads", "[fast]") {
  test::check_threads(Power(),
                      {test::random_tensor({150, 100}, 2), test::random_tensor({150, 100}, 3)});
  test::check_threads(Power(), {test::random_tensor({150, 100}, 2), test::random_tensor({100}, 3)});
  test::check_threads(Power(),
                      {test::random_tensor({150, 100}, 2), test::random_tensor({150, 1}, 3)});
}

TEST_CASE("power refuses shapes that do not broadcast", "[fast]") {
  const std::vector<Shape> wrong{{2, 3}, {2}}, one{{2}};
  CHECK_THROWS_WITH(Power().output_shape(wrong),
                    Catch::Contains("power") && Catch::Contains("[2, 3], [2]"));
  CHECK_THROWS_WITH(Power().output_shape(one), Catch::Contains("two inputs"));
}

TEST_CASE("the gradients of power at base 0 are finite where the function is smooth", "[fast]") {
  Tensor a({3}), b({3});
  a.data = {0, 0, -3};
  b.data = {0, 2, 2};
  Numerics numerics;
  const test::OpResult result = test::run_op(Power(), {a, b}, numerics);
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 0, -6 * result.grad_output.data[2]});
  CHECK(result.grad_inputs[1].data[0] == 0);
  CHECK(result.grad_inputs[1].data[1] == 0);
}

}  // namespace
}  // namespace numemu::net
