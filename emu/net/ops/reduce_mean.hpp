// The mean over some axes.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y = mean of x over `axes`: pairwise in float64, rounded once. With `keep` these axes stay with
/// extent 1, else they go.
class ReduceMean final : public Op {
 public:
  /// Negative axes count from the end; none at all means every axis.
  explicit ReduceMean(std::vector<std::int64_t> axes, bool keep = true);
  std::string_view kind() const override { return "reduce_mean"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  /// Throws Error when the input lacks an axis, has one twice, or has no elements along one.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<bool> reduced(const Shape& x) const;

  std::vector<std::int64_t> axes_;
  bool keep_;
};

}  // namespace numemu::net
