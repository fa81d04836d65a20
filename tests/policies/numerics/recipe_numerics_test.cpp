// A recipe bound to a graph: frozen inference, training's state, stored roles, counts.
#include "policies/numerics/recipe_numerics.hpp"

#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"
#include "policies/bits/effective_bits.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/numerics/small_net.hpp"

namespace recipe_numerics_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using net::GemmKind;
using net::Role;

namespace {

Recipe recipe_of(const std::string& roles, const std::string& rest = "") {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "roles": {)j" + roles + "}" + rest + "}", "r");
}

net::Tensor sample_of(const net::Tensor& x, std::int64_t i) {
  net::Shape shape = x.shape;
  shape[0] = 1;
  net::Tensor one(shape);
  std::copy_n(x.data.begin() + i * one.size(), one.size(), one.data.begin());
  return one;
}

net::Tensor evaluate_batch(const net::Graph& graph, RecipeNumerics& numerics, const net::Tensor& x,
                           std::int64_t first) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < x.dim(0); ++i) samples.push_back(first + i);
  const net::Step step{net::Phase::inference, 0, &samples};
  numerics.begin_step(step);
  net::Tensor y = net::forward(graph, x, numerics, step);
  numerics.end_step(step);
  return y;
}

struct Trained {
  net::Tensor output;
  std::vector<net::Tensor> gradients;
};

/// One training step without the update.
Trained train_step(const net::Graph& graph, RecipeNumerics& numerics, const net::Tensor& x,
                   std::int64_t index) {
  const net::Step step{net::Phase::training, index, nullptr};
  numerics.begin_step(step);
  net::Tape tape = net::forward_training(graph, x, numerics, step);
  Trained result;
  result.output = tape.output;
  result.gradients =
      net::backward(graph, std::move(tape), noise(result.output.shape, 77), numerics);
  numerics.end_step(step);
  return result;
}

}  // namespace

TEST_CASE("a frozen recipe gives a sample the same result in any batch", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const net::Tensor images = noise({4, 4, 4, 3}, 5);
  const FloatReference reference = float_reference(graph, noise({6, 4, 4, 3}, 6));
  const std::string dynamic = R"j(, "calibrate": {"rule": "dynamic"})j";
  const std::string e4m3 = R"j("weight": {"format": "float8_e4m3fn"}, )j";
  const std::vector<Recipe> recipes = {
      recipe_of(e4m3 + R"j("activation": {"format": "float8_e4m3fn"})j"),
      recipe_of(e4m3 + R"j("activation": {"format": "float8_e4m3fn", "rounding": "sr(8)"})j"),
      recipe_of(e4m3 + R"j("activation": {"format": "float8_e4m3fn"})j", dynamic),
      recipe_of(R"j("activation": {"format": "nvfp4", "granularity": "block"})j"),
      recipe_of(
          R"j("activation": {"format": "nvfp4", "granularity": "block", "axis": "reduction"})j"),
      recipe_of(
          R"j("activation": {"format": "mxfp4", "granularity": "block", "rounding": "sr(4)"})j"),
      recipe_of(e4m3 + R"j("output": {"format": "int8"}, "vector": {"format": "int4"})j"),
  };
  for (const Recipe& recipe : recipes) {
    RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, reference);
    const net::Tensor together = evaluate_batch(graph, numerics, images, 10);
    for (std::int64_t i = 0; i < 4; ++i) {
      const net::Tensor alone = evaluate_batch(graph, numerics, sample_of(images, i), 10 + i);
      CHECK(differences(sample_of(together, i).data, alone.data) == 0);
    }
  }
}

