// A fixed-point sum wide enough to hold every product of two float64 (or float32) exactly.
#pragma once
#include <array>
#include <cstdint>

namespace numemu::oracle::recording::replay {

/// kLimbs * 64 bits of two's complement; the lowest bit weighs 2^kLowest.
template <int kLimbs, int kLowest>
class Wide {
 public:
  /// Adds (-1)^negative * (high * 2^64 + low) * 2^exponent, whose bits must lie within the sum.
  void add(bool negative, std::uint64_t high, std::uint64_t low, int exponent) {
    const int shift = exponent - kLowest;
    const int limb = shift / 64, bits = shift % 64;
    const std::uint64_t parts[3] = {low << bits,
                                    high << bits | (bits == 0 ? 0 : low >> (64 - bits)),
                                    bits == 0 ? 0 : high >> (64 - bits)};
    bool carry = false;
    for (int i = limb; i < kLimbs; ++i) {
      const std::uint64_t part = i - limb < 3 ? parts[i - limb] : 0;
      if (part == 0 && !carry && i - limb >= 3) break;
      std::uint64_t& at = limb_[static_cast<std::size_t>(i)];
      carry = negative ? subtract(at, part, carry) : plus(at, part, carry);
    }
  }

  /// The value as magnitude * 2^exponent; the lowest bit of `magnitude` is sticky.
  struct Top {
    bool negative;
    std::uint64_t magnitude;
    int exponent;
  };
  Top top() const {
    const bool negative = limb_[kLimbs - 1] >> 63 != 0;
    Wide sum = *this;
    if (negative) sum.negate();
    int i = kLimbs - 1;
    while (i > 0 && sum.limb_[static_cast<std::size_t>(i)] == 0) --i;
    const std::uint64_t first = sum.limb_[static_cast<std::size_t>(i)];
    if (first == 0) return {false, 0, 0};
    const int space = __builtin_clzll(first);
    const std::uint64_t next = i > 0 ? sum.limb_[static_cast<std::size_t>(i - 1)] : 0;
    std::uint64_t magnitude = space == 0 ? first : first << space | next >> (64 - space);
    bool sticky = space == 0 ? next != 0 : (next << space) != 0;
    for (int j = i - 2; j >= 0; --j) sticky = sticky || sum.limb_[static_cast<std::size_t>(j)] != 0;
    return {negative, magnitude | (sticky ? 1 : 0), 64 * i - space + kLowest};
  }

 private:
  static bool plus(std::uint64_t& at, std::uint64_t part, bool carry) {
    const std::uint64_t sum = at + part + (carry ? 1 : 0);
    const bool over = sum < at || (carry && sum == at);
    at = sum;
    return over;
  }
  static bool subtract(std::uint64_t& at, std::uint64_t part, bool borrow) {
    const std::uint64_t difference = at - part - (borrow ? 1 : 0);
    const bool under = at < part || (borrow && at == part);
    at = difference;
    return under;
  }
  void negate() {
    bool carry = true;
    for (std::uint64_t& at : limb_) {
      at = ~at;
      carry = plus(at, 0, carry);
    }
  }

  std::array<std::uint64_t, kLimbs> limb_{};
};

/// Products of two float64: from 2^-2148 to 2^2048, and a sign.
using WideDouble = Wide<66, -2148>;
/// Sums of two float32 (or float16): from 2^-149 to 2^129.
using WideSingle = Wide<5, -149>;

/// Sums of products with block scales, and of everything narrower.
using WideProducts = Wide<16, -400>;

}  // namespace numemu::oracle::recording::replay
