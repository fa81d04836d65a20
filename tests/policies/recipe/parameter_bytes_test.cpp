// Bytes of masters and optimizer state, with their scales, counted by hand.
#include "policies/recipe/parameter_bytes.hpp"

#include "emu/net/nets.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("parameter bytes: masters and states with their scales", "[fast]") {
  const net::Graph graph = net::build_net("mlp", {2, 2, 1}, 10);  // 4-256-128-10
  const double weights = 4 * 256 + 256 * 128 + 128 * 10, biases = 256 + 128 + 10;
  const auto bytes = [&](const std::string& keys, const std::string& optimizer = "adam") {
    const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1)" + keys + "}", "r");
    net::TrainOptions options;
    options.optimizer = optimizer;
    CHECK(stores_few_bits(recipe, graph) == !keys.empty());
    return parameter_bytes(recipe, graph, options);
  };
  CHECK(bytes("").master == 4);
  CHECK(bytes("").state == 8);
  CHECK(bytes("", "sgd").state == 4);
  CHECK(bytes(R"(, "update": {"master": "bfloat16"})").master == 2);
  CHECK(bytes(R"(, "update": {"master": "bfloat16"})").state == 8);
  const std::string blocks = R"j({"format": "group(int8,64,float32)"})j";
  // Lines of 4, 256 and 128 elements: 1, 4 and 2 blocks; biases of 256, 128 and 10: 4, 2 and 1.
  const double scales = 256 + 128 * 4 + 10 * 2 + 4 + 2 + 1;
  const double moment = 1 + 4 * scales / (weights + biases);
  CHECK(bytes(R"(, "roles": {"state": )" + blocks + "}").state == Approx(2 * moment));
  CHECK(bytes(R"(, "roles": {"state": {"first": )" + blocks + "}}").state == Approx(4 + moment));
  CHECK(bytes(R"(, "roles": {"state": {"second": )" + blocks + "}}").state == Approx(4 + moment));
  CHECK(bytes(R"(, "roles": {"state": {"second": )" + blocks + "}}", "sgd").state == 4);
  CHECK(bytes(R"(, "layers": [{"match": "fc2", "roles": {"state": {"format": "bfloat16"}}}])")
            .state == Approx(8 - 4 * (256 * 128 + 128) / (weights + biases)));
}