TEST_CASE("static scales come from calibration and dynamic ones from the tensor", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const FloatReference reference = float_reference(graph, noise({6, 4, 4, 3}, 6));
  net::Tensor images = noise({2, 4, 4, 3}, 5);
  for (float& x : images.data) x *= 1024;  // far beyond what calibration saw
  const std::string roles = R"j("activation": {"format": "int8"})j";
  RecipeNumerics fixed(recipe_of(roles), graph), dynamic(recipe_of(roles), graph);
  fixed.freeze(graph, reference);
  evaluate_batch(graph, fixed, images, 0);
  evaluate_batch(graph, dynamic, images, 0);
  CHECK(fixed.roles().operand_counts("conv", GemmKind::fprop, Role::activation).overflow > 0);
  CHECK(dynamic.roles().operand_counts("conv", GemmKind::fprop, Role::activation).overflow == 0);
  CHECK(fixed.roles().operand_counts("conv", GemmKind::fprop).elements == images.size());
  CHECK(fixed.roles().operand_counts("conv", GemmKind::fprop, Role::weight) == OperandCounts{});
  CHECK(fixed.roles().operand_counts("fc", GemmKind::dgrad) == OperandCounts{});
}

TEST_CASE("rules that clip need saturation and kl integers", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const auto message = [&](const std::string& activation, const std::string& rule) -> std::string {
    const Recipe recipe =
        Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {"activation": {)" + activation +
                               R"(}}, "calibrate": {"rule": ")" + rule + R"("}})",
                           "r.json");
    return numemu::test::message_of([&] { RecipeNumerics(recipe, graph, "r.json"); });
  };
  const std::string ieee = R"("format": "float8_e4m3fn", "overflow": "ieee")";
  for (const char* rule : {"mse", "percentile(99)"})
    CHECK(message(ieee, rule).find("layer conv: expected overflow 'saturate'") !=
          std::string::npos);
  CHECK(message(ieee, "absmax").empty());
  CHECK(message(ieee, "percentile(100)").empty());
  CHECK(message(R"("format": "float8_e4m3fn")", "kl").find("expected an integer format for 'kl'") !=
        std::string::npos);
  CHECK(message(R"("format": "int8")", "kl").empty());
}

TEST_CASE("frozen weights are quantized and counted once", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const FloatReference reference = float_reference(graph, noise({6, 4, 4, 3}, 6));
  const net::Tensor images = noise({2, 4, 4, 3}, 5);
  for (const char* weight : {R"j("weight": {"format": "int4"})j",
                             R"j("weight": {"format": "mxfp4", "granularity": "block"})j"}) {
    RecipeNumerics numerics(recipe_of(weight), graph);
    numerics.freeze(graph, reference);
    const net::Tensor first = evaluate_batch(graph, numerics, images, 0);
    CHECK(differences(evaluate_batch(graph, numerics, images, 0).data, first.data) == 0);
    const std::int64_t elements = 8 * 3 * 3 * 3;
    CHECK(numerics.roles().operand_counts("conv", GemmKind::fprop, Role::weight).elements ==
          elements);
    numerics.roles().reset_counts();
    CHECK(numerics.roles().operand_counts("conv", GemmKind::fprop, Role::weight).elements ==
          elements);
    RecipeNumerics thawed(recipe_of(weight), graph);
    CHECK(differences(evaluate_batch(graph, thawed, images, 0).data, first.data) == 0);
  }
}

TEST_CASE("attention is calibrated on both of its operands", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"queries", {3, 8}}, {"keys", {5, 8}}};
  graph.add("scores",
            std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 2, .transpose_b = true}),
            {0, 1});
  std::vector<net::Tensor> batch = {noise({4, 3, 8}, 1), noise({4, 5, 8}, 2)};
  for (float& x : batch[1].data) x *= 64;
  const FloatReference reference = float_reference(graph, batch);
  CHECK(reference.samples() == 4);
  CHECK(differences(reference.inputs.at("scores").data, batch[0].data) == 0);
  CHECK(differences(reference.seconds.at("scores").data, batch[1].data) == 0);
  RecipeNumerics numerics(recipe_of(R"j("activation": {"format": "int8"})j"), graph);
  numerics.freeze(graph, reference);
  std::vector<std::int64_t> samples = {0, 1, 2, 3};
  const net::Tensor y = net::forward(graph, batch, numerics, {net::Phase::inference, 0, &samples});
  // Each operand under the scale of its own largest magnitude: neither saturates, and 8 bits with
  // 4 products a sum leave an error far below the scores.
  CHECK(numerics.roles().operand_counts("scores", GemmKind::fprop, Role::activation).overflow == 0);
  double error = 0, signal = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    error += (y.data[i] - reference.logits.data[i]) * (y.data[i] - reference.logits.data[i]);
    signal += reference.logits.data[i] * reference.logits.data[i];
  }
  CHECK(error > 0);
  CHECK(error < 1e-3 * signal);
}

