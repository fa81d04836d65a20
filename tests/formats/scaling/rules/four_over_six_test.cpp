// Scale rule four-over-six: against a search of both candidates in doubles, and on a normal law.
#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "formats/codec.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "tests/catch.hpp"

namespace numemu::four_over_six_test {
namespace {

double sqnr_db(const char* format, const char* rule, const std::vector<float>& x) {
  const BlockFormat& f = find_block_format(format);
  const BlockQuantization how{.format = &f, .rule = &find_scale_rule(rule, f)};
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> y(x.size());
  quantize_blocks(how, block_layout(f, {n / 512, 512}, 1), x.data(), {}, y.data());
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    signal += double{x[i]} * x[i];
    noise += (double{y[i]} - x[i]) * (double{y[i]} - x[i]);
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace

TEST_CASE("NVFP4 of a normal law under absmax, four-over-six and the best scales", "[fast]") {
  const std::vector<float> x =
      normal::sample({.seed = 1, .stream = Stream::data}, std::size_t{1} << 20);
  // Published means; a million numbers leave a standard error of about 0.01 dB.
  CHECK(sqnr_db("nvfp4", "absmax", x) == Approx(20.44).margin(0.03));
  CHECK(sqnr_db("nvfp4", "four-over-six", x) == Approx(21.22).margin(0.03));
  CHECK(sqnr_db("nvfp4", "mse", x) == Approx(21.81).margin(0.03));
  CHECK(sqnr_db("nvfp4(32)", "mse", x) < sqnr_db("nvfp4", "mse", x));
}

TEST_CASE("The second scale puts the largest magnitude on 4", "[fast]") {
  const BlockFormat& f = find_block_format("group(float4_e2m1fn,4,float32)");
  const ScaleRule& rule = find_scale_rule("four-over-six", f);
  const Conversion c{.format = f.element};
  const auto scale = [&](std::vector<float> x) {
    return rule.scale({.x = x.data(), .n = 4, .conversion = &c, .block = &f});
  };
  CHECK(scale({6, 4, 2, 1}) == 1);     // exact under 6
  CHECK(scale({4, 3, 2, 1.5f}) == 1);  // exact under 4, not under 6
  CHECK(scale({6, 5, 5, 5}) == 1.5f);  // 5 is a tie of 4 and 6; 3.33 becomes 3: 4.5
  CHECK(scale({0, 0, 0, 0}) == 1);
  CHECK(scale({4, NAN, 2, 1.5f}) == 1);
}

}  // namespace numemu::four_over_six_test
