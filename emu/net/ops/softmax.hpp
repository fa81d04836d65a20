// Softmax over one axis, and its logarithm.
#pragma once

#include "emu/net/op.hpp"

namespace numemu::net {

/// y = e^(x - max) / sum e^(x - max) along `axis`, in float64, rounded once. Entries -inf give 0; a
/// line of nothing but -inf, or with NaN or +inf, gives NaN. dx = y (g - sum g y).
class Softmax final : public Op {
 public:
  /// A negative axis counts from the end.
  explicit Softmax(std::int64_t axis = -1)
      : Op({.kind = "softmax", .inputs = kNoInput, .output = Use::statistic}), axis_(axis) {}
  std::int64_t axis() const { return axis_; }
  /// Throws Error when the input has no such axis, or no elements along it.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t axis_;
};

/// y = x - max - ln sum e^(x - max) along `axis`, in float64, rounded once. Entries -inf stay; a
/// line of nothing but -inf, or with NaN or +inf, gives NaN. dx = g - e^y sum g.
class LogSoftmax final : public Op {
 public:
  /// A negative axis counts from the end.
  explicit LogSoftmax(std::int64_t axis = -1)
      : Op({.kind = "log_softmax", .inputs = kNoInput, .output = Use::statistic}), axis_(axis) {}
  /// Throws Error when the input has no such axis, or no elements along it.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t axis_;
};

}  // namespace numemu::net
