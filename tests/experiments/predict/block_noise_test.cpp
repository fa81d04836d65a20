// Block noise: the empirical prediction meets the quantizer for every rule and format, the closed
// form meets it on independent normal numbers.
#include "experiments/predict/block_noise.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/predict/tensor_noise.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace block_noise_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Independent normal numbers (Box and Muller).
std::vector<float> normal(std::int64_t n, std::uint32_t tensor) {
  RandomSource random;
  random.tensor = tensor;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform(2 * i)));
    x[i] = static_cast<float>(radius * std::cos(2 * M_PI * random.uniform(2 * i + 1)));
  }
  return x;
}

policies::RolePolicy policy_of(const std::string& format, const std::string& rule,
                               RoundingMode rounding = RoundingMode::rne) {
  policies::RolePolicy policy;
  policy.block = &find_block_format(format);
  policy.format = policy.block->element;
  policy.rounding.mode = rounding;
  policy.scale = rule;
  policy.granularity = policies::Granularity::block;
  return policy;
}

struct Measured {
  double mse = 0, signal = 0;
  std::vector<double> of_block;  ///< summed squares of each block
  /// How far mse may be from that of exact products: results are rounded to float32, each by at
  /// most 2^-24 of itself (Cauchy and Schwarz: 2, and as much again for what they exceed x by).
  double rounding() const { return 4 * std::sqrt(mse * signal) * 0x1p-24; }
};

Measured measure(const policies::RolePolicy& policy, const BlockLayout& layout,
                 const std::vector<float>& x) {
  BlockQuantization how;
  how.format = policy.block;
  how.rule = &find_scale_rule(policy.scale, *policy.block);
  how.element.rounding = policy.rounding;
  how.element.overflow = policy.overflow;
  std::vector<float> y(x.size());
  quantize_blocks(how, layout, x.data(), {}, y.data());
  Measured out;
  out.of_block.resize(static_cast<std::size_t>(layout.blocks));
  const std::int64_t n = layout.elements();
  const auto square = [&](std::int64_t i) { return (double{y[i]} - x[i]) * (double{y[i]} - x[i]); };
  for (std::int64_t i = 0; i < n; ++i) out.of_block[layout.block_of(i)] += square(i);
  out.mse = pairwise_sum(n, square) / static_cast<double>(n);
  out.signal =
      pairwise_sum(n, [&](std::int64_t i) { return double{x[i]} * x[i]; }) / static_cast<double>(n);
  return out;
}

const char* const kFormats[] = {"mxfp8_e4m3",
                                "mxfp8_e5m2",
                                "mxfp6_e2m3",
                                "mxfp6_e3m2",
                                "mxfp4",
                                "mxint8",
                                "nvfp4",
                                "bfp(4,16)",
                                "mx(float4_e2m1fn,7)",
                                "group(int4,32,float16)",
                                "group(float4_e2m1fn,16,float8_e4m3fn)",
                                "group(int8,row,float32)",
                                "group(int3,channel,bfloat16)"};

}  // namespace

namespace {

/// Every rule that serves a format to nearest; the directed roundings under its default rule, or
/// under every one.
void predict_every_rule(bool directed) {
  constexpr std::int64_t kLines = 11, kWidth = 77;  // no block size divides a line
  std::vector<float> x = normal(kLines * kWidth, 3);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::ldexp(x[i], static_cast<int>(i / 77 % 5) * 4 - 8);  // lines of different size
    if (i % 13 == 0) x[i] = 0;
  }
  std::fill(x.begin() + 154, x.begin() + 231, 0.0f);  // a line of zeros
  net::Tensor tensor({kLines, kWidth});
  tensor.data = x;
  FitCache fits;
  int rules = 0;
  for (const char* format : kFormats) {
    const BlockLayout layout = block_layout(find_block_format(format), {kLines, kWidth}, -1);
    for (const ScaleRule* rule : all_scale_rules()) {
      if (!serves(*rule, find_block_format(format))) continue;
      for (const RoundingMode rounding :
           {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup}) {
        const bool nearest = rounding == RoundingMode::rne;
        if (!nearest && !directed && rule->name != find_block_format(format).default_rule) continue;
        const policies::RolePolicy policy = policy_of(format, rule->name, rounding);
        const ErrorMoments predicted = block_moments(policy, layout, x.data());
        const Measured measured = measure(policy, layout, x);
        INFO(policy.describe() << " " << format << ": predicted " << predicted.mse << " measured "
                               << measured.mse);
        CHECK(measured.mse > 0);
        const double exact = policy.block->power_of_two_scale() ? 0 : measured.rounding();
        CHECK(std::fabs(predicted.mse - measured.mse) <=
              kEmpiricalTolerance * measured.mse + exact);
        // The products themselves, without float32 behind them.
        TensorNoise noise =
            predict_block_noise({"fc", net::Role::weight}, policy, tensor, kWidth, fits);
        measure_noise(noise, tensor, 0);
        CHECK(noise.empirical.mse == predicted.mse);
        CHECK(noise.measured_mse == Approx(measured.mse).epsilon(1e-6));
        CHECK(noise.empirical_verdict() == Verdict::holds);
        CHECK(predicted.signal == Approx(measured.signal).epsilon(1e-12));
        CHECK(predicted.mse_normal <= predicted.mse * (1 + kEmpiricalTolerance));
        ++rules;
      }
    }
  }
  CHECK(rules >= (directed ? 3 * 30 : 30 + 2 * 13));  // several rules of most of the 13 formats
}

}  // namespace

