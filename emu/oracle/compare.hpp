// Two codes of one result: whether they count as equal, and if not, how they differ.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/format.hpp"

namespace numemu::oracle {

/// Which NaN results count as equal.
enum class NanMatch : std::uint8_t {
  any,        ///< every NaN equals every other
  canonical,  ///< where a NaN is expected, the canonical one is
  payload,    ///< every bit as expected
};
enum class ZeroSign : std::uint8_t { strict, ignore };

struct Tolerance {
  NanMatch nan = NanMatch::any;
  ZeroSign zero = ZeroSign::strict;
  std::uint64_t ulps = 0;  ///< finite results that differ by at most this count as equal
};

/// How two results differ, as far as the two codes show it; the first that applies.
enum class Mismatch : std::uint8_t {
  none,
  unknown,     ///< digits X or Z
  nan,         ///< NaN against a number that is not the largest, or against another NaN
  saturation,  ///< the largest finite number against infinity, or against NaN
  infinity,    ///< infinity against another number
  zero_sign,   ///< +0 against -0
  flush,       ///< zero against a subnormal or the smallest normal number
  sign,        ///< the same magnitude
  one_ulp,
  ulps,   ///< more than one
  flags,  ///< equal results, other exception flags
};
inline constexpr int kMismatches = 11;
/// "X or Z digits", "sign of zero", ...
std::string_view name_of(Mismatch);

struct Comparison {
  Mismatch mismatch = Mismatch::none;
  /// Codes between the two in the order of their numbers, +0 and -0 as one; infinity lies one
  /// beyond the largest number. Of a result that is a narrower register, codes of that, a part
  /// counting as one. None where either is NaN or unknown.
  std::optional<std::uint64_t> ulps = 0;
};

/// How codes of one kind are compared: of a format, or two's complement of `bits` bits.
class Comparer {
 public:
  Comparer(const Format*, int bits, Tolerance);
  /// The machine's own canonical NaN.
  void set_canonical_nan(std::uint64_t code) { canonical_ = code; }
  /// Results are those of a register with so many mantissa bits fewer.
  void set_narrower_by(int mantissa_bits) { narrower_ = mantissa_bits; }
  int narrower_by() const { return narrower_; }
  /// The same with a tolerance of no ulps.
  Comparer without_ulps() const {
    Comparer exact = *this;
    exact.tolerance_.ulps = 0;
    return exact;
  }
  Comparison compare(std::uint64_t want, std::uint64_t got) const {
    if (want == got && (tolerance_.nan != NanMatch::canonical || want == canonical_)) return {};
    return compare_unequal(want, got);
  }

 private:
  enum class Sort : std::uint8_t { number, infinity, nan };
  Sort sort(std::uint64_t code) const;
  /// In the order of the numbers, both zeros 0.
  std::int64_t place(std::uint64_t code) const;
  Comparison compare_unequal(std::uint64_t want, std::uint64_t got) const;
  Mismatch finite_mismatch(std::int64_t want, std::int64_t got, std::uint64_t ulps) const;

  const Format* format_;
  Tolerance tolerance_;
  std::uint64_t canonical_ = 0, sign_ = 0, largest_ = 0, smallest_normal_ = 0;
  int bits_ = 0, narrower_ = 0;
};

}  // namespace numemu::oracle
