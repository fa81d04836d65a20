// Recipes that share a thread: neither changes a bit of the other. The order of policies is the
// documented one.
#include <functional>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/choices.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/numerics/small_net.hpp"

namespace recipe_numerics_stack_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using numemu::test::message_of;

namespace {

constexpr std::int64_t kSteps = 3;

/// Every hook of both draws, keeps a history or masks.
const char* const kFloats = R"j({"numemu_recipe": 1, "penalty": "kure(0.5)", "roles": {
  "weight": {"format": "float8_e4m3fn", "rounding": "sr(8)"},
  "activation": {"format": "float8_e4m3fn", "scale": "delayed(2)", "rounding": "sr(8)"},
  "gradient": {"format": "float8_e5m2", "rounding": "sr(8)", "mask": "mvue(1:2)"},
  "vector": {"format": "bfloat16", "rounding": "sr(4)"},
  "saved": {"format": "mxfp8_e4m3", "granularity": "block", "rounding": "sr(4)"}}})j";
const char* const kIntegers = R"j({"numemu_recipe": 1, "seed": 9, "roles": {
  "weight": {"format": "int8", "mask": "greedy(2:4)", "ste": "clipped"},
  "activation": {"format": "int4", "rounding": "sr(4)"},
  "gradient": {"format": "int8", "rounding": "sr(8)"},
  "output": {"format": "int8", "rounding": "sr(8)"}}})j";

/// A net with the numerics of a recipe, and every tensor that a run gives.
class Run {
 public:
  explicit Run(const char* recipe) : numerics_(Recipe::parse_text(recipe, "r"), graph_) {}

  /// Calls `other` before every hook that may draw.
  void interrupt(std::function<void()> other) { interrupted_.other = std::move(other); }
  void freeze() { numerics_.freeze(graph_, float_reference(graph_, noise({6, 4, 4, 4}, 6))); }

  void train(std::int64_t index) {
    const std::vector<std::int64_t> samples = {100 * index, 3, 4, 5};
    const net::Step step{net::Phase::training, index, &samples};
    interrupted_.begin_step(step);
    net::Tape tape = net::forward_training(graph_, noise({4, 4, 4, 4}, 5), interrupted_, step);
    keep(tape.output);
    const net::Tensor slope = noise(tape.output.shape, 77);
    std::vector<net::Tensor> gradients =
        net::backward(graph_, std::move(tape), slope, interrupted_);
    const std::vector<net::Parameter*> parameters = graph_.parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      interrupted_.penalty(step, parameters[p]->name, parameters[p]->value, gradients[p]);
      keep(gradients[p]);
    }
    interrupted_.end_step(step);
  }
  void evaluate(std::int64_t first) {
    const std::vector<std::int64_t> samples = {first, first + 1};
    const net::Step step{net::Phase::inference, 0, &samples};
    interrupted_.begin_step(step);
    keep(net::forward(graph_, noise({2, 4, 4, 4}, 8), interrupted_, step));
    interrupted_.end_step(step);
  }

  std::vector<std::vector<float>> seen;

 private:
  struct Interrupted final : net::Forwarding {
    using Forwarding::Forwarding;
    void product(const net::Step& step, const net::Product& p) override {
      other();
      Forwarding::product(step, p);
    }
    void vector_result(const net::Step& step, std::string_view layer, std::string_view op,
                       net::Tensor& x) override {
      other();
      Forwarding::vector_result(step, layer, op, x);
    }
    net::Saved save(const net::Step& step, const net::Kept& kept,
                    const net::SharedTensor& x) override {
      other();
      return Forwarding::save(step, kept, x);
    }
    std::function<void()> other = [] {};
  };

  void keep(const net::Tensor& x) { seen.push_back(x.data); }

  net::Graph graph_ = small_net(4, 6);
  RecipeNumerics numerics_;
  Interrupted interrupted_{numerics_};
};

void check_same(const Run& a, const Run& b) {
  REQUIRE(a.seen.size() == b.seen.size());
  for (std::size_t i = 0; i < a.seen.size(); ++i) {
    INFO("tensor " << i);
    CHECK(differences(a.seen[i], b.seen[i]) == 0);
  }
}

}  // namespace

