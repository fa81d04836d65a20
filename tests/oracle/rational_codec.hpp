// A codec by search in the list of a format's values, in exact rationals: the oracle of encode().
//
// It shares the words of the interface with the codec (Rounding, Overflow, Flag) and no algorithm:
// the fields of a format come from specification.cpp, values from the formula of the specification,
// and a number is rounded by comparing it with its neighbours in the list and their midpoint.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/codec.hpp"
#include "tests/oracle/dyadic.hpp"
#include "tests/oracle/specification.hpp"

namespace numemu::oracle {

/// (-1)^negative * magnitude, or a special.
struct Decoded {
  Class kind = Class::zero;
  bool negative = false;
  Rational magnitude = 0;
  bool signalling = false;  ///< NaN
};

/// Where a number lies: what every rounding rule looks at.
struct Place {
  Class kind = Class::zero;
  bool negative = false;
  bool signalling = false;  ///< NaN
  Dyadic magnitude;
  std::optional<Rational> exact;  ///< of a number that is not dyadic

  /// The gap [low, low + 1) of magnitude codes; `under` where the number is below code 0.
  std::uint64_t low = 0;
  bool under = false;
  bool beyond = false;    ///< at or above the value after the largest
  bool on_value = false;  ///< equal to the value of `low`
  std::strong_ordering to_middle = std::strong_ordering::equal;
  /// Against the smallest normal number and its lower neighbour if exponents had no lower end.
  enum { tiny, near_normal, normal } size = normal;
  std::strong_ordering to_normal_middle = std::strong_ordering::equal;

  /// What stochastic rules compare: how far the number lies in the gap above `low`, in that below
  /// the smallest normal number, in [0, 1). The first plan that needs one computes it for all
  /// rules.
  mutable std::optional<Rational> share = {}, normal_share = {};
};

/// A place under a rounding rule: the random words that go up, [from, 2^n). Deterministic rules go
/// up always (0) or never.
struct Plan {
  const Place* place;
  std::uint64_t word_mask;
  bool inward_overflow;  ///< the rule never leaves the finite range on this side
  std::uint64_t up_from;
  std::uint64_t normal_from;  ///< the same in the gap below the smallest normal number
};

class RationalCodec {
 public:
  explicit RationalCodec(Specified);
  explicit RationalCodec(std::string_view name) : RationalCodec(specified(name)) {}

  const Specified& format() const { return f_; }
  Decoded decode(std::uint64_t code) const;

  /// Codes without sign: 0..largest are finite (one more for the negative side of intN).
  std::uint64_t largest(bool negative = false) const;
  /// The value of a magnitude code; of largest() + 1 too: the next one if codes continued.
  Dyadic at(std::uint64_t magnitude) const;
  Dyadic smallest_normal() const { return normal_; }
  Dyadic below_normal() const { return below_normal_; }
  bool has_zero() const { return f_.lowest != Lowest::normals; }
  bool has_negative_zero() const;
  bool has_nan() const;
  bool has_infinity() const;

  Place place(const Dyadic& magnitude, bool negative) const;
  Place place(const Rational&) const;
  Place special(Class, bool negative, bool signalling = false) const;
  Place place(double) const;

  Plan plan(const Place&, const Rounding&) const;
  Encoded encode(const Plan&, Overflow, std::uint32_t word = 0) const;
  Encoded encode(const Place& p, const Rounding& r, Overflow o, std::uint32_t word = 0) const {
    return encode(plan(p, r), o, word);
  }

 private:
  Rational formula(std::uint64_t magnitude) const;
  std::uint64_t top() const;  // all bits below the sign
  std::uint64_t infinity(bool negative) const;
  std::uint64_t nan(bool negative) const;
  bool signed_nan() const;
  std::uint64_t find(const Dyadic&, bool negative) const;
  std::uint64_t with_sign(std::uint64_t magnitude, bool negative) const;
  Encoded overflow(const Plan&, Overflow) const;

  Specified f_;
  std::vector<Dyadic> list_;  // of every magnitude code up to largest() + 1; empty beyond 20 bits
  Dyadic normal_, below_normal_;
};

/// The first of the 2^n random words that rounds the fraction d (0 <= d < 1) up; 2^n if none does.
std::uint64_t first_word_up(const Rational& d, int n, StochasticVariant);

}  // namespace numemu::oracle
