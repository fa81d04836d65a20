// Training: pinned weights for any thread count, every moment in its order, no look at the test
// split.
#include "emu/net/train/train.hpp"

#include <omp.h>

#include <cmath>

#include "emu/net/nets.hpp"
#include "emu/net/train/evaluate.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::train_test {
namespace {

constexpr const char* kWeightsAfter20Steps =
    "1d7d69a03c4064ecaa0e325b59b46153419b8b8b70dd08df829caa4a4e63884e";
constexpr const char* kAdamWeightsAfter20Steps =
    "6d6991781308b61c4959c55100227668043fff8788e164b6ed1e58a96f6a9d19";

std::string weights_hash(const Graph& graph) {
  std::string bytes;
  for (const Parameter* p : graph.parameters()) {
    bytes.append(reinterpret_cast<const char*>(p->value.data.data()),
                 p->value.data.size() * sizeof(float));
  }
  return sha256_hex(bytes);
}

TrainOptions twenty_steps() {
  TrainOptions options;
  options.optimizer = "sgd";
  options.schedule = "cosine";
  options.learning_rate = 0.05;
  options.weight_decay = 5e-4;
  options.epochs = 1;
  options.batch = 32;
  return options;
}

TEST_CASE("20 steps of mlp give the pinned weights for 1, 2 and 3 threads", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Numerics numerics;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    std::int64_t steps = 0;
    TrainHooks hooks;
    hooks.on_step = [&](std::int64_t, std::int64_t total, double) {
      CHECK(total == 20);
      ++steps;
    };
    const std::vector<EpochMetrics> history = train(graph, data, twenty_steps(), numerics, hooks);
    CHECK(steps == 20);
    CHECK(weights_hash(graph) == kWeightsAfter20Steps);
    REQUIRE(history.size() == 1);
    CHECK(history[0].validation_top1 > 0.5);
  }
  omp_set_num_threads(omp_get_num_procs());
}

TEST_CASE("20 steps of mlp with adam and the step schedule are pinned too", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Numerics numerics;
  TrainOptions options = twenty_steps();
  options.optimizer = "adam";
  options.schedule = "step";
  options.learning_rate = 0.002;
  options.weight_decay = 0.01;
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    train(graph, data, options, numerics);
    CHECK(weights_hash(graph) == kAdamWeightsAfter20Steps);
  }
  omp_set_num_threads(omp_get_num_procs());
}

TEST_CASE("mlp on two workers has the same weights for 1, 2 and 3 threads", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = twenty_steps();
  options.workers = 2;
  options.micro_batches = 3;
  options.batch = 30;  // the last 10 of 640 samples are parts of 2 and 1
  Numerics numerics;
  std::string weights;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    const std::vector<EpochMetrics> history = train(graph, data, options, numerics);
    if (weights.empty()) weights = weights_hash(graph);
    CHECK(weights_hash(graph) == weights);
    CHECK(history[0].validation_top1 > 0.5);
  }
  CHECK(weights != kWeightsAfter20Steps);
  omp_set_num_threads(omp_get_num_procs());
}

