// Convolution over NHWC images with OHWI weights, as three products whose operands are read through
// gather tables.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

struct Conv2dOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1;
  std::int64_t pad = 0;  ///< zeros on each side, smaller than the kernel
  bool bias = true;
};

/// y [n, oh, ow, out] = x [n, h, w, in] * weight [out, kh, kw, in] + bias [out],
/// oh = (h + 2 pad - kh) / stride + 1. Products reduce over (kh, kw, in) with in fastest; the bias
/// is added afterwards.
class Conv2d final : public Op {
 public:
  /// Throws Error when an option is out of range.
  explicit Conv2d(const Conv2dOptions&);
  std::string_view kind() const override { return "conv2d"; }
  ResultKind result() const override { return ResultKind::product; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  const Conv2dOptions& options() const { return options_; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  Conv2dOptions options_;
  std::vector<Parameter> parameters_;  // weight, then bias if there is one
};

}  // namespace numemu::net
