// Training trials: the same bits as a training by hand, on the first samples, seen by observers;
// gradients of layers as the products read them.
#include "experiments/engine/train_trial.hpp"

#include <cmath>

#include "emu/net/data/text.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "formats/storage/fields.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

namespace train_trial_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
using numemu::test::message_of;

namespace {

constexpr std::int64_t kTrain = 192, kBatch = 64;

TrainTrial small_trial() {
  TrainTrial trial;
  trial.net = "mlp";
  trial.seed = 5;
  trial.options.epochs = 2;
  trial.options.batch = kBatch;
  trial.options.seed = 99;  // replaced
  trial.train_samples = kTrain;
  trial.eval_samples = 100;
  return trial;
}

const net::Dataset& data() {
  static const net::Dataset set = experiments::testing::small_dataset();
  return set;
}

/// The training of small_trial() without its help, in float32.
net::Graph trained_by_hand(std::vector<net::EpochMetrics>& epochs) {
  net::Graph graph = net::build_net("mlp", data());
  net::initialize(graph, 5);
  net::TrainOptions options = small_trial().options;
  options.seed = 5;
  net::Numerics float32;
  epochs = net::train(graph, restricted(data(), kTrain, false), options, float32);
  return graph;
}

}  // namespace

TEST_CASE("a trial without a recipe is float32 training by hand", "[fast]") {
  std::vector<net::EpochMetrics> epochs;
  const net::Graph graph = trained_by_hand(epochs);
  net::Numerics float32;
  const net::Evaluation expected = net::evaluate(graph, data(), net::Split::test, 100, float32);
  const TrainOutcome outcome = run_train_trial(small_trial(), data());
  CHECK(outcome.accuracy);
  CHECK(outcome.n == 100);
  CHECK(outcome.correct == expected.correct);
  CHECK(outcome.metric == static_cast<double>(expected.correct) / 100);
  CHECK(outcome.train_loss == epochs.back().train_loss);
  CHECK(outcome.metric > 0.3);  // it learns: chance is 0.1
}

TEST_CASE("a trial trained in float32 has the weights of training by hand", "[fast]") {
  std::vector<net::EpochMetrics> epochs;
  const net::Graph expected = trained_by_hand(epochs);
  TrainTrial trial = small_trial();
  trial.recipe = {{"roles", {{"weight", {{"format", "int4"}}}}}};  // plays no part
  const net::Graph graph = trained_in_float32(trial, data());
  const auto weights = expected.parameters(), found = graph.parameters();
  REQUIRE(found.size() == weights.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i]->value.data == weights[i]->value.data);
}

TEST_CASE("seed and recipe decide a trial", "[fast]") {
  TrainTrial trial = small_trial();
  const TrainOutcome base = run_train_trial(trial, data());
  trial.recipe = {{"roles", {{"weight", {{"format", "int4"}}}, {"gradient", nullptr}}}};
  const TrainOutcome coarse = run_train_trial(trial, data());
  CHECK(coarse.train_loss != base.train_loss);
  CHECK(run_train_trial(trial, data()).train_loss == coarse.train_loss);
  trial.seed = 6;
  CHECK(run_train_trial(trial, data()).train_loss != coarse.train_loss);
}

TEST_CASE("a restricted set is the first samples of the whole", "[fast]") {
  const net::Dataset part = restricted(data(), 10, false);
  CHECK(part.name() == data().name());
  CHECK(part.digest() != data().digest());
  CHECK(part.train_count() == 10);
  CHECK(part.calibration_count() == 10);
  CHECK(part.validation_count() == 0);
  CHECK(part.test_count() == data().test_count());
  net::Targets targets, expected;
  const net::Augmentation augment{.shift = 2, .flip = true};
  for (const net::Augmentation* how : {static_cast<const net::Augmentation*>(nullptr), &augment}) {
    CHECK(part.train_batch({9, 0}, targets, how, 3, 1).data ==
          data().train_batch({9, 0}, expected, how, 3, 1).data);
    CHECK(targets.classes == expected.classes);
  }
  CHECK(part.test_batch(7, 2, targets).data == data().test_batch(7, 2, expected).data);
  CHECK(targets.classes == expected.classes);
  CHECK_THROWS(part.train_batch({10}, targets));
  const net::Dataset all = restricted(data(), 0, true);
  CHECK(all.train_count() == data().train_count());
  CHECK(all.calibration_count() == data().calibration_count());
  CHECK(all.validation_count() == data().validation_count());
  CHECK(all.validation_batch(1, 1, targets).data == data().validation_batch(1, 1, targets).data);
  CHECK_THAT(message_of([] { restricted(data(), 601, false); }),
             Contains("expected at most its 600 training samples, not 601"));
}

