// Signalling NaNs: a conversion of one raises NV (IEEE 754-2019, 6.2).
#pragma once
#include <cstdint>

#include "formats/value.hpp"

namespace numemu {

/// A NaN whose payload lacks the quiet bit. Only formats whose NaNs are IEEE's have them; a NaN
/// without a payload is quiet.
inline bool is_signalling(const Value& v) {
  constexpr std::uint64_t kQuiet = std::uint64_t{1} << 51;  // payloads are left-aligned to 52 bits
  return v.kind == Class::nan && v.significand != 0 && (v.significand & kQuiet) == 0;
}

}  // namespace numemu
