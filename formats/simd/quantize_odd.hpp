// Quotients as float32 numbers rounded to odd: the vector loops of float32 conversions do the rest.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/conversion.hpp"
#include "formats/simd/convert_loops.hpp"
#include "formats/simd/plan.hpp"
#include "formats/simd/shared_exponent.hpp"

namespace numemu {

/// Whether a float32 rounded to odd determines what the conversion's rounding makes of a number of
/// float32's range: its values, random bits and midpoints need no more than 23 bits.
bool odd_determines(const Conversion&);

/// Converts x / scale for one conversion and one scale, where a float32 that is rounded to odd
/// (truncated, its last bit set if something was cut) determines every rounding of the quotient.
class OddQuotients {
 public:
  /// The most elements of one chunk.
  static constexpr std::int64_t kMost = 2048;

  /// Nothing where the float32 loops do not serve the conversion, where its random bits look beyond
  /// 24 bits, or where this host cannot compute exact remainders.
  static std::optional<OddQuotients> make(const Conversion&, float scale);

  /// Converts arrays.n <= kMost finite elements with signs that the format has. Values are those of
  /// the format, NaN 0x7fc00000; arrays.flags is not read. Returns nothing, and nothing is written,
  /// where an element or its quotient is too large or too small.
  std::optional<FlagCounts> convert(simd::Arrays arrays) const;

 private:
  struct Plans {
    std::optional<simd::Plan> plan;
    std::optional<simd::SharedExponentPlan> shared;  ///< at most one of them
  };
  static Plans make_plans(const Conversion&);
  static const Plans& plans_of(const Conversion&);

  const Plans* plans_ = nullptr;  ///< kept (interned.hpp)
  float scale_ = 1;
};

}  // namespace numemu