TEST_CASE("validation is read where patience asks for it", "[fast]") {
  TrainTrial trial = small_trial();
  trial.options.epochs = 1;
  const double loss = run_train_trial(trial, data()).train_loss;
  trial.options.patience = 1;
  CHECK(run_train_trial(trial, data()).train_loss == loss);
}

TEST_CASE("an observer sees every product of training and no other", "[fast]") {
  TrainTrial trial = small_trial();
  trial.recipe = {{"roles", {{"weight", {{"format", "int4"}}}}}};
  std::int64_t before = 0, last_step = -1;
  bool float_weights = true;
  trial.before = [&](const net::Product& p, std::int64_t step) {
    ++before;
    CHECK(step >= last_step);
    last_step = step;
    if (step != 0 || p.layer != "fc1" || p.kind != net::GemmKind::fprop) return;
    net::Graph graph = net::build_net("mlp", data());
    net::initialize(graph, 5);
    float_weights = float_weights && p.b.source->data == graph.parameters()[0]->value.data;
  };
  const TrainOutcome seen = run_train_trial(trial, data());
  const std::int64_t steps = 2 * kTrain / kBatch;
  CHECK(last_step == steps - 1);
  CHECK(before % steps == 0);  // no product of the evaluation
  CHECK(before / steps >= 5);
  CHECK(float_weights);
  trial.before = nullptr;
  CHECK(run_train_trial(trial, data()).train_loss == seen.train_loss);
}

TEST_CASE("a trial starts from given values and shows the network after every step", "[fast]") {
  TrainTrial trial = small_trial();
  std::vector<std::int64_t> steps;
  std::vector<net::NamedTensor> last;
  trial.on_step = [&](const net::Graph& graph, std::int64_t step) {
    steps.push_back(step);
    last = net::parameters_of(graph).tensors;
  };
  const TrainOutcome first = run_train_trial(trial, data());
  REQUIRE(steps.size() == 2 * kTrain / kBatch);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<std::int64_t>(i));
  std::vector<net::EpochMetrics> epochs;
  const net::Graph by_hand = trained_by_hand(epochs);
  REQUIRE(last.size() == by_hand.parameters().size());
  for (std::size_t p = 0; p < last.size(); ++p)
    CHECK(last[p].value.data == by_hand.parameters()[p]->value.data);

  // Without a step the outcome is that of the start.
  TrainTrial again = small_trial();
  again.options.epochs = 0;
  again.start = last;
  CHECK(run_train_trial(again, data()).correct == first.correct);
  again.options.epochs = 1;
  std::vector<float> start;
  again.before = [&](const net::Product& p, std::int64_t) {
    if (start.empty() && p.kind == net::GemmKind::fprop) start = p.b.source->data;
  };
  CHECK(run_train_trial(again, data()).train_loss < first.train_loss);
  CHECK(start == last[0].value.data);
}

TEST_CASE("what a trial cannot do is refused", "[fast]") {
  const auto refusal = [](const auto& change) {
    TrainTrial trial = small_trial();
    change(trial);
    return message_of([&] { run_train_trial(trial, data()); });
  };
  CHECK_THAT(refusal([](TrainTrial& t) { t.net = "mlq"; }), Contains("did you mean 'mlp'"));
  CHECK_THAT(refusal([](TrainTrial& t) { t.train_samples = 5000; }), Contains("at most its 600"));
  CHECK_THAT(refusal([](TrainTrial& t) { t.eval_samples = 401; }),
             Contains("401 samples requested"));
  CHECK_THAT(refusal([](TrainTrial& t) { t.options.batch = 0; }), Contains("batch"));
  CHECK_THAT(refusal([](TrainTrial& t) {
               t.start = {{"fc1.weight", net::Tensor({2, 2})}};
             }),
             Contains("start of a training trial"));
  CHECK_THAT(refusal([](TrainTrial& t) { t.recipe = Json::array(); }),
             Contains("expected an object"));
  CHECK_THAT(refusal([](TrainTrial& t) { t.recipe = {{"role", 1}}; }), Contains("roles"));
  CHECK_THAT(refusal([](TrainTrial& t) {
               t.recipe = {{"update", {{"optimizer", "sgd"}}}};
             }),
             Contains("\"sgd\" contradicts the trial's 'adam'"));
  CHECK_THAT(refusal([](TrainTrial& t) {
               t.recipe = {
                   {"roles", {{"weight", {{"format", "int8"}, {"granularity", "channel"}}}}},
                   {"gemms", {{"dgrad", {{"unit", "nvidia.a100.mma.s8.s32"}}}}}};
             }),
             Contains("reduces along the axis of the scales"));
}

