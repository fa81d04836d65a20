// Codes of unsigned integers above a block's minimum in float64, wherever exact arithmetic would
// give the same.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "formats/block_convert.hpp"

namespace numemu {

class MinimumCodes {
 public:
  MinimumCodes(const BlockFormat& f, const Rounding& rounding, const BlockScale& s)
      : low_(to_double(s.minimum)),
        scale_(s.factor.kind == Class::finite ? to_double(s.factor) : 0),
        largest_(f.element->largest_code()) {
    const bool stochastic = rounding.stochastic();
    // The widest scale, float32, times a code of 8 bits is exact in float64.
    serves_ = f.affine == Affine::min && f.element->bits <= 8 && scale_ > 0 &&
              double{static_cast<float>(scale_)} == scale_ && std::isfinite(low_);
    bits_ = stochastic ? rounding.random_bits : 0;
    encodes_ = serves_ && (stochastic ? rounding.variant == StochasticVariant::c && bits_ <= 16
                                      : rounding.mode == RoundingMode::rne);
  }

  /// Whether decode() and encode() may be called.
  bool decodes() const { return serves_; }
  bool encodes() const { return encodes_; }

  /// encode_in_block() with the random bits r; nothing where float64 cannot tell.
  std::optional<Encoded> encode(float x, std::uint32_t r) const {
    if (!(x > low_)) return x == low_ ? std::optional(Encoded{}) : std::nullopt;
    // Difference and quotient have one rounding each: below 2^9 steps are off by less than 2^-43,
    // times 2^16 by less than 2^-27.
    constexpr double kMost = 512, kNear = 0x1p-40, kNearHalf = 0x1p-24;
    const double steps = (x - low_) / scale_;
    if (!(steps < kMost)) return std::nullopt;
    const double beyond = steps - static_cast<double>(static_cast<std::int64_t>(steps));
    if (beyond < kNear || beyond > 1 - kNear) return std::nullopt;  // exact or not?
    const double t = steps * static_cast<double>(std::int64_t{1} << bits_);
    auto rounded = static_cast<std::uint64_t>(t);
    const double half = t - static_cast<double>(rounded) - 0.5;
    if (std::fabs(half) < kNearHalf) return std::nullopt;
    rounded += half > 0;
    const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
    const std::uint64_t code = (rounded + (r & mask)) >> bits_;
    if (code > largest_) return Encoded{largest_, kOverflow | kInexact};
    return Encoded{code, kInexact};
  }

  /// decode_in_block(): code x scale + minimum with one rounding is the IEEE operation.
  float decode(std::uint64_t code) const {
    return std::fma(static_cast<float>(code), static_cast<float>(scale_), static_cast<float>(low_));
  }

 private:
  double low_, scale_;
  std::uint64_t largest_;
  int bits_ = 0;
  bool serves_ = false, encodes_ = false;
};

}  // namespace numemu
