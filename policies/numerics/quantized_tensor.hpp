// A tensor as codes and scales, the way a role's policy without blocks stores it.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/quantize.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Codes in the container of their width (uint8 up to 8 bits, uint16 up to 16) and one scale for
/// every equal share of the elements.
struct QuantizedTensor {
  const Format* format = nullptr;
  std::vector<std::uint8_t> narrow;
  std::vector<std::uint16_t> wide;
  std::vector<float> scales;
  std::int32_t zero_point = 0;
  FlagCounts flags;

  bool is_narrow() const { return format->bits <= 8; }
  const void* codes() const {
    return is_narrow() ? static_cast<const void*>(narrow.data()) : wide.data();
  }
  /// The value of element i before its scale, the zero point subtracted; exact in float32 for
  /// formats of at most 16 bits.
  float element(std::int64_t i) const;
  /// y[i] = RNE_f32(element(i) * its scale). Uses threads.
  void values(float* y) const;
};

/// The float32 value of every code of a format of at most 16 bits; made once, then shared.
const float* value_table(const Format&);

/// One scale for the tensor, per index of axis 0 (channel) or of all but the last axis (row), by
/// the role's rule. Does not quantize.
std::vector<float> choose_scales(const RolePolicy&, const net::Tensor&);
/// One scale for each of `groups` equal shares of the n elements.
std::vector<float> choose_scales(const RoleQuantizer&, const float* x, std::int64_t n,
                                 std::int64_t groups);

/// Quantizes x under scales from choose_scales (or a calibrated one) into `out`, reusing its
/// memory. `first` is the index of x's first element in the stream of random bits. Uses threads;
/// the same bits for any number of them.
void quantize_tensor(const RolePolicy&, const net::Tensor& x, const std::vector<float>& scales,
                     const RandomSource&, std::int64_t first, QuantizedTensor& out);
void quantize_tensor(const RoleQuantizer&, const float* x, std::int64_t n,
                     std::vector<float> scales, const RandomPiece&, QuantizedTensor& out);

/// The codes alone, as those of a format that has all their values.
void reencode(const QuantizedTensor& from, const Format& wide, QuantizedTensor& out);

/// quantize_tensor() for a role with a zero point: codes saturate(round(x / scale) + zero_point),
/// one byte each (ONNX QuantizeLinear). What saturates counts as overflow.
void quantize_affine(const RoleQuantizer&, const float* x, std::int64_t n, const TensorScale&,
                     const RandomPiece&, QuantizedTensor& out);

}  // namespace numemu::policies
