// One rounding from every source: narrow, wide and inexact ones agree with the oracle.
#include <bit>
#include <cmath>

#include "formats/value.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::encode_sources_test {
namespace {

using oracle::ProofTally;
using oracle::RationalCodec;

/// Of the codes of 16-bit formats, the fast cases take every 17th: an odd stride, so that all low
/// bits come; the slow ones take all.
constexpr std::uint64_t kStride = 17;

// Numbers of the narrow source as themselves, as a float32 and as a float64.
ProofTally agree_on_common_values(std::uint64_t stride) {
  ProofTally tally;
  for (const char* source : {"float16", "bfloat16"}) {
    const Format& from = find_format(source);
    for (const char* target : {"float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn",
                               "float8_e8m0fnu", "int8", "dlfloat16", "float16", "bfloat16"}) {
      const Format& f = find_format(target);
      ++tally.formats;
      for (std::uint64_t code = 0; code <= 0xffff; code += stride) {
        const Value v = decode(from, code);
        if (is_signalling(v)) continue;  // to_double() supports quiet NaNs only
        const double wide = to_double(v);
        const auto single = static_cast<float>(wide);  // exact for every number of both sources
        for (const Rounding& rounding : oracle::roundings({7})) {
          const Encoded want = encode(f, v, rounding, Overflow::ieee, 77);
          for (const Value& other : {value_of(wide), value_of(single)})
            tally.compare(encode(f, other, rounding, Overflow::ieee, 77), want,
                          [&] { return std::string(source) + " " + std::to_string(code); });
        }
      }
    }
  }
  return tally;
}

TEST_CASE("encode: float16, bfloat16, float32 and float64 sources agree on common values",
          "[fast]") {
  const ProofTally tally = agree_on_common_values(kStride);
  WARN(tally.report(
      "encode, every 17th code of 2 sources x 8 targets x 10 roundings x 2 wider sources"));
  CHECK(tally.differences == 0);
}

TEST_CASE("encode: float16, bfloat16, float32 and float64 sources agree on all common values",
          "[slow]") {
  const ProofTally tally = agree_on_common_values(1);
  WARN(tally.report("encode, all codes of 2 sources x 8 targets x 10 roundings x 2 wider sources"));
  CHECK(tally.differences == 0);
}

// A float64 a hair off a midpoint, which float32 would round onto it: there a conversion in two
// steps breaks the tie to even, whatever side the number was on. Of formats up to 8 bits, every
// midpoint.
ProofTally keep_sides(std::uint64_t stride, std::int64_t& traps) {
  ProofTally tally;
  for (const Format* f : named_formats()) {
    if (f->bits > 16 || f->bits < 2) continue;
    const RationalCodec codec(f->name);
    ++tally.formats;
    for (std::uint64_t code = 0; code < codec.largest(); code += f->bits <= 8 ? 1 : stride) {
      const oracle::Dyadic middle = oracle::middle(codec.at(code), codec.at(code + 1));
      for (const bool above : {false, true}) {
        const oracle::Dyadic hair =
            above ? next_above(middle, 53, -1074) : next_below(middle, 53, -1074);
        const double x = to_double(oracle::value(hair, false));
        const auto rounded = static_cast<float>(x);
        // Subnormal midpoints of bfloat16 are exact in float32 too.
        if (oracle::dyadic(double{rounded}) != middle) continue;
        ++traps;
        for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna}) {
          const Encoded once = encode(*f, value_of(x), {.mode = mode}, Overflow::saturate);
          tally.compare(once,
                        codec.encode(codec.place(hair, false), {.mode = mode}, Overflow::saturate),
                        [&] { return f->name + " near code " + std::to_string(code); });
          tally.compare({once.code, 0}, {above ? code + 1 : code, 0}, [&] {
            return f->name + " wrong side of the midpoint after code " + std::to_string(code);
          });
        }
      }
    }
  }
  return tally;
}

void report_sides(const ProofTally& tally, std::int64_t traps) {
  WARN(tally.report("encode, float64 traps for two-step rounding (" + std::to_string(traps) +
                    " traps x rne, rna)"));
  CHECK(tally.differences == 0);
}

TEST_CASE("encode: float64 a hair off a midpoint keeps its side where float32 would lose it",
          "[fast]") {
  std::int64_t traps = 0;
  report_sides(keep_sides(kStride, traps), traps);
  CHECK(traps > 100000 / static_cast<std::int64_t>(kStride));
}

TEST_CASE("encode: float64 a hair off any midpoint keeps its side", "[slow]") {
  std::int64_t traps = 0;
  report_sides(keep_sides(1, traps), traps);
  CHECK(traps > 100000);
}

