// The study of training with workers: bytes by hand, a small network under every rule, text, files.
#include "experiments/workers/training_with_workers.hpp"

#include <cmath>
#include <map>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::training_with_workers_test {

using namespace numemu::experiments;
using namespace numemu::experiments::workers;
using numemu::test::TemporaryFolder;

TEST_CASE("workers: bytes and compression are those of the parameters", "[fast]") {
  const Trained trained{{},
                        {{"a.weight", 4, 100, 80, 3200},
                         {"b.weight", 2, 50, 100, 1600},
                         {"b.bias", 1, 10, 320, 320}}};
  CHECK(trained.sent_bytes() == 500 / 8.0);
  CHECK(trained.returned_bytes() == 5120 / 8.0);
  CHECK(trained.rate() == 160 * 32 / 500.0);
  CHECK(trained.rate(3, 8) == 40);
  CHECK(trained.rate(2, 2) == 16);
  CHECK(std::isnan(trained.rate(5, 8)));
}

TEST_CASE("workers: settings of groups follow those of the experiment", "[fast]") {
  const std::vector<Setting> settings =
      with_training({{"own", "1", "2", "3", "its own"}}, {Group::images, Group::text}, {"adam"});
  std::map<std::string, std::string> smoke;
  for (const Setting& setting : settings) smoke[setting.key] = setting.smoke;
  CHECK(smoke.size() == settings.size());
  CHECK(smoke.at("own") == "1");
  CHECK(smoke.at("optimizers") == "adam");
  CHECK(smoke.contains("text_nets"));
  CHECK_FALSE(smoke.contains("tuned_nets"));
}

TEST_CASE("workers: a network trains under every rule beside the dense mean", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "scalecom", folder, {"seeds=2", "train_samples=64", "eval_samples=50", "batch=16"});
  const std::vector<Method> methods = {dense(), exchanged("topk(0.01)"),
                                       exchanged({{"rule", "randomk"}, {"share", 0.05}}, "")};
  Conclusion conclusion;
  const std::vector<TrainedNetwork> all = add_training_on(
      run, Group::images, experiments::testing::small_dataset(), methods, conclusion);
  REQUIRE(all.size() == 1);
  const TrainedNetwork& trained = all[0];
  CHECK(trained.name == "mlp, sgd");
  // mlp on 8 x 8 pixels: 64 x 256, 256 x 128, 128 x 10, and biases.
  const double elements = 64 * 256 + 256 * 128 + 128 * 10 + 256 + 128 + 10;
  CHECK(trained.study.runs[0][0].sent_bytes() == 4 * elements);
  CHECK(trained.study.runs[0][0].rate() == 1);
  // 164, 328 and 13 elements with places of 14, 15 and 11 bits.
  CHECK(trained.study.runs[1][1].sent_bytes() ==
        (164 * 46 + 328 * 47 + 13 * 43) / 8.0 + 4 * (256 + 128 + 10));
  CHECK(trained.study.runs[2][0].sent_bytes() == 4 * (819 + 1638 + 64) + 4 * (256 + 128 + 10));
  REQUIRE(conclusion.findings.size() == 1);  // the second rule claims nothing
  CHECK(conclusion.findings[0].claim == "accuracy");
  CHECK(std::isfinite(conclusion.findings[0].measured));
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == 3);
  CHECK(conclusion.charts.size() == 1);
  CHECK(conclusion.sentences.size() == 2);
}

}  // namespace numemu::training_with_workers_test
