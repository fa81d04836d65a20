// Elements along an axis, selected by constant indices.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// [.., n, ..] -> [.., index shape.., ..]: position `i` of the new axes is element indices[i] of
/// `axis`. Negative axes and indices count from the end. The gradient of an element chosen twice is
/// the float32 sum in the order of the indices. A view: its elements already passed the moments.
class Gather final : public Op {
 public:
  /// One new axis.
  Gather(std::int64_t axis, std::vector<std::int64_t> indices);
  /// `index_shape` {} takes one index and drops the axis. Throws Error unless it has as many
  /// elements as there are indices.
  Gather(std::int64_t axis, std::vector<std::int64_t> indices, Shape index_shape);
  std::string_view kind() const override { return "gather"; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t axis_;
  std::vector<std::int64_t> indices_;
  Shape index_shape_;
};

}  // namespace numemu::net