TEST_CASE("the reported loss is that of the data plus the penalty", "[fast]") {
  class Penalised final : public Numerics {
   public:
    double penalty(const Step&, std::string_view, const Tensor&, Tensor&) override { return 0.25; }
  };
  const Dataset data = test::synthetic_dataset();
  const auto losses = [&](Numerics& numerics, EpochMetrics& epoch) {
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    std::vector<double> all;
    TrainHooks hooks;
    hooks.on_step = [&](std::int64_t, std::int64_t, double loss) { all.push_back(loss); };
    epoch = train(graph, data, twenty_steps(), numerics, hooks).at(0);
    return all;
  };
  Numerics plain;
  Penalised penalised;
  EpochMetrics without, with;
  const std::vector<double> before = losses(plain, without), after = losses(penalised, with);
  REQUIRE(before.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(after[i] == before[i] + 1.5);  // six parameters
  CHECK(with.train_loss == Approx(without.train_loss + 1.5).epsilon(1e-12));
  CHECK(with.validation_loss == without.validation_loss);
}

TEST_CASE("training never reads the test split", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  Numerics numerics;
  train(graph, data, twenty_steps(), numerics);
  CHECK(data.test_reads() == 0);
  evaluate(graph, data, Split::test, 0, numerics);
  CHECK(data.test_reads() > 0);
}

// Writes down the moments around a step.
class Recording final : public Numerics {
 public:
  std::vector<std::string> log;
  bool recording = true, accept = true;
  float scale = 1;
  void note(std::string text) {
    if (recording) log.push_back(std::move(text));
  }
  void begin_step(const Step& s) override {
    recording = s.phase == Phase::training;
    note("begin " + std::to_string(s.index) + " of " +
         std::to_string(s.samples ? s.samples->size() : 0));
  }
  void end_step(const Step& s) override { note("end " + std::to_string(s.index)); }
  void product(const Step& step, const Product& p) override {
    note("product " + std::string(p.layer) + " " + std::string(to_string(p.kind)));
    Numerics::product(step, p);
  }
  void edge(const Step&, const Edge& e, Tensor&) override {
    note((e.backward ? "edge' " : "edge ") + std::string(e.layer));
  }
  Saved save(const Step& step, const Kept& kept, const SharedTensor& tensor) override {
    note("save " + std::string(kept.layer) + (kept.use == Use::sign ? " sign" : ""));
    return Numerics::save(step, kept, tensor);
  }
  SharedTensor restore(const Step& step, const Kept& kept, Saved saved) override {
    note("restore " + std::string(kept.layer) + (kept.use == Use::sign ? " sign" : ""));
    return Numerics::restore(step, kept, std::move(saved));
  }
  void vector_result(const Step&, std::string_view layer, std::string_view, Tensor&) override {
    note("vector " + std::string(layer));
  }
  double penalty(const Step&, std::string_view parameter, const Tensor&, Tensor&) override {
    note("penalty " + std::string(parameter));
    return 0;
  }
  void update(const Step& step, const Update& u) override {
    note("update " + std::string(u.parameter));
    Numerics::update(step, u);
  }
  void optimizer_state(const Step&, std::string_view parameter, std::string_view name,
                       Tensor&) override {
    note("state " + std::string(parameter) + " " + std::string(name));
  }
  float loss_scale(const Step&) override {
    note("loss_scale");
    return scale;
  }
  void worker_gradients(const Step&, const std::vector<Tensor>&) override {
    note("worker_gradients");
  }
  bool accept_gradients(const Step&) override {
    note("accept_gradients");
    return accept;
  }
  Participation participation(const Step&, std::int64_t worker,
                              std::int64_t micro_batches) override {
    note("participation of " + std::to_string(worker));
    return {micro_batches};
  }
  std::unique_ptr<Exchange> exchange(const Step& step, const Senders& senders) override {
    note("exchange of " + std::to_string(senders.workers));
    return Numerics::exchange(step, senders);
  }
};

const std::vector<std::string> kUntilGradients{
    "begin 0 of 640",    "loss_scale",         "participation of 0", "exchange of 1",
    "product fc1 fprop", "edge fc1",
    "save flatten",  // forward
    "vector relu1",      "edge relu1",         "product fc2 fprop",  "edge fc2",
    "save relu1",        "save relu1 sign",    "vector relu2",       "edge relu2",
    "product fc3 fprop", "edge fc3",           "save relu2",         "save relu2 sign",
    "edge' fc3",         "restore relu2",      "product fc3 wgrad",
    "product fc3 dgrad",  // backward
    "edge' relu2",       "restore relu2 sign", "edge' fc2",          "restore relu1",
    "product fc2 wgrad", "product fc2 dgrad",  "edge' relu1",        "restore relu1 sign",
    "edge' fc1",         "restore flatten",    "product fc1 wgrad",  "worker_gradients",
    "accept_gradients"};

TEST_CASE("a step asks every moment in the documented order", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  TrainOptions options = twenty_steps();
  options.batch = test::kTrain;
  Recording numerics;
  train(graph, data, options, numerics);
  std::vector<std::string> expected = kUntilGradients;
  const std::vector<std::string> parameters{"fc1.weight", "fc1.bias",   "fc2.weight",
                                            "fc2.bias",   "fc3.weight", "fc3.bias"};
  for (const std::string& parameter : parameters) expected.push_back("penalty " + parameter);
  for (const std::string& parameter : parameters) {
    expected.push_back("update " + parameter);
    expected.push_back("state " + parameter + " velocity");
  }
  expected.push_back("end 0");
  CHECK(numerics.log == expected);
}

TEST_CASE("gradients that are not accepted change nothing", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  const std::string before = weights_hash(graph);
  TrainOptions options = twenty_steps();
  options.batch = test::kTrain;
  Recording numerics;
  numerics.accept = false;
  train(graph, data, options, numerics);
  std::vector<std::string> expected = kUntilGradients;
  expected.push_back("end 0");
  CHECK(numerics.log == expected);
  CHECK(weights_hash(graph) == before);
}

TEST_CASE("a loss scale that is a power of two changes no weight", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  Recording numerics;
  numerics.scale = 1024;
  train(graph, data, twenty_steps(), numerics);
  CHECK(weights_hash(graph) == kWeightsAfter20Steps);
}

TEST_CASE("the rows of the epochs carry what the steps did", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  TrainOptions options = twenty_steps();
  options.epochs = 2;
  options.schedule = "linear";
  options.warmup = 4;
  Recording numerics;
  numerics.scale = 8;
  const std::vector<EpochMetrics> history = train(graph, data, options, numerics);
  REQUIRE(history.size() == 2);
  CHECK(history[0].step == 20);
  CHECK(history[1].step == 40);
  CHECK(history[0].learning_rate == 0.05 * (1 - 15.0 / 36));
  CHECK(history[1].train_loss < history[0].train_loss);
  CHECK(history[0].gradient_norm > 0);
  CHECK(history[0].loss_scale == 8);
  CHECK(history[0].skipped == 0);
  numerics.accept = false;
  const std::vector<EpochMetrics> refused = train(graph, data, options, numerics);
  CHECK(refused[0].skipped == 20);
  CHECK(refused[1].skipped == 20);
  CHECK(refused[0].gradient_norm == 0);
}

TEST_CASE("clipping bounds what a step changes", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = twenty_steps();
  options.batch = test::kTrain;  // one step
  options.momentum = options.weight_decay = 0;
  options.learning_rate = 1;
  options.schedule = "constant";
  options.clip = 0x1p-10;
  Graph before = build_net("mlp", data.input_shape(), data.classes()),
        after = build_net("mlp", data.input_shape(), data.classes());
  initialize(before, 0);
  initialize(after, 0);
  Numerics numerics;
  train(after, data, options, numerics);
  double squares = 0;
  for (std::size_t p = 0; p < before.parameters().size(); ++p) {
    const Tensor &a = before.parameters()[p]->value, &b = after.parameters()[p]->value;
    for (std::size_t i = 0; i < a.data.size(); ++i)
      squares += std::pow(double{b.data[i]} - double{a.data[i]}, 2);
  }
  // Weights below 2 in magnitude are rounded by up to 2^-25 each; there are 51,000 of them.
  CHECK(std::sqrt(squares) == Approx(0x1p-10).margin(0x1p-25 * 226));
}

TEST_CASE("patience ends a run and gives the best weights back", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = twenty_steps();
  options.epochs = 30;
  options.schedule = "constant";
  options.learning_rate = 2;  // far too large: the loss soon rises
  options.patience = 2;
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  initialize(graph, 0);
  Numerics numerics;
  std::vector<std::string> weights;
  TrainHooks hooks;
  hooks.on_epoch = [&](const EpochMetrics&) { weights.push_back(weights_hash(graph)); };
  const std::vector<EpochMetrics> history = train(graph, data, options, numerics, hooks);
  REQUIRE(history.size() < 30);
  std::size_t best = 0;
  for (std::size_t i = 1; i < history.size(); ++i) {
    if (history[i].validation_loss < history[best].validation_loss) best = i;
  }
  CHECK(best + 3 == history.size());
  CHECK(weights_hash(graph) == weights[best]);
}

TEST_CASE("augmentation changes what is trained on and the seed decides it", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const auto trained = [&](std::int64_t shift, std::uint64_t seed) {
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    TrainOptions options = twenty_steps();
    options.batch = test::kTrain / 2;
    options.augment.shift = shift;
    options.seed = seed;
    Numerics numerics;
    train(graph, data, options, numerics);
    return weights_hash(graph);
  };
  const std::string shifted = trained(1, 0);
  CHECK(trained(1, 0) == shifted);
  CHECK(trained(0, 0) != shifted);
  CHECK(trained(1, 1) != shifted);
}

TEST_CASE("copies of a sample are rows of its step", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const auto trained = [&](std::int64_t copies, std::int64_t workers) {
    Graph graph = build_net("mlp", data.input_shape(), data.classes());
    initialize(graph, 0);
    TrainOptions options = twenty_steps();
    options.batch = test::kTrain / 2;
    options.augment.shift = 1;
    options.copies = copies;
    options.workers = workers;
    Numerics numerics;
    CHECK(train(graph, data, options, numerics).back().step == 2);
    return weights_hash(graph);
  };
  const std::string two = trained(2, 1);
  CHECK(trained(2, 1) == two);
  CHECK(trained(1, 1) != two);
  CHECK_NOTHROW(trained(2, 4));
}

TEST_CASE("wrong options and data that do not fit are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  Numerics numerics;
  TrainOptions options;
  options.batch = 0;
  CHECK_THROWS_WITH(train(graph, data, options, numerics), Catch::Contains("batch"));
  Graph other = build_net("mlp", {9, 8, 1}, 10);
  CHECK_THROWS_WITH(train(other, data, {}, numerics), Catch::Contains("synthetic"));
}

}  // namespace
}  // namespace numemu::net::train_test
