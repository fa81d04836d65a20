// Local steps: workers against trainings of their own, and a run that is interrupted between two
// exchanges.
#include <stdexcept>

#include "emu/net/nets.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/step.hpp"
#include "emu/net/train/train.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::replicas_test {
namespace {

TrainOptions local(std::int64_t workers, std::int64_t steps) {
  TrainOptions options;
  options.optimizer = "adam";
  options.workers = workers;
  options.local_steps = steps;
  options.batch = 32;
  options.epochs = 1;
  return options;
}

std::vector<const Parameter*> parameters_of(const Graph& graph) {
  return std::as_const(graph).parameters();
}

StepInput batch_of(const Dataset& data, std::int64_t step, std::vector<std::int64_t> samples) {
  StepInput input;
  input.index = step;
  input.samples = std::move(samples);
  input.x = data.train_batch(input.samples, input.targets);
  input.learning_rate = 0.01;
  return input;
}

TEST_CASE("workers take the steps of trainings of their own, then become their mean", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  Graph alone[2] = {build_net("mlp", data.input_shape(), data.classes()),
                    build_net("mlp", data.input_shape(), data.classes())};
  for (Graph& own : alone) initialize(own, 0);
  const TrainOptions both = local(2, 3), one = local(1, 0);
  const auto optimizer = make_optimizer(both, parameters_of(graph));
  std::unique_ptr<Optimizer> own[2];
  for (int w = 0; w < 2; ++w) own[w] = make_optimizer(one, parameters_of(alone[w]));
  Numerics numerics;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t step = 3 * round; step < 3 * round + 3; ++step) {
      const std::int64_t first = 8 * step;
      StepInput input = batch_of(data, step, {first, first + 1, first + 2, first + 3});
      input.exchange = step % 3 == 2;
      const StepResult result = training_step(graph, input, both, *optimizer, numerics);
      CHECK(result.wire.empty() != input.exchange);
      for (std::int64_t w = 0; w < 2; ++w) {
        training_step(alone[w], batch_of(data, step, {first + 2 * w, first + 2 * w + 1}), one,
                      *own[w], numerics);
      }
      if (input.exchange) continue;
      const std::vector<StateTensor> state = optimizer->state(0);
      for (int w = 0; w < 2; ++w) {
        const auto weights =
            std::ranges::find(state, "worker" + std::to_string(w) + "/weights", &StateTensor::name);
        REQUIRE(weights != state.end());
        CHECK(weights->value->data == alone[w].parameters()[0]->value.data);
      }
    }
    Graph start = build_net("mlp", data.input_shape(), data.classes());
    for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
      const std::vector<float>&now = graph.parameters()[p]->value.data,
            &a = alone[0].parameters()[p]->value.data, &b = alone[1].parameters()[p]->value.data;
      // x - ((x - a) + (x - b)) / 2 is the mean but for three roundings of numbers below 4.
      for (std::size_t i = 0; i < now.size(); ++i)
        CHECK(now[i] == Approx((a[i] + b[i]) / 2).margin(3 * 0x1p-23));
      for (Graph& each : alone) each.parameters()[p]->value.data = now;
    }
  }
}

TEST_CASE("a run that stops between two exchanges goes on with the same bits", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const auto run = [&](const RunFile& file, const TrainHooks& hooks) {
    Graph graph = test::stateful_net(data);
    Numerics numerics;
    train(graph, data, local(4, 3), numerics, hooks, file);
    std::vector<std::vector<float>> values;
    for (const Parameter* parameter : graph.parameters()) values.push_back(parameter->value.data);
    return values;
  };
  const auto whole = run({}, {});
  const numemu::test::TemporaryFolder folder;
  RunFile file;
  file.path = folder / "state.safetensors";
  file.every = 4;  // step 4 lies between the exchanges behind steps 3 and 6
  CHECK_THROWS_AS(run(file, {.on_step =
                                 [](std::int64_t step, std::int64_t, double) {
                                   if (step == 4) throw std::runtime_error("killed");
                                 }}),
                  std::runtime_error);
  CHECK(run(file, {}) == whole);
}

TEST_CASE("numerics that keep state of an update are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  test::StatefulNumerics numerics;
  CHECK_THROWS_WITH(train(graph, data, local(2, 2), numerics),
                    Catch::Contains("local steps: the numerics keep state of an update"));
  TrainOptions options = local(2, 2);
  options.objectives = {"cross_entropy", "complement"};
  CHECK_THROWS_WITH(check(options), Catch::Contains("local_steps: expected 0"));
}

}  // namespace
}  // namespace numemu::net::replicas_test