TEST_CASE("delayed scaling uses the largest magnitude of the last steps", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const Recipe recipe =
      recipe_of(R"j("activation": {"format": "float8_e4m3fn", "scale": "delayed(2)"})j");
  RecipeNumerics numerics(recipe, graph);
  net::Tensor small({2, 4, 4, 3}, 1.0f), large({2, 4, 4, 3}, 4096.0f);
  const auto overflow = [&] {
    return numerics.roles().operand_counts("conv", GemmKind::fprop, Role::activation).overflow;
  };
  train_step(graph, numerics, large, 0);  // scale 1: 4096 is beyond 448
  CHECK(overflow() == large.size());
  train_step(graph, numerics, large, 1);  // scale of 4096
  CHECK(overflow() == large.size());
  train_step(graph, numerics, small, 2);
  train_step(graph, numerics, small, 3);  // the history is small, small
  std::vector<std::pair<std::string, std::string>> state;
  numerics.save_state(state);
  train_step(graph, numerics, large, 4);
  CHECK(overflow() == 2 * large.size());
  const auto counted = numerics.roles().operand_counts("conv", GemmKind::fprop, Role::activation);

  RecipeNumerics resumed(recipe, graph);
  resumed.load_state(state);
  train_step(graph, resumed, large, 4);
  CHECK(resumed.roles().operand_counts("conv", GemmKind::fprop, Role::activation) == counted);
}

TEST_CASE("a step may be repeated from its state bit for bit", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const net::Tensor x = noise({3, 4, 4, 3}, 5);
  const Recipe recipe = recipe_of(
      R"j("weight": {"format": "float8_e4m3fn", "rounding": "sr(8)"},
         "activation": {"format": "float8_e4m3fn", "scale": "delayed(3)"},
         "gradient": {"format": "float8_e5m2", "rounding": "sr(8)"},
         "saved": {"format": "mxfp8_e4m3", "granularity": "block", "rounding": "sr(4)"},
         "vector": {"format": "bfloat16", "scale": "none"})j",
      R"j(, "update": {"loss_scale": "dynamic"})j");
  RecipeNumerics whole(recipe, graph), resumed(recipe, graph);
  for (std::int64_t step = 0; step < 3; ++step) train_step(graph, whole, x, step);
  std::vector<net::Tensor> bad = {net::Tensor({1}, 1.0f / 0.0f)};
  const float before = whole.loss_scale({});
  whole.worker_gradients({}, bad);
  CHECK_FALSE(whole.accept_gradients({}));
  CHECK(whole.loss_scale({}) == before / 2);
  std::vector<std::pair<std::string, std::string>> state;
  whole.save_state(state);
  resumed.load_state(state);
  CHECK(resumed.loss_scale({}) == before / 2);
  const Trained a = train_step(graph, whole, x, 3), b = train_step(graph, resumed, x, 3);
  CHECK(differences(a.output.data, b.output.data) == 0);
  for (std::size_t p = 0; p < a.gradients.size(); ++p)
    CHECK(differences(a.gradients[p].data, b.gradients[p].data) == 0);
  // Stochastic rounding draws again in the next step.
  CHECK(differences(train_step(graph, whole, x, 4).output.data, a.output.data) > 0);
}

TEST_CASE("counts of parts that another process computed are added to one's own", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const Recipe recipe = recipe_of(R"j("activation": {"format": "float8_e4m3fn", "scale": "none"},
                                      "gradient": {"format": "float8_e5m2", "scale": "none"})j");
  RecipeNumerics alone(recipe, graph), first(recipe, graph), second(recipe, graph);
  const net::Tensor a = noise({3, 4, 4, 3}, 5), b = noise({2, 4, 4, 3}, 6);
  train_step(graph, alone, a, 0);
  train_step(graph, alone, b, 0);
  train_step(graph, first, a, 0);
  train_step(graph, second, b, 0);
  net::Numerics &one = first, &two = second;
  const std::vector<std::int64_t> of_first = one.counts(), of_second = two.counts();
  one.add_counts(of_second);
  two.add_counts(of_first);
  net::NamedState expected, found, other;
  alone.save_state(expected);
  first.save_state(found);
  second.save_state(other);
  CHECK(found == expected);
  CHECK(other == expected);
}

