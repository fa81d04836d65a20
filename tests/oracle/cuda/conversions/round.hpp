// A real number from a code, and its rounding to a code of another format, in integers only.
#pragma once
#include <cstdint>

#include "tests/oracle/cuda/conversions/conversion.hpp"

namespace numemu::oracle::recording {

enum class NumberKind : std::uint8_t { finite, infinite, nan };

/// (-1)^negative * significand * 2^exponent; a NaN's payload is its mantissa field.
struct Real {
  NumberKind kind = NumberKind::finite;
  bool negative = false;
  std::uint32_t significand = 0;
  int exponent = 0;
  std::uint32_t payload = 0;
};

/// Of a code as elements.def describes it; tf32 in its container.
Real real_of(Element, std::uint32_t code);

/// Codes of a format below its sign. top: of the largest number; beyond: of what lies above it
/// (infinity; the NaN of e4m3 and ue8m0; the top itself where there is neither).
struct Ends {
  std::uint32_t top, beyond, sign;
};
Ends ends_of(Element);

/// Which neighbour a number takes: rn ties to even, rna away from zero, rz down, rp up for positive
/// numbers, rs up where the top `random_bits` discarded bits plus `random` carry.
struct RoundTo {
  CvtRounding mode;
  std::uint32_t random;
  int random_bits;
};
/// The magnitude's code by the spacing of the format, which may lie above ends_of().top: the caller
/// decides what overflow becomes.
std::uint32_t rounded_magnitude(Element, const Real&, const RoundTo&);

}  // namespace numemu::oracle::recording
