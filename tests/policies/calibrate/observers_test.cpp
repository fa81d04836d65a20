// Observers: the rule of the recipe, batches joined, scales from thresholds.
#include "policies/calibrate/observers.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "policies/calibrate/clip_thresholds.hpp"
#include "tests/catch.hpp"

namespace observers_test {

using namespace numemu;
using namespace numemu::policies;
using Rule = CalibrationPolicy::Rule;

namespace {

RolePolicy role(const char* format) {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.scale = "absmax";
  return policy;
}

std::vector<float> numbers(std::int64_t n) {
  RandomSource random;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double u =
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -32);
    x.push_back(static_cast<float>(u * u * u * u * (i % 2 ? 3 : -3)));
  }
  return x;
}

double observed(Rule rule, const char* format, const std::vector<float>& x, std::int64_t batch,
                double percentile = 99) {
  const auto observer = Observer::make({rule, percentile, 512}, role(format));
  const auto n = static_cast<std::int64_t>(x.size());
  for (std::int64_t i = 0; i < n; i += batch) observer->see(x.data() + i, std::min(batch, n - i));
  return observer->threshold();
}

}  // namespace

TEST_CASE("observers: batches do not matter", "[fast]") {
  const std::vector<float> x = numbers(5000);
  for (const Rule rule : {Rule::absmax, Rule::percentile, Rule::mse, Rule::kl}) {
    const double whole = observed(rule, "int8", x, 5000);
    CHECK(whole > 0);
    CHECK(whole <= 3);
    CHECK(observed(rule, "int8", x, 61) == whole);
  }
}

TEST_CASE("observers: each rule is the one that was asked for", "[fast]") {
  const std::vector<float> x = numbers(5000);
  MagnitudeHistogram h;
  h.add(x.data(), 5000);
  Conversion c;
  c.format = &find_format("int4");
  CHECK(observed(Rule::absmax, "int4", x, 100) == h.largest());
  CHECK(observed(Rule::percentile, "int4", x, 100, 90) == percentile_threshold(h, 90));
  CHECK(observed(Rule::mse, "int4", x, 100) == mse_threshold(h, c));
  CHECK(observed(Rule::kl, "int4", x, 100) == kl_threshold(h, c));
  CHECK(observed(Rule::mse, "int4", x, 100) != h.largest());
}

TEST_CASE("observers: absmax gives the scale of the rule absmax", "[fast]") {
  const std::vector<float> x = numbers(999);
  Conversion c;
  c.format = &find_format("float8_e4m3fn");
  CHECK(absmax_scale(observed(Rule::absmax, "float8_e4m3fn", x, 10), c) ==
        find_scale_rule("absmax").scale({x.data(), 999, &c}));
}

TEST_CASE("observers: nothing seen, zeros, infinities; dynamic observes nothing", "[fast]") {
  for (const Rule rule : {Rule::absmax, Rule::percentile, Rule::mse, Rule::kl}) {
    CHECK(observed(rule, "int8", {}, 1) == 0);
    CHECK(observed(rule, "int8", {0.0f, -0.0f}, 1) == 0);
    const double threshold =
        observed(rule, "int8", {std::numeric_limits<float>::infinity(), std::nanf(""), 2.0f}, 1);
    CHECK(threshold > 0);
    CHECK(threshold <= 2);
  }
  CHECK_THROWS_AS(Observer::make({Rule::dynamic, 100, 512}, role("int8")), Error);
}

}  // namespace observers_test
