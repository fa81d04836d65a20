// One trial: what it reports, that it leaves the network alone, same bits on any threads; and means
// over seeds of results written by hand.
#include "experiments/zap/zap_trial.hpp"

#include <omp.h>

#include "emu/net/build/builder.hpp"
#include "emu/net/model/safetensors.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

namespace zap_trial_test {

using namespace numemu;
using namespace numemu::experiments;
namespace {

/// Untrained; two sites, one behind the first convolution, with or without batch normalisation.
TrainedNet small_zap_net(bool norm) {
  net::Builder net("small", {8, 8, 1}, 10);
  net.conv3x3("conv1", 3).relu("relu1").conv3x3("conv2", 4);
  if (norm) net.batch_norm("bn2");
  net.relu("relu2").max_pool("pool", 2).flatten("flatten").classifier("fc");
  TrainedNet trained{net.take(), "", "0123456789abcdef"};
  net::initialize(trained.graph, 3);
  return trained;
}

ZapTrial small_zap_trial() {
  ZapTrial trial;
  trial.train_samples = 128;
  trial.epochs = 1;
  trial.images = 200;
  trial.thresholds = {-0.5, 0, 0.5};
  trial.budgets = {0.05, 0.2};
  return trial;
}

ZapMeasured run_with(const ZapTrial& trial, TrainedNet& trained, const net::Dataset& data) {
  net::Numerics float32;
  return run_zap_trial(trial, trained, data,
                       net::evaluate(trained.graph, data, net::Split::test, trial.images, float32));
}

std::vector<float> weights_of(const net::Graph& graph) {
  std::vector<float> all;
  for (const net::Parameter* p : graph.parameters())
    all.insert(all.end(), p->value.data.begin(), p->value.data.end());
  return all;
}

}  // namespace

TEST_CASE("a trial measures layers, points and budgets and leaves the network as it was",
          "[fast]") {
  const net::Dataset data = experiments::testing::small_dataset();
  const test::TemporaryFolder folder;
  for (const bool norm : {false, true}) {
    TrainedNet trained = small_zap_net(norm);
    const std::vector<float> before = weights_of(trained.graph);
    ZapTrial trial = small_zap_trial();
    trial.first = norm;
    trial.finetune_epochs = 1;
    trial.predictors = folder / "p.safetensors";
    const ZapMeasured result = run_with(trial, trained, data);
    CHECK(weights_of(trained.graph) == before);
    CHECK(result.conv_macs == 64 * (3 * 9 + 4 * 27));
    REQUIRE(result.layers.size() == (norm ? 2 : 1));
    const ZapLayerResult& layer = result.layers.back();
    CHECK(layer.layer == "relu2");
    CHECK(layer.macs == 64 * 4 * 27);
    CHECK(layer.losses.size() == 1);
    CHECK(layer.curve.size() == 21);
    CHECK(layer.chosen_errors.size() == 2);
    CHECK(layer.limits.none == 0);
    REQUIRE(result.points.size() == 3);
    std::int64_t skipped = -1;
    for (const ZapPoint& point : result.points) {
      const ZapCounts& counts = point.layers.back();
      CHECK(counts.computed == 200 * 32 * 4);
      CHECK(counts.predicted == 200 * 32 * 4);
      const std::int64_t now = counts.zeros_skipped + counts.losses;
      CHECK(now >= skipped);
      skipped = now;
      CHECK(point.recalibrated.has_value() == norm);
    }
    REQUIRE(result.chosen.size() == 2);
    CHECK(result.chosen[1].budget == 0.2);
    CHECK(result.chosen[1].expected_error <= 0.2);
    CHECK(result.chosen[1].finetuned.has_value());

    const policies::ZapNetwork kept = policies::load_zap_network(trial.predictors, trained.graph);
    REQUIRE(kept.layers.size() == result.layers.size());
    CHECK(kept.layers.back().threshold == static_cast<float>(result.chosen[0].thresholds.back()));
  }
}

TEST_CASE("a trial has the same bits on one thread and on two", "[slow]") {
  const net::Dataset data = experiments::testing::small_dataset();
  TrainedNet trained = small_zap_net(true);
  ZapTrial trial = small_zap_trial();
  trial.thresholds = {0.2};
  trial.images = 100;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::string one = json_of(run_with(trial, trained, data)).dump();
  omp_set_num_threads(2);
  const std::string two = json_of(run_with(trial, trained, data)).dump();
  trial.seed = 1;
  const std::string other = json_of(run_with(trial, trained, data)).dump();
  omp_set_num_threads(threads);
  CHECK(one == two);
  CHECK(one != other);
}

TEST_CASE("a trial's point names what decides it, not its file", "[fast]") {
  const net::Dataset data = experiments::testing::small_dataset();
  const TrainedNet trained = small_zap_net(false);
  ZapTrial trial = small_zap_trial();
  const Json point = point_of(trial, trained, data);
  CHECK(point["weights"] == trained.digest);
  CHECK(point["data_digest"] == data.digest());
  trial.predictors = "elsewhere";
  CHECK(point_of(trial, trained, data) == point);
  trial.mask = 6;
  CHECK(point_of(trial, trained, data) != point);
}

namespace {

ZapPoint point(double threshold, std::int64_t skipped, std::int64_t only_float,
               std::int64_t only_zap) {
  const ZapCounts counts{50,  50, skipped, 0, 20, 30 - skipped, static_cast<double>(skipped) / 100,
                         0.01};
  return {{threshold}, {90, only_float, only_zap}, {counts}};
}

ZapMeasured trial(const std::vector<ZapPoint>& points) {
  return {6000, {{.layer = "relu", .macs = 3000, .activations = 100}}, points};
}

}  // namespace

TEST_CASE("savings are shares of all convolutions, means over seeds", "[fast]") {
  const ZapResults results{
      5, "inner", 1000, {trial({point(0.1, 10, 6, 2)}), trial({point(0.3, 20, 2, 2)})}};
  const ZapSummary at = summarize(results, ZapList::swept, 0);
  CHECK(at.thresholds[0] == Approx(0.2));
  CHECK(at.saving == Approx(0.075));  // of 3000 of 6000
  CHECK(at.least_saving == Approx(0.05));
  CHECK(at.largest_saving == Approx(0.1));
  CHECK(at.net_saving == Approx(0.075 - 18.0 * 50 / 6000));
  CHECK(at.error == Approx(0.01));
  const stats::PairedInterval& change = at.change(ZapCare::none)->difference;
  CHECK(change.mean == Approx(-0.002));
  CHECK(change.low < -0.002);
  CHECK(change.high > -0.002);
  CHECK_FALSE(at.change(ZapCare::recalibrated));
  CHECK_FALSE(at.change(ZapCare::finetuned));
  CHECK(share_of(results, 0, 0, &ZapCounts::zeros_skipped) == Approx(0.15));
  CHECK(name_of(results) == "mask 5 (50 % computed), inner layers");
}

TEST_CASE("the best point saves most of those that lose little", "[fast]") {
  // Losses of 0.1, 0.4 and 0.6 points.
  const std::vector<ZapResults> results{
      {5, "inner", 1000, {trial({point(0, 5, 1, 0), point(0.1, 10, 5, 1), point(0.2, 20, 7, 1)})}}};
  const ZapBest best = best_of(results, ZapCare::none);
  REQUIRE(best.of == &results[0]);
  CHECK(best.at.thresholds[0] == 0.1);
  CHECK(best.change.difference.mean == Approx(-0.004));
  CHECK(best_of(results, ZapCare::recalibrated).of == nullptr);
  const std::vector<ZapResults> bad{{5, "inner", 1000, {trial({point(0, 5, 20, 0)})}}};
  CHECK(best_of(bad, ZapCare::none).of == nullptr);
}

TEST_CASE("the aim holds where Holm says so of a point, is undecided where only the mean does",
          "[fast]") {
  const auto verdict = [](const std::vector<ZapPoint>& points) {
    ZapMeasured result = trial(points);
    result.conv_macs = 3000;  // the layer is all there is
    ZapLayerResult& layer = result.layers[0];
    layer.bound_seen = layer.bound = {0.3, 0.001};
    layer.random = {0.4, {0.2, 0.001}, {0.01, 0.001}};
    layer.limits = {0, 0.5, 0.5};
    layer.error_fit.rms = 0.001;
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
  const ZapPoint near = point(0.1, 30, 34, 0);
  CHECK(verdict({near}) == Verdict::holds);
  std::vector<ZapPoint> many(19, point(0.1, 30, 50, 0));
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

}  // namespace zap_trial_test
