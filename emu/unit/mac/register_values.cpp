#include "emu/unit/mac/register_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"

namespace numemu::unit::mac {
namespace {

/// Bytes of a two's complement register's container.
int integer_bytes(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }

std::int64_t sign_extended(std::uint64_t code, int bits) {
  return static_cast<std::int64_t>(code << (64 - bits)) >> (64 - bits);
}

double integer_at(const Register& r, const void* codes, std::int64_t i) {
  std::uint64_t code = 0;
  switch (integer_bytes(r.bits)) {
    case 1:
      code = static_cast<const std::uint8_t*>(codes)[i];
      break;
    case 2:
      code = static_cast<const std::uint16_t*>(codes)[i];
      break;
    default:
      code = static_cast<const std::uint32_t*>(codes)[i];
  }
  return std::ldexp(static_cast<double>(sign_extended(code, r.bits)), -r.fraction);
}

/// To a format that holds the values; nullptr: any, nothing is converted.
Conversion exactly_to(const Format* format) {
  Conversion c;
  c.format = format != nullptr ? format : &float32();
  c.overflow = Overflow::ieee;
  return c;
}

}  // namespace

std::vector<double> read_c(const UnitDescription& unit, const Gemm& g) {
  if (g.c == nullptr) return {};
  std::vector<double> values(static_cast<std::size_t>(g.m * g.n));
  const auto count = static_cast<std::int64_t>(values.size());
  const Format* const format = c_format(unit);
  if (format == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = integer_at(unit.accumulator, g.c, i);
    return values;
  }
  const Format& f = *format;
  if (format == &float32()) {
    const auto* c = static_cast<const float*>(g.c);
    values.assign(c, c + count);
    return values;
  }
  const auto value_of_code = [&](std::uint64_t code) { return double_or_nan(decode(f, code)); };
  const auto code = [&](std::int64_t i) { return load_code(f, g.c, i) & f.code_mask(); };
  const auto codes = std::int64_t{1} << f.bits;
  if (codes > count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = value_of_code(code(i));
    return values;
  }
  std::vector<double> table(static_cast<std::size_t>(codes));
  for (std::int64_t i = 0; i < codes; ++i) table[i] = value_of_code(static_cast<std::uint64_t>(i));
  for (std::int64_t i = 0; i < count; ++i) values[i] = table[code(i)];
  return values;
}

bool floats_known(const UnitDescription& unit) {
  const Format *const c = c_format(unit), *const d = result_format(unit);
  if (unit.accumulator.format == nullptr || c == nullptr || d == nullptr) return false;
  const Format& f = *unit.accumulator.format;
  return f.kind == Kind::floating && f.is_signed && f.mantissa_bits > 0 &&
         f.field_zero == FieldZero::subnormal && fits_float32(f) && c->kind == Kind::floating &&
         fits_float32(*c) && fits_float32(*d);
}

bool is_foreign(const UnitDescription& unit, const std::vector<double>& c) {
  if (c.empty() || c_format(unit) == unit.accumulator.format) return false;
  std::vector<float> exact(c.begin(), c.end()), held(c.size());
  const Float32Converter to_register(exactly_to(unit.accumulator.format));
  to_register.round(exact.data(), std::ssize(exact), held.data());
  return !std::equal(exact.begin(), exact.end(), held.begin(),
                     [](float x, float y) { return x == y || std::isnan(x); });
}

ResultWriter::ResultWriter(const UnitDescription& unit, const Gemm& gemm)
    : unit_(unit), gemm_(gemm), to_code_(exactly_to(result_format(unit))) {}

template <class Code>
void ResultWriter::write_floats(std::int64_t first, std::int64_t count, const float* values) const {
  auto* codes = static_cast<Code*>(gemm_.d) + first;
  if (result_format(unit_) == &float32()) {
    std::memcpy(codes, values, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    to_code_.encode(values, count, codes);
  }
  int nans = 0;
#pragma omp simd reduction(+ : nans)
  for (std::int64_t j = 0; j < count; ++j) nans += values[j] != values[j];
  if (nans == 0) return;
  const std::uint64_t nan = unit_.nan_code << result_format(unit_)->container_shift;
  for (std::int64_t j = 0; j < count; ++j) {
    if (values[j] != values[j]) codes[j] = static_cast<Code>(nan);
  }
}

template <class T>
void ResultWriter::write_integers(std::int64_t first, std::int64_t count, const T* values) const {
  const Register& r = unit_.accumulator;
  const double units = std::ldexp(1.0, r.fraction);
  const std::uint64_t mask = (std::uint64_t{1} << r.bits) - 1;
  for (std::int64_t j = 0; j < count; ++j) {
    const auto n = static_cast<std::int64_t>(static_cast<double>(values[j]) * units);
    const std::uint64_t code = static_cast<std::uint64_t>(n) & mask;
    switch (integer_bytes(r.bits)) {
      case 1:
        static_cast<std::uint8_t*>(gemm_.d)[first + j] = static_cast<std::uint8_t>(code);
        break;
      case 2:
        static_cast<std::uint16_t*>(gemm_.d)[first + j] = static_cast<std::uint16_t>(code);
        break;
      default:  // sign-extended: an int32
        static_cast<std::int32_t*>(gemm_.d)[first + j] = static_cast<std::int32_t>(n);
    }
  }
}

void ResultWriter::write(std::int64_t i, std::int64_t j, std::int64_t count,
                         const float* values) const {
  const std::int64_t first = i * gemm_.n + j;
  const Format* format = result_format(unit_);
  if (format == nullptr) return write_integers(first, count, values);
  if (format->bits <= 8) return write_floats<std::uint8_t>(first, count, values);
  if (format->bits <= 16) return write_floats<std::uint16_t>(first, count, values);
  write_floats<std::uint32_t>(first, count, values);
}

void ResultWriter::write(std::int64_t i, std::int64_t j, std::int64_t count,
                         const double* values) const {
  if (unit_.accumulator.format == nullptr) return write_integers(i * gemm_.n + j, count, values);
  const std::vector<float> narrow(values, values + count);  // exact: the register fits float32
  write(i, j, count, narrow.data());
}

}  // namespace numemu::unit::mac
