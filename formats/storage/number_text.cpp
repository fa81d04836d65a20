// Integers of any length: digits times a power of two or ten, cut to 64 bits and a sticky bit.
#include "formats/storage/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cctype>
#include <charconv>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu {
namespace {

using Integer = boost::multiprecision::cpp_int;

/// Every float64 has at most 1,077 characters in exact decimal.
constexpr std::size_t kLongest = 1100;
constexpr std::int64_t kLargestExponent = 20000;
constexpr int kSignificand = 64;

/// numerator / denominator * 2^exponent, rounded down to 64 significant bits.
Value cut(bool negative, Integer numerator, const Integer& denominator, std::int64_t exponent) {
  Value value{Class::zero, negative};
  if (numerator == 0) return value;
  // Enough bits in front of the quotient's binary point for 64 significant ones.
  const std::int64_t shift = static_cast<std::int64_t>(msb(denominator)) + kSignificand + 1 -
                             static_cast<std::int64_t>(msb(numerator));
  Integer remainder, quotient;
  if (shift > 0) {
    numerator <<= shift;
    exponent -= shift;
  }
  divide_qr(numerator, denominator, quotient, remainder);
  const std::int64_t excess = static_cast<std::int64_t>(msb(quotient)) + 1 - kSignificand;
  bool sticky = remainder != 0;
  if (excess > 0) {
    sticky = sticky || static_cast<std::int64_t>(lsb(quotient)) < excess;
    quotient >>= excess;
    exponent += excess;
  }
  value.kind = Class::finite;
  value.sticky = sticky;
  value.significand = static_cast<std::uint64_t>(quotient);
  value.exponent = static_cast<std::int32_t>(exponent);
  if (!sticky) {
    const int zeros = std::countr_zero(value.significand);
    value.significand >>= zeros;
    value.exponent += zeros;
  }
  return value;
}

class NumberParser {
 public:
  explicit NumberParser(std::string_view text) : text_(text), rest_(text) {}

  Value read() {
    if (text_.size() > kLongest) fail();
    const bool negative = accept("-");
    if (!negative) accept("+");
    if (accept("infinity") || accept("inf")) return special(Class::infinite, negative);
    if (accept("nan")) return special(Class::nan, negative);
    const int base = accept("0x") ? 16 : 10;
    read_digits(base);
    const std::int64_t power = read_exponent(base == 16 ? "p" : "e");
    if (!rest_.empty()) fail();
    if (base == 16 && !has_exponent_) {
      throw Error(
          fmt::format("expected a number, found {}: hexadecimal needs an exponent ({}p+0); "
                      "codes need --codes hex",
                      quote_name(text_), text_.substr(0, 20)));
    }
    if (base == 16) return cut(negative, digits_, 1, power - 4 * fraction_digits_);
    const std::int64_t ten = power - fraction_digits_;
    const Integer scale = pow(Integer(10), static_cast<unsigned>(std::abs(ten)));
    return ten >= 0 ? cut(negative, digits_ * scale, 1, 0) : cut(negative, digits_, scale, 0);
  }

 private:
  [[noreturn]] void fail() const { throw Error("expected a number, found " + quote_name(text_)); }
  bool accept(std::string_view word) {
    if (rest_.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (std::tolower(static_cast<unsigned char>(rest_[i])) != word[i]) return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }
  Value special(Class kind, bool negative) const {
    if (!rest_.empty()) fail();
    return {kind, negative};
  }
  void read_digits(int base) {
    bool any = false, point = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(rest_.front())));
      if (c == '.' && !point) {
        point = true;
        continue;
      }
      const int digit = c >= '0' && c <= '9'                 ? c - '0'
                        : base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                             : -1;
      if (digit < 0) break;
      any = true;
      digits_ = digits_ * base + digit;
      fraction_digits_ += point ? 1 : 0;
    }
    if (!any) fail();
  }
  std::int64_t read_exponent(std::string_view letter) {
    has_exponent_ = accept(letter);
    if (!has_exponent_) return 0;
    const bool negative = accept("-");
    if (!negative) accept("+");
    if (rest_.empty()) fail();
    std::int64_t power = 0;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      if (rest_.front() < '0' || rest_.front() > '9') fail();
      power = 10 * power + (rest_.front() - '0');
      if (power > kLargestExponent) fail();
    }
    return negative ? -power : power;
  }

  std::string_view text_, rest_;
  Integer digits_ = 0;
  std::int64_t fraction_digits_ = 0;
  bool has_exponent_ = false;
};

}  // namespace

Value parse_number(std::string_view text) { return NumberParser(text).read(); }

std::uint64_t parse_code(std::string_view text, bool prefixed) {
  std::string_view digits = text;
  const bool has_prefix = text.starts_with("0x") || text.starts_with("0X");
  if (has_prefix) digits.remove_prefix(2);
  std::uint64_t code = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, code, 16);
  if (error != std::errc() || at != end || has_prefix != prefixed) {
    throw Error(fmt::format("expected a code in hexadecimal {} 0x, found {}",
                            prefixed ? "with" : "without", quote_name(text)));
  }
  return code;
}

std::string hex_text(const Value& value) {
  const char* sign = value.negative ? "-" : "";
  switch (value.kind) {
    case Class::zero:
      return fmt::format("{}0x0p+0", sign);
    case Class::infinite:
      return fmt::format("{}inf", sign);
    case Class::nan:
      return fmt::format("{}nan", sign);
    case Class::finite:
      break;
  }
  const int zeros = std::countl_zero(value.significand);
  const std::uint64_t fraction = zeros == 63 ? 0 : value.significand << (zeros + 1);
  std::string digits = fmt::format("{:016x}", fraction);
  digits.erase(digits.find_last_not_of('0') + 1);
  return fmt::format("{}0x1{}{}p{:+}", sign, digits.empty() ? "" : ".", digits,
                     std::int64_t{value.exponent} + 63 - zeros);
}

std::string decimal_text(const Value& value) {
  const Format& wide = find_format("float64");
  const std::uint64_t code = encode(wide, value, Rounding{}, Overflow::ieee).code;
  return fmt::format("{:.9g}", std::bit_cast<double>(code));
}

}  // namespace numemu
