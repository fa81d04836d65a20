// Static scales: the samples seen, and the rules.
#include "policies/calibrate/static_scale.hpp"

#include "tests/catch.hpp"
#include "tests/policies/recipe/by_hand.hpp"

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

TEST_CASE("rows blocks and the rule dynamic have no static scale", "[fast]") {
  CalibrationPolicy calibration;
  CHECK(has_static_scale(calibration, element_policy("int8")));
  CHECK_FALSE(has_static_scale(calibration, element_policy("int8", Granularity::row)));
  CHECK_FALSE(has_static_scale(calibration, block_policy("mxfp4")));
  calibration.rule = CalibrationPolicy::Rule::dynamic;
  CHECK_FALSE(has_static_scale(calibration, element_policy("int8")));
}
