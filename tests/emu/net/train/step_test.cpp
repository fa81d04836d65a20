// One step by hand: scaled gradients come back unscaled, running statistics move, untrained
// parameters do not; batches are cut among workers.
#include "emu/net/train/step.hpp"

#include <cmath>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/objective.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::step_test {
namespace {

struct OneStep {
  Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  TrainOptions options;
  StepInput input;

  OneStep() {
    options.optimizer = "sgd";
    options.momentum = options.weight_decay = 0;
    input.samples = {0, 1, 2, 3, 4, 5, 6, 7};
    input.x = data.train_batch(input.samples, input.targets);
    input.learning_rate = 0.5;
  }
  StepResult run(Numerics& numerics) {
    const std::vector<Parameter*> parameters = graph.parameters();
    const auto optimizer = make_optimizer(
        options, std::vector<const Parameter*>(parameters.begin(), parameters.end()));
    return training_step(graph, input, options, *optimizer, numerics);
  }
};

// Keeps what it is shown and adds nothing.
class Watching : public Numerics {
 public:
  float scale = 1;
  bool accept = true;
  std::vector<std::string> updated;
  std::vector<Tensor> gradients;  ///< of the last worker
  std::vector<std::vector<Tensor>> sent;
  float loss_scale(const Step&) override { return scale; }
  void worker_gradients(const Step&, const std::vector<Tensor>& given) override {
    gradients = given;
    sent.push_back(given);
  }
  bool accept_gradients(const Step&) override { return accept; }
  void update(const Step&, const Update& u) override { updated.emplace_back(u.parameter); }
};

TEST_CASE("losses of further outputs add up", "[fast]") {
  // Gradients are those that enter at both values together.
  OneStep one;
  const std::size_t node = 1;
  const int value = one.graph.value_of(node);
  Targets& targets = one.input.targets.further.emplace_back();
  Numerics float32;
  Tensor made;
  const Observer observe = [&](const Node& at, const Tensor& y) {
    if (&at == &one.graph.nodes[node]) made = y;
  };
  forward(one.graph, one.input.x, float32, {}, &observe);
  for (std::int64_t i = 0; i < made.size(); ++i)
    targets.values.push_back(0.01f * static_cast<float>(i % 7));
  one.input.further = {{value, "squared_error"}};
  const std::vector<Injection> inject = {
      {one.graph.nodes[node].name,
       [&](const Tensor& y) {
         Tensor gradient;
         find_objective("squared_error").evaluate(y, targets, &gradient, 1);
         return gradient;
       }},
      {one.graph.nodes.back().name, [&](const Tensor& y) {
         Tensor gradient;
         find_objective("cross_entropy").evaluate(y, one.input.targets, &gradient, 1);
         return gradient;
       }}};
  const Gradients expected = gradients(one.graph, std::span(&one.input.x, 1), float32,
                                       {Phase::training}, {}, inject, one.options.seed);
  Watching whole;
  one.run(whole);
  REQUIRE(whole.gradients.size() == expected.parameters.size());
  bool all = true;
  for (std::size_t p = 0; p < whole.gradients.size(); ++p)
    all = all && whole.gradients[p].data == expected.parameters[p].data;
  CHECK(all);
  // Without the second loss the gradients are others.
  OneStep alone;
  Watching first;
  alone.run(first);
  CHECK(first.gradients[0].data != whole.gradients[0].data);
}

TEST_CASE("gradients are handed over without the loss scale", "[fast]") {
  Watching plain, scaled;
  scaled.scale = 4096;
  CHECK(OneStep().run(plain).loss_scale == 1);
  CHECK(OneStep().run(scaled).loss_scale == 4096);
  REQUIRE(plain.gradients.size() == scaled.gradients.size());
  for (std::size_t p = 0; p < plain.gradients.size(); ++p)
    CHECK(plain.gradients[p].data == scaled.gradients[p].data);
}

TEST_CASE("running statistics move in every step and no optimizer sees them", "[fast]") {
  for (const bool accept : {true, false}) {
    OneStep step;
    Watching numerics;
    numerics.accept = accept;
    const StepResult result = step.run(numerics);
    CHECK(result.accepted == accept);
    CHECK((result.gradient_norm > 0) == accept);
    CHECK(result.seen.loss.size() == 8);
    std::size_t trained = 0;
    const Graph fresh = test::stateful_net(step.data);
    for (std::size_t p = 0; p < fresh.parameters().size(); ++p) {
      const Parameter &before = *fresh.parameters()[p], &after = *step.graph.parameters()[p];
      trained += before.trained;
      INFO(before.name);
      CHECK((before.value.data == after.value.data) == before.trained);
      for (const std::string& name : numerics.updated)
        CHECK((before.trained || name != before.name));
    }
    CHECK(numerics.updated.size() == (accept ? trained : 0));
    CHECK(trained < fresh.parameters().size());
  }
}

/// The parts that reach the exchange, and the Step of each forward pass.
class Parts final : public Watching {
 public:
  std::vector<std::int64_t> numbers;
  std::vector<Tensor> mean;  ///< over the workers, of the trained parameters
  std::vector<std::vector<std::int64_t>> samples;
  double of_penalty = 0;
  void product(const Step& step, const Product& product) override {
    if (product.layer == "fc1" && product.kind == GemmKind::fprop) {
      numbers.push_back(step.part);
      samples.push_back(*step.samples);
    }
    Numerics::product(step, product);
  }
  std::unique_ptr<Exchange> exchange(const Step& step, const Senders& senders) override {
    CHECK(step.samples->size() == 8);
    return Watching::exchange(step, senders);
  }
  void update(const Step&, const Update& u) override { mean.push_back(*u.gradient); }
  double penalty(const Step&, std::string_view, const Tensor&, Tensor&) override {
    return of_penalty;
  }
};

/// A step of mlp, which has neither batch normalisation nor dropout.
struct MlpStep : OneStep {
  MlpStep(std::int64_t workers, std::int64_t micro_batches) {
    graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    options.workers = workers;
    options.micro_batches = micro_batches;
  }
  /// The same for some samples of the batch.
  std::vector<Tensor> gradients_of(std::vector<std::int64_t> ids) {
    MlpStep alone(1, 1);
    alone.input.samples = std::move(ids);
    alone.input.x = data.train_batch(alone.input.samples, alone.input.targets);
    Watching numerics;
    alone.run(numerics);
    return numerics.gradients;
  }
};

TEST_CASE("equal parts send the gradients of their own samples", "[fast]") {
  MlpStep step(2, 2);
  Parts numerics;
  const StepResult result = step.run(numerics);
  CHECK(numerics.numbers == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(numerics.samples == std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  REQUIRE(numerics.sent.size() == 2);
  for (std::int64_t w = 0; w < 2; ++w) {
    const std::vector<Tensor> first = step.gradients_of({4 * w, 4 * w + 1}),
                              second = step.gradients_of({4 * w + 2, 4 * w + 3});
    REQUIRE(first.size() == numerics.sent[w].size());
    for (std::size_t p = 0; p < first.size(); ++p) {
      std::vector<float> mean = first[p].data;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + second[p].data[i]) / 2;
      CHECK(numerics.sent[w][p].data == mean);
    }
  }
  Parts one;
  const StepResult whole = MlpStep(1, 1).run(one);
  CHECK(result.seen.loss == whole.seen.loss);
  CHECK(result.seen.right == whole.seen.right);
}

TEST_CASE("the default exchange gives the mean over samples for any cut", "[fast]") {
  Parts one;
  MlpStep(1, 1).run(one);
  for (const auto& [workers, micro_batches, parts] :
       {std::tuple{2, 2, 4u}, {3, 1, 3u}, {1, 5, 5u}, {3, 2, 6u}, {3, 4, 8u}}) {
    Parts numerics;
    MlpStep(workers, micro_batches).run(numerics);
    CHECK(numerics.numbers.size() == parts);  // 12 parts have 8 samples: 4 take no part
    for (std::size_t p = 0; p < one.mean.size(); ++p) {
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < one.mean[p].data.size(); ++i) {
        const double a = one.mean[p].data[i], b = numerics.mean[p].data[i];
        difference += (a - b) * (a - b);
        size += a * a;
      }
      // Sums of 8 samples in another order: a few roundings of 2^-24 each.
      CHECK(std::sqrt(difference) <= 0x1p-20 * std::sqrt(size));
    }
  }
}

TEST_CASE("gradients of all workers are judged at once", "[fast]") {
  OneStep step;
  step.options.workers = 2;
  Watching numerics;
  numerics.accept = false;
  CHECK_FALSE(step.run(numerics).accepted);
  CHECK(numerics.sent.size() == 2);
}

TEST_CASE("each part renews the running statistics in turn", "[fast]") {
  OneStep cut, first, second;
  cut.options.workers = 2;
  Watching numerics;
  cut.run(numerics);
  first.input.samples = {0, 1, 2, 3};
  second.input.samples = {4, 5, 6, 7};
  for (OneStep* half : {&first, &second})
    half->input.x = half->data.train_batch(half->input.samples, half->input.targets);
  first.run(numerics);
  second.graph = std::move(first.graph);
  second.run(numerics);
  for (std::size_t p = 0; p < cut.graph.parameters().size(); ++p)
    CHECK(cut.graph.parameters()[p]->value.data == second.graph.parameters()[p]->value.data);
}

TEST_CASE("a step reports the sum of its penalties", "[fast]") {
  Parts none, some;
  some.of_penalty = 0.25;
  CHECK(MlpStep(1, 1).run(none).penalty == 0);
  CHECK(MlpStep(1, 1).run(some).penalty == 1.5);  // six parameters
}

TEST_CASE("objectives take turns: each a step on the updated weights with its own state",
          "[fast]") {
  constexpr int kSteps = 3;
  OneStep together, apart;
  for (OneStep* run : {&together, &apart}) {
    run->options.momentum = 0.9;
    run->input.learning_rate = 0.125;
  }
  const std::vector<Parameter*> parameters = together.graph.parameters();
  const std::vector<const Parameter*> all(parameters.begin(), parameters.end());
  const auto first = make_optimizer(apart.options, all),
             second = make_optimizer(apart.options, all);
  together.options.objectives = {"cross_entropy", "complement"};
  const auto both = make_optimizer(together.options, all);
  TrainOptions entropy = apart.options, complement = apart.options;
  complement.objectives = {"complement"};
  Numerics float32;
  for (int i = 0; i < kSteps; ++i) {
    together.input.index = i;
    const StepResult seen =
        training_step(together.graph, together.input, together.options, *both, float32);
    apart.input.index = 2 * i;
    const StepResult expected = training_step(apart.graph, apart.input, entropy, *first, float32);
    apart.input.index = 2 * i + 1;
    training_step(apart.graph, apart.input, complement, *second, float32);
    CHECK(seen.seen.loss == expected.seen.loss);
    CHECK(seen.gradient_norm == expected.gradient_norm);
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    INFO(parameters[p]->name);
    CHECK(parameters[p]->value.data == apart.graph.parameters()[p]->value.data);
  }
}

}  // namespace
}  // namespace numemu::net::step_test