TEST_CASE("the empirical prediction of blocks is the quantizer's error for every rule", "[fast]") {
  predict_every_rule(false);
}

TEST_CASE("so it is for every rule with directed roundings", "[slow]") { predict_every_rule(true); }

TEST_CASE("blocks whose scale is the smallest there is and blocks of zeros are predicted too",
          "[fast]") {
  for (const char* format : {"mxfp4", "mxint8", "nvfp4", "group(int4,32,float16)"}) {
    const BlockFormat& block = find_block_format(format);
    std::vector<float> x = normal(128, 4);
    for (std::size_t i = 0; i < 64; ++i) x[i] = i < 32 ? 0 : std::ldexp(x[i], -140);
    const BlockLayout layout = block_layout(block, {2, 64}, -1);
    const policies::RolePolicy policy = policy_of(format, block.default_rule);
    INFO(format);
    const ErrorMoments predicted = block_moments(policy, layout, x.data());
    const Measured measured = measure(policy, layout, x);
    CHECK(std::fabs(predicted.mse - measured.mse) <=
          kEmpiricalTolerance * measured.mse +
              (block.power_of_two_scale() ? 0 : measured.rounding()));
    const std::vector<float> zeros(128);
    CHECK(block_moments(policy, layout, zeros.data()).mse == 0);
  }
}

TEST_CASE("formats with shifted codes have no prediction", "[fast]") {
  for (const char* format : {"group(uint4,32,float16,zp)", "group(uint4,32,float16,min)"}) {
    const policies::RolePolicy policy = policy_of(format, "absmax");
    const std::vector<float> x = normal(64, 5);
    const BlockLayout layout = block_layout(*policy.block, {1, 64}, -1);
    CHECK(test::message_of([&] { block_moments(policy, layout, x.data()); }) ==
          "no prediction for " + policy.block->name + ": its codes are shifted");
    FitCache fits;
    CHECK_FALSE(fitted_block_noise(policy, layout, 64, {"fc", net::Role::weight}, x.data(), fits));
  }
}

TEST_CASE("the closed form meets the quantizer on independent normal numbers", "[fast]") {
  // Width 100: blocks of 32 and a short one of 4 in each line, whose maxima are smaller.
  constexpr std::int64_t kLines = 600, kWidth = 100;
  const std::vector<float> x = normal(kLines * kWidth, 6);
  FitCache fits;
  for (const char* format : {"mxfp8_e4m3", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "nvfp4",
                             "group(int4,32,float16)", "group(int6,32,float8_e4m3fn)"}) {
    const bool real = !find_block_format(format).power_of_two_scale();
    for (const char* rule : {"absmax", "floor", "even", "ceil"}) {
      if (real != (std::string_view(rule) == "absmax")) continue;
      const policies::RolePolicy policy = policy_of(format, rule);
      const BlockLayout layout = block_layout(*policy.block, {kLines, kWidth}, -1);
      const std::optional<FittedNoise> fitted =
          fitted_block_noise(policy, layout, kWidth, {"fc", net::Role::weight}, x.data(), fits);
      REQUIRE(fitted);
      CHECK(fitted->family == "normal");
      CHECK(fitted->accepted);
      const Measured measured = measure(policy, layout, x);
      // Elements of a block share a scale: blocks are the independent samples.
      const double n = static_cast<double>(x.size()), blocks = static_cast<double>(layout.blocks);
      double spread = 0;
      for (std::int64_t b = 0; b < layout.blocks; ++b) {
        const double expected = measured.mse * static_cast<double>(layout.block(b).size());
        spread += (measured.of_block[b] - expected) * (measured.of_block[b] - expected);
      }
      const double standard_error = std::sqrt(spread * blocks / (blocks - 1)) / n;
      INFO(format << " " << rule << ": closed form " << fitted->moments.mse << " measured "
                  << measured.mse << " +- " << standard_error);
      CHECK(std::fabs(fitted->moments.mse - measured.mse) < 4 * standard_error);
      CHECK(fitted->moments.signal == Approx(measured.signal).epsilon(1e-3));
    }
  }
}

