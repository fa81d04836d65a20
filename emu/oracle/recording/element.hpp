// The element types of matrix instructions: bits of a code, bytes of its container, parts of its
// encoding.
#pragma once
#include <cstdint>

#include "emu/oracle/recording/host_device.hpp"

namespace numemu::oracle::recording {

enum class Element : std::uint8_t {
#define NUMEMU_GPU_ELEMENT(name, ...) name,
#include "emu/oracle/recording/instructions/elements.def"
#undef NUMEMU_GPU_ELEMENT
};

/// Which codes are not finite numbers.
enum class Specials : std::uint8_t {
  ieee,      ///< the top exponent: infinities (mantissa 0) and NaN
  one_nan,   ///< only the code of all ones below the sign is NaN (e4m3)
  finite,    ///< none (fp6, fp4)
  integer,   ///< two's complement or unsigned
  exponent,  ///< a scale: all ones is NaN (ue8m0)
  nothing,   ///< no operand
};

/// A container holds one code in its low bits, except tf32 (the top 19 bits of a float32).
struct ElementInfo {
  const char* name;   ///< as in PTX and in the index of records
  int bits;           ///< of a code; tf32: 32, for the unit sees the whole register
  int bytes;          ///< of its container in arrays and records
  int exponent_bits;  ///< 0: integer
  int mantissa_bits;  ///< of integers: magnitude bits
  int bias;
  bool has_sign;
  Specials specials;
};

NUMEMU_HD constexpr ElementInfo info(Element element) {
  switch (element) {
#define NUMEMU_GPU_ELEMENT(name, ...) \
  case Element::name:                 \
    return {#name, __VA_ARGS__};
#include "emu/oracle/recording/instructions/elements.def"
#undef NUMEMU_GPU_ELEMENT
  }
  return {"none", 0, 0, 0, 0, 0, false, Specials::nothing};
}

NUMEMU_HD constexpr bool is_integer(Element e) { return info(e).specials == Specials::integer; }

}  // namespace numemu::oracle::recording
