// Effects that predictions omit: each cause is named, from its layer on.
#include "experiments/predict/left_out.hpp"

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/reduce.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace left_out_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;

namespace {

/// 20 dB everywhere but for what leave_out() takes away.
LayerPrediction predicted(const std::string& recipe, double db = 20) {
  const net::Graph graph = testing::small_net().graph;  // fc1, fc2, fc3
  LayerPrediction prediction{{{"fc1", db}, {"fc2", db}, {"fc3", db}}, {db, db, 1}, 0, {}, ""};
  leave_out(
      prediction,
      {policies::Recipe::parse_text(R"({"numemu_recipe": 1, )" + recipe + "}", "recipe"), graph},
      {});
  return prediction;
}

}  // namespace

TEST_CASE("left out: noise that is modelled stays", "[fast]") {
  const LayerPrediction all =
      predicted(R"("roles": {"weight": {"format": "int4"}, "activation": {"format": "mxfp4"}})");
  CHECK(all.left_out.empty());
  CHECK(all.output_left_out.empty());
  CHECK(all.db.at("fc3") == 20);
  for (const char* rounding : {"rna", "rodd", "sr(8)", "rtz", "rup", "rdn"}) {
    INFO(rounding);
    CHECK(predicted(std::string(R"("roles": {"weight": {"format": "int8", "rounding": ")") +
                    rounding + "\"}}")
              .left_out.empty());
  }
  for (const char* role :
       {R"j("weight": {"format": "group(uint4,16,float16,zp)"})j",
        R"j("activation": {"format": "group(uint4,16,float16,min)"})j",
        R"j("weight": {"format": "int2"})j", R"j("weight": {"mask": "greedy(2:4)"})j",
        R"j("activation": {"format": "mxfp4", "axis": "reduction"})j",
        R"j("output": {"format": "bfloat16"})j", R"j("vector": {"format": "bfloat16"})j",
        R"j("weight": {"format": "int8", "granularity": "tile", "block": [4, 8]})j",
        R"j("weight": {"format": "nvfp4", "granularity": "tile"})j"}) {
    INFO(role);
    CHECK(predicted(std::string(R"("roles": {)") + role + "}").output_left_out.empty());
  }
}

TEST_CASE("left out: from the layer on that has it, with the cause", "[fast]") {
  const LayerPrediction some = predicted(
      R"("roles": {"activation": {"format": "int8"}}, "layers": [{"match": "fc2", "edges": "static"}])");
  CHECK(some.db.at("fc1") == 20);
  CHECK(some.left_out.count("fc1") == 0);
  CHECK(std::isnan(some.db.at("fc2")));
  CHECK(std::isnan(some.db.at("fc3")));
  CHECK(std::isnan(some.output.db));
  CHECK(std::isnan(some.output_error));
  CHECK(some.left_out.at("fc2") ==
        "the rounding of tensors between operators (edges), in fc2, is not modelled");
  CHECK(some.left_out.at("fc3") == some.left_out.at("fc2"));
  CHECK(some.output_left_out == some.left_out.at("fc2"));
}

TEST_CASE("left out: the rounding of units is part of the figures", "[fast]") {
  const std::string unit = R"("gemms": {"fprop": {"unit": "neutral.chunk64.hfp16_e6m9"}})";
  CHECK(predicted(R"("roles": {"weight": {"format": "int8"}}, )" + unit).left_out.empty());
  CHECK(predicted(unit).left_out.empty());
}

