// FracTrain: costs in exact arithmetic, recipes of stages, and the experiment from settings to
// conclusion.
#include <cmath>
#include <map>

#include "experiments/engine/train_trial.hpp"
#include "experiments/fractrain/gates.hpp"
#include "policies/recipe/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace fractrain_test {

using namespace numemu;
using namespace numemu::experiments;
using namespace numemu::experiments::fractrain;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

TEST_CASE("fractrain: the cost of a multiply-add", "[fast]") {
  CHECK(published_cost({8, 8, 8}) == .0625);
  CHECK(published_cost({3, 3, 6}) == .0146484375);
  CHECK(published_cost({4, 4, 6}) == Approx(64 / 3072.0));
  CHECK(published_cost({6, 6, 8}) == .04296875);
  CHECK(published_cost({8, 8, 16}) == Approx(320 / 3072.0));
  CHECK(published_cost({32, 32, 32}) == 1);
  // Weights of 4 bits and the published choices of dynamic precision, in per cent.
  const std::pair<Precision, double> choices[] = {{{4, 3, 6}, 1.7578},
                                                  {{4, 4, 6}, 2.0833},
                                                  {{4, 4, 8}, 2.6042},
                                                  {{4, 6, 8}, 3.3854},
                                                  {{4, 6, 12}, 4.6875}};
  for (const auto& [bits, percent] : choices) {
    INFO(percent);
    CHECK(100 * published_cost(bits) == Approx(percent).margin(5e-5));
  }
  const std::vector<Precision> stages = {{3, 3, 6}, {4, 4, 6}, {6, 6, 8}, {8, 8, 8}};
  CHECK(published_share(stages, {8, 8, 8}) == Approx(.563802).margin(5e-7));
  CHECK(cost({2, 4, 8}, {1, 10, 100}) == (8 + 160 + 3200) / 1024.0);
}

TEST_CASE("fractrain: precisions are read from text", "[fast]") {
  CHECK(Precision::parse("3/6") == Precision{3, 3, 6});
  CHECK(Precision::parse("3/6").text() == "3/6");
  for (const char* text : {"", "3", "3/", "/6", "1/6", "3/9", "3/6/8", "x/6"}) {
    INFO(text);
    CHECK_THAT(message_of([&] { Precision::parse(text); }), Catch::Contains("as in 3/6"));
  }
}

TEST_CASE("fractrain: methods are recipes", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "fractrain", folder, {"stages=3/6,4/6,6/8,8/8", "static=3/6,8/8", "epochs=12"});
  const std::vector<fractrain::Method> methods = methods_of(run.settings);
  std::vector<std::string> names;
  for (const fractrain::Method& method : methods) names.push_back(method.name);
  CHECK(names == std::vector<std::string>{"static 8/8", "float32", "static 3/6",
                                          "static 3/6, tested at 8/8", "progressive, schedule",
                                          "progressive, indicator", "static 8/8, 7 epochs"});
  const Indicator indicator{0.05, 0.5};
  const auto recipe = [&](std::size_t m) {
    Json json = recipe_of(methods[m], indicator);
    json["numemu_recipe"] = 1;
    return policies::Recipe::parse(json, "r");
  };
  for (std::size_t m = 0; m < methods.size(); ++m) recipe(m);
  const policies::Recipe schedule = recipe(4), turning = recipe(5);
  REQUIRE(schedule.stages().size() == 3);
  REQUIRE(turning.stages().size() == 3);
  const auto final_eps = [&](const Indicator& given) {
    const Json json = recipe_of(methods[5], given);
    return json["stages"].back()["from"]["turning_point"].get<double>();
  };
  const double eps[] = {0.05, 0.025, 0.0125};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(schedule.stages()[i].epoch == static_cast<std::int64_t>(3 * (i + 1)));
    CHECK(turning.stages()[i].turning_point == eps[i]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const policies::LayerRecipe layer = schedule.in_stage(i).layer("fc1");
    const Precision bits = methods[4].precisions[i];
    CHECK(layer[policies::RolePart::weight]->format->bits == bits.weight);
    CHECK(layer[policies::RolePart::activation]->format->bits == bits.activation);
    CHECK(layer[policies::RolePart::gradient_dgrad]->format->bits == bits.gradient);
    CHECK(layer[policies::RolePart::gradient_wgrad]->rounding.stochastic());
    CHECK_FALSE(layer[policies::RolePart::weight]->rounding.stochastic());
  }
  // The indicator of the documented runs, and that of the published script.
  CHECK(final_eps({0.05, 0.3}) == Approx(0.0045));
  CHECK(final_eps({0.15, 0.4}) == Approx(0.024));
  CHECK(recipe(2).json() == schedule.in_stage(0).json());
  CHECK(recipe(3).in_stage(0).json() == recipe(2).json());
  CHECK(recipe(3).last_stage().json() == recipe(0).json());
  CHECK(recipe(3).stages().at(0).epoch == 12);  // after the last of 0 to 11
  CHECK_THAT(message_of([&] {
               methods_of(testing::smoke_run("fractrain", folder, {"epochs=1"}).settings);
             }),
             Catch::Contains("at least one for each of 2 stages"));
}

