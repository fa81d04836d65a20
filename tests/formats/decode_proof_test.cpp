// The proof of decode(): every code against the exact rational, in order, and back again.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::decode_proof_test {
namespace {

using oracle::ProofTally;
using oracle::RationalCodec;

void report(const std::string& what, const ProofTally& tally) {
  WARN(tally.report(what));
  CHECK(tally.formats > 0);
  CHECK(tally.differences == 0);
}

ProofTally prove_family(int low, int high) {
  ProofTally tally;
  for (int k = low; k <= high; ++k) {
    for (const std::string& name : oracle::p3109_names(k))
      tally += oracle::compare_decode(RationalCodec(name));
  }
  return tally;
}

TEST_CASE(
    "decode: every code of the named formats up to 16 bits is the exact rational, in order, and "
    "back",
    "[fast]") {
  ProofTally tally;
  for (const Format* f : named_formats())
    if (f->bits <= 16) tally += oracle::compare_decode(RationalCodec(f->name));
  report("decode and back, named up to 16 bits, every code", tally);
}

TEST_CASE("decode: every code of the P3109 family up to K = 8, in order, and back", "[fast]") {
  report("decode and back, P3109 K 3..8, every code", prove_family(3, 8));
}

TEST_CASE("decode: every code of the P3109 family of K = 9 to 15 and of tfloat32", "[slow]") {
  ProofTally tally = prove_family(9, 15);
  tally += oracle::compare_decode(RationalCodec("tfloat32"));
  report("decode and back, P3109 K 9..15 and tfloat32, every code", tally);
}

TEST_CASE("decode: every code of the described formats up to 8 bits", "[fast]") {
  ProofTally tally;
  for (const std::string& name : oracle::descriptor_names(8)) {
    oracle::Specified described = oracle::specified(name);
    described.name = find_format(name).name;
    tally += oracle::compare_decode(RationalCodec(described));
  }
  report("decode and back, descriptors up to 8 bits, every code", tally);
}

// The host's own reading of its bit patterns is the truth here; ldexp() is exact.
TEST_CASE("decode: all 2^32 codes of float32 are what the host reads, and come back",
          "[exhaustive]") {
  const Format& f = find_format("float32");
  std::int64_t differences = 0;
#pragma omp parallel for reduction(+ : differences)
  for (std::int64_t i = 0; i < std::int64_t{1} << 32; ++i) {
    const auto bits = static_cast<std::uint32_t>(i);
    const auto x = std::bit_cast<float>(bits);
    const Value v = decode(f, bits);
    if (std::isnan(x)) {
      differences += v.kind != Class::nan || v.negative != std::signbit(x);
      continue;
    }
    const double magnitude = v.kind == Class::infinite ? HUGE_VAL
                             : v.kind == Class::zero
                                 ? 0
                                 : std::ldexp(static_cast<double>(v.significand), v.exponent);
    const Encoded back = encode(f, v, {}, Overflow::ieee);
    differences += v.kind == Class::nan || magnitude != std::abs(double{x}) ||
                   v.negative != std::signbit(x) || back.code != bits || back.flags != 0;
  }
  WARN("decode and back, float32: 4294967296 codes, " << differences << " differences");
  CHECK(differences == 0);
}

TEST_CASE("decode: float32 and float64 codes of every field equal the oracle", "[fast]") {
  ProofTally tally;
  for (const char* name : {"float32", "float64"}) {
    const Format& f = find_format(name);
    const RationalCodec codec(name);
    ++tally.formats;
    const std::uint64_t ones = (std::uint64_t{1} << f.mantissa_bits) - 1;
    for (std::uint64_t field = 0; field < std::uint64_t{1} << f.exponent_bits; ++field) {
      for (const std::uint64_t fraction :
           {std::uint64_t{0}, std::uint64_t{1}, ones, ones / 2, ones / 2 + 1, ones / 3}) {
        for (const std::uint64_t sign : {std::uint64_t{0}, f.sign_bit()}) {
          const std::uint64_t code = sign | field << f.mantissa_bits | fraction;
          const Value got = decode(f, code);
          const oracle::Decoded want = codec.decode(code);
          ++tally.comparisons;
          const bool same = got.kind == want.kind && got.negative == want.negative &&
                            (got.kind != Class::finite ||
                             rational(oracle::dyadic(oracle::Wide{got.significand},
                                                     got.exponent)) == want.magnitude);
          tally.differences += !same;
        }
      }
    }
  }
  report("decode, float32 and float64, every exponent field x 6 fractions x 2 signs", tally);
}

}  // namespace
}  // namespace numemu::decode_proof_test