TEST_CASE("clipped gradients are zero where forward saturated", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {4}}};
  graph.add("first", std::make_unique<net::Linear>(4, 4, false), {0});
  graph.add("second", std::make_unique<net::Linear>(4, 2, false));
  for (net::Parameter* parameter : graph.parameters())
    parameter->value = noise(parameter->value.shape, 3);
  graph.parameters()[1]->value.data[5] = 1e6f;  // beyond 448 under the scale 1
  const net::Tensor x = noise({3, 4}, 4);
  const auto gradients = [&](const char* straight_through) {
    RecipeNumerics numerics(
        recipe_of(std::string(R"j("weight": {"format": "float8_e4m3fn", "scale": "none",
                                 "ste": ")j") +
                  straight_through + "\"}"),
        graph);
    return train_step(graph, numerics, x, 0).gradients;
  };
  const std::vector<net::Tensor> identity = gradients("identity"), clipped = gradients("clipped");
  CHECK(identity[1].data[5] != 0);
  CHECK(clipped[1].data[5] == 0);
  CHECK(differences(identity[1].data, clipped[1].data) == 1);
  CHECK(differences(identity[0].data, clipped[0].data) == 0);
}

TEST_CASE("exchange and optimizer state are stored as their roles say", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  RecipeNumerics numerics(
      recipe_of(R"j("exchange": {"format": "int8"}, "state": {"format": "float8_e5m2"})j"), graph);
  std::vector<net::WorkerGradient> workers(2);
  for (std::size_t w = 0; w < 2; ++w) {
    workers[w].worker = static_cast<std::int64_t>(w);
    for (const net::Parameter* parameter : graph.parameters())
      workers[w].parameters.push_back(noise(parameter->value.shape, static_cast<std::uint32_t>(w)));
  }
  const auto sent = workers;
  const std::vector<net::Tensor> mean =
      exchange_all(numerics, {net::Phase::training}, std::move(workers)).gradients;
  for (std::size_t p = 0; p < mean.size(); ++p) {
    std::vector<float> expected(mean[p].data.size());
    for (const auto& worker : sent) {
      const RolePolicy policy = element_policy("int8");
      QuantizedTensor q;
      const net::Tensor& x = worker.parameters[p];
      quantize_tensor(policy, x, choose_scales(policy, x), {}, 0, q);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] += q.element(static_cast<std::int64_t>(i)) * q.scales[0];
    }
    for (float& x : expected) x /= 2;
    CHECK(differences(mean[p].data, expected) == 0);
  }
  net::Tensor velocity = noise({8, 3, 3, 3}, 9);
  const net::Tensor before = velocity;
  numerics.optimizer_state({net::Phase::training}, "conv.weight", "velocity", velocity);
  CHECK(differences(velocity.data, before.data) > 0);
  const net::Tensor once = velocity;
  numerics.optimizer_state({net::Phase::training}, "conv.weight", "velocity", velocity);
  CHECK(differences(velocity.data, once.data) == 0);
}

TEST_CASE("moments of a split state are stored each in its format", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const auto stored = [&](const std::string& role, const std::string& name) {
    RecipeNumerics numerics(recipe_of(R"j("state": )j" + role), graph);
    net::Tensor moment = noise({8, 3, 3, 3}, 9);
    numerics.optimizer_state({net::Phase::training}, "conv.weight", name, moment);
    return moment.data;
  };
  const std::string int8 = R"j({"format": "int8"})j", fp8 = R"j({"format": "float8_e5m2"})j";
  const std::string split = R"j({"first": )j" + int8 + R"j(, "second": )j" + fp8 + "}";
  CHECK(stored(split, "first") == stored(int8, "first"));
  CHECK(stored(split, "second") == stored(fp8, "second"));
  CHECK(stored(split, "first") != stored(fp8, "first"));
  CHECK(stored(R"j({"second": )j" + fp8 + "}", "first") == noise({8, 3, 3, 3}, 9).data);
}

