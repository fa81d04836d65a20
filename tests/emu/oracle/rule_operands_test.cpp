// Faults of scales, metadata, formats and fixed-point registers are named as planted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "emu/oracle/rule.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/planted_faults.hpp"

namespace numemu::oracle::test::rule_operands_test {
namespace {

/// Sums of few bits in doubles: exact.
double e2m1(std::uint64_t code) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kValues[code & 7] : kValues[code & 7];
}

TEST_CASE("planted faults of block scales are named", "[fast]") {
  unit::UnitDescription u;
  u.a = u.b = &find_format("float4_e2m1fn");
  u.accumulator.format = &find_format("float32");
  u.core = unit::CoreKind::exact;
  u.scaling = {unit::Scaling::Point::exponents, &find_format("float8_e8m0fnu"), 32};
  const auto with_bias = [](int bias) {
    return [bias](const Call& call) {
      double sum = as_float(call.c);
      for (std::size_t k = 0; k < 64; ++k)
        sum += std::ldexp(e2m1(call.a[k]) * e2m1(call.b[k]),
                          static_cast<int>(call.sa[k / 32] + call.sb[k / 32]) - 2 * bias);
      return Answer{code_of(static_cast<float>(sum))};
    };
  };
  Bench bench = described(u, 64, with_bias(127));
  bench.subject.style = "cancel";  // sums that doubles hold
  const bool named = all_named(
      bench,
      {{"1 added to the codes of A's scales", "codes of the scales of A one too large",
        reads([&](Call& c) { each(c.sa, [](auto s) { return s + 1; }); })},
       {"A's scales not connected", "scales of A ignored",
        reads([&](Call& c) { each(c.sa, [](auto) { return 127; }); })},
       {"no scales at all", "scales of A and B ignored", reads([&](Call& c) {
          each(c.sa, [](auto) { return 127; });
          each(c.sb, [](auto) { return 127; });
        })},
       {"A's bias 126", "scales of A doubled (bias one too small)",
        reads([&](Call& c) { each(c.sa, [](auto s) { return s + 1; }); })},
       {"B's bias 128", "scales of B halved (bias one too large)",
        reads([&](Call& c) { each(c.sb, [](auto s) { return s - 1; }); })},
       {"bias 126 for both", "scales decoded with bias 126 in place of 127", by(with_bias(126))},
       {"B's block index one ahead", "scales of B: those of the next block",
        reads([](Call& c) { std::swap(c.sb[0], c.sb[1]); })},
       {"both scales of block 0", "scales of A and B: that of the first block for all",
        reads([](Call& c) { c.sa[1] = c.sa[0], c.sb[1] = c.sb[0]; })},
       {"A's nibbles in the other order", "nibbles of A swapped", reads([](Call& c) {
          for (std::size_t k = 0; k < 64; k += 2) std::swap(c.a[k], c.a[k + 1]);
        })},
       {"A's scales a cycle late", "scales of A of the record before", late(&Call::sa)},
       {"e2m1 read as two's complement", "A and B decoded as int4", by([](const Call& call) {
          const auto whole = [](std::uint64_t x) { return x >= 8 ? double(x) - 16 : double(x); };
          double sum = as_float(call.c);
          for (std::size_t k = 0; k < 64; ++k)
            sum += std::ldexp(whole(call.a[k]) * whole(call.b[k]),
                              static_cast<int>(call.sa[k / 32] + call.sb[k / 32]) - 254);
          return Answer{code_of(static_cast<float>(sum))};
        })}});
  CHECK(named);
}

TEST_CASE("planted faults of sparse metadata are named", "[fast]") {
  unit::UnitDescription u;
  u.a = u.b = &find_format("int8");
  u.core = unit::CoreKind::integer;
  u.sparsity = {2, 4};
  u.nan_code = 0;
  const Bench bench = described(u, 32, [](const Call& call) {
    std::uint64_t sum = call.c;
    for (std::size_t p = 0; p < 16; ++p) {
      const std::size_t k = p / 2 * 4 + call.e[p];
      sum += static_cast<std::uint64_t>(static_cast<std::int8_t>(call.a[p]) *
                                        static_cast<std::int8_t>(call.b[k]));
    }
    return Answer{sum & 0xffffffff};
  });
  const bool named = all_named(
      bench,
      {{"index + 1 mod 4", "indices one too large, modulo the group",
        reads([&](Call& c) { each(c.e, [](auto j) { return (j + 1) % 4; }); })},
       {"index - 1, at least 0", "indices one too small, at least 0",
        reads([&](Call& c) { each(c.e, [](auto j) { return j == 0 ? 0 : j - 1; }); })},
       {"the next group's metadata", "metadata of the next group",
        reads([](Call& c) { std::rotate(c.e.begin(), c.e.begin() + 2, c.e.end()); })},
       {"always the first two", "metadata ignored: the first of each group", reads([](Call& c) {
          for (std::size_t p = 0; p < 16; ++p) c.e[p] = p % 2;
        })},
       {"compressed A meets B as it is", "metadata ignored: element n of A meets element n of B",
        by([](const Call& call) {
          std::uint64_t sum = call.c;
          for (std::size_t p = 0; p < 16; ++p)
            sum += static_cast<std::uint64_t>(static_cast<std::int8_t>(call.a[p]) *
                                              static_cast<std::int8_t>(call.b[p]));
          return Answer{sum & 0xffffffff};
        })},
       {"the two indices of a group exchanged", "indices of a group in reverse order",
        reads([](Call& c) {
          for (std::size_t p = 0; p < 16; p += 2) std::swap(c.e[p], c.e[p + 1]);
        })},
       {"metadata a cycle late", "metadata of the record before", late(&Call::e)},
       {"A's int8 read as uint8", "A decoded as uint8", by([](const Call& call) {
          std::uint64_t sum = call.c;
          for (std::size_t p = 0; p < 16; ++p)
            sum += call.a[p] * static_cast<std::uint64_t>(std::int64_t{
                                   static_cast<std::int8_t>(call.b[p / 2 * 4 + call.e[p]])});
          return Answer{sum & 0xffffffff};
        })}});
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
  u.a = &find_format("float8_e4m3fn");
  u.b = &find_format("float8_e5m2");
  u.accumulator.format = &find_format("float32");
  u.core = unit::CoreKind::exact;
  Bench bench = described(u, 4, dot8(e4m3fn, e5m2));
  bench.no_c = true;
  const bool named = all_named(
      bench, {{"formats exchanged", "formats of A and B exchanged", by(dot8(e5m2, e4m3fn))},
              {"A is IEEE's e4m3", "A decoded as float8_e4m3", by(dot8(e4m3, e5m2))},
              {"A is AMD's e4m3", "A decoded as float8_e4m3fnuz", by(dot8(e4m3fnuz, e5m2))},
              {"A's nibbles exchanged", "nibbles of the codes of A swapped", reads([](Call& c) {
                 for (auto& x : c.a) x = (x << 4 | x >> 4) & 0xff;
               })}});
  CHECK(named);
}

std::uint64_t code16(std::int64_t x) { return static_cast<std::uint64_t>(x) & 0xffff; }

/// A register of two's complement that saturates after each of `steps` additions of products.
Machine saturating(std::int64_t low, std::int64_t high, std::size_t steps) {
  return [=](const Call& call) {
    std::int64_t sum = static_cast<std::int16_t>(call.c);
    for (std::size_t k = 0; k < call.a.size(); ++k) {
      sum += static_cast<std::int8_t>(call.a[k]) * static_cast<std::int8_t>(call.b[k]);
      if ((k + 1) % (call.a.size() / steps) == 0) sum = std::clamp(sum, low, high);
    }
    return Answer{code16(sum)};
  };
}

unit::UnitDescription of_int16(unit::IntegerOverflow overflow) {
  unit::UnitDescription u;
  u.a = u.b = &find_format("int8");
  u.core = unit::CoreKind::integer;
  u.k = 4;
  u.accumulator.bits = 16;
  u.accumulator.integer = overflow;
  return u;
}

TEST_CASE("planted faults of a saturating register are named", "[fast]") {
  const bool named = all_named(
      described(of_int16(unit::IntegerOverflow::saturate_once), 4, saturating(-32768, 32767, 1)),
      {{"saturates at 32766", "the largest number becomes the one below it",
        by(saturating(-32768, 32766, 1))},
       {"saturates at -32767", "the lowest number becomes the one above it",
        by(saturating(-32767, 32767, 1))},
       {"saturates at -32767 and 32766",
        "the largest and the lowest number become their neighbours",
        by(saturating(-32767, 32766, 1))},
       {"wraps", "wraps", by(saturating(INT64_MIN, INT64_MAX, 1))},
       {"a register of 15 bits", "the register has 15 bits instead of 16",
        [](const Machine&, const auto& calls, std::size_t n, const auto&) {
          Call call = calls[n];
          call.c =
              code16(std::clamp<std::int64_t>(static_cast<std::int16_t>(call.c), -16384, 16383));
          return saturating(-16384, 16383, 1)(call);
        }},
       {"saturates at 30000 (not in the tables)", "", by(saturating(-32768, 30000, 1))}});
  CHECK(named);
}

TEST_CASE("planted faults of a register that saturates after every addition are named", "[fast]") {
  const bool named = all_named(
      described(of_int16(unit::IntegerOverflow::saturate_each), 16, saturating(-32768, 32767, 16)),
      {{"saturates at 32766", "the register saturates at the number below its largest",
        by(saturating(-32768, 32766, 16))},
       {"saturates at -32767", "the register saturates at the number above its lowest",
        by(saturating(-32767, 32767, 16))},
       {"saturates at -32767 and 32766", "the register saturates at the neighbours of both ends",
        by(saturating(-32767, 32766, 16))},
       {"saturates once per instruction", "saturates once per step",
        by(saturating(-32768, 32767, 4))},
       {"wraps", "wraps", by(saturating(INT64_MIN, INT64_MAX, 16))},
       {"saturates at 30000 (not in the tables)", "", by(saturating(-32768, 30000, 16))}});
  CHECK(named);
}

/// Products of e4m3fn added in two's complement of `bits` bits, `fraction` of them right of the
/// point, of a register that was meant to have one more of each that is left out.
Machine fixed_point(int bits, int fraction) {
  return [=](const Call& call) {
    constexpr int kBits = 24, kFraction = 12;
    const int cut = kFraction - fraction;
    const std::int64_t end = std::int64_t{1} << (bits - 1);
    const auto c = static_cast<std::int64_t>(call.c << (64 - kBits)) >> (64 - kBits);
    std::int64_t sum = std::clamp(c >> cut, -end, end - 1);
    for (std::size_t k = 0; k < call.a.size(); ++k) {
      const double x = e4m3fn(call.a[k]) * e4m3fn(call.b[k]);
      if (std::isnan(x)) {  // the register has none
        sum = 0;
        continue;
      }
      const double next = std::nearbyint(std::ldexp(x, fraction) + static_cast<double>(sum));
      sum = std::clamp(static_cast<std::int64_t>(next), -end, end - 1);
    }
    return Answer{static_cast<std::uint64_t>(sum) << cut & ((1u << kBits) - 1)};
  };
}

TEST_CASE("planted faults of a fixed-point register are named", "[fast]") {
  const Format& e4m3 = find_format("float8_e4m3fn");
  const Bench bench{unit_subject(unit::find_unit("neutral.mac.fixed24q12"), 8, &e4m3, &e4m3),
                    fixed_point(24, 12)};
  const bool named = all_named(
      bench, {{"a bit fewer left of the point", "the register has 23 bits instead of 24",
               by(fixed_point(23, 12))},
              {"a bit fewer right of the point",
               "the register keeps 11 fraction bits instead of 12", by(fixed_point(23, 11))},
              {"two bits fewer (not in the tables)", "", by(fixed_point(22, 12))}});
  CHECK(named);
}

}  // namespace
}  // namespace numemu::oracle::test::rule_operands_test
