// Checks an operator against an independent float64 forward: its result, and its gradients by
// central differences.
#pragma once
#include <bit>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// A NaN with a sign and a payload, which no operator makes itself.
inline const float kAnyNan = std::bit_cast<float>(0xffc12345u);

using Doubles = std::vector<double>;
/// The result of an operator given its inputs, then its parameters.
using Reference = std::function<Doubles(const std::vector<Doubles>&)>;

/// Multiples of 2^-16 in [-1, 1), a function of `identity` alone.
Tensor random_tensor(Shape shape, std::uint32_t identity);

Doubles widened(const Tensor& tensor);

void require_close(const Doubles& expected, const Tensor& actual, double tolerance,
                   const std::string& what);

/// How far the reference is from linear along every single argument element: `third` bounds the
/// third derivative of sum(weights * reference), |weights| <= 1, within `step` of it. Difference
/// quotients are then off by at most third step^2 / 6 (and by float64 roundings of the sum, divided
/// by the step, which the tolerances cover).
struct Smoothness {
  double third = 0;
  double step = 0x1p-12;
  double truncation() const { return third * step * step / 6; }
};

/// "x (sign)", as docs/networks.md writes what backward reads and what for; empty without a use.
std::string reading_text(std::string_view name, std::optional<Use> use);

/// Difference quotients of sum(weights * reference) along every element of argument `index`.
Doubles central_differences(const Reference& reference, std::vector<Doubles> arguments,
                            std::size_t index, const Tensor& weights, double step = 0x1p-12);

/// What a training step gives.
struct OpResult {
  Tensor output, grad_output;  ///< the latter is what went in: random
  std::vector<Tensor> grad_inputs, grad_parameters;
  std::vector<BufferUpdate> buffers;
};

/// Runs forward and backward in training; what the op says it does not need is hidden from it.
OpResult run_op(const Op& op, const std::vector<Tensor>& inputs, Numerics& numerics);

/// Fills the parameters, runs forward and backward, compares both with the reference. By default
/// the reference must be linear in every single argument element within 2^-12 of it, so that
/// central differences are exact. `tolerance` bounds the float32 error.
void check_op(Op& op, const std::vector<Tensor>& inputs, const Reference& reference,
              double tolerance, const Smoothness& smoothness = {}, Numerics* numerics = nullptr);

/// check_op for an operator that applies `f` to every element of one input.
void check_pointwise(Op& op, const Tensor& x, double (*f)(double), double tolerance, double third);

/// The bit patterns of the elements.
std::vector<std::uint32_t> bits(const Tensor& tensor);

/// The result for a one-axis input in inference.
Tensor forward_of(const Op& op, const std::vector<float>& values);

/// Forward, backward and running statistics must have the same bits on 1, 2 and 3 threads; inputs
/// should exceed kSerialElements.
void check_threads(const Op& op, const std::vector<Tensor>& inputs, Numerics* numerics = nullptr);

/// A bound on the float32 error of a sum of k products of numbers in [-1, 1]: each of k roundings
/// is at most half an ulp of a partial sum of at most k (+1 for the bias).
double dot_tolerance(std::int64_t k);

}  // namespace numemu::net::test
