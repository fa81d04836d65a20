// The complement study from settings to conclusion, its closed forms, and FGSM by hand.
#include "experiments/complement/complement.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::complement_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("complement: entropy and gradient of the published-form vectors", "[fast]") {
  const std::vector<float> z{1.3F, -0.4F, 0.2F, 0.9F};
  const complement::Row row = complement::complement_row(z, 0);
  constexpr double kDigits = 5e-7;  // of the numbers below, whose logits are float32 here
  CHECK(std::fabs(row.entropy - 0.967232775) < kDigits);
  const std::vector<double> slope = row.slope(), expected{0, 0.139145, 0.085121, -0.224266};
  for (std::size_t c = 0; c < slope.size(); ++c) CHECK(std::fabs(slope[c] - expected[c]) < 1e-6);
  // p = (.7, .2, .1): .6365142, and .3182571 over K - 1.
  const std::vector<float> p{std::log(0.7F), std::log(0.2F), std::log(0.1F)};
  const complement::Row three = complement::complement_row(p, 0);
  CHECK(std::fabs(three.entropy - 0.6365142) < kDigits);
  CHECK(std::fabs(three.entropy / 2 - 0.3182571) < kDigits);
  CHECK(std::fabs(three.rest - 0.3) < kDigits);
}

TEST_CASE("complement: division by a remainder of few bits is off by its rounding", "[fast]") {
  const Format& format = find_format("hfp16_e6m9");
  // 1 - p is a multiple of 2^-10: here 2.4 of them become 2, and .4 become none.
  const std::vector<float> three{0, 0, 0, std::log(3 / (2.4F * 0x1p-10F) - 3)};
  const complement::Row row = complement::complement_row(three, 3);
  CHECK(row.rest == Approx(2.4 * 0x1p-10).epsilon(1e-5));
  CHECK(complement::denominator(row, format, 0) == 2 * 0x1p-10);
  const double s = 1.2, h = std::log(3.0);
  CHECK(row.entropy == Approx(h));
  CHECK(complement::predicted_by_division(row, 2 * 0x1p-10) ==
        Approx(s * (h - std::log(s))).epsilon(1e-5));
  CHECK(complement::entropy_by_division(row, format, 0) ==
        Approx(s * (h - std::log(s))).epsilon(8 * 0x1p-10));
  CHECK(complement::entropy_by_logits(row, format) == Approx(h).epsilon(4 * 0x1p-10));
  const std::vector<float> none{0, 0, 0, std::log(3 / (0.4F * 0x1p-10F) - 3)};
  const complement::Row lost = complement::complement_row(none, 3);
  CHECK(complement::denominator(lost, format, 0) == 0);
  CHECK(complement::denominator(lost, format, 1e-7) == Approx(1e-7).epsilon(0x1p-10));
}

TEST_CASE("complement: FGSM moves along the sign of the gradient", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = net::load_dataset("glyphs", folder.path());
  net::Graph graph = net::build_net("mlp", data.input_shape(), 10);
  net::initialize(graph, 3);
  const complement::Robust robust = complement::robustness(graph, data, 150, {1e-3, 0.1, 2});
  CHECK(robust.rise == Approx(robust.predicted_rise).epsilon(0.02));
  CHECK(robust.predicted_rise > 0);
  CHECK(robust.top1[0] >= robust.top1[1]);
  CHECK(robust.top1[1] >= robust.top1[2]);
  CHECK(robust.lost == 0);
}

TEST_CASE("complement: closed forms hold, methods are compared with images and text", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "complement", folder,
      {"rows=60", "margins=0,6", "train_samples=64", "eval_samples=20", "attacked=20",
       "epsilons=0.001,0.1", "text_train_samples=2", "text_eval_samples=1"});
  const Conclusion conclusion = find_experiment("complement").run(run);
  CHECK(held(conclusion, "gradient") == std::pair(2, 2));
  CHECK(held(conclusion, "division") == std::pair(4, 4));
  CHECK(held(conclusion, "logits") == std::pair(2, 2));
  CHECK(held(conclusion, "accuracy").first == 2);  // one seed: no verdict
  CHECK(held(conclusion, "robust").first == 2);
  for (const Finding& finding : conclusion.findings)  // nor does one seed tell that it learns on
    CHECK(finding.what.find("training has not ended") == std::string::npos);
  CHECK(conclusion.tables.size() == 4);
  CHECK(conclusion.charts.size() == 4);
  const std::vector<ChartSeries>& errors = conclusion.charts[0].series;
  REQUIRE(errors.size() == 3);  // by division measured and predicted, by logits
  for (const ChartSeries& one : errors) {
    INFO(one.name);
    CHECK(one.points.size() == 2);
    CHECK(one.predicted == one.name.ends_with(" predicted"));
  }
}

TEST_CASE("complement: settings that do not serve are refused before any work", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& setting, const std::string& message) {
    CHECK_THROWS_WITH(
        find_experiment("complement")
            .run(experiments::testing::smoke_run("complement", folder, {setting, "text_net=-"})),
        Catch::Contains(message));
  };
  refused("own=novogard", "'novograd'");
  refused("format=int8", "format: expected a floating format");
  refused("guard=0", "guard: expected at least");
  refused("format=float8_e4m3fn", "guard: expected at least 0.00195, as float8_e4m3fn rounds 1e-7");
  refused("recipes=mxfp8-trian", "unknown recipe 'mxfp8-trian'");
}

TEST_CASE("complement: recipes of the full size train its networks", "[fast]") {
  const TemporaryFolder folder;
  const Settings full = settings_of(find_experiment("complement"), Size::full, {});
  ExperimentRun run = experiments::testing::smoke_run(
      "complement", folder,
      {"rows=10", "margins=0", "train_samples=64", "eval_samples=20", "attacked=2",
       "epsilons=0.001", "text_net=-", "net=" + full.text("net"),
       "recipes=" + full.text("recipes")});
  run.folders.data = NUMEMU_SOURCE "/data";
  CHECK(find_experiment("complement").run(run).tables.size() == 7);
}

}  // namespace numemu::complement_test
