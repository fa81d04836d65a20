// Tensor noise: the empirical prediction meets the quantizer within its tolerance, for every kind
// of policy.
#include "experiments/predict/tensor_noise.hpp"

#include <cmath>

#include "formats/blocks/block_format.hpp"
#include "formats/format.hpp"
#include "formats/random.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"

namespace tensor_noise_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Roughly normal: a sum of uniforms.
net::Tensor bell(std::int64_t rows, std::int64_t columns, std::uint32_t tensor) {
  RandomSource random;
  random.tensor = tensor;
  net::Tensor x({rows, columns});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double sum = -6;
    for (int j = 0; j < 12; ++j) sum += random.uniform(12 * i + j);
    x.data[i] = static_cast<float>(0.05 * sum * (1 + i / columns % 3));
  }
  return x;
}

policies::RolePolicy policy_of(const char* format, const Rounding& rounding = {},
                               const char* rule = "absmax",
                               policies::Granularity granularity = policies::Granularity::tensor) {
  policies::RolePolicy policy;
  policy.format = &find_format(format);
  policy.rounding = rounding;
  policy.scale = rule;
  policy.granularity = granularity;
  return policy;
}

}  // namespace

TEST_CASE("the empirical prediction equals the measurement for every deterministic rounding",
          "[fast]") {
  const net::Tensor x = bell(3, 400, 5);  // a channel of each size
  FitCache fits;
  for (const char* format : {"int2", "int4", "int8", "uint4", "float4_e2m1fn", "e2m2+finite",
                             "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                             "hfp8_e4m3_nosub", "float16", "bfloat16"}) {
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      for (const auto granularity :
           {policies::Granularity::tensor, policies::Granularity::channel}) {
        // Of 16-bit elements nearly every scale is as good: the exact search would take long.
        for (const char* rule : {"absmax", find_format(format).bits > 8 ? "mse(17)" : "mse"}) {
          const policies::RolePolicy policy =
              policy_of(format, parse_rounding(rounding), rule, granularity);
          if (!policy.format->is_signed && policy.format->kind == Kind::integer)
            continue;  // negatives have no place there
          const std::vector<float> scales = policies::choose_scales(policy, x);
          TensorNoise noise = predict_noise({"fc", net::Role::weight}, policy, x, scales, fits);
          measure_noise(noise, x, 0);
          INFO(policy.describe() << " predicted " << noise.empirical.mse << " measured "
                                 << noise.measured_mse);
          CHECK(noise.empirical_verdict() == Verdict::holds);
        }
      }
    }
  }
}

TEST_CASE("stochastic rounding meets its expectation within four standard errors", "[fast]") {
  const net::Tensor x = bell(12, 700, 6);
  FitCache fits;
  const policies::RolePolicy policy = policy_of("int4", parse_rounding("sr(16)"));
  const std::vector<float> scales = policies::choose_scales(policy, x);
  TensorNoise noise = predict_noise({"fc", net::Role::weight}, policy, x, scales, fits);
  measure_noise(noise, x, 0);
  const double measured = noise.measured_mse;
  // A squared error is at most scale^2, so its standard deviation is at most scale^2 / 2.
  const double standard_error =
      scales[0] * scales[0] / 2 / std::sqrt(static_cast<double>(x.size()));
  CHECK(std::fabs(measured - noise.empirical.mse) < 4 * standard_error);
}

TEST_CASE("an accepted fit predicts within half a decibel on a bell-shaped tensor", "[fast]") {
  net::Tensor x = bell(1, 8400, 8);
  FitCache fits;
  for (const char* format : {"int4", "int6", "int8", "float6_e2m3fn", "float8_e4m3fn"}) {
    const policies::RolePolicy policy = policy_of(format);
    const std::vector<float> scales = policies::choose_scales(policy, x);
    TensorNoise noise = predict_noise({"fc", net::Role::weight}, policy, x, scales, fits);
    measure_noise(noise, x, 0);
    REQUIRE(noise.fitted);
    INFO(format << " " << noise.fitted->family);
    CHECK(noise.fitted_verdict() == Verdict::holds);
  }
}

