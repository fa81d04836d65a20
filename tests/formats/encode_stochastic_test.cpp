// Stochastic rounding by enumeration: all 2^n words counted against each variant's formula.
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::encode_stochastic_test {
namespace {

using oracle::Rational;
using oracle::RationalCodec;

// How many of the 2^n words round up, by the definition of the P3109 report; the formula as such,
// where the oracle's first_word_up() solves it for r.
std::int64_t expected_ups(const Rational& d, int n, StochasticVariant variant) {
  const std::int64_t one = std::int64_t{1} << n;
  const Rational scaled = d * one;
  const std::int64_t down = scaled.floor(), twice = (scaled * 2).floor();
  if (variant == StochasticVariant::a) return down;
  if (variant == StochasticVariant::b) {  // of r = 0.. 2^n - 1: 2 r + 1 >= 2^(n+1) - twice
    std::int64_t ups = 0;
    for (std::int64_t r = 0; r < one; ++r) ups += twice + 2 * r + 1 >= 2 * one ? 1 : 0;
    return ups;
  }
  const Rational rest = scaled - down;
  const bool odd = down % 2 != 0, tie = rest * 2 == 1;
  const bool up = tie ? odd == (variant == StochasticVariant::c) : rest * 2 > 1;
  return up ? down + 1 : down;
}

struct Enumeration {
  std::int64_t cells = 0, words = 0, differences = 0;
  std::string first;
};

// x = low + d * (gap after `code`), both signs: every word gives one of the two neighbours, as the
// oracle says, and the count of round-ups is the formula's.
void enumerate(const RationalCodec& codec, std::uint64_t code, const Rational& d, int n,
               Enumeration& total) {
  const Format& f = find_format(codec.format().name);
  const Rational low = rational(codec.at(code)), high = rational(codec.at(code + 1));
  const oracle::Dyadic x = oracle::dyadic(Rational(low + d * (high - low)));
  const bool negative = code % 2 != 0;
  const Value v = oracle::value(x, negative);
  const oracle::Place place = codec.place(x, negative);
  for (const StochasticVariant variant : oracle::kVariants) {
    const Rounding rounding{.mode = RoundingMode::sr, .variant = variant, .random_bits = n};
    const oracle::Plan plan = codec.plan(place, rounding);
    std::int64_t ups = 0;
    for (std::uint64_t r = 0; r < std::uint64_t{1} << n; ++r) {
      const auto word = static_cast<std::uint32_t>(r);
      const Encoded got = encode(f, v, rounding, Overflow::saturate, word);
      const Encoded want = codec.encode(plan, Overflow::saturate, word);
      const std::uint64_t magnitude = got.code & ~f.sign_bit();
      total.differences += got.code != want.code || got.flags != want.flags ||
                           (magnitude != code && magnitude != code + 1);
      ups += magnitude == code + 1 ? 1 : 0;
    }
    ++total.cells;
    total.words += std::int64_t{1} << n;
    if (ups == expected_ups(d, n, variant)) continue;
    if (total.differences++ == 0)
      total.first = f.name + " code " + std::to_string(code) + " " + to_string(rounding) + ": " +
                    std::to_string(ups) + " round-ups, d " + d.str();
  }
}

// Fractions on, between and just off the multiples of 2^-n and their halves.
std::vector<Rational> fractions(int n) {
  const std::int64_t one = std::int64_t{1} << n;
  std::vector<Rational> list;
  for (const std::int64_t k :
       std::initializer_list<std::int64_t>{0, 1, one / 2, one / 2 + 1, one / 3, one - 1}) {
    for (const int quarter : {0, 1, 2, 3}) list.push_back(Rational(4 * k + quarter, 4 * one));
    list.push_back(Rational((2 * k + 1) * 256 + 1, 2 * one * 256));  // just above a tie
    list.push_back(Rational((2 * k + 1) * 256 - 1, 2 * one * 256));
  }
  std::erase_if(list, [](const Rational& d) { return d >= 1; });  // half of 2^1, and one, is all
  return list;
}

void prove(int low, int high, const std::vector<const char*>& names) {
  Enumeration total;
  for (const char* name : names) {
    const RationalCodec codec(name);
    const std::uint64_t largest = codec.largest();
    for (int n = low; n <= high; ++n) {
      for (const std::uint64_t code : {std::uint64_t{0}, std::uint64_t{1}, largest / 4, largest / 2,
                                       largest / 2 + 1, largest - 1}) {
        for (const Rational& d : fractions(n)) enumerate(codec, code, d, n, total);
      }
    }
  }
  WARN("sr: n = " << low << ".." << high << ", " << names.size() << " formats x 4 variants: "
                  << total.cells << " counts over all words equal the formula, " << total.words
                  << " comparisons, " << total.differences << " differences");
  INFO(total.first);
  CHECK(total.differences == 0);
}

TEST_CASE("sr: all words of 1 to 8 random bits, count of round-ups equals the formula", "[fast]") {
  prove(1, 8, {"float8_e4m3fn", "float4_e2m1fn", "float16", "hfp8_e4m3_nosub", "binary8p1se"});
}

TEST_CASE("sr: all words of 9 to 12 random bits, count of round-ups equals the formula", "[slow]") {
  prove(9, 12, {"float8_e4m3fn", "float4_e2m1fn", "float16"});
}

TEST_CASE("sr: all words of 12 random bits once each in the fast run", "[fast]") {
  Enumeration total;
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "float16"})
    enumerate(RationalCodec(name), 3, Rational(1365, 8192), 12, total);
  CHECK(total.differences == 0);
}

TEST_CASE("sr: 32 random bits decide at the last of them", "[fast]") {
  const Format& f = find_format("float8_e4m3fn");
  const Rounding rounding{
      .mode = RoundingMode::sr, .variant = StochasticVariant::a, .random_bits = 32};
  const Value x = value_of(1 + 0x1p-35);  // d = 2^-32
  CHECK(encode(f, x, rounding, Overflow::saturate, 0xffffffff).code == 0x39);
  CHECK(encode(f, x, rounding, Overflow::saturate, 0xfffffffe).code == 0x38);
}

TEST_CASE("sr: an inexact quotient rounds up as often as the rational says", "[fast]") {
  const Format& f = find_format("float8_e4m3fn");
  const Value quotient = exact_quotient(value_of(10.0F), value_of(9.0F));  // 1 + d/8, d = 8/9
  constexpr int kBits = 10;
  std::int64_t ups = 0;
  for (std::uint32_t r = 0; r < 1U << kBits; ++r)
    ups +=
        encode(f, quotient, parse_rounding("sr(10,a)"), Overflow::saturate, r).code == 0x39 ? 1 : 0;
  CHECK(ups == expected_ups(Rational(8, 9), kBits, StochasticVariant::a));
}

TEST_CASE("sr: values of the format never move", "[fast]") {
  const Format& f = find_format("float8_e5m2");
  for (std::uint64_t code = 0; code <= f.largest_code(); ++code) {
    const Encoded result =
        encode(f, decode(f, code), parse_rounding("sr(8)"), Overflow::saturate, 0xff);
    REQUIRE((result.code == code && result.flags == 0));
  }
}

}  // namespace
}  // namespace numemu::encode_stochastic_test
