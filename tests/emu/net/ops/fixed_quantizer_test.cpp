// Quantizers with scales of the network: integers, values, ranges, axes, straight-through
// gradients.
#include "emu/net/ops/fixed_quantizer.hpp"

#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::fixed_quantizer_test {
namespace {

Tensor vector_of(std::vector<float> data) {
  Tensor out({static_cast<std::int64_t>(data.size())});
  out.data = std::move(data);
  return out;
}

TEST_CASE("integers round to even, move by the zero point and stay in their range", "[fast]") {
  const std::vector<float> x{0.25f, 0.75f, 1.25f, -0.25f, -0.75f, 100, -100, 1e30f, -1e30f};
  const FixedQuantizer q({.dequantizes = false, .low = 0, .high = 255}, vector_of({0.5f}),
                         vector_of({128}));
  CHECK(test::forward_of(q, x).data == std::vector<float>{128, 130, 130, 128, 126, 255, 0, 255, 0});
  const FixedQuantizer both({.low = 0, .high = 255}, vector_of({0.5f}), vector_of({128}));
  CHECK(test::forward_of(both, x).data ==
        std::vector<float>{0, 1, 1, 0, -1, 63.5f, -64, 63.5f, -64});
  const FixedQuantizer back({.quantizes = false}, vector_of({0.5f}), vector_of({3}));
  CHECK(test::forward_of(back, {3, 4, -128}).data == std::vector<float>{0, 0.5f, -65.5f});
}

TEST_CASE("values of a format: the quotient in float32, ties to the even code, saturated",
          "[fast]") {
  const Format& format = find_format("float8_e4m3fn");
  const FixedQuantizer q({.low = -448, .high = 448, .format = &format}, vector_of({0.5f}),
                         vector_of({0}));
  // In units of the scale: 8.5 lies between 8 and 9, 9.5 between 9 and 10.
  const std::vector<float> x{4.25f, 4.75f, -1e9f, 0, 0.3f, 1e9f};
  CHECK(test::forward_of(q, x).data == std::vector<float>{4, 5, -224, 0, 0.3125f, 224});
  const FixedQuantizer values({.dequantizes = false, .low = -448, .high = 448, .format = &format},
                              vector_of({0.5f}), vector_of({0}));
  CHECK(test::forward_of(values, x).data == std::vector<float>{8, 10, -448, 0, 0.625f, 448});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(test::forward_of(q, {nan}).data[0]));
  const FixedQuantizer half({.dequantizes = false,
                             .low = -65504,
                             .high = 65504,
                             .format = &find_format("float16"),
                             .overflow = Overflow::ieee},
                            vector_of({1}), vector_of({0}));
  CHECK(test::forward_of(half, {1e6f, 65519}).data == std::vector<float>{HUGE_VALF, 65504});
}

TEST_CASE("scales of float16: quotient and result are rounded to float16", "[fast]") {
  const Format& half = find_format("float16");
  // Scale 0x1.998p-4, just below 0.1. 0.25 / scale is 2.50061 (float16: 2.5, ties to 2 in place of
  // 3), and 51 times the scale is 5.09875, between 5.09766 and 5.1015625.
  const float scale = 0x1.998p-4f;
  const FixedQuantizer fine({.dequantizes = false}, vector_of({scale}), vector_of({0}));
  const FixedQuantizer coarse({.dequantizes = false, .precision = &half}, vector_of({scale}),
                              vector_of({0}));
  CHECK(test::forward_of(fine, {0.25f, 0.2f}).data == std::vector<float>{3, 2});
  CHECK(test::forward_of(coarse, {0.25f, 0.2f}).data == std::vector<float>{2, 2});
  const FixedQuantizer back({.quantizes = false, .precision = &half}, vector_of({scale}),
                            vector_of({1}));
  CHECK(test::forward_of(back, {52, 1}).data == std::vector<float>{0x1.464p+2f, 0});
  const FixedQuantizer both({.high = 100, .precision = &half}, vector_of({scale}), vector_of({0}));
  CHECK(test::forward_of(both, {0.25f, 1e6f}).data == std::vector<float>{2 * scale, 10});
  // 60000 / 2^-10 is infinite in float16, held at the largest integer.
  const FixedQuantizer far({.dequantizes = false, .precision = &half}, vector_of({0x1p-10f}),
                           vector_of({0}));
  CHECK(test::forward_of(far, {60000, -60000}).data == std::vector<float>{127, -128});
}

TEST_CASE("scales vary along their axis", "[fast]") {
  FixedQuantizer op({.axis = 1}, vector_of({1, 2}), vector_of({0, 1}));
  Tensor x({2, 2, 2});
  x.data = {0.6f, 1.4f, 3, 5, -0.6f, 1e6f, -1e6f, 0};
  Numerics numerics;
  const test::OpResult result = test::run_op(op, {x}, numerics);
  CHECK(result.output.data == std::vector<float>{1, 1, 4, 4, -1, 127, -258, 0});
  const std::vector<float>& g = result.grad_output.data;
  CHECK(result.grad_inputs[0].data == std::vector<float>{g[0], g[1], g[2], g[3], g[4], 0, 0, g[7]});
}

TEST_CASE("fixed quantizers have the same bits on any number of threads", "[fast]") {
  test::check_threads(FixedQuantizer({.axis = 1}, vector_of({0.01f, 0.02f}), vector_of({0, 1})),
                      {test::random_tensor({50, 2, 300}, 2)});
}

TEST_CASE("dequantizing takes scales of any sign", "[fast]") {
  const FixedQuantizer op({.quantizes = false}, vector_of({-0.5f}), vector_of({1}));
  Tensor x({2});
  x.data = {3, -1};
  Numerics numerics;
  CHECK(test::run_op(op, {x}, numerics).output.data == std::vector<float>{-1, 1});
  CHECK_THROWS_WITH(FixedQuantizer({.quantizes = false}, vector_of({NAN}), vector_of({0})),
                    Catch::Contains("finite scales"));
}

TEST_CASE("fixed quantizers refuse scales that do not fit", "[fast]") {
  CHECK_THROWS_WITH(FixedQuantizer({}, vector_of({0}), vector_of({0})),
                    Catch::Contains("positive scales"));
  CHECK_THROWS_WITH(FixedQuantizer({}, vector_of({1, 1}), vector_of({0})),
                    Catch::Contains("as many zero points"));
  const std::vector<Shape> wrong{{2, 3}};
  CHECK_THROWS_WITH(
      FixedQuantizer({.axis = 1}, vector_of({1, 1}), vector_of({0, 0})).output_shape(wrong),
      Catch::Contains("axis 1"));
}

}  // namespace
}  // namespace numemu::net::fixed_quantizer_test
