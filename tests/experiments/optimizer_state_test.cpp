// Optimizer state and masters of few bits: predictions by hand, and the experiment from settings to
// conclusion.
#include "experiments/optimizer_state/optimizer_state.hpp"

#include <cmath>
#include <map>

#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/random.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace optimizer_state_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::optimizer_state;
using numemu::test::TemporaryFolder;

namespace {

/// Numerics of one parameter w: an update by hand, then its second moment.
struct Bench {
  net::Numerics inner;
  net::TrainOptions options;
  net::Tensor w = net::Tensor({1, 8}), gradient = w, second = w;
  std::vector<float> delta = std::vector<float>(8);

  void step(Watch& watch, std::int64_t index) {
    const net::Step step{net::Phase::training, index};
    watch.update(step, {"w", &w, &gradient, &delta});
    watch.optimizer_state(step, "w", "second", second);
  }
};

}  // namespace

TEST_CASE("optimizer-state: lost updates follow from the distance to half an ulp", "[fast]") {
  // Between 1 and 2 an ulp of bfloat16 is 2^-7.
  CHECK(lost_update(1.5f, 0x1p-9f).nearest == 1);
  CHECK(lost_update(1.5f, 0x1p-9f).stochastic == 0.75);
  CHECK(lost_update(-1.5f, -0x1.8p-8f).nearest == 0);
  CHECK(lost_update(1.5f, 0x1.8p-8f).stochastic == 0.25);
  CHECK(lost_update(1.0f, 1.0f).stochastic == 0);
  CHECK(lost_update(0.0f, 1e-6f).nearest == 0);
  // Against conversions: nearest exactly, away from powers of two; stochastically on average.
  const Format& bfloat16 = find_format("bfloat16");
  const RandomSource random{.seed = 3};
  double lost = 0, expected = 0, variance = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto w =
        static_cast<float>(1 + static_cast<double>(1 + random.bits(3 * i, 32) % 126) / 128);
    const auto d = static_cast<float>((random.uniform(3 * i + 1) - 0.5) * 0x1p-5);
    const auto rounded = [&](const Rounding& rounding) {
      const Encoded code = encode(bfloat16, value_of(w + d), rounding, Overflow::saturate,
                                  random.bits(3 * i + 2, 16));
      return to_double(decode(bfloat16, code.code));
    };
    CHECK((rounded({}) == w) == (lost_update(w, d).nearest == 1));
    const double p = lost_update(w, d).stochastic;
    lost += rounded({RoundingMode::sr, StochasticVariant::c, 16}) == w;
    expected += p;
    variance += p * (1 - p);
  }
  CHECK(std::fabs(lost - expected) < 4 * std::sqrt(variance));
}

TEST_CASE("optimizer-state: zeros are predicted from peaks, or from the last moment", "[fast]") {
  Bench bench;
  bench.options.beta2 = 0.75;
  const std::string block = "group(uint8,4,float32)";
  const Method nearest{"nearest", {}, "", block};
  const Method stochastic{"stochastic", {}, "", block, true};
  Watch watch(bench.inner, bench.options, 2, 1, {nearest, stochastic});
  // Blocks of 4; their largest moments are 255 in both steps, so that s = 1.
  bench.gradient.data = {100, 1, 2, 0, 100, 0.5f, 0, 3};
  bench.second.data = {255, 1, 1, 0, 100, 1, 0, 1};
  bench.step(watch, 0);
  bench.gradient.data = {1, 1, 1, 0, 1, 1, 0, 1};
  bench.second.data = {255, 0.5f, 0.25f, 0, 255, 2, 0, 0.75f};
  bench.delta = {1, 0, 0, 0, 0, 0, 0, 0};
  bench.step(watch, 1);
  const Watched watched = watch.watched();
  // g^2 / 4 >= 1/2 for 100, 2, 100 and 3, of six elements with gradients.
  REQUIRE(watched.zeros_of.size() == 2);
  CHECK(watched.zeros_of[0] == std::pair<std::string, double>("nearest", 2.0 / 6));
  CHECK(watched.zeros_of[1].second == Approx((0.5 + 0.75 + 0.25) / 6));
  CHECK(watched.zeros == 0);
  CHECK(watched.lost == 0);
  CHECK(watched.largest == Approx(1 / bench.options.learning_rate));
}

TEST_CASE("optimizer-state: methods are recipes, and the shipped files are among them", "[fast]") {
  std::map<std::string, Json> by_name;
  for (const Method& method : methods(256)) {
    Json json = method.recipe;
    json["numemu_recipe"] = 1;
    by_name[method.name] = policies::Recipe::parse(json, method.name).json();
  }
  CHECK(by_name.size() == methods(256).size());
  const auto shipped = [](const std::string& name) {
    const std::string file = NUMEMU_SOURCE "/data/recipes/" + name + ".json";
    return policies::Recipe::parse_text(test::read_file(file), file).json();
  };
  CHECK(shipped("state-8bit-b256") == by_name["state int8, second e5m3, sr"]);
  CHECK(shipped("bf16-sr-master") == by_name["masters bfloat16, sr"]);
}

TEST_CASE("optimizer-state: every method is measured beside float32", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "optimizer-state", folder, {"seeds=2", "train_samples=64", "eval_samples=50", "batch=16"});
  Conclusion conclusion;
  add_net(run, "mlp", testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == methods(256).size());
  CHECK(conclusion.tables[0].rows[0][1] == "4.00, 8.00");
  std::map<std::string, int> claims;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(std::isfinite(finding.measured));
    CHECK(std::isfinite(finding.predicted));
    ++claims[finding.claim];
  }
  CHECK(claims["zeros"] == 8);
  CHECK(claims["lost"] == 3);
  CHECK(claims["moments"] == 2);
  CHECK(claims["masters"] == 1);
  CHECK(claims["nearest"] == 1);
  CHECK(claims["integers"] == 3);
  CHECK(claims["other states"] == 2);
}

}  // namespace optimizer_state_test