TEST_CASE("parts of a batch draw random bits of their own for stored tensors", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  RecipeNumerics numerics(recipe_of(R"j("vector": {"format": "int4", "rounding": "sr(8)"})j"),
                          graph);
  const auto rounded = [&](std::int64_t part) {
    net::Tensor x = noise({2, 32}, 1);
    numerics.vector_result({.phase = net::Phase::training, .index = 7, .part = part}, "relu",
                           "relu", x);
    return x.data;
  };
  CHECK(differences(rounded(0), rounded(0)) == 0);
  CHECK(differences(rounded(0), rounded(1)) > 0);
  CHECK(differences(rounded(1), rounded(2)) > 0);
}

TEST_CASE("masks survive the role vector", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  for (const char* role : {R"j("vector": {"format": "float8_e4m3fn"})j",
                           R"j("vector": {"format": "mxfp4", "granularity": "block"})j"}) {
    RecipeNumerics numerics(recipe_of(role), graph);
    net::Tensor x = noise({2, 32}, 1), finite = x;
    const float infinity = 1.0f / 0.0f;
    x.data[3] = -infinity;
    finite.data[3] = 0;
    numerics.vector_result({}, "relu", "relu", x);
    numerics.vector_result({}, "relu", "relu", finite);
    CHECK(x.data[3] == -infinity);
    x.data[3] = finite.data[3];
    CHECK(differences(x.data, finite.data) == 0);
  }
}

TEST_CASE("scales that training cannot apply are refused by layer", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const auto of = [&](const char* roles, const char* rest = "") {
    return RecipeNumerics(recipe_of(roles, rest), graph);
  };
  const char* const channels = R"j("weight": {"format": "int8", "granularity": "channel"})j";
  CHECK_NOTHROW(of(channels).require_trainable("r"));
  CHECK_THROWS_WITH(
      of(channels, R"j(, "gemms": {"dgrad": {"unit": "nvidia.a100.mma.s8.s32"}})j")
          .require_trainable("r"),
      Catch::Contains("r: roles.weight.granularity: dgrad of layer conv reduces along the axis") &&
          Catch::Contains("not nvidia.a100.mma.s8.s32"));
  CHECK_THROWS_WITH(of(R"j("gradient": {"format": "float8_e4m3fn", "granularity": "row"})j",
                       R"j(, "gemms": {"wgrad": {"unit": "nvidia.h100.wgmma.e4m3.f32"}})j")
                        .require_trainable("r"),
                    Catch::Contains("roles.gradient.granularity: wgrad of layer conv"));
  CHECK_THROWS_WITH(
      RecipeNumerics(
          Recipe::parse_text(R"j({"numemu_recipe": 1, "layers": [{"match": "none"}]})j", "r"),
          graph),
      Catch::Contains("none"));
  // Nodes that do not multiply have names too.
  CHECK_NOTHROW(RecipeNumerics(
      Recipe::parse_text(
          R"j({"numemu_recipe": 1, "layers": [{"match": "relu", "roles": {"vector": null}}]})j",
          "r"),
      graph));
}

TEST_CASE("embedding tables are quantized as they lie, once in inference", "[fast]") {
  net::Graph graph;
  graph.name = "tokens";
  graph.inputs = {{"input", {3}}};
  graph.add("table", std::make_unique<net::Embedding>(5, 4));
  graph.add("positions", std::make_unique<net::PositionEmbedding>(3, 4));
  net::initialize(graph, 1);
  net::Tensor x({1, 3});
  x.data = {4, 0, 4};
  const net::Tensor &table = graph.parameters()[0]->value,
                    &positions = graph.parameters()[1]->value;
  const auto by_hand = [](const net::Tensor& t, std::int64_t rows) {
    std::vector<float> y(t.data.size());
    const RoleQuantizer q(element_policy("int4"));
    const std::int64_t each = t.size() / rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = t.data.data() + r * each;
      quantize_values_reference(q.conversion(), from, each, q.scale(from, each),
                                y.data() + r * each);
    }
    return y;
  };
  for (const bool rows : {false, true}) {
    const Recipe recipe =
        recipe_of(std::string(R"("embedding": {"format": "int4", "granularity": ")") +
                  (rows ? "channel" : "tensor") + "\"}");
    RecipeNumerics numerics(recipe, graph, "r");
    const std::vector<float> t = by_hand(table, rows ? 5 : 1), p = by_hand(positions, rows ? 3 : 1);
    for (const bool frozen : {false, true}) {
      if (frozen) numerics.freeze(graph, float_reference(graph, x));
      const net::Tensor y = net::forward(graph, x, numerics);
      for (std::int64_t i = 0; i < 12; ++i) {
        const auto row = static_cast<std::int64_t>(x.data[i / 4]);
        CHECK(y.data[i] == t[row * 4 + i % 4] + p[i]);
      }
    }
  }
  const EffectiveBits bits = effective_bits(
      {recipe_of(R"("embedding": {"format": "int4"})"), graph}, float_reference(graph, x));
  CHECK(bits.weight == (4 * 32 + 2 * 32) / 32.0);
}

