// What follows from the fields of a format: codes of special values, extreme values.
#include "formats/format.hpp"

#include <algorithm>

#include "formats/codebooks/codebook.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu {
namespace {

// The largest code without its sign bit.
std::uint64_t largest_magnitude(const Format& f) {
  const std::uint64_t all_ones = f.code_mask() & ~f.sign_bit();
  switch (f.specials) {
    case Specials::ieee:
      return all_ones - (std::uint64_t{1} << f.mantissa_bits);
    case Specials::nan1:
    case Specials::top:
      return all_ones - 1;
    case Specials::p3109_extended:
      return all_ones - (f.is_signed ? 1 : 2);
    case Specials::p3109_finite:
      return all_ones - (f.is_signed ? 0 : 1);
    case Specials::fnuz:
    case Specials::finite:
      break;
  }
  return all_ones;
}

}  // namespace

std::uint64_t Format::last_code() const {
  return kind == Kind::codebook ? codebook->size() - 1 : code_mask();
}

bool Format::codebook_has_zero() const { return codebook->has_zero(); }

bool Format::has_infinity() const {
  return specials == Specials::ieee || specials == Specials::top ||
         specials == Specials::p3109_extended;
}

bool Format::has_nan() const {
  return specials == Specials::ieee ? mantissa_bits > 0 : specials != Specials::finite;
}

bool Format::has_negative_zero() const {
  return kind == Kind::floating && is_signed && has_zero() &&
         (specials == Specials::ieee || specials == Specials::nan1 || specials == Specials::finite);
}

std::uint64_t Format::largest_code(bool negative) const {
  switch (kind) {
    case Kind::integer:
      return negative ? sign_bit() : code_mask() & ~sign_bit();
    case Kind::sign:
      return negative ? 1 : 0;
    case Kind::codebook:
      return negative ? 0 : last_code();
    case Kind::floating:
      break;
  }
  return largest_magnitude(*this) | (negative ? sign_bit() : 0);
}

// In all three encodings with an infinity it directly follows the largest finite magnitude.
std::uint64_t Format::infinity_code(bool negative) const {
  return (largest_magnitude(*this) + 1) | (negative ? sign_bit() : 0);
}

std::uint64_t Format::nan_code(bool negative) const {
  const std::uint64_t sign = negative ? sign_bit() : 0;
  switch (specials) {
    case Specials::ieee:
      return sign | infinity_code() | std::uint64_t{1} << (mantissa_bits - 1);
    case Specials::nan1:
    case Specials::top:
      return sign | (code_mask() & ~sign_bit());
    default:
      return is_signed ? sign_bit() : code_mask();
  }
}

double largest_value(const Format& f) { return to_double(decode(f, f.largest_code())); }

double smallest_normal(const Format& f) {
  if (f.kind != Kind::floating) return smallest_value(f);
  switch (f.field_zero) {
    case FieldZero::scale:
      return to_double(decode(f, 0));
    case FieldZero::normal:
      return to_double(decode(f, 1));
    default:
      return to_double({Class::finite, false, false, 1 - f.bias, 1});
  }
}

double smallest_value(const Format& f) {
  if (f.kind == Kind::codebook) {
    for (const double value : finite_values(f))
      if (value > 0) return value;
    throw Error("format '" + f.name + "' has no positive value");
  }
  if (f.kind != Kind::floating) return 1;
  if (f.field_zero == FieldZero::flush) return smallest_normal(f);
  return to_double(decode(f, f.has_zero() ? 1 : 0));
}

std::vector<double> finite_values(const Format& f) {
  if (f.bits > 16)
    throw Error("format '" + f.name + "' has more than 16 bits: too many values to list");
  std::vector<double> values;
  values.reserve(f.last_code() + 1);
  for (std::uint64_t code = 0; code <= f.last_code(); ++code) {
    const Value v = decode(f, code);
    if (v.kind == Class::zero) values.push_back(0.0);
    if (v.kind == Class::finite) values.push_back(to_double(v));
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace numemu
