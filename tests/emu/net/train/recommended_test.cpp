// The table of rates: every optimizer on every network, and the defaults of the options.
#include "emu/net/nets.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net::recommended_test {
namespace {

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
}  // namespace numemu::net::recommended_test
