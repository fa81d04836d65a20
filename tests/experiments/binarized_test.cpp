// binarized: published vectors, closed forms, and the experiment from settings to conclusion.
#include <bit>
#include <cmath>

#include "emu/net/ops/batch_norm.hpp"
#include "experiments/binarized/binarized.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace binarized_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::binarized;
using numemu::test::TemporaryFolder;

namespace {

/// Bits of a word as codes of sign1, where 1 is +1.
std::vector<std::uint8_t> codes_of(std::uint32_t word, int bits) {
  std::vector<std::uint8_t> codes;
  for (int i = 0; i < bits; ++i) codes.push_back((word >> i & 1) == 0);
  return codes;
}

float quantized(const std::string& format, float x) {
  float y = 0;
  quantize_values({.format = &find_format(format)}, &x, 1, 1, &y);
  return y;
}

}  // namespace

TEST_CASE("binarized: the published product by XNOR", "[fast]") {
  CHECK(std::popcount(~(0xb38fu ^ 0xe2abu) & 0xffffu) == 11);
  CHECK(sign_products(codes_of(0xb38f, 16), codes_of(0xe2ab, 16), 16) ==
        std::vector<std::int32_t>{6});
}

TEST_CASE("binarized: the published sum over bit planes", "[fast]") {
  // x = (3, 1, 2), w = (1, -1, 1): planes (1, 1, 0) and (1, 0, 1) give 0 and 2.
  const std::vector<std::uint8_t> w = codes_of(0b101, 3);
  const std::int32_t total = 1;
  const auto plane = [&](std::uint32_t bits) {
    return (sign_products(codes_of(bits, 3), w, 3)[0] + total) / 2;
  };
  CHECK(plane(0b011) == 0);
  CHECK(plane(0b101) == 2);
  CHECK(plane(0b011) + 2 * plane(0b101) == 3 - 1 + 2);
}

TEST_CASE("binarized: the shift-based variance of normal numbers", "[fast]") {
  // Published from 4e6 draws, whose standard error is 0.00018 (x AP2(x) - c x^2 has the deviation
  // 0.354).
  CHECK(power_gain(1, kApproximate) == Approx(1.01845).margin(4 * 0.00018).epsilon(0));
  CHECK(power_gain(2, kApproximate) == Approx(power_gain(1, kApproximate)).epsilon(1e-12));
  // 100,000 draws of deviation 3: 9.1924 over 8.9987; standard error 0.0011.
  CHECK(power_gain(3, kApproximate) == Approx(9.1924 / 8.9987).margin(4 * 0.0011).epsilon(0));
  CHECK(shift_deviation(3) == 0.75);  // published .74995, measured
  const RandomSource random{1, Stream::vectors, 3};
  std::vector<float> x(100000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(1 + 3 * normal::quantile((random.bits(i, 32) + 0.5) * 0x1p-32));
  const auto variance = [&](net::NormRule::Statistic statistic) {
    return net::batch_statistics(x.data(), 100000, 1, {.statistic = statistic}).variance[0];
  };
  const double exact = variance(net::NormRule::Statistic::variance),
               shift = variance(net::NormRule::Statistic::shift);
  CHECK(shift / exact == Approx(power_gain(3, kApproximate)).margin(4 * 0.0011).epsilon(0));
  CHECK(std::sqrt(exact) * core::power_of_two(1 / std::sqrt(shift)) ==
        Approx(0.75).margin(0.75 * 4 / std::sqrt(2 * 100000.0)).epsilon(0));
}

TEST_CASE("binarized: normalisation and sign fold into a compare", "[fast]") {
  const Threshold up = fold(0.5, 1.25, 0.5), down = fold(-0.5, 1.25, 0.5);
  CHECK((up.upward && up.bound == 1));       // 0.25
  CHECK((!down.upward && down.bound == 2));  // 2.25
  const Threshold on = fold(2, 3, 0);
  CHECK((on.fires(3) && !on.fires(2)));
  for (const std::int64_t s : {-1000, 0, 1000}) {
    CHECK(fold(0, 5, 0).fires(s));
    CHECK_FALSE(fold(0, 5, -1).fires(s));
  }
  for (const double scale : {0.3, -0.7, 1.9}) {
    for (const double bias : {-1.1, 0.0, 0.4}) {
      for (std::int64_t s = -20; s <= 20; ++s) {
        CAPTURE(scale, bias, s);
        const double y = scale * (static_cast<double>(s) - 2.3) + bias;
        CHECK(fold(scale, 2.3, bias).fires(s) == (y >= 0));
      }
    }
  }
}

TEST_CASE("binarized: a format without mantissa is LogQuant but for its boundary", "[fast]") {
  for (const float size : {0.25f, 1.0f, 64.0f}) {
    for (const float x : {0.7072f, 1.0f, 1.3f, 1.414f, 1.4143f, 1.49f, 1.51f, 1.9f}) {
      CAPTURE(size, x);
      const auto power = static_cast<float>(core::power_of_two(double{x} * size));
      int exponent = 0;
      const double mantissa = 2 * std::frexp(x, &exponent);
      const bool between = mantissa > std::sqrt(2.0) && mantissa < 1.5;  // the nearest is below
      CHECK(quantized("e5m0+finite", x * size) == (between ? power / 2 : power));
      CHECK(quantized("e5m0+finite", -x * size) == -quantized("e5m0+finite", x * size));
    }
  }
  CHECK(quantized("e5m0+finite", 0) == 0);
}

TEST_CASE("binarized: the grids of few bits are those of LinearQuant", "[fast]") {
  for (const int bits : {2, 3, 4}) {
    const Json recipe = few_bits(bits, "fc1");
    const std::string format = recipe["roles"]["weight"]["format"];
    CHECK(find_format(format).bits == bits);
    const double step = std::exp2(1 - bits), end = 1 - step;
    for (int i = -70; i <= 70; ++i) {
      const auto x = static_cast<float>(i / 64.0);
      CAPTURE(bits, x);
      const double rounded = std::nearbyint(x / step) * step;
      CHECK(quantized(format, x) == std::max(-end, std::min(end, rounded)));
    }
  }
}

TEST_CASE("binarized: identities and laws hold", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run("binarized", folder, {"samples=200000"});
  Conclusion conclusion;
  add_xnor(run, conclusion);
  add_shifts(run, conclusion);
  CHECK(conclusion.findings.size() == 6 + 2 * 3);
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK(testing::agrees(finding));
  }
  REQUIRE(conclusion.charts.size() == 1);
  CHECK(conclusion.charts[0].series.size() == 4);
}

