// The products of one dot: operands gathered by the metadata, decoded and multiplied exactly.
#pragma once
#include <array>

#include "tests/oracle/cuda/replay/number.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording::replay {

/// Kept products of the longest instruction.
constexpr int kMostProducts = 128;

/// (-1)^negative * significand * 2^(exponent - shift - fraction bits of the list); a zero operand
/// lends its kZeroExponent to the sum of the exponents.
struct Product {
  std::uint64_t significand;
  int exponent;
  int place;  ///< what steps count: the place among the kept, or the dense k
  bool negative;
  Class kind;
  int shift;  ///< how far the exponent was moved to the leading bit
};

struct Products {
  std::array<Product, kMostProducts> list;
  int count = 0;
  int fraction = 0;
};

/// Of a block, from its two scales.
int scale_exponent(const Rule&, const Number& a, const Number& b);

/// The k of kept product j: the metadata of PTX ISA, "Sparse matrix storage". A dense dot: j.
int position(const Dot&, int j);

/// The code of an element of an array of codes of `bytes` bytes, little-endian.
inline std::uint64_t code_at(const std::uint8_t* codes, int bytes, int i) {
  std::uint64_t code = 0;
  for (int b = 0; b < bytes; ++b)
    code |= static_cast<std::uint64_t>(codes[i * bytes + b]) << (8 * b);
  return code;
}
inline std::uint64_t code_at(const std::uint8_t* codes, Element e, int i) {
  return code_at(codes, info(e).bytes, i);
}

/// All products of floating-point operands but float64, with the exponents of their scales.
void gather(const Rule&, const Dot&, Products&);

}  // namespace numemu::oracle::recording::replay
