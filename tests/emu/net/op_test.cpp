// What operators say that backward reads a tensor for is what backward does with it; their bits on
// any number of threads.
#include "emu/net/op.hpp"

#include <cmath>
#include <functional>
#include <memory>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/sampling.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::op_test {
namespace {

// An operator after forward: its gradients as functions of the tensors that backward is given.
class Forwarded {
 public:
  Forwarded(Op& op, std::vector<Tensor> inputs) : op_(op), inputs_(std::move(inputs)) {
    std::uint32_t identity = 50;
    for (Parameter& parameter : op.parameters()) {
      if (parameter.trained)
        parameter.value = test::random_tensor(parameter.value.shape, ++identity);
    }
    std::vector<Shape> shapes;
    for (const Tensor& input : inputs_) shapes.push_back(input.shape);
    output_ = Tensor(op.output_shape(shapes));
    op.forward(
        {.layer = "layer", .numerics = numerics_, .phase = Phase::training, .context = &context_},
        pointers(inputs_), output_);
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const Tensor& output() const { return output_; }

  /// Those of the inputs, then those of the parameters, one after another.
  std::vector<float> gradients(const std::vector<Tensor>& inputs, const Tensor& output) {
    std::vector<Tensor> grad_inputs, grad_parameters;
    for (const Tensor& input : inputs) grad_inputs.emplace_back(input.shape);
    for (const Parameter& parameter : op_.parameters())
      grad_parameters.push_back(parameter.trained ? Tensor(parameter.value.shape) : Tensor());
    std::vector<const Tensor*> read = pointers(inputs);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (!op_.input_use(i)) read[i] = nullptr;
    }
    op_.backward(
        {.layer = "layer", .numerics = numerics_, .phase = Phase::training, .kept = &context_},
        {read, op_.output_use() ? &output : nullptr, test::random_tensor(output_.shape, 90),
         grad_inputs, grad_parameters, true});
    std::vector<float> all;
    for (const std::vector<Tensor>* tensors : {&grad_inputs, &grad_parameters}) {
      for (const Tensor& x : *tensors) all.insert(all.end(), x.data.begin(), x.data.end());
    }
    return all;
  }

 private:
  static std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> all;
    for (const Tensor& x : tensors) all.push_back(&x);
    return all;
  }

  Op& op_;
  Numerics numerics_;
  std::vector<Tensor> inputs_;
  Tensor output_, context_;
};

// Gradients, given a change of the tensor under test.
using Gradients =
    std::function<std::vector<float>(const std::function<float(float, std::size_t)>&)>;

void check_use(const Gradients& gradients, Use use, float step) {
  const std::vector<float> exact = gradients([](float x, std::size_t) { return x; });
  if (use == Use::sign) {
    CHECK(exact == gradients([](float x, std::size_t) { return float(x > 0) - float(x < 0); }));
    return;
  }
  if (use == Use::index) return;
  // Each element differently far: powers of two in turn.
  const auto moved = [&](float by) {
    return gradients([=](float x, std::size_t i) { return x + std::ldexp(by, -int(i % 3)); });
  };
  const std::vector<float> above = moved(step), below = moved(-step);
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    worst = std::max(worst, std::fabs(double{above[i]} + below[i] - 2 * double{exact[i]}));
  // The second difference of what is linear is a few roundings of numbers below 16.
  constexpr double kRoundings = 1e-5;
  if (use == Use::linear) {
    CHECK(worst <= kRoundings);
  } else {
    CHECK(worst > 10 * kRoundings);
  }
}

