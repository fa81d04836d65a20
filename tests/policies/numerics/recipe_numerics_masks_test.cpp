// Masks of a whole network: in training, from a checkpoint on, and frozen.
#include <numeric>

#include "emu/net/data/dataset.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "emu/net/train/step.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace recipe_numerics_masks_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

net::Graph small_net() {
  net::Graph graph;
  graph.name = "small";
  graph.inputs = {{"input", {16}}};
  graph.add("first", std::make_unique<net::Linear>(16, 8), {0});
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("second", std::make_unique<net::Linear>(8, 4));
  net::initialize(graph, 0);
  return graph;
}

Recipe recipe_of(const std::string& roles) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "seed": 3, "roles": {)j" + roles + "}}", "r");
}

using State = std::vector<std::pair<std::string, std::string>>;

/// A run of `steps` steps; at `stop` the numerics are rebuilt from their state.
std::vector<float> trained(const Recipe& recipe, std::int64_t steps, std::int64_t stop) {
  net::Graph graph = small_net();
  auto numerics = std::make_unique<RecipeNumerics>(recipe, graph);
  net::TrainOptions options;
  options.learning_rate = 0.05;
  const auto optimizer = net::make_optimizer(options, std::as_const(graph).parameters());
  for (std::int64_t i = 0; i < steps; ++i) {
    if (i == stop) {
      State state;
      numerics->save_state(state);
      numerics = std::make_unique<RecipeNumerics>(recipe, graph);
      numerics->load_state(state);
    }
    net::StepInput input{noise({8, 16}, static_cast<std::uint32_t>(i)),
                         {{0, 1, 2, 3, 0, 1, 2, 3}, {}},
                         {0, 1, 2, 3, 4, 5, 6, 7},
                         i,
                         0.05};
    net::training_step(graph, input, options, *optimizer, *numerics);
  }
  std::vector<float> all;
  for (const net::Parameter* p : graph.parameters())
    all.insert(all.end(), p->value.data.begin(), p->value.data.end());
  return all;
}

constexpr const char* kAll =
    R"j("weight": {"mask": "transposable(2:4,refresh=5)"},
        "activation": {"mask": "greedy(2:4)"},
        "gradient": {"dgrad": {"mask": "stochastic(0.5,history=3)"}, "wgrad": {"mask": "mvue(1:2)"}})j";

}  // namespace

TEST_CASE("recipe masks: a run goes on from its state bit for bit", "[fast]") {
  for (const char* roles : {kAll, R"j("weight": {"mask": "greedy(2:4,refresh=0)"})j"}) {
    const Recipe recipe = recipe_of(roles);
    const std::vector<float> whole = trained(recipe, 14, -1);
    for (const std::int64_t stop : {1, 3, 5, 7, 12}) {
      INFO(roles << " stopped at " << stop);
      CHECK(differences(trained(recipe, 14, stop), whole) == 0);
    }
  }
}

TEST_CASE("recipe masks: pruned weights of a refreshed mask go on learning", "[fast]") {
  const auto zeros = [](const std::vector<float>& w) {
    return std::count(w.begin(), w.begin() + 128, 0.0f);
  };
  CHECK(zeros(trained(recipe_of(R"j("weight": {"mask": "greedy(2:4)"})j"), 4, -1)) == 0);
  CHECK(zeros(trained(recipe_of(R"j("weight": {"mask": "greedy(2:4,refresh=0)"})j"), 4, -1)) == 64);
}

TEST_CASE("recipe masks: frozen weights are masked once, and repaired", "[fast]") {
  const net::Graph graph = small_net();
  const net::Tensor x = noise({40, 16}, 9);
  const auto error = [&](const char* mask) {
    RecipeNumerics numerics(recipe_of(std::string(R"j("weight": {"mask": ")j") + mask + "\"}"),
                            graph);
    const FloatReference reference = float_reference(graph, x);
    numerics.freeze(graph, reference);
    net::Tensor y = net::forward(graph, x, numerics);
    CHECK(net::forward(graph, x, numerics).data == y.data);
    double sum = 0;
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      const double d = static_cast<double>(y.data[i]) - reference.logits.data[i];
      sum += d * d;
    }
    return sum;
  };
  const double plain = error("greedy(2:4)"), repaired = error("greedy(2:4,repair=adaprune)");
  CHECK(plain > 0);
  CHECK(repaired < plain);
}

TEST_CASE("recipe masks: static scales are those of what products read", "[fast]") {
  const net::Graph graph = small_net();
  const net::Tensor x = noise({40, 16}, 9);
  const auto numerics_of = [&](const char* mask) {
    auto numerics = std::make_unique<RecipeNumerics>(
        recipe_of(std::string(R"j("activation": {"format": "int8", "mask": ")j") + mask + "\"}"),
        graph);
    numerics->freeze(graph, float_reference(graph, x));
    return numerics;
  };
  // Estimates are larger than what they estimate; on the samples of the calibration none clips.
  const auto unbiased = numerics_of("random-unbiased(1:4)");
  CHECK(unbiased->roles().static_scales().at("first").scale >
        2 * numerics_of("greedy(1:4)")->roles().static_scales().at("first").scale);
  std::vector<std::int64_t> samples(40);
  std::iota(samples.begin(), samples.end(), 0);
  net::forward(graph, x, *unbiased, {net::Phase::inference, 0, &samples});
  CHECK(unbiased->roles()
            .operand_counts("first", net::GemmKind::fprop, net::Role::activation)
            .overflow == 0);
}

TEST_CASE("recipe masks: what cannot be is refused", "[fast]") {
  const net::Graph graph = small_net();
  RecipeNumerics adaprune(recipe_of(R"j("weight": {"mask": "greedy(2:4,repair=adaprune)"})j"),
                          graph);
  CHECK_THROWS_WITH(adaprune.require_trainable("r.json"),
                    Contains("r.json: roles.weight.mask: layer first"));
  CHECK_THROWS_WITH(
      RecipeNumerics(recipe_of(R"j("weight": {"mask": "greedy(3:5)"})j"), graph, "r.json"),
      Contains("r.json: roles.weight.mask: layer first: mask greedy(3:5)"));
  net::Graph attention;
  attention.inputs = {{"q", {4, 8}}, {"k", {4, 8}}};
  attention.add("qk", std::make_unique<net::MatMul>(net::MatMulOptions{.transpose_b = true}),
                {0, 1});
  CHECK_THROWS_WITH(
      RecipeNumerics(recipe_of(R"j("activation": {"mask": "greedy(2:4)"})j"), attention, "r.json"),
      Contains("r.json: roles.activation.mask: layer qk multiplies two activations"));
  RecipeNumerics numerics(recipe_of(kAll), graph);
  State state = {{"recipe/mask/first", "broken"}};
  CHECK_THROWS_WITH(numerics.load_state(state), Contains("recipe/mask/first"));
}

}  // namespace recipe_numerics_masks_test
