// Gradient smoothing: norms of copies by hand, the moving mean, what it does to a step, its state.
#include "emu/net/train/size_smoothing.hpp"

#include <cmath>

#include "emu/net/nets.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/step.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::size_smoothing_test {
namespace {

struct Smoothed {
  Dataset data = test::synthetic_dataset();
  Graph graph = build_net("mlp", data.input_shape(), data.classes());
  TrainOptions options;
  Numerics numerics;

  Smoothed() {
    initialize(graph, 0);
    options.augment.shift = 2;
    options.sizes = {{{8, 1}}, "copies", 4};
  }
  StepInput input(std::int64_t index, std::int64_t copies, std::int64_t only = -1) {
    StepInput made;
    made.index = index;
    for (std::int64_t id = 0; id < 8; ++id) made.samples.push_back(8 * index + id);
    made.x = data.train_batch(made.samples, made.targets, &options.augment, 0, 0, copies);
    if (only < 0) return made;
    Tensor one({8, 8, 8, 1});
    std::vector<std::int32_t> classes;
    for (std::int64_t i = 0; i < 8; ++i) {
      std::copy_n(made.x.data.begin() + (i * copies + only) * 64, 64, one.data.begin() + i * 64);
      classes.push_back(made.targets.classes[i * copies + only]);
    }
    made.x = one;
    made.targets.classes = classes;
    return made;
  }
  /// Of all gradients, by a training step that updates nothing.
  double norm(const StepInput& input) {
    const auto optimizer = make_optimizer(options, std::as_const(graph).parameters());
    StepInput still = input;
    still.learning_rate = 0;
    return training_step(graph, still, options, *optimizer, numerics).gradient_norm;
  }
};

}  // namespace

TEST_CASE("size smoothing: norms are those of each copy alone and of all", "[fast]") {
  Smoothed s;
  const CopyNorms norms = copy_norms(s.graph, s.input(0, 3), 3, s.options);
  CHECK(norms.all == s.norm(s.input(0, 3)));
  double one = 0;
  for (std::int64_t copy = 0; copy < 3; ++copy) one += s.norm(s.input(0, 3, copy)) / 3;
  CHECK(norms.one == Approx(one).epsilon(1e-12));
  // No layer of mlp mixes samples, so that the gradient of all is the mean of the copies'.
  CHECK(norms.one >= norms.all);
  CHECK(norms.one <= std::sqrt(3.0) * norms.all);
  const CopyNorms same = copy_norms(s.graph, s.input(0, 1), 1, s.options);
  CHECK(same.one == same.all);
}

TEST_CASE("size smoothing: a weight keeps 0.9 of itself at each measurement", "[fast]") {
  Smoothed s;
  SizeSmoothing smoothing(s.numerics, s.options);
  const PlannedStep planned{.samples = 8, .image = 8, .copies = 2};
  const auto ratio = [&](std::int64_t index) {
    const CopyNorms norms = copy_norms(s.graph, s.input(index, 2), 2, s.options);
    return norms.one / norms.all;
  };
  const auto weight = [&](std::int64_t index) {
    return smoothing.weight(s.graph, s.input(index, 2), planned);
  };
  CHECK(weight(2) == ratio(2));  // the first step of its size
  CHECK(weight(3) == ratio(2));
  CHECK(weight(4) == 0.9 * ratio(2) + (1 - 0.9) * ratio(4));
  CHECK(smoothing.weight(s.graph, s.input(4, 1), {.samples = 8, .image = 8, .copies = 1}) == 1);

  NamedState state;
  smoothing.save_state(state);
  SizeSmoothing other(s.numerics, s.options);
  other.load_state(state);
  CHECK(other.weight(s.graph, s.input(5, 2), planned) == weight(5));
  state[0].second.pop_back();
  CHECK_THROWS_WITH(other.load_state(state), Catch::Contains("expected the 8 bytes"));

  s.options.sizes.smoothing = 0;
  CHECK(weight(8) == 1);
}

TEST_CASE("size smoothing: the weight scales a step's gradient", "[fast]") {
  Smoothed s;
  StepInput input = s.input(0, 2);
  const double plain = s.norm(input);
  input.loss_weight = 2;
  CHECK(s.norm(input) == 2 * plain);
}

}  // namespace numemu::net::size_smoothing_test
