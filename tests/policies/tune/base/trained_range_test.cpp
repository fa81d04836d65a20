// A trained range: the published quantizer's vectors, its straight-through gradients, and the
// recipe's own quantizer.
#include "policies/tune/base/trained_range.hpp"

#include <omp.h>

#include <cmath>

#include "formats/error.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/tune/base/roles.hpp"

namespace trained_range_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

// Products of a code and a step: one rounding each, and one of the step.
constexpr double kRounding = 0x1p-22;

constexpr TrainedRange::Codes codes(int bits) { return {0, (1 << bits) - 1}; }

net::Tensor vector_of(std::vector<float> values) {
  net::Tensor x({static_cast<std::int64_t>(values.size())});
  x.data = std::move(values);
  return x;
}

void check_values(const TrainedRange& range, const std::vector<double>& expected) {
  net::Tensor y;
  range.quantize(vector_of({-1, -.4f, 0, .3f, .77f, 2}), y);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(double{y.data[i]} == Approx(expected[i]).epsilon(kRounding));
}

}  // namespace

TEST_CASE("trained range: the published quantizer", "[fast]") {
  const TrainedRange four(codes(4), 3, -1);
  CHECK(four.scale(0) == TensorScale{0.2f, 5});
  check_values(four, {-1, -.4, 0, .2, .8, 2});
  check_values(TrainedRange(codes(2), 3, -1), {-1, 0, 0, 0, 1, 2});
  const TrainedRange off(codes(4), 2.95f, -.95f);
  CHECK(off.scale(0).zero_point == 5);
  net::Tensor y;
  off.quantize(vector_of({-.95f, -.4f, 0, .3f, .77f, 2}), y);
  const double step = 2.95 / 15;
  const int expected[] = {-5, -2, 0, 2, 4, 10};
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(double{y.data[i]} == Approx(expected[i] * step).epsilon(kRounding));
  // A range that lies above zero reaches down to it, one below reaches up: 0 has a code.
  CHECK(TrainedRange(codes(4), 3, 1).scale(0).zero_point == 0);
  CHECK(TrainedRange(codes(4), 3, -9).scale(0).zero_point == 15);
  CHECK(TrainedRange(codes(4), -3, -1).scale(0).scale > 0);
}

TEST_CASE("trained range: straight-through gradients of x, range and least number", "[fast]") {
  const TrainedRange range(codes(4), 3, -1);  // step 0.2, zero point 5: from -1 to 2
  struct Point {
    float x;
    double along_range, along_least, along_x;
  };
  // Inside ((q - k) - x / s) / 15: .33 has the code 2, x / s = 1.65.
  for (const Point& p : {Point{-2, 0, 1, 0}, Point{3, 1, 1, 0}, Point{.33f, (2 - 1.65) / 15, 0, 1},
                         Point{-.52f, (-3 + 2.6) / 15, 0, 1}}) {
    net::Tensor gradient = vector_of({2});
    std::vector<net::Tensor> parameters;
    range.backward(vector_of({p.x}), gradient, parameters);
    // x / s rounds, and its difference from a code loses what they share.
    constexpr double kQuotient = 1e-6;
    CHECK(double{parameters[0].data[0]} == Approx(2 * p.along_range).margin(kQuotient));
    CHECK(double{parameters[1].data[0]} == 2 * p.along_least);
    CHECK(double{gradient.data[0]} == 2 * p.along_x);
  }
  // Without a zero point, codes -7 to 7 over a range of 14 steps: the ends are half a range away.
  const float scale[] = {0.5f};
  const TrainedRange symmetric(TrainedRange::codes_of(find_format("int4"), false), scale, {});
  net::Tensor gradient = vector_of({1, 1, 1});
  std::vector<net::Tensor> parameters;
  symmetric.backward(vector_of({-9, 9, .6f}), gradient, parameters);
  REQUIRE(parameters.size() == 1);
  CHECK(double{parameters[0].data[0]} == Approx(-.5 + .5 + (1 - 1.2) / 14).epsilon(1e-5));
  CHECK(gradient.data == std::vector<float>{0, 0, 1});
}

TEST_CASE("trained range: the recipe's quantizer under the same scale and zero point", "[fast]") {
  for (const char* name : {"uint4", "int8", "int3"}) {
    const Format& format = find_format(name);
    RolePolicy policy = integers(8, Granularity::tensor);
    policy.format = &format;
    policy.zero_point = true;
    const RoleQuantizer quantizer(policy);
    const net::Tensor x = noise({64, 50}, 5);
    const TensorScale scale = quantizer.scale_of_range(-1.5f, 2.25f);
    const float scales[] = {scale.scale};
    const std::int32_t zero_points[] = {scale.zero_point};
    const TrainedRange range(TrainedRange::codes_of(format, true), scales, zero_points);
    CHECK(range.scale(0).zero_point == scale.zero_point);
    CHECK(double{range.scale(0).scale} == Approx(double{scale.scale}).epsilon(kRounding));
    QuantizedTensor codes;
    quantize_affine(quantizer, x.data.data(), x.size(), range.scale(0), {}, codes);
    net::Tensor y;
    range.quantize(x, y);
    for (std::int64_t i = 0; i < x.size(); ++i)
      CHECK(y.data[i] == codes.element(i) * range.scale(0).scale);
  }
}

TEST_CASE("trained range: any number of threads gives the same bits", "[fast]") {
  const net::Tensor x = noise({200, 300}, 6);
  const int before = omp_get_max_threads();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    const TrainedRange range(codes(4), 1.5f, -.5f);
    net::Tensor gradient = noise({200, 300}, 7);
    std::vector<net::Tensor> parameters;
    range.backward(x, gradient, parameters);
    gradient.data.append(parameters[0].data);
    gradient.data.append(parameters[1].data);
    results.push_back(gradient.data);
  }
  omp_set_num_threads(before);
  CHECK(results[0] == results[1]);
}

}  // namespace trained_range_test
