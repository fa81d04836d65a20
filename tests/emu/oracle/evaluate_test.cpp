// Expected results: against exact rationals, against this CPU's float32, and against units.
#include "emu/oracle/evaluate.hpp"

#include <bit>
#include <cfenv>
#include <cmath>

#include "emu/oracle/record.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/one_record.hpp"
#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle::evaluate_test {
namespace {

Rational signed_rational(const Decoded& d) {
  return d.negative ? Rational(-d.magnitude) : d.magnitude;
}

using one_record::result_of;

TEST_CASE("products and sums of finite codes agree with exact rationals", "[fast]") {
  const Format& from = find_format("float8_e4m3fn");
  const Format& to = find_format("float8_e5m2");
  const RationalCodec reader("float8_e4m3fn"), writer("float8_e5m2");
  const Overflow overflow = Overflow::ieee;
  for (const std::string rounding : {"rne", "rdn", "rodd"}) {
    for (const Operation operation : {Operation::mul, Operation::add}) {
      const Rounding r = parse_rounding(rounding);
      const Subject s = operation_subject(operation, from, to, r, overflow);
      Records records(layout_of(s), 1 << 16);
      for (std::size_t i = 0; i < 1 << 16; ++i) {
        records.columns[0][i] = i >> 8;
        records.columns[1][i] = i & 255;
      }
      evaluate(s, records);
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < 1 << 16; i += 23) {
        const Decoded a = reader.decode(i >> 8), b = reader.decode(i & 255);
        if (a.kind == Class::nan || b.kind == Class::nan) continue;
        const Rational x = signed_rational(a), y = signed_rational(b);
        const Rational exact = operation == Operation::mul ? Rational(x * y) : Rational(x + y);
        if (exact == 0) continue;  // the signs of zeros have their own test
        const Encoded e = writer.encode(writer.place(exact), r, overflow);
        wrong += e.code != records.columns[2][i] || e.flags != records.columns[3][i];
      }
      INFO(rounding << " " << to_string(operation));
      CHECK(wrong == 0);
    }
  }
}

/// What this CPU computes in float32, with its flags; the operands are kept from the compiler.
Encoded by_host(Operation operation, float a, float b, float c) {
  volatile float x = a, y = b, z = c;
  std::feclearexcept(FE_ALL_EXCEPT);
  volatile float d = operation == Operation::mul   ? x * y
                     : operation == Operation::add ? x + y
                                                   : std::fmaf(x, y, z);
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  std::uint8_t flags = 0;
  for (const auto& [host, ours] : {std::pair<int, Flag>{FE_INEXACT, kInexact},
                                   {FE_UNDERFLOW, kUnderflow},
                                   {FE_OVERFLOW, kOverflow},
                                   {FE_INVALID, kInvalid}})
    flags = static_cast<std::uint8_t>(flags | ((raised & host) != 0 ? ours : 0));
  return {std::bit_cast<std::uint32_t>(static_cast<float>(d)), flags};
}

