// The dot products of RISC-V's Zvbdot, written again from the proposal in integers and rationals.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle::mma::riscv_bulk_test {
namespace {

constexpr std::uint64_t kNan = 0x7fc00000, kInfinity = 0x7f800000, kSign = 0x80000000;

/// Significand and exponent of a finite code: a subnormal number has the smallest exponent.
struct Parts {
  std::int64_t significand = 0;
  int exponent = 0;
  bool negative = false, infinite = false, nan = false;
};

Parts parts(const Specified& f, std::uint64_t code) {
  Parts p;
  const int field = static_cast<int>(code >> f.m) & ((1 << f.e) - 1);
  const std::uint64_t fraction = code & ((std::uint64_t{1} << f.m) - 1);
  p.negative = code >> (f.e + f.m) != 0;
  const bool top = field == (1 << f.e) - 1;
  const bool all_ones = fraction == (std::uint64_t{1} << f.m) - 1;
  p.nan = top && (f.reserved == Reserved::all_ones ? all_ones : fraction != 0);
  p.infinite = top && f.reserved == Reserved::inf_and_nan && fraction == 0;
  p.significand =
      static_cast<std::int64_t>(field == 0 ? fraction : fraction | std::uint64_t{1} << f.m);
  p.exponent = std::max(field, 1) - f.bias;
  return p;
}

/// Rounded to odd; infinity beyond the largest number.
std::uint64_t to_float32(const Rational& x) {
  static const RationalCodec float32("float32");
  if (x == 0) return 0;
  const Place place = float32.place(x);
  const Encoded e = float32.encode(place, {.mode = RoundingMode::rodd}, Overflow::ieee);
  return place.beyond ? kInfinity | (e.code & kSign) : e.code;
}

Rational number(std::uint64_t code) {
  static const RationalCodec float32("float32");
  const Decoded d = float32.decode(code);
  return d.negative ? Rational(-d.magnitude) : d.magnitude;
}

/// Products aligned to the largest exponent with 23 fraction bits and log2(K) guard bits, cut with
/// the last bit set where something is lost; their sum rounded to odd; that and C rounded to odd.
std::uint64_t by_the_text(const Specified& a, const Specified& b,
                          const std::vector<std::uint64_t>& codes_a,
                          const std::vector<std::uint64_t>& codes_b, std::uint64_t c) {
  const std::size_t n = codes_a.size();
  const int guard = std::bit_width(n - 1);
  bool nan = false, plus = false, minus = false;
  int largest = -100000;
  for (std::size_t i = 0; i < n; ++i) {
    const Parts x = parts(a, codes_a[i]), y = parts(b, codes_b[i]);
    const bool infinite = x.infinite || y.infinite;
    const bool zero = (!x.infinite && x.significand == 0) || (!y.infinite && y.significand == 0);
    nan |= x.nan || y.nan || (infinite && zero);
    if (infinite) (x.negative != y.negative ? minus : plus) = true;
    if (!zero) largest = std::max(largest, x.exponent + y.exponent);
  }
  const std::uint64_t magnitude_c = c & ~kSign;
  if (magnitude_c == kInfinity) (c == kInfinity ? plus : minus) = true;
  if (nan || magnitude_c > kInfinity || (plus && minus)) return kNan;
  if (plus || minus) return kInfinity | (minus ? kSign : 0);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Parts x = parts(a, codes_a[i]), y = parts(b, codes_b[i]);
    const std::int64_t product = x.significand * y.significand;
    if (product == 0) continue;
    const std::int64_t aligned = product << (23 - a.m - b.m + guard);
    const int shift = largest - (x.exponent + y.exponent);
    const std::int64_t kept = shift > 62 ? 0 : aligned >> shift;
    const bool lost = shift > 62 || kept << shift != aligned;
    sum += (x.negative != y.negative ? -1 : 1) * (kept | (lost ? 1 : 0));
  }
  std::uint64_t dot = 0;
  if (sum != 0) dot = to_float32(Rational(sum) * Rational::power_of_two(largest - 23 - guard));
  if ((dot & ~kSign) == kInfinity) return dot;
  if (dot == 0 && magnitude_c == 0) return 0;  // the dot's zero is positive
  return to_float32(number(dot) + number(c));
}

TEST_CASE("units of RISC-V's Zvbdot compute what the proposal says", "[fast]") {
  for (const std::string name :
       {"riscv.zvbdot.vfwbdot.bf16.f32", "riscv.zvbdot.vfwbdot.k8.bf16.f32",
        "riscv.zvbdot.vfqbdot.e4m3.f32", "riscv.zvbdot.vfqbdot.e5m2xe4m3.f32",
        "riscv.zvbdot.vfqbdot.k16.e5m2.f32"}) {
    INFO(name);
    Subject s = unit_subject(unit::find_unit(name));
    s.seed = 21;
    constexpr std::int64_t kRecords = 2000;
    const Generator generator(s);
    Records records(generator.layout(), kRecords);
    generator.fill(0, records);
    const Specified a = specified(s.a->name), b = specified(s.b->name);
    const int d = find_field(generator.layout(), "d"), c = find_field(generator.layout(), "c");
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < kRecords; ++i) {
      std::vector<std::uint64_t> x, y;
      for (std::int64_t k = 0; k < s.k; ++k) {
        x.push_back(records.code(0, i * s.k + k));
        y.push_back(records.code(1, i * s.k + k));
      }
      wrong += by_the_text(a, b, x, y, records.code(c, i)) != records.code(d, i);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace numemu::oracle::mma::riscv_bulk_test
