// Images at other places: weighted sums of neighbours along axes, and at places that the network
// computes.
#pragma once
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// Result element j of an axis is the sum of weights[j * taps + t] times element
/// places[j * taps + t].
struct Resampling {
  std::int64_t axis = 0;  ///< counted from the front
  std::int64_t taps = 1;
  std::vector<std::int64_t> places = {};
  std::vector<double> weights = {};

  std::int64_t extent() const { return static_cast<std::int64_t>(places.size()) / taps; }
};

/// The axes one after the other, in float64, rounded once at the end.
class Resample final : public Op {
 public:
  /// Throws Error unless every list has `taps` entries for each result, and places are not
  /// negative.
  explicit Resample(std::vector<Resampling>);
  /// Throws Error unless there is one input that has the axes and the places.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
  OperatorMemory memory(Shapes inputs) const override;

 private:
  std::vector<Resampling> axes_;
};

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
class GridSample final : public Op {
 public:
  explicit GridSample(const GridSampleOptions& options)
      : Op({.kind = "grid_sample", .inputs = {Use::linear, Use::statistic}}), options_(options) {}
  const GridSampleOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
  OperatorMemory memory(Shapes inputs) const override;

 private:
  GridSampleOptions options_;
};

}  // namespace numemu::net
