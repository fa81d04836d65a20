// Image sizes of a training: the published counts, draws by share, steps by hand, refusals; the
// same bits after an interruption.
#include "emu/net/train/image_sizes.hpp"

#include <cmath>

#include "emu/net/build/builder.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/step.hpp"
#include "emu/net/train/train.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::image_sizes_test {
namespace {

using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;

TrainOptions mixed(const std::string& change, std::int64_t smoothing = 0) {
  TrainOptions options = test::stateful_options("sgd");
  options.patience = 0;
  options.epochs = 2;
  options.batch = 48;
  options.sizes = {parse_image_sizes("8:0.3,12:0.2,6:0.3,4:0.2"), change, smoothing};
  return options;
}

/// A network whose parameters depend on no size.
Graph any_size() {
  Builder net("any", {8, 8, 1}, 10);
  net.conv3x3("conv", 4).batch_norm("norm").relu("relu").global_pool("pool").flatten("flatten");
  net.classifier("fc");
  Graph graph = net.take();
  initialize(graph, 0);
  return graph;
}

std::vector<std::vector<float>> weights(const Graph& graph) {
  std::vector<std::vector<float>> all;
  for (const Parameter* parameter : graph.parameters()) all.push_back(parameter->value.data);
  return all;
}

}  // namespace

TEST_CASE("image sizes: batches and copies of the published regimes", "[fast]") {
  TrainOptions options;
  options.batch = 64;
  const auto at = [&](const char* change, std::int64_t own, std::int64_t size) {
    options.sizes.change = change;
    const PlannedStep step = sized_step(options, own, size);
    return std::pair(step.samples, step.copies);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  CHECK(at("batch", 28, 28) == Pair(64, 1));
  CHECK(at("batch", 28, 20) == Pair(125, 1));
  CHECK(at("batch", 28, 14) == Pair(256, 1));
  // Relative cost by area: .996 and 1.
  CHECK(125 * 400 / (64 * 784.0) == Approx(.996).margin(6e-4).epsilon(0));
  CHECK(256 * 196 / (64 * 784.0) == 1);
  CHECK(at("batch", 32, 48) == Pair(28, 1));   // 28.4
  CHECK(at("copies", 32, 24) == Pair(64, 2));  // 1.78 copies
  CHECK(at("copies", 32, 16) == Pair(64, 4));
  // .44 of a copy is less than half: the batch changes instead.
  CHECK(at("copies", 32, 48) == Pair(28, 1));
  CHECK(at("both", 32, 16) == Pair(128, 2));
  CHECK(at("both", 32, 48) == Pair(43, 1));  // 42.7 samples, .67 copies
  CHECK(at("both", 16, 48) == Pair(7, 1));   // .33 copies: the batch takes both, 64 / 9
  CHECK(at("none", 32, 16) == Pair(64, 1));
  CHECK(at("batch", 4, 4096) == Pair(1, 1));  // never none
  options.copies = 2;
  CHECK(at("copies", 32, 48) == Pair(64, 1));  // .89
}

TEST_CASE("image sizes: steps are drawn by their shares, and cover an epoch", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = mixed("none");
  options.batch = 1;
  std::map<std::int64_t, double> drawn;
  std::int64_t steps = 0;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    for (const PlannedStep& step : epoch_steps(options, data, epoch)) {
      ++drawn[step.image];
      ++steps;
    }
  }
  REQUIRE(steps == 20 * data.train_count());
  for (const auto& [size, share] : options.sizes.shares) {
    const double error = std::sqrt(share * (1 - share) / static_cast<double>(steps));
    CHECK(drawn[size] / static_cast<double>(steps) == Approx(share).margin(4 * error).epsilon(0));
  }
  options = mixed("batch");
  std::int64_t next = 0, all = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    next = 0;
    for (const PlannedStep& step : epoch_steps(options, data, epoch)) {
      CHECK(step.first == next);
      next += step.samples;
      ++all;
    }
    CHECK(next == data.train_count());
  }
  CHECK(planned_steps(options, data) == all);
  // Another seed draws others; sizes that are not chosen leave the plan of old.
  TrainOptions other = options;
  other.seed += 1;
  CHECK(epoch_steps(other, data, 0).size() + epoch_steps(other, data, 1).size() +
            static_cast<std::size_t>(epoch_steps(other, data, 0)[0].image) !=
        epoch_steps(options, data, 0).size() + epoch_steps(options, data, 1).size() +
            static_cast<std::size_t>(epoch_steps(options, data, 0)[0].image));
  options.sizes = {};
  const std::vector<PlannedStep> plain = epoch_steps(options, data, 0);
  CHECK(std::ssize(plain) == (data.train_count() + 47) / 48);
  CHECK(plain.back().samples == data.train_count() % 48);
  CHECK(plain.front().image == 0);
}

