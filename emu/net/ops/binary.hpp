// Elementwise operators of two inputs under broadcasting, one row of a table each; of three, the
// choice between two tensors and the fused multiply-add.
#pragma once
#include <array>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y = f(a, b), and da and db are g times the derivatives: float32 operations, or a float64 formula
/// rounded once. Every NaN is the neutral one.
struct BinaryRule {
  std::string_view kind;
  std::string_view onnx;  ///< the operator of ONNX that is the same function; empty: none
  std::string_view formula;
  double low, high;  ///< where f is smooth in both: tests draw a and b from here
  void (*values)(std::int64_t n, const float* a, const float* b, float* y) = nullptr;
  /// a and b are null where the derivatives do not read them.
  void (*gradients)(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                    float* db) = nullptr;
  std::array<std::optional<Use>, 2> uses{};  ///< what the derivatives read a and b for
  OnCodes on_codes = OnCodes::never;
};

std::span<const BinaryRule> binary_rules();

/// An operator of the table. The gradient of a broadcast input is summed over the repeated axes:
/// pairwise in float64, rounded once.
class Binary final : public Op {
 public:
  /// Throws Error with the nearest known kind.
  explicit Binary(std::string_view kind);
  explicit Binary(const BinaryRule& rule)
      : Op({.kind = rule.kind,
            .inputs = {rule.uses[0], rule.uses[1]},
            .in_place = true,
            .on_codes = rule.on_codes}),
        rule_(rule) {}
  const BinaryRule& rule() const { return rule_; }
  /// Throws Error unless there are two inputs whose shapes fit.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  const BinaryRule& rule_;
};

/// y = a b + c, rounded once (a fused multiply-add), for inputs (a, b, c) broadcast as in numpy.
class MultiplyAdd final : public Op {
 public:
  MultiplyAdd() : Op({.kind = "multiply_add", .inputs = {Use::linear, Use::linear}}) {}
  /// Throws Error unless there are three inputs whose shapes fit.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
};

/// y = condition != 0 ? a : b for inputs (condition, a, b) broadcast as in numpy; a NaN condition
/// counts as true. The condition's gradient is 0.
class Where final : public Op {
 public:
  Where() : Op({.kind = "where", .inputs = {Use::index}}) {}
  /// Throws Error unless there are three inputs whose shapes fit.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
};

}  // namespace numemu::net
