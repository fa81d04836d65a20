// Faults of scales, metadata, formats and fixed-point registers are named as planted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "emu/oracle/rule.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/planted_faults.hpp"

namespace numemu::oracle::test {
namespace {

/// Sums of few bits in doubles: exact.
double e2m1(std::uint64_t code) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kValues[code & 7] : kValues[code & 7];
}

TEST_CASE("planted faults of block scales are named", "[fast]") {
  unit::UnitDescription u;
  u.name = "scaled";
  u.a = u.b = &find_format("float4_e2m1fn");
  u.accumulator.format = &find_format("float32");
  u.core = unit::CoreKind::exact;
  u.scaling = {unit::Scaling::Point::exponents, &find_format("float8_e8m0fnu"), 32};
  const std::shared_ptr<const unit::Unit> scaled = unit::make_unit(u);
  Subject subject = unit_subject(*scaled, 64);
  subject.style = "cancel";  // sums that doubles hold
  const auto with_bias = [](int bias) {
    return [bias](const Call& call) {
      double sum = as_float(call.c);
      for (std::size_t k = 0; k < 64; ++k)
        sum += std::ldexp(e2m1(call.a[k]) * e2m1(call.b[k]),
                          static_cast<int>(call.sa[k / 32] + call.sb[k / 32]) - 2 * bias);
      return Answer{code_of(static_cast<float>(sum))};
    };
  };
  const auto all = [](Codes& codes, auto change) {
    for (auto& code : codes) code = change(code);
  };
  const bool named = all_named(
      {subject, with_bias(127)},
      {{"1 added to the codes of A's scales", "codes of the scales of A one too large",
        reads([&](Call& c) { all(c.sa, [](auto s) { return s + 1; }); })},
       {"A's scales not connected", "scales of A ignored",
        reads([&](Call& c) { all(c.sa, [](auto) { return 127; }); })},
       {"no scales at all", "scales of A and B ignored", reads([&](Call& c) {
          all(c.sa, [](auto) { return 127; });
          all(c.sb, [](auto) { return 127; });
        })},
       {"A's bias 126", "scales of A doubled (bias one too small)",
        reads([&](Call& c) { all(c.sa, [](auto s) { return s + 1; }); })},
       {"B's bias 128", "scales of B halved (bias one too large)",
        reads([&](Call& c) { all(c.sb, [](auto s) { return s - 1; }); })},
       {"bias 126 for both", "scales decoded with bias 126 in place of 127",
        [&](const Machine&, const auto& calls, std::size_t n, const auto&) {
          return with_bias(126)(calls[n]);
        }},
       {"B's block index one ahead", "scales of B: those of the next block",
        reads([](Call& c) { std::swap(c.sb[0], c.sb[1]); })},
       {"both scales of block 0", "scales of A and B: that of the first block for all",
        reads([](Call& c) { c.sa[1] = c.sa[0], c.sb[1] = c.sb[0]; })},
       {"A's nibbles in the other order", "nibbles of A swapped", reads([](Call& c) {
          for (std::size_t k = 0; k < 64; k += 2) std::swap(c.a[k], c.a[k + 1]);
        })},
       {"A's scales a cycle late", "scales of A of the record before",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          Call call = calls[n];
          call.sa = before(calls, n).sa;
          return m(call);
        }},
       {"e2m1 read as two's complement", "A and B decoded as int4",
        [](const Machine&, const auto& calls, std::size_t n, const auto&) {
          const Call& call = calls[n];
          const auto whole = [](std::uint64_t x) { return x >= 8 ? double(x) - 16 : double(x); };
          double sum = as_float(call.c);
          for (std::size_t k = 0; k < 64; ++k)
            sum += std::ldexp(whole(call.a[k]) * whole(call.b[k]),
                              static_cast<int>(call.sa[k / 32] + call.sb[k / 32]) - 254);
          return Answer{code_of(static_cast<float>(sum))};
        }}});
  CHECK(named);
}

