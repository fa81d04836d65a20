// One trial: what it reports, that it leaves the network alone, same bits on any threads.
#include "experiments/zap/zap_trial.hpp"

#include <omp.h>

#include "emu/net/model/safetensors.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/zap/small_zap_bench.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
namespace {

Json run_with(const ZapTrial& trial, TrainedNet& trained, const net::Dataset& data) {
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
  const net::Dataset data = testing::small_dataset();
  const test::TemporaryFolder folder;
  for (const bool norm : {false, true}) {
    TrainedNet trained = testing::small_zap_net(norm);
    const std::vector<float> before = weights_of(trained.graph);
    ZapTrial trial = testing::small_zap_trial();
    trial.first = norm;
    trial.finetune_epochs = 1;
    trial.predictors = folder / "p.safetensors";
    const Json result = run_with(trial, trained, data);
    CHECK(weights_of(trained.graph) == before);
    CHECK(result["conv_macs"] == 64 * (3 * 9 + 4 * 27));
    REQUIRE(result["layers"].size() == (norm ? 2 : 1));
    const Json& layer = result["layers"].back();
    CHECK(layer["layer"] == "relu2");
    CHECK(layer["macs"] == 64 * 4 * 27);
    CHECK(layer["losses"].size() == 1);
    CHECK(layer["curve"].size() == 21);
    CHECK(layer["chosen_errors"].size() == 2);
    CHECK(layer["limits"]["none"] == 0);
    REQUIRE(result["points"].size() == 3);
    std::int64_t skipped = -1;
    for (const Json& point : result["points"]) {
      const Json& tally = point["layers"].back();
      CHECK(tally["computed"] == 200 * 32 * 4);
      CHECK(tally["predicted"] == 200 * 32 * 4);
      const std::int64_t now =
          tally["zeros_skipped"].get<std::int64_t>() + tally["losses"].get<std::int64_t>();
      CHECK(now >= skipped);
      skipped = now;
      CHECK(point["recalibrated"].is_null() != norm);
    }
    REQUIRE(result["chosen"].size() == 2);
    CHECK(result["chosen"][1]["budget"] == 0.2);
    CHECK(result["chosen"][1]["expected_error"].get<double>() <= 0.2);
    CHECK(result["chosen"][1]["finetuned"]["correct"].is_number());

    const policies::ZapNetwork kept = policies::load_zap_network(trial.predictors, trained.graph);
    REQUIRE(kept.layers.size() == result["layers"].size());
    CHECK(kept.layers.back().threshold ==
          static_cast<float>(result["chosen"][0]["thresholds"].back().get<double>()));
  }
}

TEST_CASE("a trial has the same bits on one thread and on two", "[slow]") {
  const net::Dataset data = testing::small_dataset();
  TrainedNet trained = testing::small_zap_net(true);
  ZapTrial trial = testing::small_zap_trial();
  trial.thresholds = {0.2};
  trial.images = 100;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::string one = run_with(trial, trained, data).dump();
  omp_set_num_threads(2);
  const std::string two = run_with(trial, trained, data).dump();
  trial.seed = 1;
  const std::string other = run_with(trial, trained, data).dump();
  omp_set_num_threads(threads);
  CHECK(one == two);
  CHECK(one != other);
}

TEST_CASE("a trial's point names what decides it, not its file", "[fast]") {
  const net::Dataset data = testing::small_dataset();
  const TrainedNet trained = testing::small_zap_net(false);
  ZapTrial trial = testing::small_zap_trial();
  const Json point = point_of(trial, trained, data);
  CHECK(point["weights"] == trained.digest);
  CHECK(point["data_digest"] == data.digest());
  trial.predictors = "elsewhere";
  CHECK(point_of(trial, trained, data) == point);
  trial.mask = 6;
  CHECK(point_of(trial, trained, data) != point);
}
