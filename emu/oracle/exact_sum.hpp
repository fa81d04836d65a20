// The exact result of a record: the number, or the sum of all products and c, before its rounding.
#pragma once
#include <climits>
#include <cstdint>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/kulisch.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// Computes the exact results of records of one subject, one after another. Of a unit: the sum of
/// its products, as scaled, and c, whatever the unit does with them; its treatment of subnormal
/// inputs and its input rounding are left out.
class ExactSum {
 public:
  ExactSum(const Subject&, const Layout&);

  struct Result {
    Value value;  ///< a sum of zeros has the sign that the rounding gives it
    bool invalid =
        false;  ///< a signalling NaN, or NaN made of numbers: IEEE 754's invalid operation
    /// The largest exponent of a leading bit among the products and c; INT_MIN where all are zero
    /// or special.
    int largest_term = INT_MIN;
  };
  /// Throws Error naming the field for a code that its format does not have.
  Result of(const Records&, std::int64_t i);

 private:
  Value element(const Records&, int field, std::int64_t at, std::int64_t i) const;
  void add_product(const Value& a, const Value& b, Result&);
  void add(const Value& c, Result&);
  /// The factor a of product p, times both of its scales.
  Value scaled(const Records&, std::int64_t i, std::int64_t p, Value a) const;

  const Subject subject_;
  const Layout layout_;
  int a_, b_, c_, scale_a_, scale_b_, kept_;  ///< fields, -1 where there are none
  unit::Kulisch sum_;
};

/// The exceptions of the operation. An integer that is out of range raises NV alone (IEEE 754-2019,
/// 5.8 and 7.1, as RISC-V), where encode() counts an overflow.
std::uint8_t flags_of(const ExactSum::Result&, const Format& to, const Encoded&);

}  // namespace numemu::oracle
