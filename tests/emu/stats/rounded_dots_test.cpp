// Moments of dot products of numbers rounded at random, beside sums over all outcomes and drawn
// ones.
#include "emu/stats/rounded_dots.hpp"

#include <cmath>
#include <vector>

#include "formats/quantize.hpp"
#include "tests/catch.hpp"

namespace numemu::rounded_dots_test {

using namespace numemu::stats;

const Rounding kSixteenBits = {.mode = RoundingMode::sr, .random_bits = 16};

TEST_CASE("moments of rounded numbers are sums over their outcomes", "[fast]") {
  const StochasticLaw law(find_format("int4"), kSixteenBits);
  const std::vector<float> x = {0.25f, -1.5f, 3, 0}, y = {2.75f, 0.5f, -0.125f, 1.25f};
  const std::vector<RoundedElement> of_x = law.of(x, 1), of_y = law.of(y, 1);
  CHECK(of_x[0].variance == 0.1875);
  CHECK(of_x[1].variance == 0.25);
  CHECK(of_x[1].ends == -3);
  CHECK(of_x[2].variance == 0);
  CHECK(of_x[3].variance == 0);
  // Every outcome of both with its probability.
  double mean = 0, square = 0, own = 0, own_square = 0;
  for (int outcome = 0; outcome < 256; ++outcome) {
    double probability = 1, dot = 0, length = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      double value[2];
      for (const std::size_t side : {0, 1}) {
        const double number = side == 0 ? x[i] : y[i], up = number - std::floor(number);
        const bool high = (outcome >> (2 * i + side) & 1) != 0;
        value[side] = std::floor(number) + (high ? 1 : 0);
        probability *= high ? up : 1 - up;
      }
      dot += value[0] * value[1];
      length += value[0] * value[0];
    }
    mean += probability * dot;
    square += probability * dot * dot;
    own += probability * length;
    own_square += probability * length * length;
  }
  const Moments two = two_draws({x, of_x}, {y, of_y}), one = one_draw({x, of_x});
  CHECK(two.mean == Approx(mean).margin(1e-12));
  CHECK(two.variance == Approx(square - mean * mean));
  CHECK(one.mean == Approx(own));
  CHECK(one.variance == Approx(own_square - own * own));
  const Moments both = product(two, one);
  CHECK(both.mean == two.mean * one.mean);
  CHECK(both.variance ==
        Approx((two.variance + two.mean * two.mean) * (one.variance + one.mean * one.mean) -
               both.mean * both.mean));
}

TEST_CASE("drawn dot products have the closed moments", "[fast]") {
  constexpr std::int64_t kNumbers = 64, kDraws = 4000;
  std::vector<float> x, y;
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    x.push_back(static_cast<float>(std::sin(1.0 + 2.3 * static_cast<double>(i))));
    y.push_back(static_cast<float>(std::cos(0.4 + 1.7 * static_cast<double>(i))));
  }
  for (const char* name : {"int4", "float8_e5m2", "float4_e2m1fn"}) {
    INFO(name);
    const Format& format = find_format(name);
    const float scale = 0.2f;
    const StochasticLaw law(format, kSixteenBits);
    const std::vector<RoundedElement> of_x = law.of(x, scale), of_y = law.of(y, scale);
    const Moments two = two_draws({x, of_x}, {y, of_y}), one = one_draw({x, of_x});
    double sum_two = 0, squares_two = 0, sum_one = 0, squares_one = 0;
    std::vector<float> a(kNumbers), b(kNumbers);
    for (std::int64_t d = 0; d < kDraws; ++d) {
      const auto draw = static_cast<std::uint16_t>(d);
      quantize_values(
          {.format = &format, .rounding = kSixteenBits, .random = {7, Stream::quantize, 0, draw}},
          x.data(), kNumbers, scale, a.data());
      quantize_values(
          {.format = &format, .rounding = kSixteenBits, .random = {7, Stream::quantize, 1, draw}},
          y.data(), kNumbers, scale, b.data());
      double dot = 0, length = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        dot += double{a[i]} * double{b[i]};
        length += double{a[i]} * double{a[i]};
      }
      sum_two += dot;
      squares_two += (dot - two.mean) * (dot - two.mean);
      sum_one += length;
      squares_one += (length - one.mean) * (length - one.mean);
    }
    CHECK(std::fabs(sum_two / kDraws - two.mean) < 4 * std::sqrt(two.variance / kDraws));
    CHECK(std::fabs(sum_one / kDraws - one.mean) < 4 * std::sqrt(one.variance / kDraws));
    CHECK(squares_two / kDraws == Approx(two.variance).epsilon(4 * std::sqrt(2.0 / kDraws)));
    CHECK(squares_one / kDraws == Approx(one.variance).epsilon(4 * std::sqrt(2.0 / kDraws)));
  }
}

}  // namespace numemu::rounded_dots_test
