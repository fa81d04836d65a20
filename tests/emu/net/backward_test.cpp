#include "emu/net/backward.hpp"

#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::backward_test {
namespace {

using test::Doubles;

constexpr std::int64_t kBatch = 3, kIn = 4, kHidden = 5, kOut = 2;
const Step kStep{.phase = Phase::training, .index = 3};

/// y = W2 (h + h2) with h = tanh(W1 x), h2 = tanh(h); biases zero.
Graph branched_net() {
  Graph graph;
  graph.name = "branched";
  graph.inputs = {{"input", {kIn}}};
  graph.add("fc1", std::make_unique<Linear>(kIn, kHidden));
  const int h = graph.add("h", std::make_unique<Pointwise>("tanh"));
  const int h2 = graph.add("h2", std::make_unique<Pointwise>("tanh"));
  graph.add("sum", std::make_unique<Binary>("add"), {h, h2});
  graph.add("fc2", std::make_unique<Linear>(kHidden, kOut));
  initialize(graph, 4);
  return graph;
}

Doubles matrix_product(const Doubles& x, const Doubles& w, std::int64_t in, std::int64_t out) {
  Doubles y(static_cast<std::size_t>(kBatch * out));
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) y[b * out + o] += x[b * in + i] * w[o * in + i];
    }
  }
  return y;
}

/// The output, then h, of the arguments x, W1, W2.
Doubles reference(const std::vector<Doubles>& arguments) {
  Doubles h = matrix_product(arguments[0], arguments[1], kIn, kHidden), sum = h;
  for (std::size_t i = 0; i < h.size(); ++i) {
    h[i] = std::tanh(h[i]);
    sum[i] = h[i] + std::tanh(h[i]);
  }
  Doubles y = matrix_product(sum, arguments[2], kHidden, kOut);
  y.insert(y.end(), h.begin(), h.end());
  return y;
}

Injection constant(std::string value, Tensor gradient) {
  return {std::move(value), [gradient = std::move(gradient)](const Tensor&) { return gradient; }};
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor sum = a;
  for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += b.data[i];
  return sum;
}

TEST_CASE("gradients of parameters, inputs and inner values, two of them injected", "[fast]") {
  const Graph graph = branched_net();
  const Tensor x = test::random_tensor({kBatch, kIn}, 1),
               at_y = test::random_tensor({kBatch, kOut}, 2),
               at_h = test::random_tensor({kBatch, kHidden}, 3);
  const std::vector<Injection> inject{constant("fc2", at_y), constant("h", at_h)};
  const std::vector<std::string> want{"input", "sum"};
  Numerics float32;
  const Gradients found = gradients(graph, {&x, 1}, float32, kStep, want, inject);
  CHECK(found.output.data == forward(graph, x, float32).data);

  const auto parameters = graph.parameters();
  REQUIRE(parameters.size() == 4);  // weight and bias of both
  const std::vector<Doubles> arguments{test::widened(x), test::widened(parameters[0]->value),
                                       test::widened(parameters[2]->value)};
  Tensor weights({kBatch * (kOut + kHidden)});
  std::copy(at_y.data.begin(), at_y.data.end(), weights.data.begin());
  std::copy(at_h.data.begin(), at_h.data.end(), weights.data.begin() + kBatch * kOut);
  // Float32: sums of at most 15 terms below 4 in size, through tanh of 2 ulp; central differences
  // with step 2^-12 leave step^2 / 6 times third derivatives below 100.
  constexpr double kTolerance = 15 * 4 * 4 * 0x1p-24 + 100 * 0x1p-24 / 6;
  const auto compare = [&](std::size_t argument, const Tensor& actual, const char* what) {
    test::require_close(test::central_differences(reference, arguments, argument, weights), actual,
                        kTolerance, what);
  };
  compare(0, found.values[0], "input");
  compare(1, found.parameters[0], "W1");
  compare(2, found.parameters[2], "W2");
  // Along `sum` the output is linear: at_y W2.
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t i = 0; i < kHidden; ++i) {
      double expected = 0;
      for (std::int64_t o = 0; o < kOut; ++o)
        expected += double{at_y.data[b * kOut + o]} * arguments[2][o * kHidden + i];
      CHECK(std::fabs(found.values[1].data[b * kHidden + i] - expected) < kTolerance);
    }
  }
}

