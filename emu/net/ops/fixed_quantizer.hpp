// Quantizers whose scales and zero points are part of the network (ONNX's QuantizeLinear and
// DequantizeLinear).
#pragma once
#include <vector>

#include "emu/net/op.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::net {

/// The kind of one with both halves.
inline constexpr std::string_view kFixedQuantizer = "fixed_quantizer";

struct FixedQuantizerOptions {
  /// The integers: round(x / scale) + zero point, halves to even, held within low and high.
  bool quantizes = true;
  /// The values of integers q: (q - zero point) scale.
  bool dequantizes = true;
  float low = -128, high = 127;
  /// Not null: instead of integers the values of this format, nearest to x / scale with ties to the
  /// even code; NaN stays. Zero points are 0.
  const Format* format = nullptr;
  Overflow overflow = Overflow::saturate;  ///< of the format
  bool cast = false;                       ///< to that format: the network's own number type
  /// Not null: the format of the scales, in which the quotient and what is scaled back are rounded.
  const Format* precision = nullptr;
  /// The axis, counted from the front, along which scales and zero points vary.
  std::int64_t axis = 0;
};

/// Every operation in the type of the scales, float32 unless `precision` is another: ONNX says so
/// from operator set 23 on and leaves it open before. The gradient passes where the integer is
/// within low and high (straight through), else it is 0. Where numerics give an empty table for the
/// scales an operator with both halves passes everything on, forward and backward.
class FixedQuantizer final : public Op {
 public:
  /// One scale and zero point for the whole tensor, or as many as the axis has elements. Throws
  /// Error unless there are as many of each and scales are finite, and positive where it quantizes.
  FixedQuantizer(const FixedQuantizerOptions&, Tensor scales, Tensor zero_points);
  bool is_cast() const { return options_.cast; }
  /// Throws Error unless there is one input whose axis has as many elements as there are scales.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  bool left_out(const OpCall&) const;
  /// body(first, n, scale, zero point) for runs of elements with one scale.
  template <class Body>
  void for_each_run(const Shape& shape, const Body& body) const;

  FixedQuantizerOptions options_;
};

}  // namespace numemu::net