TEST_CASE("planted faults of sparse metadata are named", "[fast]") {
  unit::UnitDescription u;
  u.name = "sparse";
  u.a = u.b = &find_format("int8");
  u.core = unit::CoreKind::integer;
  u.sparsity = {2, 4};
  u.nan_code = 0;
  const std::shared_ptr<const unit::Unit> sparse = unit::make_unit(u);
  const Bench bench{unit_subject(*sparse, 32), [](const Call& call) {
                      std::uint64_t sum = call.c;
                      for (std::size_t p = 0; p < 16; ++p) {
                        const std::size_t k = p / 2 * 4 + call.e[p];
                        sum += static_cast<std::uint64_t>(static_cast<std::int8_t>(call.a[p]) *
                                                          static_cast<std::int8_t>(call.b[k]));
                      }
                      return Answer{sum & 0xffffffff};
                    }};
  const auto all = [](Codes& codes, auto change) {
    for (auto& code : codes) code = change(code);
  };
  const bool named = all_named(
      bench,
      {{"index + 1 mod 4", "indices one too large, modulo the group",
        reads([&](Call& c) { all(c.e, [](auto j) { return (j + 1) % 4; }); })},
       {"index - 1, at least 0", "indices one too small, at least 0",
        reads([&](Call& c) { all(c.e, [](auto j) { return j == 0 ? 0 : j - 1; }); })},
       {"the next group's metadata", "metadata of the next group",
        reads([](Call& c) { std::rotate(c.e.begin(), c.e.begin() + 2, c.e.end()); })},
       {"always the first two", "metadata ignored: the first of each group", reads([](Call& c) {
          for (std::size_t p = 0; p < 16; ++p) c.e[p] = p % 2;
        })},
       {"compressed A meets B as it is", "metadata ignored: element n of A meets element n of B",
        [](const Machine&, const auto& calls, std::size_t n, const auto&) {
          std::uint64_t sum = calls[n].c;
          for (std::size_t p = 0; p < 16; ++p)
            sum += static_cast<std::uint64_t>(static_cast<std::int8_t>(calls[n].a[p]) *
                                              static_cast<std::int8_t>(calls[n].b[p]));
          return Answer{sum & 0xffffffff};
        }},
       {"the two indices of a group exchanged", "indices of a group in reverse order",
        reads([](Call& c) {
          for (std::size_t p = 0; p < 16; p += 2) std::swap(c.e[p], c.e[p + 1]);
        })},
       {"metadata a cycle late", "metadata of the record before",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          Call call = calls[n];
          call.e = before(calls, n).e;
          return m(call);
        }},
       {"A's int8 read as uint8", "A decoded as uint8",
        [](const Machine&, const auto& calls, std::size_t n, const auto&) {
          const Call& call = calls[n];
          std::uint64_t sum = call.c;
          for (std::size_t p = 0; p < 16; ++p)
            sum += call.a[p] * static_cast<std::uint64_t>(std::int64_t{
                                   static_cast<std::int8_t>(call.b[p / 2 * 4 + call.e[p]])});
          return Answer{sum & 0xffffffff};
        }}});
  CHECK(named);
}

/// Numbers of 8 bits, by the fields of their codes.
double small_float(std::uint64_t code, int exponent_bits, int bias) {
  const int fraction_bits = 7 - exponent_bits;
  const auto field = static_cast<int>(code >> fraction_bits & ((1u << exponent_bits) - 1));
  const auto fraction = static_cast<double>(code & ((1u << fraction_bits) - 1));
  const double size =
      field == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                 : std::ldexp(fraction + (1 << fraction_bits), field - bias - fraction_bits);
  return (code & 0x80) != 0 ? -size : size;
}

double e4m3fn(std::uint64_t code) {
  return (code & 0x7f) == 0x7f ? std::nan("") : small_float(code, 4, 7);
}
double e5m2(std::uint64_t code) {
  if ((code & 0x7c) != 0x7c) return small_float(code, 5, 15);
  if ((code & 3) != 0) return std::nan("");
  return (code & 0x80) != 0 ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
}
double e4m3(std::uint64_t code) {
  if ((code & 0x78) != 0x78) return small_float(code, 4, 7);
  if ((code & 7) != 0) return std::nan("");
  return (code & 0x80) != 0 ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
}
double e4m3fnuz(std::uint64_t code) {
  return code == 0x80 ? std::nan("") : small_float(code, 4, 8);
}

using Decode = double (*)(std::uint64_t);

Machine dot8(Decode a, Decode b) {
  return [a, b](const Call& call) {
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += a(call.a[k]) * b(call.b[k]);
    return Answer{code_of(static_cast<float>(sum + double(as_float(call.c))))};
  };
}

