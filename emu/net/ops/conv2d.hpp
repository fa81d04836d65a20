// Convolution over NHWC images with OHWI weights, as three products whose operands are read through
// gather tables.
#pragma once
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// Where an axis has its own spelling (`stride_height`) that one wins over the common one
/// (`stride`).
struct Conv2dOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1;  ///< of both axes
  std::int64_t pad = 0;     ///< zeros on each side
  bool bias = true;
  std::int64_t groups = 1;    ///< output channels of a group see the input channels of that group
  std::int64_t dilation = 1;  ///< input pixels between neighbouring taps, of both axes
  std::int64_t stride_height = 0, stride_width = 0;                           ///< 0: `stride`
  std::int64_t pad_top = -1, pad_left = -1, pad_bottom = -1, pad_right = -1;  ///< -1: `pad`
  std::int64_t dilation_height = 0, dilation_width = 0;                       ///< 0: `dilation`
};

/// y [n, oh, ow, out] = x [n, h, w, in] * weight [out, kh, kw, in / groups] + bias [out],
/// oh = (h + pad_top + pad_bottom - dilation_height (kh - 1) - 1) / stride_height + 1, ow alike.
/// Products reduce over (kh, kw, in / groups) with in fastest; each group is one matrix of their
/// stacks. The bias is added afterwards.
class Conv2d final : public Op, public HoldsMemory {
 public:
  /// Throws Error when an option is out of range.
  explicit Conv2d(const Conv2dOptions&);
  std::string_view kind() const override { return "conv2d"; }
  ResultKind result() const override { return ResultKind::product; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::vector<OpProduct> products() const override { return {{"", 0}}; }
  /// With every axis spelt out; the common spellings are as given.
  const Conv2dOptions& options() const { return options_; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  OperatorMemory memory(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  Conv2dOptions options_;
  std::vector<Parameter> parameters_;  // weight, then bias if there is one
};

}  // namespace numemu::net
