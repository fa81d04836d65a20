// What all rules of exchange share: nodes of the hierarchical order, bits, the unit that adds.
#include "policies/exchange/base/rule.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/nets.hpp"
#include "emu/net/train/step.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace rule_test {
namespace {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

Recipe exchange_recipe(const std::string& exchange) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "exchange": )j" + exchange + "}", "r.json");
}

std::vector<net::WorkerGradient> noise_of(const net::Graph& graph, int workers) {
  std::vector<net::WorkerGradient> all;
  for (int w = 0; w < workers; ++w) {
    net::WorkerGradient& own = all.emplace_back();
    own.worker = w;
    for (const net::Parameter* parameter : graph.parameters())
      own.parameters.push_back(noise(parameter->value.shape, static_cast<std::uint32_t>(w)));
  }
  return all;
}

net::Exchanged exchanged(const std::string& exchange, const net::Graph& graph, int workers) {
  RecipeNumerics numerics(exchange_recipe(exchange), graph);
  return net::exchange_all(numerics, {net::Phase::training}, noise_of(graph, workers));
}

TEST_CASE("bits of top-k are those of its places and values, vectors go whole", "[fast]") {
  const net::Graph graph = two_layers();
  const auto parameters = graph.parameters();
  const net::Exchanged plain = exchanged(R"j("topk(0.1)")j", graph, 4),
                       narrow = exchanged(
                           R"j({"rule": "topk(0.1)", "format": "bfloat16", "scale": "none"})j",
                           graph, 4);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto n = static_cast<double>(parameters[p]->value.size());
    const bool whole = parameters[p]->value.shape.size() == 1;
    const double count = std::max(1.0, std::round(0.1 * n)), place = std::ceil(std::log2(n));
    CHECK(plain.wire[p].sent == (whole ? 32 * n : count * (place + 32)));
    CHECK(narrow.wire[p].sent == (whole ? 16 * n : count * (place + 16)));
  }
}

TEST_CASE("of shared places each tensor gets its own number of values back", "[fast]") {
  const net::Graph graph = two_layers();
  const auto parameters = graph.parameters();
  for (const char* const rule : {R"j("randomk(0.1)")j", R"j("scalecom(0.1)")j"}) {
    const net::Exchanged shared = exchanged(rule, graph, 4);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto n = static_cast<double>(parameters[p]->value.size());
      const bool whole = parameters[p]->value.shape.size() == 1;
      CHECK(shared.wire[p].returned == 32 * (whole ? n : std::max(1.0, std::round(0.1 * n))));
    }
  }
}

TEST_CASE("nodes send the mean of their workers, and its bits count once for all", "[fast]") {
  const net::Graph graph = two_layers();
  const net::Exchanged nodes =
      exchanged(R"j({"rule": "topk(0.2)", "order": "hierarchical(4)"})j", graph, 8);
  // The same from the means: two workers that are nodes.
  const std::vector<net::WorkerGradient> all = noise_of(graph, 8);
  std::vector<net::WorkerGradient> means;
  net::Numerics float32;
  for (int node = 0; node < 2; ++node) {
    means.push_back(
        {node, net::exchange_all(float32, {}, {all.begin() + 4 * node, all.begin() + 4 * node + 4})
                   .gradients});
  }
  RecipeNumerics two(exchange_recipe(R"j("topk(0.2)")j"), graph);
  const net::Exchanged expected = net::exchange_all(two, {net::Phase::training}, means);
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    CHECK(nodes.gradients[p].data == expected.gradients[p].data);
    CHECK(nodes.wire[p].sent == expected.wire[p].sent / 4);
  }
  CHECK_THROWS_WITH(exchanged(R"j({"rule": "topk", "order": "hierarchical(3)"})j", graph, 8),
                    Catch::Contains("expected a multiple of 3 workers, there are 8"));
}

TEST_CASE("in a short batch the mean over nodes is that over workers", "[fast]") {
  const net::Graph graph = two_layers();
  const std::vector<net::WorkerGradient> all = noise_of(graph, 8);
  RecipeNumerics numerics(exchange_recipe(R"j({"rule": "topk(1)", "order": "hierarchical(4)"})j"),
                          graph);
  for (std::size_t workers : {1, 3, 4, 5, 7}) {
    const auto exchange =
        numerics.exchange({net::Phase::training}, net::Senders{.workers = 8, .order = {}});
    for (std::size_t w = 0; w < workers; ++w) exchange->add(all[w]);
    const net::Exchanged found = exchange->finish();
    for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
      for (std::size_t i = 0; i < all[0].parameters[p].data.size(); ++i) {
        double mean = 0;
        for (std::size_t w = 0; w < workers; ++w)
          mean += double{all[w].parameters[p].data[i]} / static_cast<double>(workers);
        INFO(workers << " " << p << " " << i);
        CHECK(found.gradients[p].data[i] == Approx(mean).margin(1e-6));
      }
    }
  }
}

