// Sums of all elements up to each one.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

struct CumulativeSumOptions {
  std::int64_t axis = -1;
  bool exclusive = false;  ///< without the element itself
  bool reverse = false;    ///< from the last element on
};

/// y[i] = x[0] + .. + x[i] along one axis: added in order in float64, each rounded once.
class CumulativeSum final : public Op {
 public:
  explicit CumulativeSum(const CumulativeSumOptions& options) : options_(options) {}
  std::string_view kind() const override { return "cumulative_sum"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  /// Throws Error unless there is one input with that axis.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  CumulativeSumOptions options_;
};

}  // namespace numemu::net