TEST_CASE("float32 operations are this CPU's, flags included", "[fast]") {
  const Format& f32 = find_format("float32");
  std::uint64_t state = 7;
  const auto draw = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents from everywhere, or close to each other, or at the ends.
    auto code = static_cast<std::uint32_t>(state >> 32);
    const auto way = static_cast<unsigned>(state >> 20) % 4;
    if (way == 1) code = (code & 0x807fffffu) | 0x3f000000u | (code >> 3 & 0x03800000u);
    if (way == 2) code &= 0x81ffffffu;
    if (way == 3) code |= 0x7e000000u;
    return code;
  };
  std::int64_t wrong = 0;
  for (const Operation operation : {Operation::mul, Operation::add, Operation::fma}) {
    const Subject s = operation_subject(operation, f32, f32, {}, Overflow::ieee);
    for (int i = 0; i < 30000; ++i) {
      const std::uint32_t a = draw(), b = draw(), c = draw();
      const Encoded host = by_host(operation, std::bit_cast<float>(a), std::bit_cast<float>(b),
                                   std::bit_cast<float>(c));
      const Encoded ours =
          operation == Operation::fma ? result_of(s, {a, b, c}) : result_of(s, {a, b});
      const bool nan = (ours.code & 0x7fffffff) > 0x7f800000;
      const bool same_code = nan ? (host.code & 0x7fffffff) > 0x7f800000 : ours.code == host.code;
      wrong += !same_code || ours.flags != host.flags;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("zeros, infinities and NaN of operations follow IEEE 754", "[fast]") {
  const Format& f16 = find_format("float16");
  const auto of = [&](Operation operation, const std::string& rounding,
                      std::initializer_list<std::uint64_t> operands) {
    return result_of(
        operation_subject(operation, f16, f16, parse_rounding(rounding), Overflow::ieee), operands);
  };
  constexpr std::uint64_t kOne = 0x3c00, kMinusOne = 0xbc00, kMinusZero = 0x8000, kInf = 0x7c00,
                          kMinusInf = 0xfc00, kNan = 0x7e00, kSignalling = 0x7d00;
  CHECK(of(Operation::add, "rne", {kOne, kMinusOne}).code == 0);
  CHECK(of(Operation::add, "rdn", {kOne, kMinusOne}).code == kMinusZero);
  CHECK(of(Operation::add, "rdn", {0, 0}).code == 0);
  CHECK(of(Operation::add, "rdn", {0, kMinusZero}).code == kMinusZero);
  CHECK(of(Operation::add, "rne", {kMinusZero, kMinusZero}).code == kMinusZero);
  CHECK(of(Operation::mul, "rdn", {0, kOne}).code == 0);
  CHECK(of(Operation::mul, "rne", {kMinusZero, kOne}).code == kMinusZero);
  CHECK(of(Operation::fma, "rdn", {kOne, kOne, kMinusOne}).code == kMinusZero);
  for (const Encoded invalid :
       {of(Operation::add, "rne", {kInf, kMinusInf}), of(Operation::mul, "rne", {0, kInf}),
        of(Operation::fma, "rne", {kInf, kMinusZero, kNan}),
        of(Operation::add, "rne", {kSignalling, 0}),
        of(Operation::fma, "rne", {kOne, kInf, kMinusInf})}) {
    CHECK(invalid.code == kNan);
    CHECK(invalid.flags == kInvalid);
  }
  CHECK(of(Operation::add, "rne", {kNan, kInf}).flags == 0);
  CHECK(of(Operation::add, "rne", {kInf, kOne}).code == kInf);
}

TEST_CASE("conversions to integers out of range raise NV alone", "[fast]") {
  constexpr std::uint64_t kHuge = 0x7f7fffff, k127 = 0x42fe0000, k127Half = 0x42ff0000,
                          k128 = 0x43000000, kMinus128 = 0xc3000000, kMinus129 = 0xc3010000,
                          kTiny = 1, kHalf = 0x3f000000, kInf = 0x7f800000, kNan = 0x7fc00000,
                          kMinusOne = 0xbf800000;
  const auto of = [](const char* to, const char* rounding, std::uint64_t code) {
    return result_of(operation_subject(Operation::convert, find_format("float32"), find_format(to),
                                       parse_rounding(rounding), Overflow::saturate),
                     {code});
  };
  struct Row {
    const char *to, *rounding;
    std::uint64_t code, result, flags;
  };
  for (const Row& row : std::vector<Row>{{"int8", "rne", k127, 127, 0},
                                         {"int8", "rne", kMinus128, 0x80, 0},
                                         {"int8", "rne", kHalf, 0, kInexact},
                                         {"int8", "rne", kTiny, 0, kInexact},
                                         {"int8", "rtz", k127Half, 127, kInexact},
                                         {"int8", "rne", k127Half, 127, kInvalid},
                                         {"int8", "rne", k128, 127, kInvalid},
                                         {"int8", "rne", kMinus129, 0x80, kInvalid},
                                         {"int8", "rne", kHuge, 127, kInvalid},
                                         {"int8", "rne", kInf, 127, kInvalid},
                                         {"int4", "rne", k127, 7, kInvalid},
                                         {"uint8", "rne", k128, 128, 0},
                                         {"uint8", "rne", kMinusOne, 0, kInvalid},
                                         {"uint8", "rne", kHuge, 255, kInvalid}}) {
    INFO(row.to << " " << row.rounding << " " << std::hex << row.code);
    const Encoded found = of(row.to, row.rounding, row.code);
    CHECK(found.code == row.result);
    CHECK(found.flags == row.flags);
  }
  CHECK(of("int8", "rne", kNan).flags == kInvalid);
  // Of floating formats it is an overflow.
  CHECK(of("float8_e4m3fn", "rne", kHuge).flags == (kOverflow | kInexact));
}

TEST_CASE("units are computed from the columns, random words included", "[fast]") {
  // 1 + 2^-4 in a register with two fraction bits: any word below 12 of 16 stays.
  const Subject s = unit_subject(unit::find_unit("neutral.mac.e5m2.sr4"), 2,
                                 &find_format("float16"), &find_format("float16"));
  const Layout layout = layout_of(s);
  Records records(layout, 2);
  const auto set = [&](const char* field, std::initializer_list<std::uint64_t> codes) {
    records.columns[static_cast<std::size_t>(find_field(layout, field))] = codes;
  };
  set("a", {0x3c00, 0x2c00, 0x3c00, 0x2c00});  // 1, 2^-4
  set("b", {0x3c00, 0x3c00, 0x3c00, 0x3c00});
  set("r", {15, 11, 0, 12});
  evaluate(s, records);
  CHECK(records.columns[static_cast<std::size_t>(find_field(layout, "d"))] ==
        std::vector<std::uint64_t>{0x3c, 0x3d});
  CHECK(records.columns[static_cast<std::size_t>(find_field(layout, "flags"))] ==
        std::vector<std::uint64_t>{kInexact, kInexact});
  const Value exact = exact_result(s, records, 0);
  CHECK(to_double(exact) == 1.0625);
}

}  // namespace
}  // namespace numemu::oracle::evaluate_test