TEST_CASE("products of backward read the numbers that forward multiplied", "[fast]") {
  // Scales of channels and zero points: gradients are those of the dequantized operands.
  const net::Graph graph = small_net(3, 5);
  RecipeNumerics numerics(
      recipe_of(R"j("weight": {"format": "int4", "granularity": "channel", "scale": "mse"},
                    "activation": {"format": "int8", "zero_point": "calibrated"})j"),
      graph, "r");
  const net::Step step{net::Phase::training};
  const net::Tensor x = noise({2, 128}, 4), g = noise({2, 5}, 6);
  const net::Tensor& w = net::weight_of(graph, "fc");
  const auto dequantized = [&](const net::Tensor& of, bool weight) {
    const RoleQuantizer q(
        *numerics.roles().recipe("fc")[weight ? RolePart::weight : RolePart::activation]);
    QuantizedTensor codes;
    if (weight) {
      quantize_tensor(q, of.data.data(), of.size(),
                      choose_scales(q, of.data.data(), of.size(), of.dim(0)), {}, codes);
    } else {
      quantize_affine(q, of.data.data(), of.size(), q.scale_of_elements(of.data.data(), of.size()),
                      {}, codes);
      CHECK(codes.zero_point != 0);
    }
    net::Tensor y(of.shape);
    for (std::int64_t i = 0; i < y.size(); ++i)
      y.data[i] = codes.element(i) * codes.scales[weight ? i / 128 : 0];
    return y;
  };
  const auto gradients = [&](net::Numerics& how, const net::Tensor& left,
                             const net::Tensor& right) {
    net::Tensor of_x({2, 128}), of_w({5, 128});
    const unit::Gather ga = unit::Gather::matrix(2, 5), gw = unit::Gather::matrix(128, 5, true),
                       gt = unit::Gather::matrix(5, 2, true),
                       gx = unit::Gather::matrix(128, 2, true);
    how.product(step, {"fc",
                       net::GemmKind::dgrad,
                       2,
                       128,
                       5,
                       {&g, &ga, net::Role::gradient, {.width = 5}},
                       {&right, &gw, net::Role::weight, {.width = 128}, true},
                       of_x.data.data(),
                       {.width = 128}});
    how.product(step, {"fc",
                       net::GemmKind::wgrad,
                       5,
                       128,
                       2,
                       {&g, &gt, net::Role::gradient, {.width = 5}, true},
                       {&left, &gx, net::Role::activation, {.width = 128}, true},
                       of_w.data.data(),
                       {.width = 128}});
    return std::pair(of_x, of_w);
  };
  net::Numerics float32;
  const auto [x_given, w_given] = gradients(numerics, x, w);
  const auto [x_expected, w_expected] =
      gradients(float32, dequantized(x, false), dequantized(w, true));
  CHECK(differences(x_given.data, x_expected.data) == 0);
  CHECK(differences(w_given.data, w_expected.data) == 0);
}

