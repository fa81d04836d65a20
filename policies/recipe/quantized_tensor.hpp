// A tensor as codes and scales, the way a role's policy stores it.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/quantize.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Codes in the container of their width (uint8 up to 8 bits, uint16 up to 16) and one scale per
/// tensor or channel.
struct QuantizedTensor {
  const Format* format = nullptr;
  std::vector<std::uint8_t> narrow;
  std::vector<std::uint16_t> wide;
  std::vector<float> scales;
  FlagCounts flags;

  const void* codes() const {
    return format->bits <= 8 ? static_cast<const void*>(narrow.data()) : wide.data();
  }
  /// The real number element i stands for before its scale, exact in float32 for formats of at most
  /// 16 bits.
  float element(std::int64_t i) const;
};

/// The conversion a role describes; integers are used symmetrically.
Conversion conversion_of(const RolePolicy&, const RandomSource& = {});

/// One scale for the tensor, or one per index of axis 0, by the role's rule. Does not quantize.
std::vector<float> choose_scales(const RolePolicy&, const net::Tensor&);

/// Quantizes x under scales from choose_scales (or a calibrated one) into `out`, reusing its
/// memory. `first` is the index of x's first element in the stream of random bits.
void quantize_tensor(const RolePolicy&, const net::Tensor& x, const std::vector<float>& scales,
                     const RandomSource&, std::int64_t first, QuantizedTensor& out);

}  // namespace numemu::policies