TEST_CASE("binarized: trained networks are integers inside, and methods are compared", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "binarized", folder,
      {"data=glyphs", "seeds=2", "epochs=1", "train_samples=256", "eval_samples=50", "batch=64"});
  const net::Dataset data = testing::small_dataset();
  Conclusion conclusion;
  add_network(run, data, conclusion);
  int exact = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    if (finding.claim == "sums") continue;
    CHECK(finding.verdict == Verdict::holds);
    ++exact;
  }
  CHECK(exact == 2 * 3);  // planes, thresholds of two layers
  add_training(run, data, conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == 7);
  CHECK(conclusion.tables[1].rows.size() == 5);
  int size = 0, losses = 0;
  for (const Finding& finding : conclusion.findings) {
    if (finding.self_check) {
      CHECK(finding.measured == 32);
      ++size;
    }
    const bool loss = finding.claim == "signs" || finding.claim == "shift" ||
                      finding.claim == "adamax" || finding.claim == "few bits";
    if (loss) CHECK(finding.predicted == -1);
    losses += loss;
  }
  CHECK(size == 1);
  CHECK(losses == 4);
}

TEST_CASE("binarized: BinaryNet's set-up trains the methods that are named", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "binarized", folder,
      {"data=glyphs", "seeds=2", "epochs=1", "train_samples=128", "eval_samples=50", "batch=64",
       "net=binarynet(16)", "setup=binarynet", "methods=float32,signs,adamax"});
  CHECK(plan_of(run).trial.options.schedule == "exponential");
  const Json adamax = as_binarynet(with_shift_adamax(signs("fc1")));
  CHECK(adamax["update"]["rule"] == "clip(1,true)");
  CHECK(adamax["objectives"][0]["rule"] == "squared_hinge");
  CHECK(as_binarynet(Json::object()) == Json{{"objectives", {{{"rule", "squared_hinge"}}}}});
  Conclusion conclusion;
  add_training(run, testing::small_dataset(), conclusion);
  CHECK(conclusion.tables.at(0).rows.size() == 3);
  // AdaMax is compared with the shift-based normalisation, which did not run.
  for (const Finding& finding : conclusion.findings)
    CHECK((finding.self_check || finding.claim == "signs"));
}

}  // namespace binarized_test
