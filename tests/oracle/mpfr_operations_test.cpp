// MPFR as a second oracle of operations: IEEE-like formats, values and flags; conversions from and
// to the integers of processors.
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mpfr_machine.hpp"
#include "tests/oracle/specification.hpp"

namespace numemu::oracle::mpfr_operations_test {
namespace {

/// A code of an IEEE-like format, from its fields.
struct Read {
  double value = 0;
  bool nan = false, signalling = false;
};

Read read(const Specified& f, std::uint64_t code) {
  const std::uint64_t fraction = code & ((std::uint64_t{1} << f.m) - 1);
  const int field = static_cast<int>(code >> f.m) & ((1 << f.e) - 1);
  const double sign = code >> (f.e + f.m) != 0 ? -1 : 1;
  if (field == (1 << f.e) - 1) {
    if (fraction == 0) return {sign * std::numeric_limits<double>::infinity()};
    return {0, true, f.m > 1 && fraction >> (f.m - 1) == 0};
  }
  const auto significand =
      static_cast<double>(field == 0 ? fraction : fraction | std::uint64_t{1} << f.m);
  return {sign * std::ldexp(significand, std::max(field, 1) - f.bias - f.m)};
}

/// y = the operation of the operands, rounded at y's precision; the ternary value.
using Compute = int (*)(mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr c, mpfr_rnd_t);

struct Operand {
  const char* name;
  int operands;
  Compute compute;
};

// -(a * b) + c is (-a) * b + c: MPFR's own negative would give a sum of zero the other sign.
constexpr Operand kOperations[] = {
    {"add", 2,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr, mpfr_rnd_t r) {
       return mpfr_add(y, a, b, r);
     }},
    {"sub", 2,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr, mpfr_rnd_t r) {
       return mpfr_sub(y, a, b, r);
     }},
    {"mul", 2,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr, mpfr_rnd_t r) {
       return mpfr_mul(y, a, b, r);
     }},
    {"div", 2,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr, mpfr_rnd_t r) {
       return mpfr_div(y, a, b, r);
     }},
    {"sqrt", 1,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr, mpfr_ptr, mpfr_rnd_t r) { return mpfr_sqrt(y, a, r); }},
    {"fma", 3,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr c, mpfr_rnd_t r) {
       return mpfr_fma(y, a, b, c, r);
     }},
    {"fmsub", 3,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr c, mpfr_rnd_t r) {
       return mpfr_fms(y, a, b, c, r);
     }},
    {"fnmsub", 3,
     [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr c, mpfr_rnd_t r) {
       mpfr_neg(a, a, MPFR_RNDN);
       return mpfr_fma(y, a, b, c, r);
     }},
    {"fnmadd", 3, [](mpfr_ptr y, mpfr_ptr a, mpfr_ptr b, mpfr_ptr c, mpfr_rnd_t r) {
       mpfr_neg(a, a, MPFR_RNDN);
       return mpfr_fms(y, a, b, c, r);
     }}};

Encoded by_mpfr(const Specified& f, const Operand& op, const std::vector<std::uint64_t>& codes,
                RoundingMode mode) {
  const MpfrMachine machine(f);
  MpfrNumber a(53), b(53), c(53), y(machine.precision);
  Read reads[3];
  bool any_nan = false, signalling = false;
  mpfr_ptr operands[] = {a, b, c};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    reads[i] = read(f, codes[i]);
    any_nan |= reads[i].nan;
    signalling |= reads[i].signalling;
    if (reads[i].nan) {
      mpfr_set_nan(operands[i]);
    } else {
      mpfr_set_d(operands[i], reads[i].value, MPFR_RNDN);
    }
  }
  const mpfr_rnd_t rounding = direction(mode);
  mpfr_clear_flags();
  int ternary = op.compute(y, a, b, c, rounding);
  const bool by_zero = mpfr_divby0_p() != 0;
  // Zero times infinity is invalid whatever is added.
  const bool zero_infinity = op.operands == 3 && !reads[0].nan && !reads[1].nan &&
                             ((reads[0].value == 0 && std::isinf(reads[1].value)) ||
                              (reads[1].value == 0 && std::isinf(reads[0].value)));
  int flags = by_zero ? kDivideByZero : 0;
  if (mpfr_nan_p(y) != 0) {
    flags = signalling || !any_nan || zero_infinity ? kInvalid : 0;
    const std::uint64_t quiet = std::uint64_t{1} << (f.m - 1);
    return {(((std::uint64_t{1} << f.e) - 1) << f.m) | quiet, static_cast<std::uint8_t>(flags)};
  }
  if (mpfr_regular_p(y) != 0) {
    const bool tiny = mpfr_get_exp(y) < machine.normal_emin;
    mpfr_clear_flags();
    ternary = into_range(machine, y, ternary, rounding);
    if (ternary != 0) flags |= kInexact | (tiny ? kUnderflow : 0);
    if (mpfr_overflow_p() != 0) flags |= kOverflow;
  }
  return {mpfr_code_of(f, mpfr_get_d(y, MPFR_RNDN)), static_cast<std::uint8_t>(flags)};
}

