// Elementwise operators of two inputs under broadcasting, one row of a table each.
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
};

std::span<const BinaryRule> binary_rules();

/// An operator of the table. The gradient of a broadcast input is summed over the repeated axes:
/// pairwise in float64, rounded once.
class Binary final : public Op {
 public:
  /// Throws Error with the nearest known kind.
  explicit Binary(std::string_view kind);
  explicit Binary(const BinaryRule& rule) : rule_(rule) {}
  std::string_view kind() const override { return rule_.kind; }
  const BinaryRule& rule() const { return rule_; }
  std::optional<Use> input_use(std::size_t i) const override { return rule_.uses.at(i); }
  bool in_place() const override { return true; }
  /// Throws Error unless there are two inputs whose shapes fit.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  const BinaryRule& rule_;
};

}  // namespace numemu::net
