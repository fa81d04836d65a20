// Convolution over images with channels last, as three products whose operands are read through
// gather tables.
#pragma once
#include <array>
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// The windows of a convolution along one axis.
struct ConvAxis {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;  ///< input pixels between neighbouring taps
  std::int64_t pad_before = 0,
               pad_after = 0;  ///< zeros around the input; negative: pixels left out
  /// Distance of neighbouring input pixels, with zeros between them: the stride of a transposed
  /// convolution.
  std::int64_t spread = 1;

  /// Distance between the first and the last tap.
  std::int64_t reach() const { return dilation * (kernel - 1); }
};

struct ConvOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  std::vector<ConvAxis> axes;  ///< one to three
  bool bias = true;
  std::int64_t groups = 1;  ///< output channels of a group see the input channels of that group
};

/// Two axes in short. Where an axis has its own spelling (`stride_height`) that one wins over the
/// common one (`stride`).
struct Conv2dOptions {
  std::int64_t in_channels = 1, out_channels = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1;  ///< of both axes
  std::int64_t pad = 0;     ///< zeros on each side
  bool bias = true;
  std::int64_t groups = 1;
  std::int64_t dilation = 1;                                                  ///< of both axes
  std::int64_t stride_height = 0, stride_width = 0;                           ///< 0: `stride`
  std::int64_t pad_top = -1, pad_left = -1, pad_bottom = -1, pad_right = -1;  ///< -1: `pad`
  std::int64_t dilation_height = 0, dilation_width = 0;                       ///< 0: `dilation`
};

/// y [n, o.., out] = x [n, i.., in] * weight [out, k.., in / groups] + bias [out] over one to three
/// axes, o = ((i - 1) spread + 1 + pad_before + pad_after - dilation (k - 1) - 1) / stride + 1.
/// Products reduce over (k.., in / groups) with in fastest; each group is one matrix of their
/// stacks. The bias is added afterwards. A transposed convolution of stride s, pads p and q is one
/// with spread s, stride 1, pads reach - p and reach - q, and its taps in opposite order.
class Conv : public Op {
 public:
  /// With weights of zero. Throws Error when an option is out of range.
  explicit Conv(const ConvOptions&);
  /// With these weights; throws Error also where they have another shape.
  Conv(const ConvOptions&, Tensor weight);
  const ConvOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  OperatorMemory memory(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  ConvOptions options_;
  std::array<ConvAxis, 3> axes_;  // depth, height, width; those that are missing come first
};

/// Over two axes.
class Conv2d final : public Conv {
 public:
  /// Throws Error when an option is out of range.
  explicit Conv2d(const Conv2dOptions&);
};

}  // namespace numemu::net
