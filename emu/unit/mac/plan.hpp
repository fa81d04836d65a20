// The plan of the vector loops for one product of multiply-adds: lanes, steps and constants.
#pragma once
#include <cstdint>
#include <optional>

#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit::mac {

/// How the exact a * b + sum reaches the register. All but `none` and `plain` start from the sum
/// rounded to odd in the host's precision, which loses nothing that a second rounding could miss
/// (Boldo and Melquiond 2008) as long as two bits lie below the last place of the second.
enum class Rule : std::uint8_t {
  none,         ///< the host's sum is exact and needs no rounding
  plain,        ///< RNE of the host's RNE, where that is proven to equal one RNE
  even,         ///< RNE
  away,         ///< RNA
  zero,         ///< RTZ
  up,           ///< RUP
  down,         ///< RDN
  odd,          ///< to odd
  random_cut,   ///< sr, the fraction cut toward zero before the random bits are added
  random_even,  ///< sr, the fraction rounded to nearest even
  random_odd,   ///< sr, the fraction rounded to nearest, ties to odd
};

/// What happens at the ends of the register.
enum class Ends : std::uint8_t {
  free,     ///< nothing: proven idle, subnormals and zeros of negative sign as well
  guarded,  ///< subnormals, signs of zeros, overflow, infinity, NaN
  clamped,  ///< two's complement, saturating
  wrapped,  ///< two's complement, modulo 2^bits
};

/// Numbers that hold for all lanes; indices 0 and 1 are the positive and the negative side.
struct Plan {
  bool wide = false;  ///< double lanes instead of float
  Rule rule = Rule::plain;
  Ends ends = Ends::guarded;
  int mantissa_bits = 0;    ///< M; two's complement: bits - 1
  int first_binade = 0;     ///< log2 of the lowest binade; two's complement: of the only one
  int random_bits = 0;      ///< n
  int cut_bits = 0;         ///< kept of the fraction before the random bits are added
  bool half_added = false;  ///< variant b: the random number is r + 1/2
  bool negative_zero = true;
  double largest = 0;
  double overflow[2] = {}, infinity[2] = {};    ///< their results
  double lowest = 0, highest = 0, modulus = 0;  ///< two's complement
};

/// What is known about the values of one product.
struct Inputs {
  Exponents a, b;
  bool infinite = false;  ///< infinity may be among A, B or C
  bool special = false;   ///< infinity or NaN may be among A or B
  int product_bits = 0;   ///< significant bits of a product
  double largest_c = 0;   ///< |C| is at most this
  bool negative_zero_c = false;
  std::int64_t k = 0;
};

/// The plan, or nothing where no proof covers the inputs. The register must be one that
/// multiply_mac() supports.
std::optional<Plan> make_plan(const Register&, int chunk, const Inputs&);

/// Significant bits of the format's values.
int precision(const Format&);

}  // namespace numemu::unit::mac
