// What operators say that backward reads a tensor for is what backward does with it.
#include "emu/net/op.hpp"

#include <cmath>
#include <functional>
#include <memory>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/embedding.hpp"
#include "emu/net/ops/grid_sample.hpp"
#include "emu/net/ops/gru.hpp"
#include "emu/net/ops/layer_norm.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/log_softmax.hpp"
#include "emu/net/ops/lstm.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/max_pool.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/where.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
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
        read, op_.output_use() ? &output : nullptr, test::random_tensor(output_.shape, 90),
        grad_inputs, grad_parameters, true);
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
}  // namespace numemu::net