TEST_CASE("zero points are for static scales and integers", "[fast]") {
  const net::Graph graph = small_net(3, 5);
  const std::string shifted = R"("activation": {"format": "uint8", "zero_point": "calibrated"})";
  const std::string integers = shifted + R"(, "weight": {"format": "int8"})";
  const auto bind = [&](const std::string& roles, const std::string& rest = "") {
    return std::make_unique<RecipeNumerics>(recipe_of(roles, rest), graph, "r.json");
  };
  CHECK_THROWS_WITH(bind(shifted),
                    Catch::Contains("r.json: roles.activation.zero_point: layer conv") &&
                        Catch::Contains("found float32 as weight"));
  CHECK_THROWS_WITH(bind(shifted + R"(, "weight": {"format": "mxfp4"})"),
                    Catch::Contains("found mxfp4"));
  CHECK_THROWS_WITH(bind(integers, R"(, "calibrate": {"rule": "dynamic"})"),
                    Catch::Contains("expected calibrate.rule absmax or percentile(P)"));
  CHECK_NOTHROW(bind(integers)->require_trainable("r.json"));
  CHECK_THROWS_WITH(bind(R"("activation": {"format": "int8", "zero_point": "calibrated"},
                                "weight": {"format": "int8"})",
                         R"j(, "gemms": {"wgrad": {"unit": "nvidia.a100.mma.s8.s32"}})j")
                        ->require_trainable("r.json"),
                    Catch::Contains("r.json: roles.activation.zero_point: wgrad of layer conv"));
  const auto numerics = bind(integers, R"j(, "calibrate": {"rule": "percentile(100)"})j");
  const net::Tensor x = noise({4, 4, 4, 3}, 9);
  numerics->freeze(graph, float_reference(graph, x));
  const RoleQuantizer quantizer(*numerics->roles().recipe("conv")[RolePart::activation]);
  CHECK(numerics->roles().static_scales().at("conv") ==
        quantizer.scale_of_elements(x.data.data(), x.size()));
  CHECK(numerics->roles().static_scales().at("conv").zero_point > 0);
  CHECK(numerics->roles().static_scales().at("fc").zero_point == 0);  // behind a ReLU
}

TEST_CASE("scales of tokens on a unit of integers need values per channel", "[fast]") {
  const net::Graph graph = net::build_net("char-transformer", {8}, 20);
  const std::string tokens = R"("weight": {"format": "int8", "granularity": "channel"},
      "activation": {"format": "int8", "granularity": "row"})";
  const std::string unit = R"(, "gemms": {"fprop": {"unit": "nvidia.a100.mma.s8.s32"}})";
  const auto bind = [&](const std::string& roles, const std::string& rest) {
    RecipeNumerics numerics(recipe_of(roles, rest), graph, "r.json");
  };
  CHECK_NOTHROW(bind(tokens, ""));
  CHECK_THROWS_WITH(bind(tokens, unit),
                    Catch::Contains("r.json: roles.value.granularity: layer "
                                    "block1.attention.gathered: expected scales per 'channel'"));
  CHECK_NOTHROW(bind(tokens + R"(, "value": {"format": "int8", "granularity": "channel"})", unit));
  CHECK_THROWS_WITH(bind(tokens + R"(, "key": {"format": "int8", "granularity": "channel"})", unit),
                    Catch::Contains("roles.key.granularity: layer block1.attention.scores"));
  CHECK_THROWS_WITH(bind(tokens + R"(, "value": {"format": "mxfp4"})", unit),
                    Catch::Contains("r.json: roles.value: layer block1.attention.gathered: unit "));
}

TEST_CASE("a unit that refuses the operands of a layer names it, once", "[fast]") {
  const net::Graph graph = net::build_net("mlp", {4, 4, 1}, 10);
  const std::string int8 = R"("weight": {"format": "int8"}, "activation": {"format": "int8"})",
                    unit = R"(, "gemms": {"fprop": {"unit": "nvidia.a100.mma.s8.s32"}})",
                    one = R"(, "layers": [{"match": "fc2", "roles": {"weight": null,
                                                                     "activation": null}}])";
  RecipeNumerics numerics(BoundRecipe(recipe_of(int8, unit + one), graph, "r"));
  CHECK_THROWS_WITH(net::forward(graph, net::Tensor({1, 4, 4, 1}, 1.0f), numerics, {}),
                    Catch::Equals("layer fc2: unit nvidia.a100.mma.s8.s32 does not take operands "
                                  "of format float32 (it takes int8)"));
}

}  // namespace recipe_numerics_test
