// The elements of a block under a given scale, in integers: the specification of every fast path.
#pragma once
#include <cstdint>
#include <string>

#include "formats/blocks/block_format.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/containers.hpp"
#include "formats/conversion.hpp"
#include "formats/value.hpp"

namespace numemu {

// Exact products, sums and quotients of a few values: what block formats compute before they round.

/// a * b. Of numbers, the widths of the significands add up to at most 64 bits; 0 * Inf is NaN.
Value exact_product(const Value& a, const Value& b);

/// a + b with a sticky bit. Significands of at most 40 bits, exponents as float32's or products of
/// two such; opposite infinities give NaN, exact cancellation +0.
Value exact_sum(const Value& a, const Value& b);

/// (a - b) / s with a sticky bit and at least 60 significant bits, so that even sr(32) has one
/// rounding. a, b float32 numbers; s finite, positive and at most 40 bits wide.
Value quotient_of_difference(const Value& a, const Value& b, const Value& s);

/// The numbers stored for one block: codes as in the arrays.
struct StoredScale {
  std::uint64_t scale = 0;  ///< code of the scale format
  std::uint32_t shift = 0;  ///< zp: code of the element format; min: bits of a float32
};

/// Those numbers, exact.
struct BlockScale {
  Value factor;           ///< scale * tensor scale * 2^element_exponent; NaN for a NaN block
  std::int64_t zero = 0;  ///< zp: z
  Value minimum = {};     ///< min: m
};

/// The arrays of a tensor quantized by blocks, host byte order; codes in containers of
/// container_bytes(): bytes up to 8 bits, half-words up to 16, 4 bytes for float32. Any may be null
/// where it is only written.
struct BlockArrays {
  void* codes = nullptr;          ///< of the element format, shape of x
  void* scales = nullptr;         ///< of the scale format, BlockLayout::scale_shape
  void* zero_points = nullptr;    ///< zp: codes of the element format; min: float32
  float* tensor_scale = nullptr;  ///< one number; 1 where null
};
struct BlockSource {
  const void* codes = nullptr;
  const void* scales = nullptr;
  const void* zero_points = nullptr;
  float tensor_scale = 1;
  /// What errors call the arrays.
  std::string codes_name = "codes", scales_name = "scales", zero_points_name = "zero points",
              tensor_scale_name = "tensor scale";
};

/// Stores the scale of block b where the arrays are given.
void store_scale(const BlockFormat&, const BlockArrays&, std::int64_t b, const StoredScale&);

/// Throws Error naming the array, the position and the value of a scale that none may have: see
/// dequantize_blocks().
void check_scales(const BlockFormat&, const std::string& array, const void* scales, std::int64_t n);

/// The scale whose blocks are NaN: a NaN code, shift 0. Throws Error where the scale format has no
/// NaN.
StoredScale nan_scale(const BlockFormat&);
BlockScale block_scale(const BlockFormat&, const StoredScale&, float tensor_scale);

/// The code of x, the element with index i of its tensor, under that scale: the exact quotient is
/// rounded once. Elements of a NaN block are zero (zp: the code of q = 0), without flags.
/// sym: encode(x / factor); zp: round(x / factor) + z, min: round((x - m) / factor), both saturated
/// to the codes of the format (min: from 0 on). A factor of zero is allowed: any x but zero is then
/// beyond the largest element.
Encoded encode_in_block(const BlockFormat&, const Conversion&, const BlockScale&, float x,
                        std::int64_t i);
/// The float32 nearest to the value of the code: exact inside, one rounding to nearest even,
/// infinite beyond float32's range, NaN as 0x7fc00000.
float decode_in_block(const BlockFormat&, const BlockScale&, std::uint64_t code);

/// zp: the code of z = round(q_min - low / factor), so that `low` lands on the smallest code.
/// low <= 0 and finite.
std::uint32_t zero_point(const BlockFormat&, const Value& factor, float low);

/// encode_in_block() of elements [begin, end) of one block of x; codes and y, if given, are the
/// whole tensor's. c.format is the element format.
FlagCounts encode_elements(const BlockFormat&, const Conversion& c, const BlockScale&,
                           const float* x, const BlockElements&, std::int64_t begin,
                           std::int64_t end, void* codes, float* y);

/// y[i] = decode_in_block() of the whole tensor. Refused with an Error that names the array, the
/// position and the value: codes with bits beyond their format's width; scales that are negative,
/// infinite, NaN by any code but Format::nan_code(), or zero without a tensor scale; minima that
/// are not finite; a tensor scale that is not positive and finite. Uses OpenMP threads.
void dequantize_blocks(const BlockFormat&, const BlockLayout&, const BlockSource&, float* y);

/// Whether above_minimum() serves the elements: codes of at most 8 bits that are the numbers.
inline bool counts_above_minimum(const BlockFormat& f) {
  return f.affine == Affine::min && f.element->bits <= 8 && !f.element->is_signed;
}

/// decode_in_block() for codes above a minimum that are their own numbers: those of
/// counts_above_minimum(), and of signed elements those without the sign bit. Under a finite factor
/// of at most 24 bits, so that the product is exact; where the sum is, too, it is rounded once.
inline float above_minimum(const BlockFormat& format, const BlockScale& scale, std::uint64_t code,
                           double factor, double minimum) {
  const double product = static_cast<double>(code) * factor;
  const double sum = product + minimum, part = sum - product;
  const double lost = (product - (sum - part)) + (minimum - part);
  if (lost == 0) return static_cast<float>(sum);
  return decode_in_block(format, scale, code);
}

}  // namespace numemu
