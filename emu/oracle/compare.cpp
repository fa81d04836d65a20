#include "emu/oracle/compare.hpp"

#include <algorithm>
#include <array>

#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

constexpr std::array<std::string_view, kMismatches> kNames{
    "none",  "X or Z digits", "NaN",     "saturation", "infinity", "sign of zero",
    "flush", "sign",          "one ulp", "more ulps",  "flags"};

}  // namespace

std::string_view name_of(Mismatch m) { return kNames[static_cast<std::size_t>(m)]; }

Comparer::Comparer(const Format* format, int bits, Tolerance tolerance)
    : format_(format), tolerance_(tolerance), bits_(format != nullptr ? format->bits : bits) {
  if (format_ == nullptr) {
    sign_ = std::uint64_t{1} << (bits_ - 1);
    largest_ = sign_ - 1;
    return;
  }
  sign_ = format_->sign_bit();
  largest_ = format_->largest_code();
  if (format_->kind == Kind::floating)
    smallest_normal_ = std::uint64_t{1} << format_->mantissa_bits;
  if (format_->has_nan()) canonical_ = format_->nan_code();
}

Comparer::Sort Comparer::sort(std::uint64_t code) const {
  if (format_ == nullptr || format_->kind != Kind::floating) return Sort::number;
  const Class decoded = decode(*format_, code).kind;
  return decoded == Class::nan        ? Sort::nan
         : decoded == Class::infinite ? Sort::infinity
                                      : Sort::number;
}

std::int64_t Comparer::place(std::uint64_t code) const {
  if (format_ != nullptr && format_->kind == Kind::floating) {
    if (decode(*format_, code).kind == Class::zero) return 0;
    const auto magnitude = static_cast<std::int64_t>(code & ~sign_);
    return (code & sign_) != 0 ? -magnitude : magnitude;
  }
  if (sign_ == 0 || bits_ == 1) return static_cast<std::int64_t>(code);
  // Two's complement: the sign bit weighs minus its value.
  return static_cast<std::int64_t>((code & (2 * sign_ - 1)) ^ sign_) -
         static_cast<std::int64_t>(sign_);
}

Comparison Comparer::compare_unequal(std::uint64_t want, std::uint64_t got) const {
  const Sort sorts[] = {sort(want), sort(got)};
  const bool any_nan = sorts[0] == Sort::nan || sorts[1] == Sort::nan;
  const auto is_largest = [&](std::uint64_t code) { return (code & ~sign_) == largest_; };
  if (any_nan) {
    if (sorts[0] == sorts[1]) {
      const bool equal = tolerance_.nan == NanMatch::any ||
                         (tolerance_.nan == NanMatch::canonical && got == canonical_);
      if (equal) return {};
      return {Mismatch::nan, std::nullopt};
    }
    const bool saturated =
        !format_->has_infinity() && is_largest(sorts[0] == Sort::nan ? got : want);
    return {saturated ? Mismatch::saturation : Mismatch::nan, std::nullopt};
  }
  if (want == got) return {};
  const std::int64_t places[] = {place(want), place(got)};
  const auto low = static_cast<std::uint64_t>(std::min(places[0], places[1]));
  std::uint64_t ulps = static_cast<std::uint64_t>(std::max(places[0], places[1])) - low;
  ulps = (ulps >> narrower_) + ((ulps & ((std::uint64_t{1} << narrower_) - 1)) != 0);
  if (sorts[0] == Sort::infinity || sorts[1] == Sort::infinity)
    return {ulps == 1 ? Mismatch::saturation : Mismatch::infinity, ulps};
  if (ulps == 0) {
    const bool equal = ((want ^ got) & sign_) == 0 || tolerance_.zero == ZeroSign::ignore;
    return {equal ? Mismatch::none : Mismatch::zero_sign, 0};
  }
  if (ulps <= tolerance_.ulps) return {Mismatch::none, ulps};
  return {finite_mismatch(places[0], places[1], ulps), ulps};
}

Mismatch Comparer::finite_mismatch(std::int64_t want, std::int64_t got, std::uint64_t ulps) const {
  const bool floating = format_ != nullptr && format_->kind == Kind::floating;
  if (floating) {
    const auto tiny = [&](std::int64_t place) {
      return static_cast<std::uint64_t>(place < 0 ? -place : place) <= smallest_normal_;
    };
    if ((want == 0 && tiny(got)) || (got == 0 && tiny(want))) return Mismatch::flush;
  } else {
    const auto top = static_cast<std::int64_t>(largest_);
    const std::int64_t bottom = sign_ != 0 ? -top - 1 : 0;
    const bool limit = want == top || want == bottom || got == top || got == bottom;
    if (limit && ulps > 1) return Mismatch::saturation;
  }
  if (want == -got) return Mismatch::sign;
  return ulps == 1 ? Mismatch::one_ulp : Mismatch::ulps;
}

}  // namespace numemu::oracle
