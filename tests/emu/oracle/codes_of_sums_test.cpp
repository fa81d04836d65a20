// Records of the epilogue behind an integer unit, beside the published formulas in products of 128
// bits, and faults planted in them by code of their own.
#include "emu/oracle/codes_of_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/explain.hpp"
#include "emu/oracle/generator.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::codes_of_sums_test {
namespace {

using unit::Requantization;

__extension__ typedef __int128 Wide;

Subject subject(const std::string& how, const std::string& more = "",
                const std::string& unit = "intel.emr.tdpbssd", const std::string& to = "int8") {
  return parse_header("# numemu-vectors 1 unit=" + unit + " to=" + to + " k=8 requantize=" + how +
                      more + " seed=5");
}

Records made(const Subject& s, std::int64_t n, const EpilogueConstants& constants = {}) {
  const Generator generator(s, constants);
  Records records(generator.layout(), n);
  generator.fill(0, records);
  return records;
}

/// The numbers of a record, read by code of its own.
struct Numbers {
  std::int32_t sum = 0, bias = 0, zero = 0;
  std::int64_t multiplier = 0;
  int shift = 0;
  float factor = 0;
};

Numbers numbers(const Layout& layout, const Records& r, std::int64_t i) {
  const auto at = [&](const char* name, std::int64_t e = 0) {
    const int f = find_field(layout, name);
    return f < 0 ? 0 : r.code(f, i * layout[static_cast<std::size_t>(f)].count + e);
  };
  Numbers n;
  std::uint32_t sum = static_cast<std::uint32_t>(at("c"));
  for (std::int64_t k = 0; k < 8; ++k)
    sum += static_cast<std::uint32_t>(static_cast<std::int8_t>(at("a", k)) *
                                      static_cast<std::int8_t>(at("b", k)));
  n.bias = static_cast<std::int32_t>(at("bias"));
  n.sum = static_cast<std::int32_t>(sum + static_cast<std::uint32_t>(n.bias));
  n.zero = static_cast<std::int8_t>(at("zero_point"));
  n.multiplier = static_cast<std::int64_t>(at("multiplier"));
  n.shift = static_cast<std::int8_t>(at("shift"));
  n.factor = std::bit_cast<float>(static_cast<std::uint32_t>(at("factor")));
  return n;
}

/// TensorFlow Lite's MultiplyByQuantizedMultiplier, with one rounding and with two, and the same
/// with bits cut.
std::int64_t single(const Numbers& n) {
  const int total = 31 - n.shift;
  return static_cast<std::int64_t>((Wide{n.sum} * n.multiplier + (Wide{1} << (total - 1))) >>
                                   total);
}
std::int64_t twice(const Numbers& n) {
  const auto x =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(n.sum) << std::max(n.shift, 0));
  const auto high = static_cast<std::int64_t>((Wide{x} * n.multiplier + (1 << 30)) >> 31);
  const int right = std::max(-n.shift, 0);
  const std::int64_t half = right > 0 ? std::int64_t{1} << (right - 1) : 0;
  const std::int64_t rounded = (std::abs(high) + half) >> right;
  return high < 0 ? -rounded : rounded;
}
std::int64_t cut(const Numbers& n) {
  return static_cast<std::int64_t>(Wide{n.sum} * n.multiplier >> (31 - n.shift));
}

std::int64_t clamped(std::int64_t x) { return std::clamp<std::int64_t>(x, -128, 127); }

using Circuit = std::function<std::int64_t(const Numbers&)>;

/// The records with what a circuit makes of them.
Records by(const Circuit& circuit, const Subject& s, Records records) {
  const Layout layout = layout_of(s);
  auto& d = records.columns[static_cast<std::size_t>(find_field(layout, "d"))];
  for (std::int64_t i = 0; i < records.size; ++i)
    d[static_cast<std::size_t>(i)] =
        static_cast<std::uint64_t>(circuit(numbers(layout, records, i))) & 0xff;
  return records;
}

Explanation explained(const Subject& s, const Records& records) {
  Judge judge(s, JudgeOptions{});
  judge.check({&records, 1});
  return explain(judge);
}

