// Two of the three axes of a conversion: how to round, and what happens beyond the largest value.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace numemu {

enum class RoundingMode : std::uint8_t { rne, rna, rtz, rup, rdn, rodd, sr };

/// Variants of stochastic rounding, named as in the IEEE P3109 report; `odd` is an extension.
enum class StochasticVariant : std::uint8_t { a, b, c, odd };

/// A rounding rule. `random_bits` (1..32) and `variant` matter for `sr` only.
struct Rounding {
  RoundingMode mode = RoundingMode::rne;
  StochasticVariant variant = StochasticVariant::c;
  int random_bits = 0;

  bool stochastic() const { return mode == RoundingMode::sr; }
  friend bool operator==(const Rounding&, const Rounding&) = default;
};

enum class Overflow : std::uint8_t { saturate, propagate, ieee };

/// "rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(8,a)". Throws Error with the nearest
/// known name.
Rounding parse_rounding(std::string_view text);
/// "saturate", "propagate", "ieee". Throws Error with the nearest known name.
Overflow parse_overflow(std::string_view text);
/// The canonical spelling: sr(n) for variant c, sr(n,a|b|odd) otherwise.
std::string to_string(const Rounding&);
std::string to_string(Overflow);

}  // namespace numemu
