// Means over seeds of results written by hand.
#include "experiments/zap/zap_findings.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;
namespace {

Json tally(int skipped) {
  return {{"computed", 50},
          {"predicted", 50},
          {"zeros_skipped", skipped},
          {"losses", 0},
          {"values_kept", 20},
          {"zeros_kept", 30 - skipped},
          {"saving", skipped / 100.0},
          {"error", 0.01}};
}

Json point(double threshold, int skipped, int only_float, int only_zap) {
  return {{"thresholds", {threshold}},
          {"layers", Json::array({tally(skipped)})},
          {"zap", {{"correct", 90}, {"only_float", only_float}, {"only_zap", only_zap}}},
          {"recalibrated", nullptr}};
}

Json trial(const std::vector<Json>& points) {
  Json layer = {{"layer", "relu"}, {"macs", 3000}, {"activations", 100}};
  return {{"conv_macs", 6000},
          {"layers", Json::array({layer})},
          {"points", points},
          {"chosen", Json::array()}};
}

}  // namespace

TEST_CASE("savings are shares of all convolutions, means over seeds", "[fast]") {
  const ZapResults results{
      5, "inner", 1000, {trial({point(0.1, 10, 6, 2)}), trial({point(0.3, 20, 2, 2)})}};
  const ZapSummary at = summarize(results, "points", 0);
  CHECK(at.thresholds[0] == Approx(0.2));
  CHECK(at.saving == Approx(0.075));  // of 3000 of 6000
  CHECK(at.least_saving == Approx(0.05));
  CHECK(at.largest_saving == Approx(0.1));
  CHECK(at.net_saving == Approx(0.075 - 18.0 * 50 / 6000));
  CHECK(at.error == Approx(0.01));
  CHECK(at.zap.value == Approx(-0.002));
  CHECK(at.zap.low < -0.002);
  CHECK(at.zap.high > -0.002);
  CHECK_FALSE(at.has_recalibrated);
  CHECK_FALSE(at.has_finetuned);
  CHECK(share_of(results, 0, 0, "zeros_skipped") == Approx(0.15));
  CHECK(name_of(results) == "mask 5 (50 % computed), inner layers");
}

TEST_CASE("the best point saves most of those that lose little", "[fast]") {
  // Losses of 0.1, 0.4 and 0.6 points.
  const std::vector<ZapResults> results{
      {5, "inner", 1000, {trial({point(0, 5, 1, 0), point(0.1, 10, 5, 1), point(0.2, 20, 7, 1)})}}};
  const ZapBest best = best_of(results, ZapCare::none);
  REQUIRE(best.of == &results[0]);
  CHECK(best.at.thresholds[0] == 0.1);
  CHECK(best.change.value == Approx(-0.004));
  CHECK(best_of(results, ZapCare::recalibrated).of == nullptr);
  const std::vector<ZapResults> bad{{5, "inner", 1000, {trial({point(0, 5, 20, 0)})}}};
  CHECK(best_of(bad, ZapCare::none).of == nullptr);
}

TEST_CASE("the aim holds where Holm says so of a point, is undecided where only the mean does",
          "[fast]") {
  const auto verdict = [](const std::vector<Json>& points) {
    Json result = trial(points);
    result["conv_macs"] = 3000;  // the layer is all there is
    result["layers"] = Json::array();
    for (Json& point : result["points"]) CHECK(point["layers"].size() == 1);
    Json layer = {{"layer", "relu"},
                  {"macs", 3000},
                  {"activations", 100},
                  {"bound_seen", {{"value", 0.3}, {"error", 0.001}}},
                  {"bound", {{"value", 0.3}, {"error", 0.001}}},
                  {"random",
                   {{"rate", 0.4},
                    {"measured", {{"value", 0.2}, {"error", 0.001}}},
                    {"trained", {{"value", 0.01}, {"error", 0.001}}}}},
                  {"limits", {{"none", 0}, {"all", 0.5}, {"expected", 0.5}}},
                  {"error_fit", {{"rms", 0.001}}},
                  {"chosen_errors", Json::array()}};
    result["layers"].push_back(layer);
    const std::vector<Finding> findings = zap_findings({{5, "inner", 10000, {result}}});
    CHECK_THAT(findings.back().what, Catch::Contains("the network as it is"));
    for (const Finding& finding : findings)
      if (&finding != &findings.back()) CHECK(finding.verdict == Verdict::holds);
    return findings.back().verdict;
  };
  // Of 10000 images 10, 45 and 60 more are wrong.
  CHECK(verdict({point(0, 28, 10, 0)}) == Verdict::holds);
  CHECK(verdict({point(0, 28, 10, 0), point(0.1, 30, 50, 5)}) == Verdict::holds);
  CHECK(verdict({point(0, 20, 10, 0), point(0.1, 30, 50, 5)}) == Verdict::undecided);
  CHECK(verdict({point(0, 20, 10, 0), point(0.1, 30, 60, 0)}) == Verdict::fails);
  // 34 less right is 2.7 standard errors below 50 (p = 0.003): alone certain, the best of twenty
  // points not, whatever the others lose or save.
  const Json near = point(0.1, 30, 34, 0);
  CHECK(verdict({near}) == Verdict::holds);
  std::vector<Json> many(19, point(0.1, 30, 50, 0));
  many.push_back(near);
  CHECK(verdict(many) == Verdict::undecided);
  many.assign(19, point(0, 5, 1, 0));
  many.push_back(near);
  CHECK(verdict(many) == Verdict::undecided);
  // Points that pass for certain leave the others as many fewer to be corrected for.
  many.assign(19, point(0, 26, 1, 0));
  many.push_back(near);
  CHECK(verdict(many) == Verdict::holds);
}