TEST_CASE("left out: from the layer on whose unit overflows or does not multiply exactly",
          "[fast]") {
  const net::Graph graph = testing::small_net().graph;
  const auto predicted = [&](const UnitError& error) {
    LayerPrediction p{{{"fc1", 20}, {"fc2", 20}, {"fc3", 20}}, {20, 20, 1}, 0, {}, ""};
    p.units["fc2"] = error;
    leave_out(p,
              {policies::Recipe::parse_text(
                   R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})", "recipe"),
               graph},
              {});
    return p;
  };
  CHECK(predicted({"narrow", 1}).left_out.empty());
  const LayerPrediction near = predicted({"narrow", 1, true});
  CHECK(near.left_out.count("fc1") == 0);
  CHECK(near.left_out.at("fc2") ==
        "the overflow of narrow, whose largest value is near its sums, in fc2, is not modelled");
  CHECK(near.left_out.at("fc3") == near.left_out.at("fc2"));
  CHECK(std::isnan(near.output.db));
  const char* const way = "saturated on the way";
  CHECK_THAT(
      predicted({.unit = "narrow", .overflows = true, .overflow = 0.02, .looked = 50, .words = way})
          .output_left_out,
      Contains("near its sums (saturated on the way: predicted 2 %), in fc2"));
  // Each quantity stands beside its own prediction.
  UnitError both{.unit = "narrow",
                 .overflows = true,
                 .overflowed = true,
                 .overflow = 0.3,
                 .at_end = 0.08,
                 .looked = 50,
                 .words = way,
                 .counts = {.results = 1000, .at_end = 85, .sampled = 112, .overflowed = 36}};
  const LayerPrediction ran = predicted(both);
  CHECK(ran.left_out.count("fc1") == 0);
  CHECK(ran.left_out.at("fc2") ==
        "the overflow of narrow (saturated on the way: 32.1 % of 112 results, predicted 30 %; "
        "ended at a register's end: 8.5 % of 1000 results, predicted 8 %), in fc2, is not "
        "modelled");
  both.of_noise = true;
  CHECK_THAT(predicted(both).output_left_out,
             Contains("predicted 8 %, on the samples that noise is measured on)"));
  // None of some is no bare 0, measured or predicted.
  CHECK_THAT(predicted({.unit = "narrow",
                        .overflows = true,
                        .looked = 50,
                        .words = "wrapped",
                        .counts = {.sampled = 512}})
                 .output_left_out,
             Contains("near its sums (wrapped: 0 of 512 results, predicted 0 of 50)"));
  CHECK_THAT(predicted({.unit = "narrow",
                        .overflowed = true,
                        .overflow = 0.02,
                        .looked = 50,
                        .words = "became NaN or infinite",
                        .results = 200,
                        .not_finite = 5})
                 .output_left_out,
             Contains("narrow (became NaN or infinite: 2.5 % of 200 results, predicted 2 %)"));
  CHECK_THAT(predicted({"narrow", 0, false, true}).output_left_out,
             Contains("the table of narrow"));
}

TEST_CASE("left out: values that become infinite", "[fast]") {
  const net::Graph graph = testing::small_net().graph;
  net::Targets targets;
  const policies::FloatReference reference =
      policies::float_reference(graph, testing::small_dataset().calibration_batch(0, 32, targets));
  for (const char* overflow : {"saturate", "ieee"}) {
    const policies::Recipe recipe = policies::Recipe::parse_text(
        std::string(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp8_e5m2", )") +
            R"("overflow": ")" + overflow + "\"}}}",
        "recipe");
    FitCache fits;
    const std::vector<TensorNoise> noises = predict_tensors({recipe, graph}, reference, fits);
    REQUIRE(noises[0].empirical.saturated > 0);  // the rule floor lets large ones go beyond
    LayerPrediction prediction{{{"fc1", 20}, {"fc2", 20}, {"fc3", 20}}, {20, 20, 1}, 0, {}, ""};
    leave_out(prediction, {recipe, graph}, noises);
    CHECK(prediction.left_out.empty() == (std::string(overflow) == "saturate"));
  }
}

TEST_CASE("layers of one weight and operators that choose are named where something is quantized",
          "[fast]") {
  const auto recipe = [](const std::string& roles) {
    return policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}}", "r");
  };
  const policies::Recipe int8 = recipe(R"("weight": {"format": "int8"})"), none = recipe("");
  net::Graph graph = net::build_net("mlp", {8, 8, 1}, 10);
  net::initialize(graph, 3);
  CHECK(model_notes({int8, graph}).empty());
  net::Tensor weight(net::Shape{10, 10});
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.data[i] = static_cast<float>(i);
  graph.add("left", std::make_unique<net::Linear>(weight, false));
  graph.add("right", std::make_unique<net::Linear>(weight, false));
  REQUIRE(model_notes({int8, graph}).size() == 1);
  CHECK_THAT(model_notes({int8, graph})[0].text,
             Catch::StartsWith("Layers left, right have the same"));
  graph.add("choice", std::make_unique<net::TopK>(net::TopKOptions{.k = 2}));
  REQUIRE(model_notes({int8, graph}).size() == 2);
  CHECK_THAT(model_notes({int8, graph})[1].text, Catch::StartsWith("choice chooses by value"));
  CHECK(model_notes({none, graph}).empty());
}

}  // namespace left_out_test