struct Count {
  std::int64_t records = 0, differences = 0;
  std::string first;
};

constexpr const char* kModes[] = {"rne", "rtz", "rup", "rdn"};

/// Records of all classes, and all pairs of edges.
void compare(const char* format, const Operand& op, const char* mode, const char* style,
             std::int64_t n, Count& count) {
  Subject s = operation_subject(parse_operation(op.name), find_format(format), find_format(format),
                                parse_rounding(mode), Overflow::ieee);
  s.style = style;
  s.seed = 11;
  const Generator generator(s);
  Records records(generator.layout(), n);
  generator.fill(0, records);
  const Specified f = specified(format);
  const auto operands = static_cast<std::size_t>(op.operands);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::uint64_t> codes;
    for (std::size_t o = 0; o < operands; ++o)
      codes.push_back(records.code(static_cast<int>(o), i));
    const Encoded want = by_mpfr(f, op, codes, s.rounding.mode);
    const std::uint64_t got = records.code(static_cast<int>(operands), i),
                        flags = records.code(static_cast<int>(operands) + 1, i);
    ++count.records;
    if (got == want.code && flags == want.flags) continue;
    if (count.differences++ != 0) continue;
    char text[160];
    std::snprintf(text, sizeof text, "%s of %s %s: %llx %llx: %llx flags %d, MPFR %llx flags %d",
                  op.name, format, mode, static_cast<unsigned long long>(codes[0]),
                  static_cast<unsigned long long>(codes.back()),
                  static_cast<unsigned long long>(got), static_cast<int>(flags),
                  static_cast<unsigned long long>(want.code), want.flags);
    count.first = text;
  }
}

constexpr const char* kFormats[] = {"float16", "bfloat16",    "tfloat32",   "float32",
                                    "float64", "hfp16_e6m9",  "e10m5",      "e5m2b20",
                                    "e11m20",  "float8_e5m2", "float8_e3m4"};

void compare_all(std::int64_t n) {
  Count count;
  for (const Operand& op : kOperations) {
    for (const char* const format : kFormats) {
      for (const char* const mode : kModes) {
        compare(format, op, mode, "mixed", n, count);
        compare(format, op, mode, "edges", std::min<std::int64_t>(n, 400), count);
      }
    }
  }
  INFO(count.first);
  CHECK(count.differences == 0);
  WARN("operations against MPFR: " << count.records << " records, " << count.differences
                                   << " differences");
}

TEST_CASE("operations of IEEE-like formats are MPFR's, flags included", "[fast]") {
  compare_all(150);
}

TEST_CASE("operations of IEEE-like formats are MPFR's, at length", "[slow]") { compare_all(20000); }

struct Whole {
  const char* name;
  int bits;
  bool is_signed;
};
constexpr Whole kIntegers[] = {
    {"int32", 32, true}, {"uint32", 32, false}, {"int64", 64, true}, {"uint64", 64, false}};

/// The nearest integer by MPFR and, where it is none of the format, what RISC-V gives: the nearest
/// end, of NaN the largest; NV alone.
Encoded integer_by_mpfr(const Specified& f, const Whole& to, std::uint64_t code,
                        RoundingMode mode) {
  const Read operand = read(f, code);
  const std::uint64_t mask = to.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to.bits) - 1;
  const std::uint64_t most = to.is_signed ? mask >> 1 : mask, least = to.is_signed ? most + 1 : 0;
  if (operand.nan) return {most, kInvalid};
  MpfrNumber x(53), y(64), low(65), high(65);
  mpfr_set_d(x, operand.value, MPFR_RNDN);
  if (mpfr_inf_p(x) != 0) return {operand.value > 0 ? most : least, kInvalid};
  if (mode == RoundingMode::rna) {
    mpfr_round(y, x);
  } else {
    mpfr_rint(y, x, direction(mode));
  }
  mpfr_set_uj(high, most, MPFR_RNDN);
  mpfr_set_uj(low, least, MPFR_RNDN);
  mpfr_neg(low, low, MPFR_RNDN);
  if (mpfr_cmp(y, high) > 0) return {most, kInvalid};
  if (mpfr_cmp(y, low) < 0) return {least, kInvalid};
  const bool inexact = mpfr_cmp(x, y) != 0;
  const std::uint64_t result = to.is_signed
                                   ? static_cast<std::uint64_t>(mpfr_get_sj(y, MPFR_RNDN)) & mask
                                   : mpfr_get_uj(y, MPFR_RNDN);
  return {result, static_cast<std::uint8_t>(inexact ? kInexact : 0)};
}

