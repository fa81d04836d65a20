// Elementwise operators of one input, one row of a table each: function, derivative, what backward
// reads, the operator of ONNX.
#pragma once
#include <array>

#include "emu/net/op.hpp"

namespace numemu::net {

/// Up to two numbers of an operator (a slope; two bounds).
using PointwiseNumbers = std::array<float, 2>;

/// One number of an operator, with its value where none is given.
struct PointwiseParameter {
  const char* name = nullptr;
  const char* onnx = nullptr;  ///< the attribute, or the input of that place, in ONNX
  float value = 0;
};

/// y [shape] = f(x [shape]), and dx = g f'(x). Unless f is a float32 operation, both are computed
/// in float64 and rounded once. Every NaN is the neutral one.
struct PointwiseRule {
  /// What the derivative is computed from.
  enum class Reads : std::uint8_t { nothing, x, y };

  std::string_view kind;
  std::string_view onnx;  ///< the operator of ONNX that is the same function; empty: none
  std::string_view formula;
  Reads reads;
  Use use;           ///< what it reads x or y for
  double low, high;  ///< where f has its derivatives, but for kinks: tests draw x from here
  void (*values)(std::int64_t n, const float* x, float* y, PointwiseNumbers) = nullptr;
  /// `seen` is x or y, null where the derivative reads nothing.
  void (*gradients)(std::int64_t n, const float* seen, const float* g, float* dx,
                    PointwiseNumbers) = nullptr;
  std::array<PointwiseParameter, 2> parameters{};
  bool (*accepts)(PointwiseNumbers) = nullptr;  ///< null: any numbers
  const char* expected = nullptr;               ///< what accepts() expects
  OnCodes on_codes = OnCodes::never;
};

std::span<const PointwiseRule> pointwise_rules();

/// An operator of the table.
class Pointwise final : public Op {
 public:
  /// The first has the table's numbers. Each throws Error for an unknown kind, with the nearest
  /// known one, and for numbers that the rule does not accept.
  explicit Pointwise(std::string_view kind);
  Pointwise(std::string_view kind, PointwiseNumbers numbers);
  Pointwise(const PointwiseRule& rule, PointwiseNumbers numbers);
  const PointwiseRule& rule() const { return rule_; }
  PointwiseNumbers numbers() const { return numbers_; }
  /// Throws Error unless there is one input.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  const PointwiseRule& rule_;
  PointwiseNumbers numbers_;
};

}  // namespace numemu::net
