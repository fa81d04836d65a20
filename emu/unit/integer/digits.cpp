// Finds the exponents present in an operand and cuts its values into digits from -128 to 127.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/integer/digits.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "emu/unit/integer/convert.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

constexpr int kCodes = 256;

/// n digits reach from -128 (256^n - 1) / 255 to 127 (256^n - 1) / 255: all of [-2^bits, 2^bits)
/// for these numbers of bits.
constexpr int kBitsOfDigits[] = {7, 14, 22, 30};

/// A finite value is a multiple of 2^low, at least -2^top and below 2^top.
struct Span {
  int low = 0, top = 0;
};

Span span_of(const Value& v) {
  const int low = v.exponent + std::countr_zero(v.significand);
  const int top = v.exponent + std::bit_width(v.significand);
  // -2^(top - 1) alone still is at least the negative end.
  const bool negative_power = v.negative && std::has_single_bit(v.significand);
  return {low, negative_power ? top - 1 : top};
}

std::vector<Value> values_of(const Format& format) {
  std::vector<Value> values;
  for (std::uint64_t code = 0; code < kCodes; ++code)
    values.push_back(decode(format, code & format.code_mask()));
  return values;
}

/// The span of the values present, or nothing where one is not finite.
std::optional<Span> span_present(const Operand& operand, const std::vector<Value>& values,
                                 std::int64_t count) {
  constexpr int kSpecial = 255, kZero = 255;
  int lowest = 0;
  for (const Value& v : values) {
    if (v.kind == Class::finite) lowest = std::min(lowest, span_of(v).low);
  }
  // Exponents above the lowest one as bytes; a zero has no lower end and the lowest upper one.
  std::vector<std::uint8_t> low(kCodes, kZero), top(kCodes, 0);
  for (std::size_t code = 0; code < values.size(); ++code) {
    if (values[code].kind == Class::zero) continue;
    top[code] = kSpecial;
    if (values[code].kind != Class::finite) continue;
    const Span span = span_of(values[code]);
    if (span.top - lowest >= kSpecial) continue;  // too wide for digits where it is present
    low[code] = static_cast<std::uint8_t>(span.low - lowest);
    top[code] = static_cast<std::uint8_t>(span.top - lowest);
  }
  const ByteRange present =
      range_of_bytes(static_cast<const std::uint8_t*>(operand.codes), count, low, top);
  if (present.high == kSpecial) return std::nullopt;
  if (present.low == kZero) return Span{};
  return Span{present.low + lowest, present.high + lowest};
}

/// value * 2^-low, where that has no more than `bits` bits; other codes are not present.
std::int64_t integer_of(const Value& v, int low, int bits) {
  if (v.kind != Class::finite) return 0;
  const Span span = span_of(v);
  if (span.low < low || span.top > low + bits) return 0;
  const int shift = v.exponent - low;
  const auto magnitude =
      static_cast<std::int64_t>(shift >= 0 ? v.significand << shift : v.significand >> -shift);
  return v.negative ? -magnitude : magnitude;
}

}  // namespace

std::optional<Digits> find_digits(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const Format& format = *operand.format;
  if (!has_byte_lookup() || container_of(format) != Container::bytes) return std::nullopt;
  const std::vector<Value> values = values_of(format);
  if (!operand.gather->padding.identity() && values[0].kind != Class::zero) return std::nullopt;
  const auto span = span_present(operand, values, source_size(operand, rows, depth));
  if (!span) return std::nullopt;
  Digits digits{{}, span->low, std::max(span->top - span->low, 0)};
  const auto* enough =
      std::lower_bound(std::begin(kBitsOfDigits), std::end(kBitsOfDigits), digits.bits);
  if (enough == std::end(kBitsOfDigits)) return std::nullopt;
  digits.tables.assign(static_cast<std::size_t>(enough - std::begin(kBitsOfDigits)) + 1,
                       std::vector<std::uint8_t>(kCodes));
  for (std::size_t code = 0; code < values.size(); ++code) {
    std::int64_t rest = integer_of(values[code], digits.low, digits.bits);
    for (std::vector<std::uint8_t>& table : digits.tables) {
      const auto digit = static_cast<std::int8_t>(rest & 255);
      table[code] = static_cast<std::uint8_t>(digit);
      rest = (rest - digit) / 256;
    }
  }
  return digits;
}

}  // namespace numemu::unit