TEST_CASE("a point tells trials apart, observers aside", "[fast]") {
  const TrainTrial trial = small_trial();
  const Json point = point_of(trial, data());
  CHECK(point["seed"] == 5);
  CHECK(point["recipe"]["seed"] == 5);
  CHECK(point["options"]["seed"] == "5");
  CHECK(point["samples"] == data().digest());
  const auto changed = [&](const auto& change) {
    TrainTrial other = trial;
    change(other);
    return point_of(other, data());
  };
  CHECK(changed([](TrainTrial& t) { t.options.seed = 1; }) == point);
  CHECK(changed([](TrainTrial& t) { t.recipe = {{"numemu_recipe", 1}, {"seed", 3}}; }) == point);
  CHECK(changed([](TrainTrial& t) { t.before = [](const net::Product&, std::int64_t) {}; }) ==
        point);
  CHECK(changed([](TrainTrial& t) { t.on_step = [](const net::Graph&, std::int64_t) {}; }) ==
        point);
  CHECK_FALSE(point.contains("start"));
  const Json zero = changed([](TrainTrial& t) { t.start = {{"fc1.bias", net::Tensor({1}, 0)}}; });
  CHECK(zero != point);
  CHECK(changed([](TrainTrial& t) { t.start = {{"fc1.bias", net::Tensor({1}, 1)}}; }) != zero);
  CHECK(changed([](TrainTrial& t) { t.options.objectives.emplace_back("complement"); }) != point);
  CHECK(changed([](TrainTrial& t) { t.net = "lenet"; }) != point);
  CHECK(changed([](TrainTrial& t) { t.seed = 1; }) != point);
  CHECK(changed([](TrainTrial& t) { t.train_samples = 1; }) != point);
  CHECK(changed([](TrainTrial& t) { t.eval_samples = 1; }) != point);
  CHECK(changed([](TrainTrial& t) { t.options.learning_rate = 0.1; }) != point);
  CHECK(changed([](TrainTrial& t) {
          t.recipe = {{"roles", {{"weight", {{"format", "int8"}}}}}};
        }) != point);
}

TEST_CASE("a trial of a file begins with its weights, which are part of its point", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  std::vector<net::EpochMetrics> epochs;
  net::Graph graph = trained_by_hand(epochs);
  TrainTrial trial = small_trial();
  trial.net = folder / "mlp.safetensors";
  const auto save = [&] {
    net::Checkpoint checkpoint = net::parameters_of(graph);
    checkpoint.metadata = {{"net", "mlp"}};
    net::write_safetensors(trial.net, checkpoint);
  };
  save();
  CHECK(net::digest_of(initial_network(trial, data())) == net::digest_of(graph));
  const Json point = point_of(trial, data());
  graph.parameters()[0]->value.data[0] += 1;
  save();
  CHECK(point_of(trial, data()) != point);
}

TEST_CASE("a trial has the objectives of its recipe, or those of its options", "[fast]") {
  TrainTrial by_options = small_trial(), by_recipe = small_trial();
  by_options.options.optimizer = by_recipe.options.optimizer = "sgd";
  by_options.options.objectives = {"cross_entropy", "complement"};
  by_recipe.recipe = {{"objectives", {"cross_entropy", "complement"}}};
  const TrainOutcome expected = run_train_trial(by_options, data());
  CHECK(run_train_trial(by_recipe, data()).train_loss == expected.train_loss);
  by_recipe.recipe["objectives"][1] = Json{{"rule", "complement"}, {"optimizer", "adam"}};
  CHECK(run_train_trial(by_recipe, data()).train_loss != expected.train_loss);
  CHECK(point_of(by_recipe, data())["options"]["optimizer of complement"] == "adam");
  by_recipe.options.objectives = {"complement"};
  CHECK_THAT(message_of([&] { run_train_trial(by_recipe, data()); }),
             Contains("contradict those of the training options, complement"));
}

TEST_CASE("a trial changes to the next stage of its recipe", "[fast]") {
  const Json coarse = {{"weight", {{"format", "int4"}}}};
  TrainTrial trial = small_trial(), whole = small_trial();
  whole.recipe = {{"roles", coarse}};
  // Stages that begin after the end change nothing but the test.
  const auto from = [&](int epoch) {
    trial.recipe = {{"stages", Json::array()}};
    trial.recipe["stages"].push_back(
        {{"from", {{"epoch", epoch}}}, {"patch", {{"roles", coarse}}}});
    return run_train_trial(trial, data());
  };
  const TrainOutcome float32 = run_train_trial(small_trial(), data());
  CHECK(from(2).train_loss == float32.train_loss);
  CHECK(from(1).train_loss != float32.train_loss);
  CHECK(from(1).train_loss != run_train_trial(whole, data()).train_loss);
  int products = 0;
  trial.before = [&](const net::Product&, std::int64_t) { ++products; };
  from(1);
  CHECK(products > 0);
}

