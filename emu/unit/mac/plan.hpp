// The plan of the vector loops for one product of multiply-adds: lanes, steps and constants.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

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
  bool foreign_c = false;  ///< C holds finite numbers that are none of the register's
  std::int64_t k = 0;
};

/// The plan of a floating register in double lanes, where nothing but that products are exact in
/// them is known of the values.
Plan double_plan(const Register&);

/// The plan, or nothing where no proof covers the inputs. The register must be one that
/// multiply_mac() supports.
std::optional<Plan> make_plan(const Register&, int chunk, const Inputs&);

/// Significant bits of the format's values.
int precision(const Format&);

/// P is the precision of T, M the register's mantissa bits. What exceeds T is infinite; the plan
/// has made sure that nobody misses it.
template <class T>
struct Constants {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kTop = std::numeric_limits<T>::digits - 1;

  T first;                        ///< the lowest binade; two's complement: the only one
  T beside;                       ///< 2^(P - 1 - M)
  T step, half;                   ///< 2^-M, 2^-(M + 1)
  T cut_beside, cut_half;         ///< the same for the cut fraction's grid
  T beside_and_step;              ///< their sum
  T sign_kept;                    ///< -0 where the register has it, else +0
  T largest;                      ///< of the register
  T overflow[2], infinity[2];     ///< their results, positive and negative
  T lowest, highest;              ///< what two's complement saturates to
  T modulus, reciprocal;          ///< of two's complement
  Word random_mask, random_base;  ///< places r in the bits of 2^-M (1 + r 2^-n)

  explicit Constants(const Plan& plan) {
    const int m = plan.mantissa_bits, n = plan.random_bits, fine = m + plan.cut_bits;
    const bool clamped = plan.ends == Ends::clamped;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    first = std::ldexp(T{1}, plan.first_binade);
    beside = std::ldexp(T{1}, kTop - m);
    step = std::ldexp(T{1}, -m);
    half = step / 2;
    cut_beside = std::ldexp(T{1}, kTop - fine);
    cut_half = std::ldexp(T{1}, -fine - 1);
    beside_and_step = beside + step;
    sign_kept = plan.negative_zero ? -T{0} : T{0};
    largest = static_cast<T>(plan.largest);
    for (int side = 0; side < 2; ++side) {
      overflow[side] = static_cast<T>(plan.overflow[side]);
      infinity[side] = static_cast<T>(plan.infinity[side]);
    }
    lowest = clamped ? static_cast<T>(plan.lowest) : -kInfinity;
    highest = clamped ? static_cast<T>(plan.highest) : kInfinity;
    modulus = static_cast<T>(plan.modulus);
    reciprocal = plan.modulus > 0 ? 1 / modulus : 0;
    random_mask = n == 0 ? 0 : ((Word{1} << n) - 1) << (kTop - n);
    random_base = std::bit_cast<Word>(step);
    if (plan.half_added) random_base |= Word{1} << (kTop - n - 1);
  }
};

}  // namespace numemu::unit::mac
