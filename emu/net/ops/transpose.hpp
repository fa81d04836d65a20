// The axes of a tensor in another order.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// Axis i of the result is axis permutation[i] of the input; the batch is axis 0. A view: its
/// elements already passed the moments.
class Transpose final : public Op {
 public:
  /// Throws Error unless it is a permutation of 0 to n - 1.
  explicit Transpose(std::vector<std::int64_t> permutation);
  std::string_view kind() const override { return "transpose"; }
  const std::vector<std::int64_t>& permutation() const { return permutation_; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<std::int64_t> permutation_;
};

}  // namespace numemu::net