TEST_CASE("the closed form knows that lines differ in size", "[fast]") {
  // Lines of four sizes: as one density the blocks of small lines would have the scales of large
  // ones. The sampling error of 640 blocks is below 0.2 dB.
  constexpr std::int64_t kLines = 320, kWidth = 64;
  std::vector<float> x = normal(kLines * kWidth, 9);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::ldexp(x[i], -static_cast<int>(i / kWidth % 4));
  FitCache fits;
  for (const auto& [format, rule] : {std::pair("mxfp4", "floor"), {"nvfp4", "absmax"}}) {
    const policies::RolePolicy policy = policy_of(format, rule);
    const BlockLayout layout = block_layout(*policy.block, {kLines, kWidth}, -1);
    const std::optional<FittedNoise> fitted =
        fitted_block_noise(policy, layout, kWidth, {"fc", net::Role::weight}, x.data(), fits);
    REQUIRE(fitted);
    CHECK(fitted->accepted);
    const double distance = 10 * std::log10(fitted->moments.mse / measure(policy, layout, x).mse);
    INFO(format << " " << distance);
    CHECK(std::fabs(distance) < 0.2);
  }
}

TEST_CASE("the closed form knows that neighbours of a block are alike", "[fast]") {
  // Each number stands twice: blocks of 32 have the largest magnitude of 16. Taken as independent,
  // their scales would be 0.8 dB larger. Two of 32 lie on the grid, one is expected to: 0.14 dB.
  constexpr std::int64_t kLines = 320, kWidth = 64;
  std::vector<float> x = normal(kLines * kWidth, 10);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i + 1] = x[i];
  FitCache fits;
  for (const char* format : {"group(int4,32,float16)", "group(int6,32,float8_e4m3fn)"}) {
    const policies::RolePolicy policy = policy_of(format, "absmax");
    const BlockLayout layout = block_layout(*policy.block, {kLines, kWidth}, -1);
    const std::optional<FittedNoise> fitted =
        fitted_block_noise(policy, layout, kWidth, {"fc", net::Role::weight}, x.data(), fits);
    REQUIRE(fitted);
    CHECK(fitted->accepted);
    const double distance = 10 * std::log10(fitted->moments.mse / measure(policy, layout, x).mse);
    INFO(format << " " << distance);
    CHECK(std::fabs(distance) < 0.3);
  }
}

TEST_CASE("the closed form knows that tiles cut several lines", "[fast]") {
  // Bands of 4 lines have one of four sizes; 1280 of the 5120 tiles are large.
  constexpr std::int64_t kLines = 2560, kWidth = 64;
  std::vector<float> x = normal(kLines * kWidth, 11);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::ldexp(x[i], -static_cast<int>(i / kWidth / 4 % 4));
  FitCache fits;
  for (const char* format : {"mx(float4_e2m1fn,4x8)", "group(int4,4x8,float16)",
                             "group(float4_e2m1fn,4x8,float8_e4m3fn,tensor-scale)"}) {
    policies::RolePolicy policy = policy_of(format, find_block_format(format).default_rule);
    policy.granularity = policies::Granularity::tile;
    const BlockLayout layout = tile_layout(policy, {kLines, kWidth});
    const std::optional<FittedNoise> fitted =
        fitted_block_noise(policy, layout, kWidth, {"fc", net::Role::weight}, x.data(), fits);
    REQUIRE(fitted);
    CHECK(fitted->accepted);
    const double distance = 10 * std::log10(fitted->moments.mse / measure(policy, layout, x).mse);
    INFO(format << " " << distance);
    CHECK(std::fabs(distance) < 0.2);
  }
}

TEST_CASE("rules that read elements and constant tensors have no closed form", "[fast]") {
  const std::vector<float> x = normal(640, 7), constant(640, 0.5f);
  FitCache fits;
  const auto fitted = [&](const char* format, const char* rule, const std::vector<float>& values,
                          const char* layer) {
    const policies::RolePolicy policy = policy_of(format, rule);
    const BlockLayout layout = block_layout(*policy.block, {10, 64}, -1);
    return fitted_block_noise(policy, layout, 64, {layer, net::Role::weight}, values.data(), fits)
        .has_value();
  };
  CHECK(fitted("mxfp4", "floor", x, "fc"));
  CHECK_FALSE(fitted("mxfp4", "mse", x, "fc"));
  CHECK(fitted("nvfp4", "absmax", x, "fc"));
  CHECK_FALSE(fitted("nvfp4", "four-over-six", x, "fc"));
  CHECK_FALSE(fitted("mxfp4", "floor", constant, "constant"));
}

}  // namespace block_noise_test
