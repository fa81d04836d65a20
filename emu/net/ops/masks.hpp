// Elements replaced by a constant: those of later tokens, those that chance picks in training.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// x [..., T, T] with every entry above the diagonal of its last two axes replaced by -inf; the
/// gradient passes on and below the diagonal.
class CausalMask final : public Op {
 public:
  CausalMask() : Op({.kind = "causal_mask", .inputs = kNoInput}) {}
  /// Throws Error unless the last two axes are equal.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
};

/// Training: each element is 0 with `probability`, else x / (1 - probability) in float32. Element i
/// is kept where RandomSource{seed, Stream::dropout, tensor_word("LAYER/mask/STEP/dropout"),
/// 0}.uniform(i) >= probability; for part R > 0 STEP is "STEP.R". Inference: y = x.
class Dropout final : public Op {
 public:
  /// Throws Error unless 0 <= probability < 1.
  explicit Dropout(double probability);
  double probability() const { return probability_; }
  /// Throws Error unless there is one input.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  /// y = x times the mask of the call's layer, seed and step.
  void apply(const OpCall&, const Tensor& x, Tensor& y) const;

  double probability_;
};

}  // namespace numemu::net