void compare_conversions(std::int64_t n) {
  Count count;
  for (const char* const format : kFormats) {
    for (const Whole& to : kIntegers) {
      for (const char* const mode : {"rne", "rna", "rtz", "rup", "rdn"}) {
        for (const char* const operation : {"convert", "to_integer"}) {
          Subject s =
              operation_subject(parse_operation(operation), find_format(format),
                                find_format(to.name), parse_rounding(mode), Overflow::saturate);
          s.seed = 12;
          const Generator generator(s);
          Records records(generator.layout(), n);
          generator.fill(0, records);
          const Specified f = specified(format);
          for (std::int64_t i = 0; i < n; ++i) {
            Encoded want = integer_by_mpfr(f, to, records.code(0, i), s.rounding.mode);
            if (s.operation == Operation::to_integer) want.flags &= ~kInexact;
            ++count.records;
            if (want.code == records.code(1, i) && want.flags == records.code(2, i)) continue;
            if (count.differences++ == 0)
              count.first = std::string(format) + " to " + to.name + " " + mode + " " +
                            std::to_string(records.code(0, i));
          }
        }
      }
    }
  }
  INFO(count.first);
  CHECK(count.differences == 0);
  WARN("conversions to integers against MPFR: " << count.records << " records, "
                                                << count.differences << " differences");
}

TEST_CASE("conversions to integers are MPFR's, with RISC-V's ends and flags", "[fast]") {
  compare_conversions(200);
}

TEST_CASE("conversions to integers are MPFR's, at length", "[slow]") { compare_conversions(20000); }

void compare_from_integers(std::int64_t n) {
  Count count;
  for (const char* const format : kFormats) {
    for (const Whole& from : kIntegers) {
      for (const char* const mode : kModes) {
        Subject s = operation_subject(Operation::convert, find_format(from.name),
                                      find_format(format), parse_rounding(mode), Overflow::ieee);
        s.seed = 13;
        const Generator generator(s);
        Records records(generator.layout(), n);
        generator.fill(0, records);
        const Specified f = specified(format);
        const MpfrMachine machine(f);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint64_t code = records.code(0, i);
          MpfrNumber y(machine.precision);
          const mpfr_rnd_t rounding = direction(s.rounding.mode);
          const int above = 64 - from.bits;
          int ternary =
              from.is_signed
                  ? mpfr_set_sj(y, static_cast<std::int64_t>(code << above) >> above, rounding)
                  : mpfr_set_uj(y, code, rounding);
          mpfr_clear_flags();
          if (mpfr_regular_p(y) != 0) ternary = into_range(machine, y, ternary, rounding);
          const int flags =
              (ternary != 0 ? kInexact : 0) | (mpfr_overflow_p() != 0 ? kOverflow : 0);
          const std::uint64_t want = mpfr_code_of(f, mpfr_get_d(y, MPFR_RNDN));
          ++count.records;
          if (want == records.code(1, i) && static_cast<std::uint64_t>(flags) == records.code(2, i))
            continue;
          if (count.differences++ == 0)
            count.first =
                std::string(from.name) + " to " + format + " " + mode + " " + std::to_string(code);
        }
      }
    }
  }
  INFO(count.first);
  CHECK(count.differences == 0);
  WARN("conversions from integers against MPFR: " << count.records << " records, "
                                                  << count.differences << " differences");
}

TEST_CASE("conversions from integers are MPFR's", "[fast]") { compare_from_integers(200); }

TEST_CASE("conversions from integers are MPFR's, at length", "[slow]") {
  compare_from_integers(20000);
}

}  // namespace
}  // namespace numemu::oracle::mpfr_operations_test