TEST_CASE("gradients are linear in what is injected", "[fast]") {
  const Graph graph = branched_net();
  const Tensor x = test::random_tensor({kBatch, kIn}, 1),
               at_y = test::random_tensor({kBatch, kOut}, 2),
               at_h = test::random_tensor({kBatch, kHidden}, 3);
  const std::vector<std::string> want{"input"};
  Numerics float32;
  const auto of = [&](const std::vector<Injection>& inject) {
    return gradients(graph, {&x, 1}, float32, kStep, want, inject);
  };
  const Gradients y = of({constant("fc2", at_y)}), h = of({constant("h", at_h)}),
                  both = of({constant("fc2", at_y), constant("h", at_h)}),
                  twice = of({constant("h", sum_of(at_h, at_h))}),
                  again = of({constant("h", at_h), constant("h", at_h)});
  CHECK(twice.values[0].data == again.values[0].data);
  constexpr double kTolerance = 15 * 4 * 4 * 0x1p-24;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    CHECK(twice.values[0].data[i] == 2 * h.values[0].data[i]);
    CHECK(std::fabs(both.values[0].data[i] - (double{y.values[0].data[i]} + h.values[0].data[i])) <
          kTolerance);
  }
  for (const float g : h.parameters[2].data) CHECK(g == 0);  // fc2 lies behind h
  const Gradients none = of({});
  CHECK(none.values[0].data == std::vector<float>(x.data.size(), 0));
  for (const Tensor& gradient : none.parameters) {
    for (const float g : gradient.data) CHECK(g == 0);
  }
}

TEST_CASE(
    "the loss injected at the output gives the bits of a training step, and no running "
    "statistics",
    "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const Graph graph = test::stateful_net(data);
  Targets targets;
  const Tensor x = data.train_batch({0, 1, 2, 3, 4, 5, 6, 7}, targets);
  Numerics float32;
  Tape tape = forward_training(graph, x, float32, kStep, 9);
  Tensor grad_output;
  cross_entropy(tape.output, targets.classes, &grad_output);
  const std::vector<Tensor> expected =
      backward(graph, std::move(tape), std::move(grad_output), float32);
  std::vector<std::vector<float>> before;
  for (const Parameter* parameter : graph.parameters()) before.push_back(parameter->value.data);
  const std::vector<std::string> want{"input", "relu"};
  const std::vector<Injection> inject{{"fc", [&](const Tensor& logits) {
                                         Tensor gradient;
                                         cross_entropy(logits, targets.classes, &gradient);
                                         return gradient;
                                       }}};
  const Gradients found = gradients(graph, {&x, 1}, float32, kStep, want, inject, 9);
  REQUIRE(found.parameters.size() == expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p) {
    CHECK(found.parameters[p].data == expected[p].data);
    CHECK(graph.parameters()[p]->value.data == before[p]);
  }
  CHECK(found.values[0].shape == x.shape);
  CHECK(found.values[1].shape == Shape{8, 3, 3, 4});
}

TEST_CASE("a value that nobody reads may be injected and wanted", "[fast]") {
  Graph graph = branched_net();
  graph.add("aside", std::make_unique<Pointwise>("tanh"), {1});
  graph.add("last", std::make_unique<Pointwise>("tanh"), {5});
  const Tensor x = test::random_tensor({kBatch, kIn}, 1),
               at = test::random_tensor({kBatch, kHidden}, 2);
  Numerics float32;
  const std::vector<std::string> want{"fc1", "aside"};
  const std::vector<Injection> inject{constant("aside", at)};
  const Gradients found = gradients(graph, {&x, 1}, float32, kStep, want, inject);
  CHECK(found.values[1].data == at.data);
  const Tensor y = forward(graph, x, float32);
  for (std::size_t i = 0; i < at.data.size(); ++i) CHECK(std::isfinite(found.values[0].data[i]));
  CHECK(found.values[0].data != std::vector<float>(at.data.size(), 0));
  CHECK(found.output.data == y.data);
}

TEST_CASE("unknown values and gradients of another shape are refused", "[fast]") {
  const Graph graph = branched_net();
  const Tensor x = test::random_tensor({kBatch, kIn}, 1);
  Numerics float32;
  const std::vector<std::string> want{"inputs"};
  CHECK_THROWS_WITH(gradients(graph, {&x, 1}, float32, kStep, want, {}),
                    Catch::Contains("'input'"));
  const std::vector<Injection> inject{constant("h", Tensor({kBatch, 1}))};
  CHECK_THROWS_WITH(gradients(graph, {&x, 1}, float32, kStep, {}, inject),
                    Catch::Contains("injected at h has shape [3, 1], expected [3, 5]"));
}

}  // namespace

}  // namespace numemu::net::backward_test