TEST_CASE("codes of sums: records have the results of the published formulas", "[fast]") {
  const auto holds = [](const std::string& how, const Circuit& scaled) {
    INFO(how);
    const Subject s = subject(how);
    const Records records = made(s, 3000);
    const Layout layout = layout_of(s);
    const Records own =
        by([&](const Numbers& n) { return clamped(scaled(n) + n.zero); }, s, records);
    CHECK(own.columns == records.columns);
    // Codes spread: most are inside the ends.
    std::int64_t inside = 0;
    for (const std::uint64_t code : records.columns.back()) inside += code != 0x7f && code != 0x80;
    CHECK(inside > 1500);
    // evaluate() gives what the generator wrote.
    Records again = records;
    std::ranges::fill(again.columns.back(), 0);
    evaluate(s, again);
    CHECK(again.columns == records.columns);
  };
  holds("fixed-point-single", single);
  holds("fixed-point-double", twice);
  holds("float", [](const Numbers& n) -> std::int64_t {
    const float x = static_cast<float>(n.sum) * n.factor;
    return std::llrint(std::clamp(x, -1e9f, 1e9f));
  });
}

TEST_CASE("codes of sums: constants, ends and other formats of codes", "[fast]") {
  const Subject s = subject("fixed-point-single", " low=-5 high=90");
  CHECK(header_line(s).find(" requantize=fixed-point-single low=-5 high=90 ") != std::string::npos);
  CHECK(header_line(parse_header(header_line(s))) == header_line(s));
  const Records records = made(s, 500, {.fixed = unit::FixedFactor{1 << 30, -3}, .zero_point = 7});
  const Layout layout = layout_of(s);
  for (std::int64_t i = 0; i < records.size; ++i) {
    const Numbers n = numbers(layout, records, i);
    CHECK(n.multiplier == 1 << 30);
    CHECK(n.shift == -3);
    CHECK(n.zero == 7);
    const auto code = static_cast<std::int8_t>(records.columns.back()[static_cast<std::size_t>(i)]);
    CHECK(code >= -5);
    CHECK(code <= 90);
  }
  const Subject unsigned_codes = subject("float", "", "intel.emr.vpdpbusd", "uint8");
  Records zero = made(unsigned_codes, 400);
  for (const std::uint64_t code : zero.columns.back()) CHECK(code <= 255);
  CHECK(explained(unsigned_codes, zero).mismatches == 0);
}

TEST_CASE("codes of sums: planted faults are named", "[fast]") {
  struct Fault {
    const char *how, *family, *name;
    Circuit circuit;
  };
  const auto code = [](std::int64_t scaled, const Numbers& n) { return clamped(scaled + n.zero); };
  const Fault faults[] = {
      {"fixed-point-double", "requantization",
       "one rounding in place of two, as fixed-point-single",
       [&](const Numbers& n) { return code(single(n), n); }},
      {"fixed-point-single", "requantization",
       "two roundings in place of one, as fixed-point-double",
       [&](const Numbers& n) { return code(twice(n), n); }},
      {"fixed-point-single", "requantization",
       "one rounding: bits are cut by a shift, toward minus infinity",
       [&](const Numbers& n) { return code(cut(n), n); }},
      {"fixed-point-double", "zero point", "the zero point is not added",
       [&](const Numbers& n) { return clamped(twice(n)); }},
      {"fixed-point-single", "zero point", "the zero point is subtracted",
       [&](const Numbers& n) { return clamped(single(n) - n.zero); }},
      {"fixed-point-single", "clamp", "codes are not clamped: modulo the code's bits",
       [&](const Numbers& n) { return single(n) + n.zero; }},
      {"fixed-point-single", "clamp", "clamped to -127 and 127",
       [&](const Numbers& n) { return std::max<std::int64_t>(code(single(n), n), -127); }},
      {"fixed-point-double", "bias", "the bias is not added",
       [&](Numbers n) {
         n.sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(n.sum) -
                                           static_cast<std::uint32_t>(n.bias));
         return code(twice(n), n);
       }},
      {"fixed-point-double", "bias", "the bias is added twice",
       [&](Numbers n) {
         n.sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(n.sum) +
                                           static_cast<std::uint32_t>(n.bias));
         return code(twice(n), n);
       }},
      {"fixed-point-single", "requantization", "shifts of -31 and 30 count as -30 and 29",
       [&](Numbers n) {
         n.shift = std::clamp(n.shift, -30, 29);
         return code(single(n), n);
       }},
      {"fixed-point-single", "requantization", "the shift of the product has 5 bits: modulo 32",
       [&](Numbers n) {
         const int total = (31 - n.shift) & 31;
         if (total != 0) n.shift = 31 - total;
         return total == 0 ? clamped(n.sum * n.multiplier + n.zero) : code(single(n), n);
       }},
      {"fixed-point-single", "requantization", "what is added to round is one in place of a half",
       [&](const Numbers& n) { return code(cut(n) + 1, n); }},
      {"fixed-point-single", "requantization",
       "what is added to round is a quarter in place of a half",
       [&](const Numbers& n) {
         const int total = 31 - n.shift;
         const Wide quarter = total > 1 ? Wide{1} << (total - 2) : 0;
         return code(static_cast<std::int64_t>((Wide{n.sum} * n.multiplier + quarter) >> total), n);
       }},
      {"fixed-point-double", "requantization",
       "what is added to round the second time is one in place of a half",
       [&](const Numbers& n) {
         Numbers first = n;
         first.shift = std::max(n.shift, 0);
         const std::int64_t high = twice(first);
         const int right = std::max(-n.shift, 0);
         const std::int64_t rounded = (std::abs(high) >> right) + (right > 0 ? 1 : 0);
         return code(high < 0 ? -rounded : rounded, n);
       }},
      {"fixed-point-double", "zero point", "the zero point is added before the last shift",
       [&](const Numbers& n) {
         Numbers first = n;
         first.shift = std::max(n.shift, 0);
         const int right = std::max(-n.shift, 0);
         const std::int64_t high = twice(first) + (std::int64_t{n.zero} << right);
         const std::int64_t half = right > 0 ? std::int64_t{1} << (right - 1) : 0;
         const std::int64_t rounded = (std::abs(high) + half) >> right;
         return clamped(high < 0 ? -rounded : rounded);
       }},
      {"float", "zero point", "the zero point is added in float32 before the rounding",
       [&](const Numbers& n) {
         const float x = static_cast<float>(n.sum) * n.factor + static_cast<float>(n.zero);
         return clamped(std::llrint(std::clamp(x, -1e9f, 1e9f)));
       }},
      {"fixed-point-single", "clamp", "clamped before the zero point is added, and behind it",
       [&](const Numbers& n) { return clamped(clamped(single(n)) + n.zero); }},
      {"float", "requantization", "the scaled sum is rounded toward zero", [&](const Numbers& n) {
         const float x = static_cast<float>(n.sum) * n.factor;
         return code(static_cast<std::int64_t>(std::clamp(x, -1e9f, 1e9f)), n);
       }}};
  for (const Fault& fault : faults) {
    INFO(fault.how << ": " << fault.name);
    const Subject s = subject(fault.how);
    const Explanation e = explained(s, by(fault.circuit, s, made(s, 2000)));
    REQUIRE(e.mismatches > 20);
    REQUIRE(e.of_results.fits.size() == 1);
    const Fit& fit = e.of_results.fits[0];
    CHECK(fit.rule.name == fault.name);
    CHECK(fit.rule.family == fault.family);
    CHECK(fit.explained == e.mismatches);
    CHECK(fit.contradicted == 0);
  }
}

