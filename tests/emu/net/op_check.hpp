// Checks an operator against an independent float64 forward: its result, and its gradients by
// central differences.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/op.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::net::test {

using Doubles = std::vector<double>;
/// The result of an operator given its inputs, then its parameters.
using Reference = std::function<Doubles(const std::vector<Doubles>&)>;

/// Multiples of 2^-16 in [-1, 1), a function of `identity` alone.
inline Tensor random_tensor(Shape shape, std::uint32_t identity) {
  Tensor tensor(std::move(shape));
  const RandomSource source{17, Stream::vectors, identity, 0};
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    tensor.data[i] =
        static_cast<float>((static_cast<int>(source.bits(i, 16)) * 2 - 65536) * 0x1p-16);
  }
  return tensor;
}

inline Doubles widened(const Tensor& tensor) { return {tensor.data.begin(), tensor.data.end()}; }

inline void require_close(const Doubles& expected, const Tensor& actual, double tolerance,
                          const std::string& what) {
  REQUIRE(expected.size() == actual.data.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(expected[i] - actual.data[i]);
    if (!(error <= worst)) worst = error;
  }
  INFO(what);
  CHECK(worst <= tolerance);
}

/// Difference quotients of sum(weights * reference) along every element of argument `index`.
inline Doubles central_differences(const Reference& reference, std::vector<Doubles> arguments,
                                   std::size_t index, const Tensor& weights) {
  constexpr double kStep = 0x1p-12;
  const auto loss = [&] {
    const Doubles y = reference(arguments);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights.data[i];
    return sum;
  };
  Doubles gradient;
  for (double& x : arguments[index]) {
    const double centre = x;
    x = centre + kStep;
    const double above = loss();
    x = centre - kStep;
    const double below = loss();
    x = centre;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

/// Fills the parameters, runs forward and backward under `numerics`, compares both. The reference
/// must be linear in every single argument element within 2^-12 of it, so that central differences
/// are exact. `tolerance` bounds the float32 error.
inline void check_op(Op& op, const std::vector<Tensor>& inputs, const Reference& reference,
                     double tolerance) {
  Numerics numerics;
  std::uint32_t identity = 1000;
  for (Parameter& parameter : op.parameters())
    parameter.value = random_tensor(parameter.value.shape, ++identity);
  std::vector<Shape> shapes;
  std::vector<const Tensor*> pointers;
  std::vector<Doubles> arguments;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    pointers.push_back(&input);
    arguments.push_back(widened(input));
  }
  for (const Parameter& parameter : op.parameters()) arguments.push_back(widened(parameter.value));

  const OpCall call{"layer", numerics, Phase::training};
  Tensor output(op.output_shape(shapes));
  op.forward(call, pointers, output);
  require_close(reference(arguments), output, tolerance, "forward");

  const Tensor grad_output = random_tensor(output.shape, 2000);
  std::vector<Tensor> grad_inputs, grad_parameters;
  for (const Shape& shape : shapes) grad_inputs.emplace_back(shape);
  for (const Parameter& parameter : op.parameters())
    grad_parameters.emplace_back(parameter.value.shape);
  const std::vector<const Tensor*> hidden(inputs.size(), nullptr);
  op.backward(call, op.needs_inputs() ? pointers : hidden, op.needs_output() ? &output : nullptr,
              grad_output, grad_inputs, grad_parameters, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_close(central_differences(reference, arguments, i, grad_output), grad_inputs[i],
                  tolerance, "gradient of input " + std::to_string(i));
  }
  for (std::size_t p = 0; p < grad_parameters.size(); ++p) {
    require_close(central_differences(reference, arguments, inputs.size() + p, grad_output),
                  grad_parameters[p], tolerance, "gradient of " + op.parameters()[p].name);
  }
}

/// A bound on the float32 error of a sum of k products of numbers in [-1, 1]: each of k roundings
/// is at most half an ulp of a partial sum of at most k (+1 for the bias).
inline double dot_tolerance(std::int64_t k) {
  const double n = static_cast<double>(k) + 1;
  return n * n * 0x1p-24;
}

}  // namespace numemu::net::test
