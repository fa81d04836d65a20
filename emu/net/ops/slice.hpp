// Every step-th element of a range along one axis.
#pragma once
#include <limits>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// Elements start, start + step, .. before `end` of an axis, as Python's slices: negative axes,
/// starts and ends count from the end, and bounds beyond it are clamped.
struct SliceRange {
  static constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();
  /// With a negative step: down to and with element 0.
  static constexpr std::int64_t kToTheStart = std::numeric_limits<std::int64_t>::min();

  std::int64_t axis = 0;
  std::int64_t start = 0, end = kToTheEnd;
  std::int64_t step = 1;  ///< not 0
};

/// A view: its elements already passed the moments. The gradient of the rest is zero.
class Slice final : public Op {
 public:
  /// Throws Error for a step of 0.
  explicit Slice(std::vector<SliceRange>);
  std::string_view kind() const override { return "slice"; }
  const std::vector<SliceRange>& ranges() const { return ranges_; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<SliceRange> ranges_;
};

}  // namespace numemu::net
