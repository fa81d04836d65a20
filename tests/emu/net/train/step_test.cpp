// One step by hand: scaled gradients come back unscaled, running statistics move, untrained
// parameters do not.
#include "emu/net/train/step.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net {
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
    input.x = data.train_batch(input.samples, input.labels);
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
  std::vector<Tensor> gradients;
  float loss_scale(const Step&) override { return scale; }
  bool accept_gradients(const Step&, const std::vector<Tensor>& given) override {
    gradients = given;
    return accept;
  }
  void update(const Step&, const Update& u) override { updated.emplace_back(u.parameter); }
};

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

}  // namespace
}  // namespace numemu::net
