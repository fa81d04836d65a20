// Base of elementwise operators of one input: everything but the two loops.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// y [shape] = f(x [shape]), and dx = g f'(x). Unless f is a float32 operation, both are computed
/// in float64 and rounded once. Every NaN is the neutral one.
class Pointwise : public Op {
 public:
  bool needs_inputs() const final { return sees_ == Sees::input; }
  bool needs_output() const final { return sees_ == Sees::output; }
  bool in_place() const final { return true; }
  /// Throws Error unless there is one input.
  Shape output_shape(std::span<const Shape> inputs) const final;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const final;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const final;

 protected:
  /// What the derivative is computed from.
  enum class Sees : std::uint8_t { nothing, input, output };
  explicit Pointwise(Sees sees) : sees_(sees) {}

  /// y[i] = f(x[i]) for i in [0, n).
  virtual void values(std::int64_t n, const float* x, float* y) const = 0;
  /// dx[i] = g[i] times the derivative at `seen` (null where it sees nothing).
  virtual void gradients(std::int64_t n, const float* seen, const float* g, float* dx) const = 0;

 private:
  Sees sees_;
};

}  // namespace numemu::net