TEST_CASE("image sizes: a training takes the steps that one makes by hand", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = mixed("copies");
  options.epochs = 1;
  options.warmup = 0;
  options.schedule = "constant";
  Numerics numerics;
  Graph trained = any_size(), own = any_size();
  train(trained, data, options, numerics);
  CHECK(trained.inputs[0].shape == data.input_shape());

  const std::vector<Parameter*> parameters = own.parameters();
  const auto optimizer =
      make_optimizer(options, std::vector<const Parameter*>(parameters.begin(), parameters.end()));
  const std::vector<std::int64_t> order = shuffled(data.train_count(), options.seed, 0);
  std::int64_t index = 0;
  for (const PlannedStep& step : epoch_steps(options, data, 0)) {
    const Dataset seen = view_of(data, {.image_size = step.image});
    StepInput input;
    input.index = index++;
    input.learning_rate = options.learning_rate;
    const std::vector<std::int64_t> ids(order.begin() + step.first,
                                        order.begin() + step.first + step.samples);
    input.x = seen.train_batch(ids, input.targets, &options.augment, options.seed, 0, step.copies);
    for (const std::int64_t id : ids) input.samples.insert(input.samples.end(), step.copies, id);
    own.inputs[0].shape = seen.input_shape();
    training_step(own, input, options, *optimizer, numerics);
  }
  CHECK(weights(trained) == weights(own));
}

TEST_CASE("image sizes: one size, that of the set, is a training without", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  TrainOptions options = mixed("batch");
  options.sizes.shares = {{8, 1}};
  Numerics numerics;
  Graph one = any_size(), none = any_size();
  train(one, data, options, numerics);
  options.sizes = {};
  train(none, data, options, numerics);
  CHECK(weights(one) == weights(none));
}

TEST_CASE("image sizes: a run that was stopped gives the bits of one that was not", "[fast]") {
  struct Interrupted {};
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  const TrainOptions options = mixed("copies", 3);
  const auto run = [&](const std::string& name, std::int64_t stop) {
    Graph graph = any_size();
    test::StatefulNumerics numerics;
    TrainHooks hooks;
    std::int64_t steps = 0;
    hooks.on_step = [&](std::int64_t, std::int64_t, double) {
      if (++steps == stop) throw Interrupted();
    };
    RunFile file;
    file.path = folder / name;
    file.every = 1;
    try {
      train(graph, data, options, numerics, hooks, file);
    } catch (const Interrupted&) {
      return false;
    }
    return true;
  };
  REQUIRE(run("whole", -1));
  for (const std::int64_t stop : {5, 9, 11}) REQUIRE_FALSE(run("parts", stop));
  REQUIRE(run("parts", -1));
  CHECK(read_file(folder / "parts") == read_file(folder / "whole"));
}

TEST_CASE("image sizes: options are text, parsed and refused by name", "[fast]") {
  TrainOptions options = mixed("copies", 10);
  CHECK(to_string(options.sizes) == "8:0.3,12:0.2,6:0.3,4:0.2 change copies smoothing 10");
  CHECK(described(options).back() ==
        std::pair<std::string, std::string>("image_sizes", to_string(options.sizes)));
  CHECK(described(TrainOptions()).size() + 1 == described(options).size());
  CHECK(parse_image_sizes("24") == std::vector<ImageSizes::Share>{{24, 1}});
  for (const char* text : {"", "a:1", "8:", "8,4", "8:0.5,", "8:0.5:2"})
    CHECK_THROWS_WITH(parse_image_sizes(text), Catch::Contains("expected SIZE:SHARE"));

  const auto refused = [&](void (*change)(TrainOptions&)) {
    TrainOptions one = mixed("batch");
    change(one);
    return message_of([&] { check(one); });
  };
  CHECK(refused([](TrainOptions& o) { o.sizes.change = "copie"; }) ==
        "unknown what changes with the image size 'copie'; did you mean 'copies'?");
  CHECK_THAT(refused([](TrainOptions& o) { o.sizes.shares[0].share = 0.4; }),
             Catch::Contains("shares that add up to 1, not 1.1"));
  CHECK_THAT(refused([](TrainOptions& o) { o.sizes.shares[0].size = 12; }),
             Catch::Contains("each size once, found 12 twice"));
  CHECK_THAT(refused([](TrainOptions& o) { o.sizes.shares[1].size = 0; }),
             Catch::Contains("1 to 4096 pixels, not 0"));
  CHECK_THAT(refused([](TrainOptions& o) { o.sizes.smoothing = 5; }),
             Catch::Contains("copies where gradients are smoothed"));
  CHECK_THAT(refused([](TrainOptions& o) {
               o.sizes.change = "copies";
               o.augment = {};
             }),
             Catch::Contains("augmentation where copies change"));
  CHECK_THAT(refused([](TrainOptions& o) {
               o.sizes.shares.clear();
               o.sizes.smoothing = 5;
             }),
             Catch::Contains("sizes where gradients are smoothed"));

  const Dataset data = test::synthetic_dataset();
  Numerics numerics;
  const auto refuse = [&](Graph graph, const TrainOptions& one) {
    return message_of([&] { train(graph, data, one, numerics); });
  };
  CHECK_THAT(refuse(build_net("mlp", data.input_shape(), 10), mixed("batch")),
             Catch::Contains("network mlp does not take images of 12 x 12 pixels"));
  TrainOptions one = mixed("batch");
  one.workers = 24;
  CHECK_THAT(refuse(any_size(), one),
             Catch::Contains("at least as many samples of a step as parts, 24, not 21 at 12"));
}

}  // namespace numemu::net::image_sizes_test