TEST_CASE("the unit of an exchange adds what is sent", "[fast]") {
  const net::Graph graph = two_layers();
  const std::vector<net::WorkerGradient> all = noise_of(graph, 5);
  const net::Exchanged exact = exchanged(R"j({"unit": "exact"})j", graph, 5),
                       chain = exchanged(R"j({"unit": "neutral.mac.bfloat16.rne"})j", graph, 5);
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    for (std::size_t i = 0; i < all[0].parameters[p].data.size(); ++i) {
      // Sums of five float32 numbers of similar size are exact in float64.
      double sum = 0;
      float chained = 0;
      for (const net::WorkerGradient& own : all) {
        const float x = own.parameters[p].data[i];
        sum += double{x};
        const float wide = chained + x;  // rounded once more, to 8 bits of significand
        chained = std::ldexp(std::nearbyint(std::ldexp(wide, 7 - std::ilogb(wide))),
                             std::ilogb(wide) - 7);
      }
      CHECK(exact.gradients[p].data[i] == static_cast<float>(sum) / 5);
      CHECK(chain.gradients[p].data[i] == Approx(chained / 5).epsilon(0x1p-7));
    }
  }
}

// W workers of one sample each: products of FP8 values are exact in float32, so that the exact unit
// rounds the same sum once, whether samples are the depth of one product or addends of an exchange.
TEST_CASE("workers of one sample are the batch, bit for bit with the exact unit", "[fast]") {
  const net::Dataset data = net::test::synthetic_dataset();
  const Recipe recipe = Recipe::parse_text(
      R"j({"numemu_recipe": 1,
           "roles": {"weight": {"format": "e4m3fn", "scale": "none"},
                     "activation": {"format": "e4m3fn", "scale": "none"},
                     "gradient": {"format": "e5m2", "scale": "none"}},
           "gemms": {"fprop": {"unit": "exact"}, "dgrad": {"unit": "exact"}, "wgrad": {"unit": "exact"}},
           "update": {"optimizer": "sgd", "loss_scale": "static(4096)"},
           "exchange": {"unit": "exact"}})j",
      "r.json");
  // The matrices after one step of `workers` samples; biases are no sums of products.
  const auto matrices = [&](std::int64_t workers, const Recipe& numerics_of) {
    net::Graph graph = net::build_net("mlp", data.input_shape(), data.classes());
    net::initialize(graph, 0);
    net::TrainOptions options;
    options.optimizer = "sgd";
    options.workers = workers;
    net::StepInput input;
    input.samples = {0, 1, 2, 3, 4, 5, 6, 7};
    input.x = data.train_batch(input.samples, input.targets);
    input.learning_rate = 0.0625;
    const std::vector<net::Parameter*> parameters = graph.parameters();
    const auto optimizer = net::make_optimizer(
        options, std::vector<const net::Parameter*>(parameters.begin(), parameters.end()));
    RecipeNumerics numerics(numerics_of, graph);
    net::training_step(graph, input, options, *optimizer, numerics);
    std::vector<std::vector<float>> values;
    for (const net::Parameter* parameter : parameters) {
      if (parameter->value.shape.size() > 1) values.push_back(parameter->value.data);
    }
    return values;
  };
  const auto batch = matrices(1, recipe);
  CHECK((matrices(8, recipe) == batch));  // too many numbers to print
  Json rounded = recipe.json();
  rounded["exchange"] = {{"unit", "neutral.mac.bfloat16.rne"}};
  CHECK((matrices(8, Recipe::parse(rounded, "r.json")) != batch));
}

TEST_CASE("orders and units of an exchange are read and printed, others refused", "[fast]") {
  const Recipe recipe = exchange_recipe(
      R"j({"rule": "topk(0.5)", "order": "ring", "unit": "exact", "format": "int8"})j");
  CHECK(recipe.exchange().order.kind == net::ExchangeOrder::Kind::ring);
  CHECK(recipe.json().at("exchange").at("order") == "ring");
  CHECK(recipe.json().at("exchange").at("unit") == "neutral.exact");
  CHECK(Recipe::parse(recipe.json(), "again").json() == recipe.json());
  CHECK(exchange_recipe(R"j({"order": "index"})j").json() == Recipe().json());
  CHECK(exchange_recipe(R"j({"order": "tree"})j").training_keys() ==
        std::vector<std::string>{"exchange"});
  const std::string number = numemu::test::message_of([] { exchange_recipe(R"j({"order": 5})j"); });
  CHECK(number.find("exchange.order: ") == number.rfind("exchange.order: "));
  CHECK_THROWS_WITH(exchange_recipe(R"j({"order": "rng"})j"),
                    Catch::Contains("r.json: exchange.order: unknown exchange order 'rng'"));
  CHECK_THROWS_WITH(exchange_recipe(R"j({"unit": "nvidia.h100.wgmma.e4m3.f32"})j"),
                    Catch::Contains("r.json: exchange.unit"));
}

}  // namespace
}  // namespace rule_test
