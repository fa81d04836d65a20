// A border of one constant along any axes.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// Axis i gets before[i] elements of `value` in front and after[i] behind; one number for every
/// axis, the batch too. A view: elements that already passed the moments, and constants.
class Pad final : public Op {
 public:
  /// Throws Error for negative numbers, and unless both lists have the same length.
  Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value = 0);
  std::string_view kind() const override { return "pad"; }
  const std::vector<std::int64_t>& before() const { return before_; }
  const std::vector<std::int64_t>& after() const { return after_; }
  float value() const { return value_; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<std::int64_t> before_, after_;
  float value_;
};

}  // namespace numemu::net