TEST_CASE("codes of sums: what is refused", "[fast]") {
  using Catch::Contains;
  using numemu::test::message_of;
  CHECK_THAT(message_of([] { subject("fixed-point-singel"); }), Contains("'fixed-point-single'"));
  CHECK_THAT(message_of([] { subject("float", "", "nvidia.h100.wgmma.e4m3.f32"); }),
             Contains("requantize: expected a unit with int32 results"));
  CHECK_THAT(message_of([] { subject("float", "", "intel.emr.tdpbssd", "float16"); }),
             Contains("integers of at most 16 bits"));
  CHECK_THAT(message_of([] { subject("float", " low=4 high=3"); }),
             Contains("low, high: expected"));
  CHECK_THAT(message_of([] { subject("float", " low=-129"); }), Contains("low, high: expected"));
  CHECK_THAT(message_of([] {
               parse_header(
                   "# numemu-vectors 1 op=mul from=float16 rounding=rne overflow=ieee "
                   "requantize=float");
             }),
             Contains("requantize: expected with unit="));
  const Subject s = subject("fixed-point-single");
  const Layout layout = layout_of(s);
  Records records = made(s, 3);
  records.columns[static_cast<std::size_t>(find_field(layout, "shift"))][1] = 31;
  CHECK(message_of([&] { evaluate(s, records); }) ==
        "record 1: shift: expected -31 to 30, found 31");
  records = made(s, 3);
  records.columns[static_cast<std::size_t>(find_field(layout, "multiplier"))][2] = 0x80000000;
  CHECK_THAT(message_of([&] { evaluate(s, records); }), Contains("record 2: multiplier: expected"));
  const Subject real = subject("float");
  records = made(real, 2);
  records.columns[static_cast<std::size_t>(find_field(layout_of(real), "factor"))][0] = 0x7f800000;
  CHECK_THAT(message_of([&] { evaluate(real, records); }), Contains("record 0: factor: expected"));
}

}  // namespace
}  // namespace numemu::oracle::codes_of_sums_test