// Ties exactly: even and odd neighbours in turn, away, and inexact only.
TEST_CASE("encode: every midpoint is a tie in every format of at most 8 bits", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 8 || f->bits < 2) continue;
    INFO(f->name);
    const RationalCodec codec(f->name);
    std::int64_t differences = 0;
    for (std::uint64_t code = 0; code < codec.largest(); ++code) {
      const Value tie = oracle::value(oracle::middle(codec.at(code), codec.at(code + 1)), false);
      const auto rounded = [&](RoundingMode mode) {
        return encode(*f, tie, {.mode = mode}, Overflow::saturate);
      };
      differences += rounded(RoundingMode::rne).code != code + code % 2;
      differences += rounded(RoundingMode::rodd).code != code + 1 - code % 2;
      differences += rounded(RoundingMode::rna).code != code + 1;
      differences += rounded(RoundingMode::rup).code != code + 1;
      differences += rounded(RoundingMode::rdn).code != code;
      differences += rounded(RoundingMode::rtz).code != code;
      differences += (rounded(RoundingMode::rne).flags & kInexact) == 0;
    }
    CHECK(differences == 0);
  }
}

// Quotients of float32 are not float32: the oracle takes the rational, the codec the sticky bit.
ProofTally round_quotients(int numerators) {
  ProofTally tally;
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "float8_e5m2", "hfp8_e4m3_nosub",
                           "int8", "float16", "float8_e8m0fnu"}) {
    const Format& f = find_format(name);
    const RationalCodec codec(name);
    ++tally.formats;
    for (int i = 1; i < numerators; ++i) {
      for (const float s : {3.0F, 7.0F, 0.1F, 9e-30F, 1.1920929e-7F, 6.5536e4F}) {
        const float x =
            static_cast<float>(i) * 0.37F * (i % 5 == 0 ? s : 1.0F) * (i % 2 == 0 ? -1.0F : 1.0F);
        const Value quotient = exact_quotient(value_of(x), value_of(s));
        const oracle::Rational exact = (x < 0 ? -1 : 1) * rational(oracle::dyadic(double{x})) /
                                       rational(oracle::dyadic(double{s}));
        const oracle::Place place = codec.place(exact);
        for (const Rounding& rounding : oracle::roundings({1, 9, 24})) {
          for (const Overflow overflow : oracle::kOverflows) {
            const auto word = static_cast<std::uint32_t>(i) * 2654435761U;
            tally.compare(encode(f, quotient, rounding, overflow, word),
                          codec.encode(place, rounding, overflow, word), [&] {
                            return std::string(name) + " of " + std::to_string(x) + "/" +
                                   std::to_string(s) + " " + to_string(rounding);
                          });
          }
        }
      }
    }
  }
  WARN(tally.report("encode, quotients x 6 modes and sr(1 9 24) x 4 variants x 3 overflows"));
  return tally;
}

TEST_CASE("encode: inexact quotients round like the rational", "[fast]") {
  CHECK(round_quotients(100).differences == 0);
}

TEST_CASE("encode: more inexact quotients round like the rational", "[slow]") {
  CHECK(round_quotients(400).differences == 0);
}

// A sticky bit on every probe, and on the ties of the cut fraction of sr(n): the number is a little
// more than what the bits say, which the oracle sees as one more bit far below.
ProofTally round_sticky(std::uint64_t stride) {
  ProofTally tally;
  constexpr int kRandomBits = 5;
  for (const char* name : {"float8_e4m3fn", "float4_e2m1fn", "float8_e5m2", "hfp8_e4m3_nosub",
                           "int8", "uint8", "float8_e8m0fnu", "binary8p1se", "e4m2+ftz"}) {
    const Format& f = find_format(name);
    const RationalCodec codec(name);
    ++tally.formats;
    std::vector<oracle::Input> inputs = oracle::probes(codec);
    for (std::uint64_t code = 0; code <= codec.largest(); code += stride) {
      const oracle::Rational low = rational(codec.at(code)), high = rational(codec.at(code + 1));
      for (int k = 1; k < 2 << kRandomBits; ++k) {
        const oracle::Dyadic x =
            oracle::dyadic(oracle::Rational(low + (high - low) * k / (2 << kRandomBits)));
        inputs.push_back({Class::finite, k % 3 == 0, x});
      }
    }
    for (const oracle::Input& x : inputs) {
      if (x.kind != Class::finite) continue;
      Value v = x.value();
      v.sticky = true;
      oracle::Dyadic above = x.magnitude;
      above.bits |= 1;  // 2^-127 of the leading bit: between the significand and the next one
      const oracle::Place place = codec.place(above, x.negative);
      for (const Rounding& rounding : oracle::roundings({1, kRandomBits})) {
        const oracle::Plan plan = codec.plan(place, rounding);
        for (std::uint32_t word = 0; word < (rounding.stochastic() ? 1U << kRandomBits : 1);
             word += 3) {
          tally.compare(encode(f, v, rounding, Overflow::ieee, word),
                        codec.encode(plan, Overflow::ieee, word), [&] {
                          return oracle::describe(name, x, rounding, Overflow::ieee) +
                                 " and more, word " + std::to_string(word);
                        });
        }
      }
    }
  }
  WARN(tally.report("encode, sticky numbers x 6 modes and sr(1 5) x 4 variants x 11 words"));
  return tally;
}

TEST_CASE("encode: a sticky bit on every probe rounds like the number above", "[fast]") {
  CHECK(round_sticky(kStride).differences == 0);  // and on ties after every 17th code
}

TEST_CASE("encode: a sticky bit anywhere rounds like the number above", "[slow]") {
  CHECK(round_sticky(1).differences == 0);
}

}  // namespace
}  // namespace numemu::encode_sources_test
