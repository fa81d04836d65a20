// Static scales: the samples seen, and the rules.
#include "policies/calibrate/static_scale.hpp"

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace static_scale_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("a static scale sees the calibration samples only", "[fast]") {
  FloatReference reference;
  reference.batch = {net::Tensor({4, 2})};
  net::Tensor x({4, 50});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data[i] = static_cast<float>(i + 1);
  const RolePolicy policy = element_policy("int8");
  CalibrationPolicy calibration;
  calibration.samples = 2;
  const Conversion how = conversion_of(policy);
  CHECK(static_scale(calibration, policy, reference, x).scale == absmax_scale(100, how));
  calibration.samples = 512;
  CHECK(static_scale(calibration, policy, reference, x).scale == absmax_scale(200, how));
  calibration.rule = CalibrationPolicy::Rule::percentile;
  calibration.percentile = 50;
  const float clipped = static_scale(calibration, policy, reference, x).scale;
  CHECK(clipped >= absmax_scale(100, how));
  CHECK(clipped <= absmax_scale(101, how));
  RolePolicy unscaled = policy;
  unscaled.scale = "none";
  CHECK(static_scale(calibration, unscaled, reference, x).scale == 1);
}

TEST_CASE("a static scale takes what another saw of the tensor where that is enough", "[fast]") {
  using Rule = CalibrationPolicy::Rule;
  const std::vector<float> x = {-3, 0.5f, 1, 7, 2, -1};
  RolePolicy affine = element_policy("int8"), searched = element_policy("int8");
  affine.zero_point = true;
  searched.scale = "mse";
  const auto made = [](Rule rule, const RolePolicy& policy) {
    CalibrationPolicy calibration;
    calibration.rule = rule;
    calibration.percentile = 60;
    return StaticScale(calibration, policy);
  };
  const auto saw = [&](Rule rule, const RolePolicy& policy) {
    StaticScale scale = made(rule, policy);
    scale.see(x.data(), static_cast<std::int64_t>(x.size()));
    return scale;
  };
  const RolePolicy int8 = element_policy("int8"), e4m3 = element_policy("float8_e4m3fn");
  const auto takes = [&](const StaticScale& from, Rule rule, const RolePolicy& policy) {
    StaticScale scale = made(rule, policy);
    if (!scale.take(from.seen())) return false;
    const TensorScale taken = scale.scale(), own = saw(rule, policy).scale();
    CHECK(taken.scale == own.scale);
    CHECK(taken.zero_point == own.zero_point);
    return true;
  };
  const StaticScale largest = saw(Rule::absmax, int8), clipped = saw(Rule::percentile, int8);
  CHECK(takes(largest, Rule::absmax, e4m3));
  CHECK_FALSE(takes(largest, Rule::percentile, int8));
  CHECK_FALSE(takes(largest, Rule::absmax, affine));
  for (const Rule rule : {Rule::absmax, Rule::percentile, Rule::mse, Rule::kl})
    CHECK(takes(clipped, rule, e4m3));
  CHECK(takes(saw(Rule::percentile, affine), Rule::percentile, affine));
  CHECK(takes(saw(Rule::percentile, affine), Rule::absmax, int8));
  // All elements are too much to keep.
  CHECK(saw(Rule::absmax, searched).seen() == nullptr);
  CHECK_FALSE(takes(saw(Rule::absmax, searched), Rule::absmax, searched));
}

TEST_CASE("rows blocks and the rule dynamic have no static scale", "[fast]") {
  CalibrationPolicy calibration;
  CHECK(has_static_scale(calibration, element_policy("int8")));
  CHECK_FALSE(has_static_scale(calibration, element_policy("int8", Granularity::row)));
  CHECK_FALSE(has_static_scale(calibration, block_policy("mxfp4")));
  calibration.rule = CalibrationPolicy::Rule::dynamic;
  CHECK_FALSE(has_static_scale(calibration, element_policy("int8")));
}

}  // namespace static_scale_test
