// What every optimizer does: continues from its state, has one for trained parameters, is found by
// name.
#include "emu/net/train/optimizer.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/three_parameters.hpp"

namespace numemu::net::optimizer_test {
namespace {

using test::options_of;
using test::Three;

TEST_CASE("an optimizer given another's state continues with its bits", "[fast]") {
  std::size_t tensors = 0;
  for (const std::string& name : optimizer_names()) {
    const Three p;
    const auto first = make_optimizer(options_of(name, 0.01), p.all),
               second = make_optimizer(options_of(name, 0.01), p.all);
    std::vector<float> delta, again;
    const auto step = [&](Optimizer& optimizer, int t, std::vector<float>& out) {
      optimizer.begin_step(0.1);
      optimizer.step(0, p.weight, Tensor({1, 1}, 0.3f * static_cast<float>(t - 2)), out);
    };
    for (int t = 0; t < 3; ++t) step(*first, t, delta);
    tensors += first->state(0).size();
    for (std::size_t k = 0; k < first->state(0).size(); ++k) {
      CHECK((first->state(0)[k].value->shape == p.weight.value.shape ||
             first->state(0)[k].value->shape == Shape{1}));
      CHECK(first->state(0)[k].value->data != second->state(0)[k].value->data);
      *second->state(0)[k].value = *first->state(0)[k].value;
    }
    for (std::size_t k = 0; k < first->scalars().size(); ++k)
      *second->scalars()[k] = *first->scalars()[k];
    for (int t = 3; t < 6; ++t) {
      step(*first, t, delta);
      step(*second, t, again);
      INFO(name);
      CHECK(delta == again);
    }
    CHECK(first->state(1).size() == first->state(0).size());
    CHECK(first->state(2).empty());  // not trained
  }
  CHECK(tensors > 0);
}

TEST_CASE("each objective has an optimizer state of its own, and all of it is stored", "[fast]") {
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    const Three p;
    TrainOptions options = options_of(name, 0.01);
    const auto alone = make_optimizer(options, p.all);
    CHECK(&alone->of_objective(0) == alone.get());
    options.objectives = {"cross_entropy", "complement"};
    const auto both = make_optimizer(options, p.all);
    std::vector<float> delta, expected;
    const Tensor g({1, 1}, 0.5F);
    for (const double rate : {0.1, 0.2}) {
      for (Optimizer* optimizer : {alone.get(), &both->of_objective(1)})
        optimizer->begin_step(rate);
      alone->step(0, p.weight, g, expected);
      both->of_objective(1).step(0, p.weight, g, delta);
      CHECK(delta == expected);
    }
    const auto own = alone->state(0), all = both->state(0);
    REQUIRE(all.size() == 2 * own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      CHECK(all[i].name == own[i].name);
      CHECK(all[i].value->data == std::vector<float>{0});  // no step of the first yet
      CHECK(all[own.size() + i].name == "complement/" + std::string(own[i].name));
      CHECK(all[own.size() + i].value->data == own[i].value->data);
    }
    CHECK(both->scalars().size() == 2 * alone->scalars().size());
  }
}

TEST_CASE("an objective may have an optimizer of its own", "[fast]") {
  const Three p;
  TrainOptions options = options_of("sgd", 0.01);
  options.objectives = {"cross_entropy", "complement"};
  options.objective_optimizers = {{"complement", "adam"}};
  const auto both = make_optimizer(options, p.all),
             adam = make_optimizer(options_of("adam", 0.01), p.all);
  std::vector<float> delta, expected;
  const Tensor g({1, 1}, 0.5F);
  for (Optimizer* optimizer : {adam.get(), &both->of_objective(1)}) optimizer->begin_step(0.1);
  adam->step(0, p.weight, g, expected);
  both->of_objective(1).step(0, p.weight, g, delta);
  CHECK(delta == expected);
  const auto state = both->state(0);
  REQUIRE(state.size() == 3);
  CHECK(state[0].name == "velocity");
  CHECK(state[1].name == "complement/first");
  // Also the only objective.
  options.objectives = {"complement"};
  CHECK(make_optimizer(options, p.all)->state(0).size() == 2);
}

TEST_CASE("an optimizer's own options are arguments of its name", "[fast]") {
  CHECK(canonical_optimizer("lion") == "lion");
  CHECK(canonical_optimizer("lion(0.9,0.99)") == "lion");
  CHECK(canonical_optimizer("lion(beta2=0.5)") == "lion(0.9,0.5)");
  CHECK(canonical_optimizer("lion( 0.8 )") == "lion(0.8)");
  CHECK(find_optimizer("lion(0.8)").name == "lion");
  CHECK_THROWS_WITH(
      find_optimizer("lion(beta3=1)"),
      Catch::StartsWith("optimizer lion: unknown option 'beta3'; did you mean 'beta2'") ||
          Catch::StartsWith("optimizer lion: unknown option 'beta3'; did you mean 'beta1'"));
  CHECK_THROWS_WITH(find_optimizer("lion(0.9,1.5)"),
                    "optimizer lion: beta2: expected a number from 0 to 1");
  CHECK_THROWS_WITH(find_optimizer("adam(0.9)"),
                    "optimizer adam: expected no options, found '0.9'");
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    CHECK(canonical_optimizer(name) == name);
    const auto usual = options_of_optimizer(name);
    std::string every = name + "(";
    for (const Option& option : usual->list()) every += option_text(option) + ",";
    every.back() = ')';
    if (!usual->list().empty()) CHECK(canonical_optimizer(every) == name);
  }
}

TEST_CASE("an unknown optimizer offers the nearest", "[fast]") {
  TrainOptions options;
  options.optimizer = "adma";
  CHECK_THROWS_WITH(make_optimizer(options, {}), Catch::Contains("'adam'"));
  CHECK_THROWS_WITH(require_optimizer("adma"), Catch::Contains("'adam'"));
}

}  // namespace
}  // namespace numemu::net::optimizer_test
