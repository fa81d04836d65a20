// The parameters of an array conversion, and its counts.
#pragma once
#include <cstdint>
#include <tuple>

#include "formats/codec.hpp"
#include "formats/format.hpp"
#include "formats/random.hpp"
#include "formats/rounding.hpp"

namespace numemu {

/// How to convert an array: the three axes and, for sr(n), where the random bits come from.
struct Conversion {
  const Format* format = nullptr;
  Rounding rounding = {};
  Overflow overflow = Overflow::saturate;
  /// Leave out the most negative code of a signed integer (it saturates one code higher and counts
  /// as overflow).
  bool symmetric = true;
  /// The counter-based random bits of element i.
  RandomSource random = {};
  /// Caller-supplied random bits instead, one word per element, r in its low n bits.
  const std::uint32_t* random_words = nullptr;

  /// What decides every code and flag but the random bits: tables are kept by it.
  auto key() const {
    return std::make_tuple(format->key(), rounding.mode, rounding.variant, rounding.random_bits,
                           overflow, symmetric);
  }

  /// r of element i (in its low n bits); 0 unless the rounding is stochastic.
  std::uint32_t random_bits(std::int64_t i) const {
    if (!rounding.stochastic()) return 0;
    return random_words != nullptr
               ? random_words[i]
               : random.bits(static_cast<std::uint64_t>(i), rounding.random_bits);
  }
};

/// encode() as the conversion says, of the element with index i in its tensor.
inline Encoded encode_element(const Conversion& c, const Value& value, std::int64_t i) {
  const Format& f = *c.format;
  Encoded result = encode(f, value, c.rounding, c.overflow, c.random_bits(i));
  const bool leave_out = c.symmetric && f.kind == Kind::integer && f.is_signed;
  if (leave_out && result.code == f.largest_code(true)) {
    result.code += 1;
    result.flags |= kOverflow | kInexact;
  }
  return result;
}

/// How many elements raised each flag.
struct FlagCounts {
  std::int64_t elements = 0, inexact = 0, underflow = 0, overflow = 0, invalid = 0;
  /// Counts one element with these Flag bits.
  void add(std::uint8_t flags) {
    inexact += (flags & kInexact) != 0;
    underflow += (flags & kUnderflow) != 0;
    overflow += (flags & kOverflow) != 0;
    invalid += (flags & kInvalid) != 0;
  }
  FlagCounts& operator+=(const FlagCounts& other) {
    elements += other.elements;
    inexact += other.inexact;
    underflow += other.underflow;
    overflow += other.overflow;
    invalid += other.invalid;
    return *this;
  }
  friend bool operator==(const FlagCounts&, const FlagCounts&) = default;
};

}  // namespace numemu
