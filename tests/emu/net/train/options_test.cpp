// Every option is checked by name and changes the text that identifies a run; recommended rates.
#include "emu/net/train/options.hpp"

#include <limits>

#include "emu/net/nets.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net::options_test {
namespace {

// One change per option, to a value that is allowed.
const std::vector<std::pair<std::string, void (*)(TrainOptions&)>> kChanges = {
    {"optimizer", [](TrainOptions& o) { o.optimizer = "sgd"; }},
    {"schedule", [](TrainOptions& o) { o.schedule = "step"; }},
    {"learning_rate", [](TrainOptions& o) { o.learning_rate *= 1 + 0x1p-52; }},
    {"warmup", [](TrainOptions& o) { o.warmup = 1; }},
    {"momentum", [](TrainOptions& o) { o.momentum = 0.5; }},
    {"nesterov", [](TrainOptions& o) { o.nesterov = true; }},
    {"beta1", [](TrainOptions& o) { o.beta1 = 0.5; }},
    {"beta2", [](TrainOptions& o) { o.beta2 = 0.5; }},
    {"epsilon", [](TrainOptions& o) { o.epsilon = 1; }},
    {"weight_decay", [](TrainOptions& o) { o.weight_decay = 1; }},
    {"clip", [](TrainOptions& o) { o.clip = 1; }},
    {"epochs", [](TrainOptions& o) { o.epochs = 1; }},
    {"patience", [](TrainOptions& o) { o.patience = 1; }},
    {"batch", [](TrainOptions& o) { o.batch = 1; }},
    {"augment", [](TrainOptions& o) { o.augment.shift = 1; }},
    {"augment", [](TrainOptions& o) { o.augment.flip = true; }},
    {"augment", [](TrainOptions& o) { o.augment.crop = 1; }},
    {"seed", [](TrainOptions& o) { o.seed = 1; }},
};

TEST_CASE("a change of any option changes its own text and no other", "[fast]") {
  const auto usual = described({});
  for (const auto& [name, change] : kChanges) {
    TrainOptions options;
    change(options);
    CHECK_NOTHROW(check(options));
    const auto text = described(options);
    REQUIRE(text.size() == usual.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      INFO(name << " " << text[i].first);
      CHECK(text[i].first == usual[i].first);
      CHECK((text[i].second != usual[i].second) == (text[i].first == name));
    }
  }
}

TEST_CASE("workers and micro-batches identify a run only where they are not 1", "[fast]") {
  const auto usual = described({});
  TrainOptions options;
  options.workers = 4;
  options.micro_batches = 2;
  auto text = described(options);
  REQUIRE(text.size() == usual.size() + 2);
  using Pair = std::pair<std::string, std::string>;
  CHECK(text[usual.size()] == Pair{"workers", "4"});
  CHECK(text[usual.size() + 1] == Pair{"micro_batches", "2"});
  text.resize(usual.size());
  CHECK(text == usual);
}

TEST_CASE("copies identify a run only where there are several, which augmentation makes",
          "[fast]") {
  TrainOptions options;
  options.copies = 4;
  CHECK_THROWS_WITH(check(options), Catch::Contains("copies: expected 1 without augmentation"));
  options.augment.flip = true;
  CHECK_NOTHROW(check(options));
  CHECK(described(options).back() == std::pair<std::string, std::string>("copies", "4"));
}

TEST_CASE("objectives are described where they are not the default, and checked", "[fast]") {
  TrainOptions options;
  const auto usual = described(options);
  options.objectives = {"cross_entropy", "complement"};
  CHECK_NOTHROW(check(options));
  auto text = described(options);
  REQUIRE(text.size() == usual.size() + 1);
  CHECK(text.back() ==
        std::pair<std::string, std::string>("objectives", "cross_entropy complement"));
  options.objective_optimizers = {{"complement", "sgd"}};
  CHECK_NOTHROW(check(options));
  CHECK(described(options).back() ==
        std::pair<std::string, std::string>("optimizer of complement", "sgd"));
  text.pop_back();
  CHECK(text == usual);
}

TEST_CASE("wrong options are refused by name", "[fast]") {
  const auto refuses = [](auto change, const char* text) {
    TrainOptions options;
    change(options);
    CHECK_THROWS_WITH(check(options), Catch::Contains(text));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK_NOTHROW(check(TrainOptions{}));
  refuses([](TrainOptions& o) { o.optimizer = "sdg"; }, "'sgd'");
  refuses([](TrainOptions& o) { o.objectives = {"complementary"}; }, "unknown objective");
  refuses([](TrainOptions& o) { o.objectives.clear(); }, "objectives: expected at least one");
  refuses([](TrainOptions& o) { o.objectives = {"complement", "complement"}; }, "each name once");
  refuses(
      [](TrainOptions& o) {
        o.objective_optimizers = {{"complement", "sgd"}};
      },
      "objective_optimizers: expected names among the objectives");
  refuses([](TrainOptions& o) { o.objective_optimizers = {{"cross_entropy", "sdg"}}; }, "'sgd'");
  refuses(
      [](TrainOptions& o) {
        o.optimizer = "shift-adamax";
        o.beta1 = 0.5;
      },
      "beta1: expected 0.9, the default, which shift-adamax does not read");
  refuses(
      [](TrainOptions& o) {
        o.optimizer = "shift-adamax";
        o.beta2 = 0.5;
      },
      "beta2");
  for (const char* optimizer : {"adamax", "shift-adamax", "sgd"}) {
    TrainOptions options;
    options.optimizer = optimizer;
    CHECK_NOTHROW(check(options));
    options.epsilon = 1;
    CHECK_THROWS_WITH(check(options), Catch::Contains("epsilon: expected 1e-08"));
    // The optimizer of another objective reads it.
    options.objectives = {"cross_entropy", "complement"};
    options.objective_optimizers = {{"complement", "adam"}};
    CHECK_NOTHROW(check(options));
  }
  CHECK_NOTHROW([] {
    TrainOptions options;
    options.optimizer = "adamax";
    options.beta1 = options.beta2 = 0.5;
    check(options);
  }());
  refuses([](TrainOptions& o) { o.optimizer = "lion(2)"; }, "optimizer lion: beta1: expected");
  refuses(
      [](TrainOptions& o) {
        o.optimizer = "lion(0.8)";
        o.beta1 = 0.5;
      },
      "beta1: expected 0.9, the default, which lion does not read");
  refuses(
      [](TrainOptions& o) {
        o.objectives = {"label_smoothing", "label_smoothing(0.2)"};
      },
      "each name once");
  TrainOptions own, usual;
  own.optimizer = "lion(0.9,0.5)";
  own.objectives = {"label_smoothing(0.2)"};
  usual.optimizer = "lion(0.9)";
  usual.objectives = {"label_smoothing(0.1)"};
  const auto first = [](const TrainOptions& o) { return described(o).front().second; };
  const auto last = [](const TrainOptions& o) { return described(o).back().second; };
  CHECK(first(own) == "lion(0.9,0.5)");
  CHECK(first(usual) == "lion");
  CHECK(last(own) == "label_smoothing(0.2)");
  CHECK(last(usual) == "label_smoothing");
  refuses([](TrainOptions& o) { o.schedule = "cosin"; }, "'cosine'");
  refuses([](TrainOptions& o) { o.learning_rate = kInfinity; }, "learning_rate");
  refuses([](TrainOptions& o) { o.warmup = -1; }, "warmup");
  refuses([](TrainOptions& o) { o.momentum = 1; }, "momentum");
  refuses([](TrainOptions& o) { o.beta1 = 1; }, "beta1");
  refuses([](TrainOptions& o) { o.beta2 = -0.1; }, "beta2");
  refuses([](TrainOptions& o) { o.epsilon = 0; }, "epsilon");
  refuses([](TrainOptions& o) { o.weight_decay = kInfinity; }, "weight_decay");
  refuses([](TrainOptions& o) { o.clip = -1; }, "clip");
  refuses([](TrainOptions& o) { o.epochs = -1; }, "epochs");
  refuses([](TrainOptions& o) { o.patience = -1; }, "patience");
  refuses([](TrainOptions& o) { o.batch = 0; }, "batch");
  refuses([](TrainOptions& o) { o.workers = 0; }, "workers");
  refuses([](TrainOptions& o) { o.micro_batches = 65537; }, "micro_batches");
  refuses(
      [](TrainOptions& o) {
        o.batch = 5;
        o.workers = 3;
        o.micro_batches = 2;
      },
      "at most batch (5) parts, not 3 x 2");
  refuses(
      [](TrainOptions& o) {
        o.batch = 128;
        o.workers = 4;
        o.micro_batches = 3;
      },
      "a multiple of 4 workers x 3 micro-batches, such as 120 or 132, not 128");
}

TEST_CASE("every optimizer has rates on every network, and they are allowed", "[fast]") {
  std::vector<std::string> nets = net_names();
  nets.emplace_back("no reference network");
  for (const std::string& net : nets) {
    CHECK_NOTHROW(require_optimizer(recommended_optimizer(net)));
    for (const std::string& name : optimizer_names()) {
      TrainOptions options;
      options.optimizer = name;
      options.learning_rate = options.weight_decay = -1;
      use_recommended_rates(options, net);
      CHECK(options.learning_rate > 0);
      CHECK(options.weight_decay >= 0);
      CHECK_NOTHROW(check(options));
    }
  }
}

TEST_CASE("the default options are those recommended where nothing else is known", "[fast]") {
  const TrainOptions usual;
  CHECK(recommended_optimizer("") == usual.optimizer);
  TrainOptions options;
  options.learning_rate = options.weight_decay = 0;
  options.clip = 1;
  use_recommended_rates(options);
  CHECK(options.learning_rate == usual.learning_rate);
  CHECK(options.weight_decay == usual.weight_decay);
  CHECK(options.clip == usual.clip);
}

TEST_CASE("residual networks use sgd and the transformer adamw with clipping", "[fast]") {
  CHECK(recommended_optimizer("resnet20") == "sgd");
  CHECK(recommended_optimizer("char-transformer") == "adamw");
  TrainOptions options;
  options.optimizer = "adamw";
  use_recommended_rates(options, "char-transformer");
  CHECK(options.learning_rate == 0.001);
  CHECK(options.clip == 1);
}

TEST_CASE("rates of an unknown optimizer are refused with the nearest", "[fast]") {
  TrainOptions options;
  options.optimizer = "adma";
  CHECK_THROWS_WITH(use_recommended_rates(options), Catch::Contains("'adam'"));
}

}  // namespace

}  // namespace numemu::net::options_test
