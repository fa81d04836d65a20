// Images sampled at computed places (spatial transformers, Jaderberg et al. 2015).
#pragma once
#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

struct GridSampleOptions {
  enum class Mode : std::uint8_t { linear, nearest } mode = Mode::linear;
  /// What lies outside the image: zeros, its nearest pixel, or the image mirrored.
  enum class Border : std::uint8_t { zeros, border, reflection } border = Border::zeros;
  /// -1 and 1 are the centres of the outer pixels, else their outer edges.
  bool align_corners = false;
};

/// x [n, h, w, c] and grid [n, oh, ow, 2] -> y [n, oh, ow, c], or with one axis more x [n, d, h, w,
/// c] and grid [n, od, oh, ow, 3]: pixel x at the place (x, y[, z]) of the grid in [-1, 1],
/// interpolated between its 4 (8) neighbours in float64 and rounded once, or the nearest pixel,
/// half to even. A place that is no number gives NaN. Gradients are those of PyTorch's grid_sample:
/// sums in float64 over all places, rounded once; a place outside a border that repeats the last
/// pixel has none.
class GridSample final : public Op, public HoldsMemory {
 public:
  explicit GridSample(const GridSampleOptions& options) : options_(options) {}
  std::string_view kind() const override { return "grid_sample"; }
  const GridSampleOptions& options() const { return options_; }
  std::optional<Use> input_use(std::size_t i) const override {
    return i == 0 ? Use::linear : Use::statistic;
  }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
  OperatorMemory memory(std::span<const Shape> inputs) const override;

 private:
  GridSampleOptions options_;
};

}  // namespace numemu::net
