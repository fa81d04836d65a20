// Products for the tests of rounded multiply-adds, and their comparison with the reference.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/mac/mac.hpp"
#include "emu/unit/reference/dot.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"
#include "tests/emu/unit/by_path.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

inline UnitDescription chain_of(const std::string& format, const std::string& rounding = "rne",
                                Overflow overflow = Overflow::ieee, int chunk = 0) {
  UnitDescription unit;
  unit.core = CoreKind::chain;
  unit.accumulator.format = &find_format(format);
  unit.accumulator.rounding = parse_rounding(rounding);
  unit.accumulator.overflow = overflow;
  unit.chain.chunk = chunk;
  unit.nan_code = unit.accumulator.format->has_nan() ? unit.accumulator.format->nan_code() : 0;
  return unit;
}

inline UnitDescription integer_chain(int bits, int fraction, IntegerOverflow overflow,
                                     const std::string& rounding = "rne", int chunk = 0) {
  UnitDescription unit;
  unit.core = CoreKind::chain;
  unit.accumulator.bits = bits;
  unit.accumulator.fraction = fraction;
  unit.accumulator.integer = overflow;
  unit.accumulator.rounding = parse_rounding(rounding);
  unit.chain.chunk = chunk;
  return unit;
}

/// Magnitudes an operand draws; zero is drawn as well.
struct Magnitudes {
  double low = 0, high = 0;
};

inline void redraw(OperandData& data, Magnitudes range, Dice& dice) {
  const Format& f = *data.format;
  const auto draw = [&] {
    for (;;) {
      const std::uint64_t code = dice.bits() & f.code_mask();
      const Value v = decode(f, code);
      if (v.kind == Class::zero) return code;
      if (v.kind != Class::finite) continue;
      const double x = std::abs(to_double(v));
      if (x >= range.low && x < range.high) return code;
    }
  };
  for (auto& code : data.bytes) code = static_cast<std::uint8_t>(draw());
  for (auto& code : data.halves) code = static_cast<std::uint16_t>(draw());
  for (auto& x : data.floats)
    x = std::bit_cast<float>(static_cast<std::uint32_t>(draw() << f.container_shift));
}

struct Case {
  std::string a = "float8_e4m3fn", b = "float8_e4m3fn";
  std::int64_t m = 7, n = 37, k = 70;
  bool with_c = false;
  Fill fill = Fill::finite;
  Magnitudes magnitudes = {};  ///< high 0: as `fill` says
  std::uint64_t seed = 1;
  std::uint32_t tensor = 0;
  MatrixLayout layout = {};
};

/// Bytes of C or D: of the format, or of the two's complement register.
inline int container(const UnitDescription& unit, const Format* format) {
  const Register& r = unit.accumulator;
  if (format != nullptr) return container_bytes(*format);
  return r.bits <= 8 ? 1 : r.bits <= 16 ? 2 : 4;
}

inline std::vector<std::uint8_t> draw_c(const UnitDescription& unit, const Case& c, Dice& dice) {
  const Format* f = c_format(unit);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(c.m * c.n * container(unit, f)));
  if (f == nullptr) {
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(dice.bits());
    return bytes;
  }
  for (std::int64_t i = 0; i < c.m * c.n; ++i) {
    for (;;) {
      const std::uint64_t code = dice.bits() & f->code_mask();
      const Value v = decode(*f, code);
      const bool special = v.kind == Class::infinite || v.kind == Class::nan;
      const bool small = v.kind == Class::zero || v.exponent + f->mantissa_bits < 3;
      if (special ? c.fill != Fill::any : c.magnitudes.high != 0 && !small) continue;
      store_code(*f, bytes.data(), i, code);
      break;
    }
  }
  return bytes;
}

/// Elements in which multiply_mac() and the reference differ; -1 where it declines.
inline std::int64_t differing(const UnitDescription& unit, const Case& c) {
  Dice dice(c.seed * 7919 + 13);
  OperandData a =
      make_operand(c.a, c.m * c.k, Gather::matrix(c.m, c.k, c.layout.a_transposed), c.fill, dice);
  OperandData b =
      make_operand(c.b, c.n * c.k, Gather::matrix(c.n, c.k, c.layout.b_transposed), c.fill, dice);
  if (c.magnitudes.high != 0) {
    redraw(a, c.magnitudes, dice);
    redraw(b, c.magnitudes, dice);
  }
  const std::vector<std::uint8_t> c_codes =
      c.with_c ? draw_c(unit, c, dice) : std::vector<std::uint8_t>();
  const auto bytes = static_cast<std::size_t>(container(unit, result_format(unit)));
  const auto size = static_cast<std::size_t>(c.m * c.n) * bytes;
  std::vector<std::uint8_t> fast(size, 0xa5), reference(size, 0x5a);
  Gemm g;
  g.m = c.m;
  g.n = c.n;
  g.k = c.k;
  g.a = a.operand();
  g.b = b.operand();
  g.c = c.with_c ? c_codes.data() : nullptr;
  g.seed = c.seed;
  g.tensor = c.tensor;
  g.d = fast.data();
  if (!by_path(multiply_mac, unit, g)) {
    // Nothing is written.
    return std::count(fast.begin(), fast.end(), 0xa5) == static_cast<std::int64_t>(size) ? -1 : -2;
  }
  g.d = reference.data();
  const ReferenceDot dot(unit, g);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) dot.write(i, j);
  }
  std::int64_t count = 0;
  for (std::size_t i = 0; i < size; i += bytes)
    count += std::memcmp(&fast[i], &reference[i], bytes) != 0;
  return count;
}

inline const std::vector<std::string>& roundings() {
  static const std::vector<std::string> all = {
      "rne",       "rna",      "rtz",     "rup",        "rdn",     "rodd",
      "sr(1)",     "sr(8)",    "sr(12)",  "sr(23)",     "sr(8,a)", "sr(8,b)",
      "sr(8,odd)", "sr(13,a)", "sr(1,b)", "sr(20,odd)", "sr(16,b)"};
  return all;
}

inline constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};

/// Operands that stay inside the register, that overflow it, that fill its subnormal range, and all
/// codes.
inline std::vector<Case> data_sets(const std::string& a, const std::string& b, Magnitudes tiny) {
  std::vector<Case> cases;
  cases.push_back({.a = a, .b = b, .with_c = true, .magnitudes = {0x1p-4, 4}, .seed = 2});
  cases.push_back({.a = a, .b = b, .m = 9, .n = 5, .k = 40, .fill = Fill::finite, .seed = 3});
  cases.push_back(
      {.a = a, .b = b, .m = 5, .n = 20, .k = 30, .with_c = true, .fill = Fill::any, .seed = 4});
  cases.push_back(
      {.a = a, .b = b, .m = 4, .n = 33, .k = 50, .with_c = true, .magnitudes = tiny, .seed = 5});
  return cases;
}

}  // namespace numemu::unit::test
