// The largest value of each window of an image.
#pragma once
#include "emu/net/op.hpp"
#include "emu/net/ops/pool_options.hpp"

namespace numemu::net {

/// y [n, o.., c] = max over the windows of x [n, i.., c] along one to three axes; a NaN wins, the
/// border never does. The gradient goes to the first of equal maxima in row-major order. A `vector`
/// result though nothing is rounded: a smaller tensor with a largest value of its own, and a
/// gradient that sums where windows overlap.
class MaxPool final : public Op {
 public:
  /// Throws Error when an option is out of range.
  explicit MaxPool(const PoolOptions&);
  /// size x size windows without a border. `stride` 0 means `size`.
  explicit MaxPool(std::int64_t size, std::int64_t stride = 0);
  std::string_view kind() const override { return "max_pool"; }
  const PoolOptions& options() const { return options_; }
  std::optional<Use> input_use(std::size_t) const override { return Use::index; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  PoolOptions options_;
};

}  // namespace numemu::net