TEST_CASE("outcomes survive JSON, diverged ones too", "[fast]") {
  const TrainOutcome good{0.25, true, 1, 4, 1.5};
  const TrainOutcome again = read_fields<TrainOutcome>(json_of(good), "trial");
  CHECK(again.metric == 0.25);
  CHECK(again.accuracy);
  CHECK(again.correct == 1);
  CHECK(again.n == 4);
  CHECK(again.train_loss == 1.5);
  const TrainOutcome bad =
      read_fields<TrainOutcome>(json_of(TrainOutcome{NAN, false, 0, 4, HUGE_VAL}), "trial");
  CHECK(std::isnan(bad.metric));
  CHECK_FALSE(bad.accuracy);
  CHECK(std::isnan(bad.train_loss));
  CHECK_FALSE(again.diverged);
  const TrainOutcome ended{NAN, true, 1, 4, NAN, 17};
  CHECK(read_fields<TrainOutcome>(json_of(ended), "trial").diverged == 17);
}

TEST_CASE("a training that diverges has no accuracy, but the update", "[fast]") {
  TrainTrial trial = small_trial();
  trial.options.learning_rate = 1e30;
  std::vector<double> losses;
  trial.on_loss = [&](double loss) { losses.push_back(loss); };
  const TrainOutcome outcome = run_train_trial(trial, data());
  REQUIRE(outcome.diverged);
  CHECK(std::isnan(outcome.metric));
  REQUIRE(*outcome.diverged > 1);
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(std::isfinite(losses[i]) == (i + 1 < static_cast<std::size_t>(*outcome.diverged)));
}

TEST_CASE("a text gives bits per character", "[fast]") {
  std::vector<std::uint8_t> text;
  for (int i = 0; i < 4000; ++i) text.push_back("abcd"[i % 4]);
  const net::Dataset set("letters", std::make_shared<net::TextSamples>("letters", text, 8));
  TrainTrial trial;
  trial.net = "char-transformer";
  trial.options.epochs = 1;
  trial.options.batch = 8;
  trial.train_samples = 32;
  trial.eval_samples = 4;
  const TrainOutcome outcome = run_train_trial(trial, set);
  CHECK_FALSE(outcome.accuracy);
  CHECK(outcome.n == 32);
  CHECK(outcome.metric > 0);
  CHECK(outcome.metric < 4);  // guessing among four takes 2 bits
}

TEST_CASE("gradients of layers are those of the loss", "[fast]") {
  net::Graph graph = net::build_net("mlp", data());
  net::initialize(graph, 1);
  const std::vector<LayerGradient> gradients = layer_gradients(graph, data(), 32, 3, 7);
  REQUIRE(gradients.size() >= 2);
  for (const LayerGradient& layer : gradients) {
    CHECK(layer.rows == 3 * 32);
    CHECK(static_cast<std::int64_t>(layer.g.size()) == layer.rows * layer.channels);
  }
  // Of the last layer: (softmax - one-hot) / batch, so each row sums to zero.
  const LayerGradient& last = gradients.back();
  CHECK(last.channels == 10);
  constexpr float kRowError = 10 * 0x1p-24F;  // of ten terms below 1
  for (std::int64_t row = 0; row < last.rows; ++row) {
    float sum = 0, largest = 0;
    for (std::int64_t c = 0; c < 10; ++c) {
      sum += last.g[row * 10 + c];
      largest = std::max(largest, std::fabs(last.g[row * 10 + c]));
    }
    CHECK(std::fabs(sum) <= kRowError);
    CHECK(largest > 0);
    CHECK(largest <= 1.0F / 32);
  }
  CHECK(layer_gradients(graph, data(), 32, 3, 7).back().g == last.g);
  CHECK(layer_gradients(graph, data(), 32, 3, 8).back().g != last.g);
  CHECK_THAT(message_of([&] { layer_gradients(graph, data(), 601, 1, 0); }),
             Contains("a batch of 1 to 600"));
  CHECK_FALSE(message_of([&] { layer_gradients(graph, data(), 1, 0, 0); }).empty());
}

TEST_CASE("rows of a convolution's gradient run over batch and space", "[fast]") {
  net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(graph, 1);
  net::Images train{5520, 28, 28, 1, {}, {}}, test{8, 28, 28, 1, {}, {}};
  for (net::Images* images : {&train, &test}) {
    images->pixels.resize(images->count * 784, 40);
    images->labels.resize(images->count, 3);
  }
  const net::Dataset images("flat", 10, std::move(train), std::move(test), {0.4}, {0.2});
  const std::vector<LayerGradient> gradients = layer_gradients(graph, images, 4, 1, 0);
  REQUIRE(gradients[0].layer == "conv1");
  const net::Shape y = graph.nodes[0].op->output_shape(std::vector<net::Shape>{{4, 28, 28, 1}});
  CHECK(gradients[0].rows == y[0] * y[1] * y[2]);
  CHECK(gradients[0].channels == y[3]);
}

}  // namespace train_trial_test
