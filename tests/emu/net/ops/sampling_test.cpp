// Interpolation by hand, and its gradients.
#include "emu/net/ops/sampling.hpp"

#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::sampling_test {
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

using Mode = GridSampleOptions::Mode;
using Border = GridSampleOptions::Border;

// A line of four pixels 1, 2, 4, 8, sampled at one place along it.
float sampled(const GridSampleOptions& options, float place) {
  Tensor x({1, 1, 4, 1}), grid({1, 1, 1, 2}), y({1, 1, 1, 1});
  x.data = {1, 2, 4, 8};
  grid.data = {place, 0};
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x, &grid};
  GridSample(options).forward({"sample", numerics}, inputs, y);
  return y.data[0];
}

TEST_CASE("grid_sample places pixels by their edges or their centres", "[fast]") {
  const GridSampleOptions edges, centres{.align_corners = true};
  // Four pixels on [-1, 1]: their centres are at -0.75, -0.25, 0.25, 0.75, or at -1, -1/3, 1/3, 1.
  CHECK(sampled(edges, -0.75f) == 1);
  CHECK(sampled(edges, -0.5f) == 1.5f);
  CHECK(sampled(edges, 0) == 3);
  CHECK(sampled(edges, 0.75f) == 8);
  CHECK(sampled(edges, 1) == 4);  // half of the last pixel and half of zero
  CHECK(sampled(centres, -1) == 1);
  CHECK(sampled(centres, 0) == 3);
  CHECK(sampled(centres, 1) == 8);
}

TEST_CASE("grid_sample continues the image as its border has it", "[fast]") {
  CHECK(sampled({.border = Border::zeros}, 3) == 0);
  CHECK(sampled({.border = Border::border}, 3) == 8);
  CHECK(sampled({.border = Border::border}, -1) == 1);
  // Mirrored at the edge, pixel 4 is 8 again and pixel 5 is 4: 1.25 is the place of pixel 4.
  CHECK(sampled({.border = Border::reflection}, 1.25f) == 8);
  CHECK(sampled({.border = Border::reflection}, 1.75f) == 4);
  // Mirrored at the centre, pixel 4 is 4.
  CHECK(sampled({.border = Border::reflection, .align_corners = true}, 5.0f / 3) ==
        Approx(4).epsilon(1e-6));
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(sampled({}, infinity) == 0);
  CHECK(sampled({.border = Border::border}, -infinity) == 1);
  CHECK(std::isnan(sampled({}, std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("grid_sample takes the nearest pixel, half to even", "[fast]") {
  const GridSampleOptions nearest{.mode = Mode::nearest};
  CHECK(sampled(nearest, -0.6f) == 1);
  CHECK(sampled(nearest, -0.5f) == 1);  // pixel 0.5
  CHECK(sampled(nearest, 0) == 4);      // pixel 1.5
  CHECK(sampled(nearest, 0.5f) == 4);   // pixel 2.5
  CHECK(sampled(nearest, 1.5f) == 0);
}

TEST_CASE("grid_sample and its gradients are those of float64", "[fast]") {
  // Weights are below 1, gradients of the grid at most 5 pixels of 4 neighbours and 2 channels.
  constexpr double kTolerance = 5 * 4 * 2 * 0x1p-23;
  for (const bool align : {false, true}) {
    INFO("align " << align);
    GridSample op({.align_corners = align});
    const Tensor x = test::random_tensor({2, 4, 5, 2}, 1);
    Tensor grid = test::random_tensor({2, 3, 2, 2}, 2);
    // Off the pixels' centres, where the slope changes.
    for (float& v : grid.data) {
      const float size = 5, at = align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
      if (std::abs(at - std::round(at)) < 0.05f) v += 0.05f;
      const float other = align ? (v + 1) / 2 * 3 : ((v + 1) * 4 - 1) / 2;
      if (std::abs(other - std::round(other)) < 0.05f) v += 0.06f;
    }
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(2 * 3 * 2 * 2);
      for (int p = 0; p < 2 * 6; ++p) {
        const auto at = [&](double v, int size) {
          return align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
        };
        const double px = at(arguments[1][p * 2], 5), py = at(arguments[1][p * 2 + 1], 4);
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 5; ++j) {
            const double weight =
                std::max(0.0, 1 - std::abs(py - i)) * std::max(0.0, 1 - std::abs(px - j));
            for (int c = 0; c < 2; ++c)
              y[p * 2 + c] += weight * arguments[0][((p / 6 * 4 + i) * 5 + j) * 2 + c];
          }
      }
      return y;
    };
    test::check_op(op, {x, grid}, reference, kTolerance);
  }
}

TEST_CASE("grid_sample refuses other shapes", "[fast]") {
  const std::vector<Shape> flat{{1, 4, 4, 1}, {1, 2, 2, 3}}, line{{1, 4, 1}, {1, 2, 1}};
  CHECK_THROWS_WITH(GridSample({}).output_shape(flat), Catch::Contains("[1, 2, 2, 3]"));
  CHECK_THROWS_AS(GridSample({}).output_shape(line), Error);
}

}  // namespace

}  // namespace numemu::net::sampling_test
