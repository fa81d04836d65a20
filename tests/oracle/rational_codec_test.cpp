// The oracle itself on numbers worked out by hand: it must be right before it may judge.
#include "tests/oracle/rational_codec.hpp"

#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::oracle::rational_codec_test {
namespace {

Encoded encode_as(const char* format, double x, RoundingMode mode = RoundingMode::rne,
                  Overflow overflow = Overflow::ieee) {
  const RationalCodec codec(format);
  return codec.encode(codec.place(x), {.mode = mode}, overflow);
}

bool is(const Encoded& e, std::uint64_t code, int flags) {
  return e.code == code && e.flags == flags;
}

TEST_CASE("rational codec: keys order like the numbers", "[fast]") {
  CHECK(dyadic(0.0) < dyadic(0x1p-1074));
  CHECK(dyadic(1.0) == dyadic(Rational(1)));
  CHECK(dyadic(Rational(1, 3)) < dyadic(Rational(1, 3) + Rational::power_of_two(-100)));
  CHECK(dyadic(Rational(1, 3)).sticky);
  CHECK(rational(dyadic(0.1)) > Rational(1, 10));  // the float64 is a little more
  CHECK(middle(dyadic(1.0), dyadic(2.0)) == dyadic(1.5));
  CHECK(middle(dyadic(0.0), dyadic(0.5)) == dyadic(0.25));
  CHECK(next_below(dyadic(1.0), 24, -149) == dyadic(0x1.fffffep-1));
  CHECK(next_above(dyadic(1.0), 24, -149) == dyadic(0x1.000002p0));
  CHECK(next_below(dyadic(0x1p-126), 24, -149) == dyadic(0x1.fffffcp-127));
  CHECK(next_below(dyadic(0x1p-149), 24, -149).zero());
}

TEST_CASE("rational codec: float8_e4m3fn by hand", "[fast]") {
  CHECK(is(encode_as("float8_e4m3fn", 448), 0x7e, 0));
  CHECK(is(encode_as("float8_e4m3fn", 464), 0x7e, 1));
  CHECK(is(encode_as("float8_e4m3fn", 465), 0x7f, 5));
  CHECK(is(encode_as("float8_e4m3fn", 465, RoundingMode::rtz), 0x7e, 1));
  CHECK(is(encode_as("float8_e4m3fn", -1e6, RoundingMode::rup), 0xfe, 5));
  CHECK(is(encode_as("float8_e4m3fn", 0x1p-10), 0, 3));
  CHECK(is(encode_as("float8_e4m3fn", 0x1p-10, RoundingMode::rna), 1, 3));
  CHECK(is(encode_as("float8_e4m3fn", -0.0), 0x80, 0));
  // 2^-6 less a quarter of its lower unit is not tiny after rounding, less three quarters is.
  CHECK(is(encode_as("float8_e4m3fn", 0x1p-6 - 0x1p-12), 8, 1));
  CHECK(is(encode_as("float8_e4m3fn", 0x1p-6 - 0x1.8p-11), 8, 3));
}

TEST_CASE("rational codec: other encodings by hand", "[fast]") {
  CHECK(is(encode_as("float8_e5m2", HUGE_VAL), 0x7c, 0));
  CHECK(is(encode_as("float8_e5m2", HUGE_VAL, RoundingMode::rne, Overflow::saturate), 0x7b, 5));
  CHECK(is(encode_as("float8_e4m3fnuz", -1e-9), 0, 3));
  CHECK(is(encode_as("float4_e2m1fn", std::nan("")), 7, 16));
  CHECK(is(encode_as("float8_e8m0fnu", 0.0), 0, 3));
  CHECK(is(encode_as("float8_e8m0fnu", -1.0), 0xff, 16));
  CHECK(is(encode_as("float8_e8m0fnu", 0x1.8p-127), 0, 1));  // the tie goes to the even code
  CHECK(is(encode_as("hfp8_e4m3_nosub", 0x1.2p-12), 0, 3));  // half of the smallest, 1.125 * 2^-11
  CHECK(is(encode_as("hfp8_e4m3_nosub", 0x1.3p-12), 1, 3));
  CHECK(is(encode_as("int8", -127.5), 0x80, 1));
  CHECK(is(encode_as("uint4", -0.5), 0, 1));
  CHECK(is(encode_as("uint4", -0.75), 0, 16));
  CHECK(is(encode_as("sign1", -0.0), 0, 1));
  CHECK(is(encode_as("binary8p4se", 224), 0x7e, 0));
  CHECK(is(encode_as("binary8p4se", 240), 0x7f, 5));
  CHECK(is(encode_as("binary4p1sf", 11), 7, 1));
  CHECK(is(encode_as("binary4p1sf", 12), 8, 5));  // the tie: 7 is odd, so up, which is NaN
  CHECK(RationalCodec("binary8p1ue").decode(0xff).kind == Class::nan);
  CHECK(RationalCodec("binary8p1ue").decode(0xfe).kind == Class::infinite);
  CHECK(RationalCodec("dlfloat16").decode(0x8000).negative == false);
}

TEST_CASE("rational codec: the first random word that goes up, by hand", "[fast]") {
  const Rational d(5, 16);  // of 4 words: 1.25 steps
  CHECK(first_word_up(d, 2, StochasticVariant::a) == 3);
  CHECK(first_word_up(d, 2, StochasticVariant::b) == 3);  // floor(2.5) + 2 r + 1 >= 8
  CHECK(first_word_up(d, 2, StochasticVariant::c) == 3);
  const Rational tie(3, 8);  // 1.5 steps
  CHECK(first_word_up(tie, 2, StochasticVariant::a) == 3);
  CHECK(first_word_up(tie, 2, StochasticVariant::c) == 2);
  CHECK(first_word_up(tie, 2, StochasticVariant::odd) == 3);
  CHECK(first_word_up(Rational(0), 2, StochasticVariant::b) == 4);  // never
}

TEST_CASE("rational codec: a tally reports a difference", "[fast]") {
  ProofTally tally;
  tally.compare({1, 0}, {1, 0}, [] { return std::string("equal"); });
  tally.compare({1, 0}, {1, 1}, [] { return std::string("flags"); });
  tally.compare({1, 0}, {2, 0}, [] { return std::string("code"); });
  CHECK(tally.comparisons == 3);
  CHECK(tally.differences == 2);
  CHECK(tally.first.rfind("flags", 0) == 0);
}

}  // namespace
}  // namespace numemu::oracle::rational_codec_test
