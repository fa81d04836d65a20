// Dropout: elements of a training step set to 0 at random.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

/// Training: each element is 0 with `probability`, else x / (1 - probability) in float32. Element i
/// is kept where RandomSource{seed, Stream::dropout, tensor_word("LAYER/mask/STEP/dropout"),
/// 0}.uniform(i) >= probability; for worker R > 0 STEP is "STEP.R". Inference: y = x.
class Dropout final : public Op {
 public:
  /// Throws Error unless 0 <= probability < 1.
  explicit Dropout(double probability);
  std::string_view kind() const override { return "dropout"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  double probability() const { return probability_; }
  /// Throws Error unless there is one input.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  /// y = x times the mask of the call's layer, seed and step.
  void apply(const OpCall&, const Tensor& x, Tensor& y) const;

  double probability_;
};

}  // namespace numemu::net
