// subtract under broadcasting: values, gradients, special values, threads.
#include "emu/net/ops/subtract.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kAnyNan = std::bit_cast<float>(0xffc12345u);

TEST_CASE("subtract and its gradients under broadcasting", "[fast]") {
  Subtract op;
  // Sums of at most 24 gradients below 2, each rounded.
  constexpr double kTolerance = 2 * 24 * 0x1p-23;
  constexpr double kThird = 0;
  const std::vector<std::vector<Shape>> cases{{{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}},
                                              {{1}, {2, 3, 4}},       {{2, 1, 4}, {3, 1}},
                                              {{2, 3, 1}, {2, 1, 4}}, {{}, {5}}};
  for (const std::vector<Shape>& shapes : cases) {
    std::vector<Tensor> inputs{test::random_tensor(shapes[0], 1),
                               test::random_tensor(shapes[1], 2)};
    for (Tensor& input : inputs) {
      for (float& v : input.data) v *= 1;
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
        result.push_back(a - b);
      }
      return result;
    };
    CAPTURE(to_string(shapes[0]), to_string(shapes[1]));
    test::check_op(op, inputs, reference, kTolerance, {.third = kThird});
  }
}

TEST_CASE("subtract of special values", "[fast]") {
  Tensor a({3}), b({3});
  a.data = {kInfinity, 1, -3e38f};
  b.data = {kInfinity, kAnyNan, 3e38f};
  Numerics numerics;
  CHECK(test::bits(test::run_op(Subtract(), {a, b}, numerics).output) ==
        std::vector<std::uint32_t>{0x7fc00000, 0x7fc00000, 0xff800000});
}

TEST_CASE("subtract has the same bits on any number of threads", "[fast]") {
  test::check_threads(Subtract(),
                      {test::random_tensor({150, 100}, 2), test::random_tensor({150, 100}, 3)});
  test::check_threads(Subtract(),
                      {test::random_tensor({150, 100}, 2), test::random_tensor({100}, 3)});
  test::check_threads(Subtract(),
                      {test::random_tensor({150, 100}, 2), test::random_tensor({150, 1}, 3)});
}

TEST_CASE("subtract refuses shapes that do not broadcast", "[fast]") {
  const std::vector<Shape> wrong{{2, 3}, {2}}, one{{2}};
  CHECK_THROWS_WITH(Subtract().output_shape(wrong),
                    Catch::Contains("subtract") && Catch::Contains("[2, 3], [2]"));
  CHECK_THROWS_WITH(Subtract().output_shape(one), Catch::Contains("two inputs"));
}

}  // namespace
}  // namespace numemu::net
