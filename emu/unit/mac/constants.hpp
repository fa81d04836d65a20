// A plan's numbers as the lanes use them, computed once per tile.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "emu/unit/mac/plan.hpp"

namespace numemu::unit::mac {

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