TEST_CASE("fractrain: as published the first and the last layer keep the last stage's precision",
          "[fast]") {
  const TemporaryFolder folder;
  const std::vector<fractrain::Method> methods =
      methods_of(testing::smoke_run("fractrain", folder, {}).settings);
  const net::Dataset data = testing::small_dataset();
  const Setup setup = setup_of("mlp", true, data, methods);
  CHECK(setup.ends == std::vector<std::string>{"fc1", "fc3"});
  CHECK(setup_of("mlp", false, data, methods).ends.empty());
  for (const fractrain::Method& method : methods) {
    Json json = recipe_of(method, {}, setup);
    json["numemu_recipe"] = 1;
    const policies::Recipe recipe = policies::Recipe::parse(json, "r").in_stage(0);
    const Precision& bits = method.precisions.front();
    if (method.name == "float32") {
      CHECK_FALSE(recipe.layer("fc1")[policies::RolePart::weight]);
      continue;
    }
    for (const char* layer : {"fc1", "fc3"})
      CHECK(recipe.layer(layer)[policies::RolePart::activation]->format->bits == 8);
    const policies::LayerRecipe inner = recipe.layer("fc2");
    CHECK(inner[policies::RolePart::weight]->format->bits == bits.weight);
    CHECK(inner[policies::RolePart::weight]->block->span == Span::channel);
    CHECK(inner[policies::RolePart::activation]->block->span == Span::tensor);
  }
}

TEST_CASE("fractrain: without validation samples the training loss makes turning points",
          "[fast]") {
  TrainTrial trial;
  trial.net = "mlp";
  trial.options.epochs = 6;
  trial.options.batch = 64;
  trial.train_samples = 64;
  trial.eval_samples = 20;
  // Six equal losses would turn; those of a training never are.
  trial.recipe = {
      {"stages", Json::array({{{"from", {{"turning_point", 0}}}, {"patch", Json::object()}}})}};
  std::vector<std::size_t> stages;
  trial.on_epoch = [&](const net::EpochMetrics&, std::size_t stage) { stages.push_back(stage); };
  run_train_trial(trial, testing::small_dataset());
  CHECK(stages == std::vector<std::size_t>(6, 0));
}

