// The training of settings: each key, the optimizer and its rates, seeds, errors.
#include "experiments/engine/training_settings.hpp"

#include "emu/net/train/options.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;

namespace {

const std::vector<Setting> kKeys = {{"epochs", "3", "3", "3", ""},
                                    {"batch", "8", "8", "8", ""},
                                    {"train_samples", "64", "64", "64", ""},
                                    {"eval_samples", "0", "0", "0", ""},
                                    {"seeds", "2", "2", "2", ""}};

Settings settings_of(std::vector<Setting> more = {}) {
  more.insert(more.end(), kKeys.begin(), kKeys.end());
  return Settings(more, Size::smoke, {});
}

}  // namespace

TEST_CASE("training settings: every key, at the rates of the optimizer", "[fast]") {
  const TrainTrial own = training_of(settings_of(), "resnet20");
  CHECK(own.net == "resnet20");
  CHECK(own.options.epochs == 3);
  CHECK(own.options.batch == 8);
  CHECK(own.train_samples == 64);
  CHECK(own.eval_samples == 0);
  CHECK(own.options.optimizer == "sgd");
  const Settings named = settings_of({{"optimizer", "adam", "adam", "adam", ""}});
  CHECK(training_of(named, "resnet20").options.optimizer == "adam");
  CHECK(training_of(named, "resnet20", {.optimizer = "sgd"}).options.learning_rate ==
        own.options.learning_rate);
  CHECK(message_of([&] { training_of(settings_of(), "mlp", {.least_batch = 9}); }).find("batch") !=
        std::string::npos);
}

TEST_CASE("training settings: rates of the experiment instead of the recommended ones", "[fast]") {
  const TrainTrial own = training_of(settings_of(), "char-transformer");
  const TrainTrial given =
      training_of(settings_of({{"lr", "0.25", "0.25", "0.25", ""}, {"warmup", "7", "7", "7", ""}}),
                  "char-transformer");
  CHECK(given.options.learning_rate == 0.25);
  CHECK(given.options.warmup == 7);
  CHECK(own.options.learning_rate != 0.25);
  CHECK(own.options.warmup != 7);
  CHECK(given.options.weight_decay == own.options.weight_decay);
}

TEST_CASE("training settings: a second training by its prefix", "[fast]") {
  const Settings two = settings_of({{"norm_epochs", "5", "5", "5", ""},
                                    {"norm_batch", "16", "16", "16", ""},
                                    {"norm_train_samples", "32", "32", "32", ""},
                                    {"norm_eval_samples", "7", "7", "7", ""}});
  const TrainTrial second = training_of(two, "mlp", {.prefix = "norm_"});
  CHECK(second.options.epochs == 5);
  CHECK(second.options.batch == 16);
  CHECK(second.train_samples == 32);
  CHECK(second.eval_samples == 7);
  CHECK(training_of(two, "mlp").options.epochs == 3);
}

TEST_CASE("training settings: seeds follow the run's", "[fast]") {
  const ExperimentRun run{
      .settings = settings_of(), .seed = 40, .out = "", .folders = {}, .hooks = {}};
  CHECK(seeds_of(run) == std::vector<std::uint64_t>{40, 41});
}