TEST_CASE("planted faults of operand formats are named", "[fast]") {
  unit::UnitDescription u;
  u.name = "mixed8";
  u.a = &find_format("float8_e4m3fn");
  u.b = &find_format("float8_e5m2");
  u.accumulator.format = &find_format("float32");
  u.core = unit::CoreKind::exact;
  const std::shared_ptr<const unit::Unit> unit = unit::make_unit(u);
  const Bench bench{unit_subject(*unit, 4), dot8(e4m3fn, e5m2), false, true};
  const bool named = all_named(
      bench, {{"formats exchanged", "formats of A and B exchanged", by(dot8(e5m2, e4m3fn))},
              {"A is IEEE's e4m3", "A decoded as float8_e4m3", by(dot8(e4m3, e5m2))},
              {"A is AMD's e4m3", "A decoded as float8_e4m3fnuz", by(dot8(e4m3fnuz, e5m2))},
              {"A's nibbles exchanged", "nibbles of the codes of A swapped", reads([](Call& c) {
                 for (auto& x : c.a) x = (x << 4 | x >> 4) & 0xff;
               })}});
  CHECK(named);
}

std::int64_t sum_of_int8(const Call& call) {
  std::int64_t sum = static_cast<std::int16_t>(call.c);
  for (std::size_t k = 0; k < call.a.size(); ++k)
    sum += static_cast<std::int8_t>(call.a[k]) * static_cast<std::int8_t>(call.b[k]);
  return sum;
}
std::uint64_t code16(std::int64_t x) { return static_cast<std::uint64_t>(x) & 0xffff; }

TEST_CASE("planted faults of a saturating register are named", "[fast]") {
  unit::UnitDescription u;
  u.name = "int16";
  u.a = u.b = &find_format("int8");
  u.core = unit::CoreKind::integer;
  u.k = 4;
  u.accumulator.bits = 16;
  u.accumulator.integer = unit::IntegerOverflow::saturate_once;
  const std::shared_ptr<const unit::Unit> unit = unit::make_unit(u);
  const auto clamped = [](std::int64_t low, std::int64_t high) {
    return [low, high](const Machine&, const auto& calls, std::size_t n, const auto&) {
      return Answer{code16(std::clamp(sum_of_int8(calls[n]), low, high))};
    };
  };
  const Bench bench{
      unit_subject(*unit, 4), [](const Call& call) {
        return Answer{code16(std::clamp<std::int64_t>(sum_of_int8(call), -32768, 32767))};
      }};
  const bool named = all_named(
      bench, {{"saturates at 32766", "the largest number becomes the one below it",
               clamped(-32768, 32766)},
              {"saturates at -32767", "the lowest number becomes the one above it",
               clamped(-32767, 32767)},
              {"saturates at -32767 and 32766",
               "the largest and the lowest number become their neighbours", clamped(-32767, 32766)},
              {"wraps", "wraps",
               [](const Machine&, const auto& calls, std::size_t n, const auto&) {
                 return Answer{code16(sum_of_int8(calls[n]))};
               }},
              {"a register of 15 bits", "the register has 15 bits instead of 16",
               [](const Machine&, const auto& calls, std::size_t n, const auto&) {
                 Call call = calls[n];
                 call.c = code16(
                     std::clamp<std::int64_t>(static_cast<std::int16_t>(call.c), -16384, 16383));
                 return Answer{code16(std::clamp<std::int64_t>(sum_of_int8(call), -16384, 16383))};
               }},
              {"saturates at 30000 (not in the tables)", "", clamped(-32768, 30000)}});
  CHECK(named);
}

TEST_CASE("planted faults of a conversion to int8 are named", "[fast]") {
  const auto clamped = [](double low, double high) {
    return [low, high](const Call& call) {
      const double x = as_float(call.a[0]);
      const double whole = std::isnan(x) ? 127 : std::clamp(std::nearbyint(x), low, high);
      return Answer{static_cast<std::uint64_t>(static_cast<std::int64_t>(whole)) & 0xff};
    };
  };
  const Bench bench{operation_subject(Operation::convert, find_format("float32"),
                                      find_format("int8"), {}, Overflow::saturate),
                    clamped(-128, 127)};
  const bool named =
      all_named(bench, {{"saturates at -127", "the lowest number becomes the one above it",
                         [&](const Machine&, const auto& calls, std::size_t n, const auto&) {
                           return clamped(-127, 127)(calls[n]);
                         }}});
  CHECK(named);
}

}  // namespace
}  // namespace numemu::oracle::test