TEST_CASE("block scales are predicted line by line and measured the same way", "[fast]") {
  // 20 elements a line: the second block of 16 is short.
  const net::Tensor x = bell(40, 20, 9);
  FitCache fits;
  policies::RolePolicy policy = policy_of("float4_e2m1fn", {}, "floor");
  policy.granularity = policies::Granularity::block;
  policy.block = &find_block_format("mx(float4_e2m1fn,16)");
  TensorNoise noise = predict_block_noise({"fc", net::Role::weight}, policy, x, 20, fits);
  measure_noise(noise, x, 0);
  CHECK(noise.empirical_verdict() == Verdict::holds);
  CHECK(noise.measured_mse > 0);
  // The verdict can fail.
  noise.empirical.mse *= 1 + 2 * kEmpiricalTolerance;
  CHECK(noise.empirical_verdict() == Verdict::fails);
}

TEST_CASE("weights in tiles are predicted and measured as the network quantizes them", "[fast]") {
  const auto policy_of_block = [](const char* format, policies::Granularity granularity) {
    policies::RolePolicy policy;
    policy.block = &find_block_format(format);
    policy.format = policy.block->element;
    policy.scale = policy.block->default_rule;
    policy.granularity = granularity;
    return policy;
  };
  for (const net::Shape& shape : {net::Shape{30, 13}, net::Shape{10, 3, 13}}) {
    net::Tensor x = bell(30, 13, 10);
    x.shape = shape;
    FitCache fits;
    for (const char* format :
         {"group(int4,4x8,float32)", "group(int4,8,float16)", "mx(float4_e2m1fn,4x8)", "nvfp4"}) {
      INFO(format << " " << net::to_string(shape));
      const policies::RolePolicy policy = policy_of_block(format, policies::Granularity::tile);
      TensorNoise noise = predict_block_noise({"fc", net::Role::weight}, policy, x, 13, fits);
      measure_noise(noise, x, 0);
      CHECK(noise.empirical_verdict() == Verdict::holds);
      std::vector<float> y;
      policies::quantize_tiles(policies::RoleQuantizer(policy), x, {}, y);
      double squares = 0;
      for (std::size_t i = 0; i < y.size(); ++i)
        squares += (double{y[i]} - x.data[i]) * (double{y[i]} - x.data[i]);
      const double mse = squares / static_cast<double>(y.size());
      // y is rounded to float32 (Cauchy and Schwarz).
      CHECK(noise.measured_mse ==
            Approx(mse).epsilon(0).margin(4 * std::sqrt(mse * noise.empirical.signal) * 0x1p-24));
    }
    const TensorNoise tiles = predict_block_noise(
        {"fc", net::Role::weight},
        policy_of_block("group(int4,1x8,float32)", policies::Granularity::tile), x, 13, fits);
    const TensorNoise blocks = predict_block_noise(
        {"fc", net::Role::weight},
        policy_of_block("group(int4,8,float32)", policies::Granularity::block), x, 13, fits);
    // The same terms in another order.
    CHECK(tiles.empirical.mse == Approx(blocks.empirical.mse).epsilon(kEmpiricalTolerance));
    REQUIRE(tiles.fitted);
    REQUIRE(blocks.fitted);
    CHECK(tiles.fitted->moments.mse ==
          Approx(blocks.fitted->moments.mse).epsilon(kEmpiricalTolerance));
  }
}

TEST_CASE("a constant tensor has no fit", "[fast]") {
  net::Tensor x({4, 4}, 0.5f);
  FitCache fits;
  const policies::RolePolicy policy = policy_of("int4");
  CHECK_FALSE(predict_noise({"fc", net::Role::weight}, policy, x, {1.0f}, fits).fitted);
}

}  // namespace tensor_noise_test
