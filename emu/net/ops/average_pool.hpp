// The mean of each window of an image.
#pragma once
#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"
#include "emu/net/ops/pool_options.hpp"

namespace numemu::net {

/// y [n, o.., c] = mean over the windows of x [n, i.., c] along one to three axes, summed in
/// float64 in row-major order and rounded once. A gradient is the float64 sum of gradient / divisor
/// over its windows in row-major order, rounded once.
class AveragePool final : public Op, public HoldsMemory {
 public:
  /// Throws Error when an option is out of range.
  explicit AveragePool(const PoolOptions&);
  std::string_view kind() const override { return "average_pool"; }
  const PoolOptions& options() const { return options_; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
  OperatorMemory memory(std::span<const Shape> inputs) const override;

 private:
  PoolOptions options_;
};

}  // namespace numemu::net