TEST_CASE("a policy for a product inside a layer would act nowhere, and is refused", "[fast]") {
  const net::Graph graph = net::build_net("lstm-char", {32}, 60);
  const auto refused = [&](const std::string& match, const std::string& change) {
    const Recipe recipe = Recipe::parse_text(
        R"j({"numemu_recipe": 1, "layers": [{"match": ")j" + match + "\", " + change + "}]}", "r");
    return message_of([&] { RecipeNumerics(recipe, graph, "r.json"); });
  };
  const std::string kure = R"j("penalty": "kure")j", delayed = R"j("update": {"rule": "delayed"})j";
  CHECK_THAT(refused("*.recurrent", kure),
             Catch::StartsWith("r.json: layers[0].penalty: '*.recurrent' matches only products"));
  CHECK_THAT(
      refused("*.recurrent", delayed),
      Catch::StartsWith("r.json: layers[0].update.rule: '*.recurrent' matches only products"));
  CHECK_THAT(refused("*.recurrent", R"j("norm": null)j"),
             Catch::StartsWith("r.json: layers[0].norm: '*.recurrent' matches only products"));
  CHECK(refused("*.recurrent", R"j("roles": {"weight": {"format": "int8"}})j").empty());
  CHECK(refused("lstm*", kure).empty());
}

TEST_CASE("two recipes that train alternately on a thread do not disturb each other", "[fast]") {
  Run floats(kFloats), integers(kIntegers), floats_alone(kFloats), integers_alone(kIntegers);
  for (std::int64_t i = 0; i < kSteps; ++i) {
    floats.train(i);
    integers.train(i + 40);
  }
  for (std::int64_t i = 0; i < kSteps; ++i) floats_alone.train(i);
  for (std::int64_t i = 0; i < kSteps; ++i) integers_alone.train(i + 40);
  check_same(floats, floats_alone);
  check_same(integers, integers_alone);
  // The steps draw differently, so that a step of the other one would be seen.
  CHECK(differences(integers.seen.front(), integers.seen[integers.seen.size() / kSteps]) > 0);
}

TEST_CASE("a recipe that works between the hooks of another changes nothing there", "[fast]") {
  for (const bool training : {true, false}) {
    INFO((training ? "training" : "inference"));
    Run outer(kFloats), inner(kIntegers), alone(kFloats), inner_alone(kIntegers);
    inner.freeze();
    inner_alone.freeze();
    if (!training) {
      outer.freeze();
      alone.freeze();
    }
    std::int64_t calls = 0;
    outer.interrupt([&] { inner.evaluate(1000 + 7 * calls++); });
    for (Run* run : {&outer, &alone}) {
      for (std::int64_t i = 0; i < kSteps; ++i) {
        if (training) {
          run->train(i);
        } else {
          run->evaluate(10 * i);
        }
      }
    }
    CHECK(calls > kSteps);
    for (std::int64_t i = 0; i < calls; ++i) inner_alone.evaluate(1000 + 7 * i);
    check_same(outer, alone);
    check_same(inner, inner_alone);
    CHECK(differences(inner.seen[0], inner.seen[1]) > 0);
  }
}

TEST_CASE("a recipe that trains between the hooks of an evaluation changes nothing there",
          "[fast]") {
  Run outer(kIntegers), inner(kFloats), alone(kIntegers), inner_alone(kFloats);
  outer.freeze();
  alone.freeze();
  std::int64_t steps = 0;
  outer.interrupt([&] { inner.train(steps++); });
  for (Run* run : {&outer, &alone}) {
    run->evaluate(5);
    run->evaluate(25);
  }
  for (std::int64_t i = 0; i < steps; ++i) inner_alone.train(i);
  CHECK(steps > 0);
  check_same(outer, alone);
  check_same(inner, inner_alone);
  CHECK(differences(outer.seen[0], outer.seen[1]) > 0);
}

TEST_CASE("docs/architecture.md gives the order of policies", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/architecture.md");
  std::size_t at = page.find("\n## Order\n");
  REQUIRE(at != page.npos);
  int number = 0;
  for (const PolicySlot& slot : policy_slots()) {
    const std::string line = std::to_string(++number) + ". `" + std::string(slot.key) + "`\n";
    INFO(line);
    at = page.find(line, at);
    REQUIRE(at != page.npos);
  }
  CHECK(page.find(std::to_string(number + 1) + ". roles", at) != page.npos);
}

}  // namespace recipe_numerics_stack_test