TEST_CASE("fractrain: costs are counted by stage, and each claim has its findings", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run("fractrain", folder,
                                               {"seeds=2", "epochs=10", "eps=1", "train_samples=64",
                                                "eval_samples=50", "net=mlp", "contrast_net=mlp"});
  Conclusion conclusion;
  add_progressive(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  // The first and the last layer in 8/8: 3/6 saves in fc2 alone.
  const double inner = 256 * 128 / (8 * 8 * 256 + 256 * 128 + 128 * 10.0);
  CHECK(std::stod(conclusion.tables[0].rows[2][1]) ==
        Approx(inner * 23.4375 + 100 * (1 - inner)).margin(0.051));
  const ResultTable& table = conclusion.tables[1];
  REQUIRE(table.rows.size() == 7);
  CHECK(table.rows[0][1] == "100.0");
  CHECK(table.rows[0][2] == "100.0");
  CHECK(table.rows[1][1] == "1600.0");  // 32 x 32 bits over 8 x 8
  CHECK(table.rows[2][1] == "23.4");
  CHECK(table.rows[3][1] == "23.4");
  CHECK(table.rows[4][1] == "61.7");  // half of the epochs each
  CHECK(table.rows[4][6] == "5");
  CHECK(table.rows[5][6] == "5; 5");  // eps = 1: every fifth loss is a turning point
  CHECK(table.rows[5][2] == table.rows[4][2]);
  CHECK(table.rows[6][1] == "60.0");
  // Without the input gradients of the first layer the share of fprop is larger than a third.
  CHECK(std::stod(table.rows[2][2]) < 23.4);
  std::map<std::string, int> claims;
  for (const Finding& finding : conclusion.findings) {
    CHECK(std::isfinite(finding.measured));
    ++claims[finding.claim];
  }
  CHECK(claims["cost"] == 2 * 5);  // neither of float32 nor of the first over itself
  CHECK(claims["progressive"] == 2);
  CHECK(claims["progressive, all layers"] == 2);
  CHECK(claims["static"] == 2);
  CHECK(claims["tested"] == 2);
  CHECK(claims["shorter"] == 2);
  CHECK(conclusion.charts.size() == 4);
}

namespace {

/// A forward product of choice k is k + 1 times the exact one, so that choices differ.
class Distinct final : public net::Numerics {
 public:
  void product(const net::Step& step, const net::Product& p) override {
    net::Numerics::product(step, p);
    if (p.kind != net::GemmKind::fprop) return;
    const float factor = static_cast<float>(p.layer.back() - '0') + 1;
    for (std::int64_t i = 0; i < p.m * p.n; ++i) p.d[i] *= factor;
  }
};

}  // namespace

TEST_CASE("fractrain: the gate's gradient is that of the softmax mixture", "[fast]") {
  const std::vector<float> z = {0.3f, -1, 2, 0.5f};
  const std::vector<double> d = {0.5, -2, 1, 0.25};
  const auto mixture = [&](std::vector<float> logits) {
    const std::vector<double> p = gate_shares(logits);
    double sum = 0;
    for (std::size_t k = 0; k < p.size(); ++k) sum += p[k] * d[k];
    return sum;
  };
  const std::vector<double> gradient = gate_gradient(gate_shares(z), d);
  for (std::size_t j = 0; j < z.size(); ++j) {
    constexpr float kStep = 1.0f / 64;  // the error of the difference is below its square
    std::vector<float> up = z, down = z;
    up[j] += kStep;
    down[j] -= kStep;
    CHECK(gradient[j] == Approx((mixture(up) - mixture(down)) / (2 * kStep)).margin(2.5e-4));
  }
}

TEST_CASE("fractrain: rows take the result of their largest logit, and gates learn", "[fast]") {
  GatedDense op(2, 2, {1, 3}, 0.5);
  op.parameters()[0].value.data = {1, 2, 3, 4};
  op.parameters()[1].value.data = {10, 20};
  Distinct numerics;
  const auto rows = [](std::vector<float> data) {
    net::Tensor tensor({3, 2});
    tensor.data = std::move(data);
    return tensor;
  };
  const net::Tensor x = rows({1, 0, 0, 1, 1, 1}), logits = rows({2, 1, 0, 5, 1, 1});
  const net::Tensor* const inputs[] = {&x, &logits};
  net::Tensor y({3, 2}), kept;
  const auto call = [&](const net::Tensor* tensor) {
    return net::OpCall{.layer = "b",
                       .numerics = numerics,
                       .phase = net::Phase::training,
                       .context = &kept,
                       .kept = tensor};
  };
  op.forward(call(nullptr), inputs, y);
  CHECK(y.data == std::vector<float>{11, 23, 14, 28, 13, 27});  // twice the products in row 1
  CHECK(op.taken() == std::vector<std::int64_t>{2, 1});
  const net::Tensor g = rows({1, 0, 0, 1, 1, -1});
  const auto backward = [&](double target) {
    op.target = target;
    std::vector<net::Tensor> grad_inputs = {net::Tensor({3, 2}), net::Tensor({3, 2})},
                             grads = {net::Tensor({2, 2}), net::Tensor({2})};
    const net::Tensor context = kept;
    op.backward(call(&context), {inputs, nullptr, g, grad_inputs, grads, true});
    // Every row once, whatever choice it took.
    CHECK(grads[0].data == std::vector<float>{2, 1, -1, 0});
    CHECK(grads[1].data == std::vector<float>{2, 0});
    CHECK(grad_inputs[0].data == std::vector<float>{1, 2, 3, 4, -2, -2});
    return grad_inputs[1].data;
  };
  // <g, y> of the choices is (1, 2), (4, 8) and (-4, -8); the mean cost 5/3.
  const double dots[] = {1, 4, -4};
  for (const double target : {1.0, 2.0}) {
    const std::vector<float> gradient = backward(target);
    const double toward = (target > 5.0 / 3 ? -0.5 : 0.5) / 3;
    for (std::size_t row = 0; row < 3; ++row) {
      const std::vector<double> expected =
          gate_gradient(gate_shares(std::span(logits.data).subspan(2 * row, 2)),
                        std::vector<double>{dots[row] + toward, 2 * dots[row] + 3 * toward});
      for (std::size_t k = 0; k < 2; ++k) CHECK(gradient[2 * row + k] == Approx(expected[k]));
    }
  }
}

TEST_CASE("fractrain: gated layers train at the precision of each choice", "[fast]") {
  const std::vector<Precision> choices = gate_choices();
  const GatedNet net = gated_net({8, 8, 1}, 10, choices, 0.001);
  REQUIRE(net.blocks.size() == 2);
  Json json = gated_recipe(choices, {8, 8, 8});
  json["numemu_recipe"] = 1;
  const policies::Recipe recipe = policies::Recipe::parse(json, "r");
  for (std::size_t k = 0; k < choices.size(); ++k) {
    const policies::LayerRecipe layer = recipe.layer("block2." + std::to_string(k));
    CHECK(layer[policies::RolePart::weight]->format->bits == choices[k].weight);
    CHECK(layer[policies::RolePart::activation]->format->bits == choices[k].activation);
    CHECK(layer[policies::RolePart::gradient_wgrad]->format->bits == choices[k].gradient);
  }
  CHECK(recipe.layer("fc1")[policies::RolePart::weight]->format->bits == 8);
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "fractrain", folder,
      {"seeds=2", "epochs=2", "train_samples=64", "eval_samples=50", "targets=2.5"});
  Conclusion conclusion;
  add_dynamic(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  const ResultTable& table = conclusion.tables[0];
  REQUIRE(table.rows.size() == 4 + 2);
  CHECK(table.rows[0][1] == "3.39");
  CHECK(table.rows[3][1] == "1.76");
  std::map<std::string, int> claims;
  for (const Finding& finding : conclusion.findings) {
    ++claims[finding.claim];
    CHECK_THAT(finding.what, Catch::StartsWith("two gated dense blocks"));
  }
  CHECK(claims["target"] == 2);
  CHECK(claims["gates"] == 2);
}

}  // namespace fractrain_test
