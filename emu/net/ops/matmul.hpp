// Stacked products of two activations: plain matrices, and the two products of attention.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

struct MatMulOptions {
  /// 0: numpy's matrices in the last two axes. Else the heads of attention, which lie side by side
  /// in the rows of queries, keys and values.
  std::int64_t heads = 0;
  bool transpose_b = false;  ///< the right operand is stored [n, k]
  float alpha = 1;           ///< a factor on the result, and on both gradients, in float32
};

/// Without heads: [.., m, k] x [.., k, n] -> [.., m, n] (right operand [.., n, k] where
/// `transpose_b`). The leading axes are equal, or one operand is a single matrix that serves all
/// (its leading axes absent or all 1); other broadcasts are refused.
/// With heads and `transpose_b`, scores of queries and keys: [b, t, heads d] x [b, s, heads d] ->
/// [b, heads, t, s]. With heads alone, the values they choose: [b, heads, t, s] x [b, s, heads d]
/// -> [b, t, heads d].
/// fprop; dgrad for the left gradient; wgrad for the right one (A output gradients, B the left
/// operand, so of a right operand [k, n] the transposed gradient is multiplied and then turned).
/// Each matrix is one product of the stack. A left matrix that serves all has one dgrad over all
/// matrices and columns.
class MatMul final : public Op {
 public:
  /// Throws Error when heads are negative or alpha is not finite.
  explicit MatMul(const MatMulOptions& = {});
  const MatMulOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  MatMulOptions options_;
};

}  // namespace numemu::net
