// Weighted sums of neighbours along axes: interpolation, sums over windows of channels.
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
class Resample final : public Op, public HoldsMemory {
 public:
  /// Throws Error unless every list has `taps` entries for each result, and places are not
  /// negative.
  explicit Resample(std::vector<Resampling>);
  std::string_view kind() const override { return "resample"; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  /// Throws Error unless there is one input that has the axes and the places.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;
  OperatorMemory memory(std::span<const Shape> inputs) const override;

 private:
  std::vector<Resampling> axes_;
};

}  // namespace numemu::net