void check_uses(Op& op, std::vector<Tensor> inputs, float step = 0.125f) {
  INFO(op.kind());
  Forwarded run(op, std::move(inputs));
  for (std::size_t k = 0; k < run.inputs().size(); ++k) {
    if (!op.input_use(k)) continue;
    INFO("input " << k);
    check_use(
        [&](const auto& change) {
          std::vector<Tensor> changed = run.inputs();
          for (std::size_t i = 0; i < changed[k].data.size(); ++i)
            changed[k].data[i] = change(changed[k].data[i], i);
          return run.gradients(changed, run.output());
        },
        *op.input_use(k), step);
  }
  if (!op.output_use()) return;
  check_use(
      [&](const auto& change) {
        Tensor changed = run.output();
        for (std::size_t i = 0; i < changed.data.size(); ++i)
          changed.data[i] = change(changed.data[i], i);
        return run.gradients(run.inputs(), changed);
      },
      *op.output_use(), step);
}

// Numbers of the middle half of [low, high].
Tensor between(double low, double high, std::uint32_t identity) {
  Tensor x = test::random_tensor({2, 9}, identity);
  for (float& v : x.data) v = static_cast<float>((low + high) / 2 + v * (high - low) / 4);
  return x;
}

TEST_CASE("elementwise operators say what their derivatives read", "[fast]") {
  for (const PointwiseRule& rule : pointwise_rules()) {
    Pointwise op(rule.kind);
    check_uses(op, {between(rule.low, rule.high, 1)},
               static_cast<float>((rule.high - rule.low) / 16));
  }
  for (const BinaryRule& rule : binary_rules()) {
    Binary op(rule.kind);
    check_uses(op, {between(rule.low, rule.high, 1), between(rule.low, rule.high, 2)},
               static_cast<float>((rule.high - rule.low) / 16));
  }
}

TEST_CASE("other operators say what backward reads", "[fast]") {
  const auto random = [](Shape shape, std::uint32_t identity = 3) {
    return test::random_tensor(std::move(shape), identity);
  };
  Linear linear(3, 4);
  check_uses(linear, {random({2, 3})});
  Conv2d conv({.in_channels = 2, .out_channels = 3, .kernel_height = 3, .kernel_width = 3});
  check_uses(conv, {random({1, 4, 4, 2})});
  MatMul matmul;
  check_uses(matmul, {random({2, 3}), random({3, 4}, 4)});
  Lstm lstm(3, 2);
  check_uses(lstm, {random({2, 3, 3})});
  Lstm continued({.in = 3, .hidden = 2, .initial = true}, true);
  check_uses(continued, {random({2, 3, 3}), random({2, 2}, 4), random({2, 2}, 5)});
  for (const bool reset_after : {false, true}) {
    Gru gru({.in = 3, .hidden = 2, .initial = true}, reset_after);
    check_uses(gru, {random({2, 3, 3}), random({2, 2}, 4)});
  }
  GridSample sample({});
  check_uses(sample, {random({1, 4, 4, 2}), random({1, 2, 2, 2}, 4)});
  LayerNorm norm(5);
  check_uses(norm, {random({2, 5})});
  Softmax softmax;
  check_uses(softmax, {random({2, 5})});
  LogSoftmax log_softmax;
  check_uses(log_softmax, {random({2, 5})});
  CHECK(Embedding(3, 2).input_use(0) == Use::index);
  CHECK(MaxPool(2).input_use(0) == Use::index);
  CHECK(Where().input_use(0) == Use::index);
  CHECK_FALSE(Where().input_use(1).has_value());
}

