// Batch augmentation from settings to conclusion, and what it refuses.
#include <string>

#include "experiments/engine/train_trial.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::batch_augmentation_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("batch-augmentation: gradients have the variance predicted, copies are trained with",
          "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "batch-augmentation", folder,
      {"copies=1,2", "train_samples=32", "eval_samples=40", "gradient_samples=60",
       "gradient_batches=40", "gradient_batch=4", "epochs=2", "tests=2", "formats=float32,mxfp4"});
  const Conclusion conclusion = find_experiment("batch-augmentation").run(run);
  CHECK(held(conclusion, "variance") == std::pair(2, 2));
  CHECK(held(conclusion, "square") == std::pair(2, 2));
  CHECK(held(conclusion, "formats").first == 2);
  CHECK(held(conclusion, "rho").first == 1);
  // One seed: nothing is decided about accuracy.
  for (const char* const claim : {"noise", "rows", "few bits"}) {
    INFO(claim);
    CHECK(held(conclusion, claim) == std::pair(2, 0));
  }
  // What is published is judged in float32 alone.
  CHECK(held(conclusion, "updates") == std::pair(1, 0));
  CHECK(held(conclusion, "accuracy") == std::pair(1, 0));
  CHECK(conclusion.tables.size() == 3);
  CHECK(conclusion.charts.size() == 3);
  const auto& rows = conclusion.tables[1].rows;  // M = 1, M = 2, M = 2 of as many rows
  REQUIRE(rows.size() == 3);
  CHECK(rows[0][1] == "4");
  CHECK(rows[1][1] == "4");
  CHECK(rows[2][1] == "2");
  CHECK(rows[0][2] == "64");
  CHECK(rows[1][2] == "128");
  CHECK(rows[2][2] == "64");
}

TEST_CASE("batch-augmentation: normalisation is folded, a trained network needs no training",
          "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "batch-augmentation", folder,
      {"nets=mlp-bn", "formats=float32", "copies=1,2", "train_samples=32", "eval_samples=20",
       "gradient_samples=40", "gradient_batches=40", "gradient_batch=2", "epochs=2", "tests=1",
       "tuned_nets=" NUMEMU_SOURCE "/data/lenet-glyphs.safetensors", "tuned_train_samples=32",
       "tuned_batch=16", "tuned_eval_samples=20", "tuned_epochs=2"});
  const Conclusion conclusion = find_experiment("batch-augmentation").run(run);
  CHECK(held(conclusion, "variance").first == 4);
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(finding.verdict != Verdict::fails);
  }
  CHECK(conclusion.tables.size() == 4);
}

TEST_CASE("batch-augmentation: copies and flips belong to the point of a trial", "[fast]") {
  TrainTrial trial;
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run("batch-augmentation", folder, {});
  const net::Dataset data = net::load_dataset("glyphs", run.folders.cache);
  trial.net = "mlp";
  trial.options.augment.shift = 1;
  const Json one = point_of(trial, data);
  trial.options.copies = 2;
  const Json two = point_of(trial, data);
  trial.options.augment.flip = true;
  const Json flipped = point_of(trial, data);
  CHECK(one != two);
  CHECK(two != flipped);
}

TEST_CASE("batch-augmentation: wrong settings are refused before any trial", "[fast]") {
  struct Row {
    std::string setting, refusal;
  };
  const TemporaryFolder folder;
  for (const Row& row : {
           Row{"copies=2,4", "copies: expected 1 and larger numbers, ascending, not 2,4"},
           Row{"copies=1,4,2", "ascending, not 1,4,2"},
           Row{"copies=1", "expected 1 and larger numbers"},
           Row{"epochs=6", "epochs: expected a multiple of all of copies = 1,2,4, not 6"},
           Row{"formats=mxfp4", "formats: expected float32 first, not mxfp4"},
           Row{"formats=float32,mxfp5", "mxfp5"},
           Row{"roles=wait", "wait"},
           Row{"shift=0,crop=0", "expected a shift, flip or crop, which make copies differ"},
           Row{"data=chain", "data: expected images"},
           Row{"train_samples=0", "gradient_batches: 0 training samples are left for gradients"},
           Row{"gradient_samples=10", "gradient_samples"},
           Row{"tests=0", "tests"},
           Row{"nets=-", "nets: expected networks here or in tuned_nets"},
           Row{"eval_samples=20000", "eval_samples: expected at most 10000, not 20000"},
           Row{"train_samples=100000", "55000 training samples, not 100000"},
       }) {
    INFO(row.setting);
    std::vector<std::string> settings = {row.setting};
    if (row.setting == "shift=0,crop=0") settings = {"shift=0", "crop=0"};
    CHECK_THROWS_WITH(
        find_experiment("batch-augmentation")
            .run(experiments::testing::smoke_run("batch-augmentation", folder, settings)),
        Catch::Contains(row.refusal));
  }
}

}  // namespace numemu::batch_augmentation_test
