// One output of a described unit from a few numbers: what the tests of the reference compute by
// hand.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"

namespace numemu::unit::test {

inline std::uint64_t code_of_number(const Format& format, double x) {
  return encode(format, value_of(x), Rounding{}, Overflow::ieee).code;
}

inline std::vector<std::uint64_t> codes_of(const Format& format, const std::vector<double>& xs) {
  std::vector<std::uint64_t> codes;
  for (const double x : xs) codes.push_back(code_of_number(format, x));
  return codes;
}

/// Codes in their containers.
inline std::vector<std::uint8_t> stored(const std::vector<std::uint64_t>& codes, int bytes,
                                        int shift = 0) {
  std::vector<std::uint8_t> array(codes.size() * static_cast<std::size_t>(bytes) + 8);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t code = codes[i] << shift;
    std::memcpy(&array[i * static_cast<std::size_t>(bytes)], &code,
                static_cast<std::size_t>(bytes));
  }
  return array;
}

/// A product of one row of A and one column of B. The description must be legal.
struct DotCase {
  UnitDescription unit;
  std::vector<std::uint64_t> a, b;
  std::optional<std::uint64_t> c = {};
  std::vector<std::uint8_t> scale_a = {}, scale_b = {}, kept = {};
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0;
  /// Formats where the unit takes any.
  const Format* any = &find_format("float32");

  /// The code of D(0, column) where every column of B is the same.
  std::uint64_t code(Trace* trace = nullptr, std::int64_t column = 0) const {
    check_description(unit);
    const Format &fa = unit.a != nullptr ? *unit.a : *any, &fb = unit.b != nullptr ? *unit.b : *any;
    const auto depth = static_cast<std::int64_t>(b.size());
    const Gather rows = Gather::matrix(1, static_cast<std::int64_t>(a.size()));
    Gather columns = Gather::matrix(1, depth);
    columns.row.assign(static_cast<std::size_t>(column + 1), 0);
    const auto bytes_a = stored(a, container_bytes(fa), fa.container_shift);
    const auto bytes_b = stored(b, container_bytes(fb), fb.container_shift);
    const Format* fc = c_format(unit);
    const std::vector<std::uint64_t> cs(static_cast<std::size_t>(column + 1), c.value_or(0));
    const auto bytes_c = stored(cs, bytes_of(fc, result_register(unit)));
    std::vector<std::uint8_t> scales_b;
    for (std::int64_t j = 0; j <= column; ++j)
      scales_b.insert(scales_b.end(), scale_b.begin(), scale_b.end());
    Gemm g;
    g.m = 1;
    g.n = column + 1;
    g.k = depth;
    g.a = {&fa, bytes_a.data(), &rows};
    g.b = {&fb, bytes_b.data(), &columns};
    g.c = c ? bytes_c.data() : nullptr;
    g.scale_a = scale_a.empty() ? nullptr : scale_a.data();
    g.scale_b = scales_b.empty() ? nullptr : scales_b.data();
    g.kept = kept.empty() ? nullptr : kept.data();
    g.seed = seed;
    g.tensor = tensor;
    return ReferenceDot(unit, g).code(0, column, trace);
  }
  /// The same as a number.
  double number() const { return to_double(decode(*result_format(unit), code())); }
  /// The same of a two's complement register, in units of its last bit.
  std::int64_t whole() const {
    const int shift = 64 - result_register(unit).bits;
    return static_cast<std::int64_t>(code() << shift) >> shift;
  }
};

/// A unit whose operands, C, register and D are all of one floating format.
inline UnitDescription unit_of(CoreKind core, const char* format) {
  UnitDescription u;
  u.core = core;
  u.a = u.b = u.accumulator.format = &find_format(format);
  u.nan_code = u.a->nan_code();
  return u;
}

/// Products times one: the numbers themselves are the products.
inline DotCase products_of(UnitDescription unit, const std::vector<double>& products,
                           std::optional<double> c = {}) {
  const std::vector<double> ones(products.size(), 1.0);
  DotCase dot{unit, codes_of(*unit.a, products), codes_of(*unit.b, ones)};
  const Format* fc = c_format(unit);
  if (c) dot.c = code_of_number(*fc, *c);
  return dot;
}

}  // namespace numemu::unit::test