/// Beside those of the tables and of norms, whose tests go through all their kinds and rules.
TEST_CASE("operators have the same bits on any number of threads", "[fast]") {
  const auto random = [](Shape shape, std::uint32_t identity = 1) {
    return test::random_tensor(std::move(shape), identity);
  };
  const auto check = [&](Op&& op, const std::vector<Tensor>& inputs) {
    INFO(op.kind());
    std::uint32_t identity = 10;
    for (Parameter& p : op.parameters()) {
      if (p.trained) p.value = random(p.value.shape, ++identity);
    }
    test::check_threads(op, inputs);
  };
  check(Transpose({2, 0, 3, 1}), {random({4, 33, 7, 20})});
  check(Concat(2), {random({8, 30, 64}), random({8, 30, 40}, 2)});
  check(Slice({{.axis = 1, .start = 39, .end = 2, .step = -1}}), {random({8, 40, 64})});
  check(Pad({0, 3, 1}, {0, 0, 2}, 1), {random({8, 30, 64})});
  check(Gather(1, {4, 0, 0, 3, 0, -1}), {random({40, 5, 64})});
  Tensor numbers({20, 30});
  for (std::int64_t i = 0; i < numbers.size(); ++i)
    numbers.data[i] = static_cast<float>(i * i % 50);
  check(Embedding(50, 33), {numbers});
  const PoolOptions windows{.kernel_height = 3,
                            .kernel_width = 3,
                            .stride_height = 2,
                            .stride_width = 1,
                            .pad_top = 1,
                            .pad_left = 1,
                            .ceil_mode = true};
  const Tensor images = random({8, 20, 20, 16});
  check(MaxPool(2), {images});
  check(MaxPool(windows), {images});
  check(AveragePool(windows), {images});
  check(GlobalAveragePool(), {images});
  check(GridSample({.border = GridSampleOptions::Border::reflection}),
        {random({4, 8, 16, 16, 5}), random({4, 4, 16, 16, 3}, 2)});
  for (const std::int64_t axis : {0, 1}) check(CumulativeSum({.axis = axis}), {random({200, 100})});
  check(GroupNorm(8, 4), {random({10, 8, 200})});
  const Tensor q = random({3, 40, 32}), k = random({3, 48, 32}, 2);
  check(MatMul({.heads = 4, .transpose_b = true, .alpha = 0.3f}), {q, k});
  check(MatMul({.heads = 4, .alpha = 0.7f}), {random({3, 4, 40, 48}, 3), k});
  for (const std::int64_t groups : {1, 8}) {
    check(Conv2d({.in_channels = 8,
                  .out_channels = 16,
                  .kernel_height = 3,
                  .kernel_width = 3,
                  .stride = 2,
                  .pad = 1,
                  .groups = groups}),
          {random({4, 24, 24, 8})});
  }
  check(Lstm(20, 40), {random({64, 2, 20})});
  for (const bool after : {true, false})
    check(Gru({.in = 20, .hidden = 40}, after), {random({64, 2, 20})});
}

// The error of batch_norm.hpp, of independent errors +-e: their mean over all sign patterns of one
// channel is exact.
TEST_CASE("batch_norm's gradients under a copy of its input are off by one term of n", "[fast]") {
  constexpr int kRows = 8;
  constexpr float kError = 0.25f;
  BatchNorm op({.channels = 1});
  Forwarded run(op, {test::random_tensor({kRows, 1}, 5)});
  const std::vector<float> exact = run.gradients(run.inputs(), run.output());
  std::vector<double> mean(exact.size());
  for (int pattern = 0; pattern < 1 << kRows; ++pattern) {
    std::vector<Tensor> copy = run.inputs();
    for (int r = 0; r < kRows; ++r) copy[0].data[r] += pattern >> r & 1 ? kError : -kError;
    const std::vector<float> gradients = run.gradients(copy, run.output());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradients[i] / double{1 << kRows};
  }
  double square = 0, sum = 0;
  for (const float x : run.inputs()[0].data) sum += x / double{kRows};
  for (const float x : run.inputs()[0].data) square += (x - sum) * (x - sum) / kRows;
  const double inverse = 1 / std::sqrt(square + op.options().epsilon);
  const Tensor g = test::random_tensor({kRows, 1}, 90);
  const double factor = op.parameters()[0].value.data[0] * inverse * inverse * inverse *
                        double{kError} * kError / kRows;
  constexpr double kRoundings = 1e-5;
  for (int r = 0; r < kRows; ++r)
    CHECK(std::fabs(mean[r] - exact[r] + factor * g.data[r]) < kRoundings);
  CHECK(std::fabs(mean[kRows] - exact[kRows]) < kRoundings);  // of the weight: linear
}

}  // namespace
}  // namespace numemu::net::op_test
