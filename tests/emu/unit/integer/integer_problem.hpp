// Random products of integer codes for the tests of integer kernels, with a model of their own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/description.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test::integers {

/// Two's complement or unsigned integers of up to 16 bits, also those that are not named formats.
inline Format integer_format(int bits, bool is_signed) {
  Format format;
  format.name = (is_signed ? "int" : "uint") + std::to_string(bits);
  format.kind = Kind::integer;
  format.is_signed = is_signed;
  format.bits = bits;
  return format;
}

/// Where codes come from.
enum class Codes {
  any,      ///< every code, and garbage above the format's width
  extreme,  ///< the two ends of the range
  lowest,   ///< the most negative number, or zero
  highest,  ///< the largest number
};

struct IntegerProblem {
  UnitDescription unit;
  std::int64_t m = 0, n = 0, k = 0;
  OperandData a, b;
  std::vector<std::int32_t> c;  ///< numbers within the register; empty: none

  Gemm gemm(const void* c_codes, void* d) const {
    return {.m = m, .n = n, .k = k, .a = a.operand(), .b = b.operand(), .c = c_codes, .d = d};
  }
};

inline std::uint64_t draw_code(const Format& f, Codes codes, Dice& dice) {
  const std::uint64_t highest = f.is_signed ? f.code_mask() >> 1 : f.code_mask();
  const std::uint64_t lowest = f.is_signed ? highest + 1 : 0;
  switch (codes) {
    case Codes::extreme:
      return dice.below(2) == 0 ? lowest : highest;
    case Codes::lowest:
      return lowest;
    case Codes::highest:
      return highest;
    case Codes::any:
      break;
  }
  return dice.bits();
}

inline OperandData integer_operand(const Format& format, Gather gather, Codes codes, Dice& dice) {
  OperandData data;
  data.format = &format;
  data.gather = std::move(gather);
  const auto size = static_cast<std::size_t>(data.gather.padding.source_size());
  if (format.bits <= 8) {
    // One more, so that no operand is empty.
    data.bytes.resize(size + 1);
    for (auto& code : data.bytes) code = static_cast<std::uint8_t>(draw_code(format, codes, dice));
  } else {
    data.halves.resize(size + 1);
    for (auto& code : data.halves)
      code = static_cast<std::uint16_t>(draw_code(format, codes, dice));
  }
  return data;
}

struct IntegerShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool a_transposed = false, b_transposed = false, with_c = true;
};

inline IntegerProblem integer_problem(const UnitDescription& unit, const Format& a, const Format& b,
                                      const IntegerShape& s, Codes codes, std::uint64_t seed) {
  Dice dice(seed);
  IntegerProblem p{unit, s.m, s.n, s.k, {}, {}, {}};
  p.a = integer_operand(a, Gather::matrix(s.m, s.k, s.a_transposed), codes, dice);
  p.b = integer_operand(b, Gather::matrix(s.n, s.k, s.b_transposed), codes, dice);
  if (!s.with_c) return p;
  const int unused = 32 - unit.accumulator.bits;
  p.c.resize(static_cast<std::size_t>(s.m * s.n));
  for (auto& c : p.c) c = static_cast<std::int32_t>(dice.bits()) >> unused;
  return p;
}

/// Code of padded element `index`: 0 in the border.
inline std::vector<std::uint32_t> padded_codes(const OperandData& data) {
  const Padding& padding = data.gather.padding;
  std::vector<std::uint16_t> codes(data.bytes.begin(), data.bytes.end());
  if (!data.halves.empty()) codes = data.halves;
  std::vector<std::uint16_t> padded(static_cast<std::size_t>(padding.padded_size()));
  pad(padding, codes.data(), padded.data(), std::uint16_t{0});
  std::vector<std::uint32_t> result(padded.begin(), padded.end());
  for (auto& code : result) code &= static_cast<std::uint32_t>(data.format->code_mask());
  return result;
}

inline std::int64_t number_of(const Format& f, std::uint32_t code) {
  const bool negative = f.is_signed && (code & f.sign_bit()) != 0;
  return static_cast<std::int64_t>(code) - (negative ? std::int64_t{1} << f.bits : 0);
}

/// What the register holds of `sum`.
inline std::int64_t held(const Register& r, std::int64_t sum) {
  const std::int64_t half = std::int64_t{1} << (r.bits - 1);
  if (r.integer == IntegerOverflow::wrap) return ((sum + half) & (2 * half - 1)) - half;
  return std::clamp(sum, -half, half - 1);
}

/// D as numbers, one product after another: the model.
inline std::vector<std::int32_t> model(const IntegerProblem& p) {
  const UnitDescription& unit = p.unit;
  const Register& r = unit.accumulator;
  const std::vector<std::uint32_t> a = padded_codes(p.a), b = padded_codes(p.b);
  const auto product = [&](std::uint32_t x, std::uint32_t y) -> std::int64_t {
    if (unit.core == CoreKind::xnor) return x == y ? 1 : -1;
    if (unit.core == CoreKind::table) return (*unit.products)[x << p.b.format->bits | y];
    return number_of(*p.a.format, x) * number_of(*p.b.format, y);
  };
  std::int64_t step = unit.group != 0 ? unit.group : unit.k;
  if (step == 0) step = p.k;
  if (r.integer == IntegerOverflow::saturate_each) step = 1;
  std::vector<std::int32_t> d;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      std::int64_t sum = p.c.empty() ? 0 : p.c[static_cast<std::size_t>(i * p.n + j)];
      for (std::int64_t k = 0; k < p.k; ++k) {
        const auto at_a = static_cast<std::size_t>(p.a.gather.row[static_cast<std::size_t>(i)] +
                                                   p.a.gather.depth[static_cast<std::size_t>(k)]);
        const auto at_b = static_cast<std::size_t>(p.b.gather.row[static_cast<std::size_t>(j)] +
                                                   p.b.gather.depth[static_cast<std::size_t>(k)]);
        sum += product(a[at_a], b[at_b]);
        if ((k + 1) % step == 0) sum = held(r, sum);
      }
      d.push_back(static_cast<std::int32_t>(held(r, sum)));
    }
  }
  return d;
}

/// Numbers as the containers of a register hold them.
inline std::vector<std::uint8_t> container(const Register& r, const std::vector<std::int32_t>& x) {
  const std::size_t bytes = r.bits <= 8 ? 1 : r.bits <= 16 ? 2 : 4;
  std::vector<std::uint8_t> codes(x.size() * bytes);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::int32_t code = x[i];
    if (bytes < 4) code &= (1 << r.bits) - 1;
    std::memcpy(codes.data() + i * bytes, &code, bytes);
  }
  return codes;
}

}  // namespace numemu::unit::test::integers
