// The proof of encode(): every value, midpoint and neighbour, in every mode, against the oracle.
#include "tests/catch.hpp"
#include "tests/oracle/proof.hpp"

namespace numemu::encode_proof_test {
namespace {

using oracle::ProofTally;
using oracle::RationalCodec;

void report(const std::string& what, const ProofTally& tally) {
  WARN(tally.report(what));
  CHECK(tally.formats > 0);
  CHECK(tally.differences == 0);
}

// The named rows of `low` to `high` bits.
ProofTally prove_rows(int low, int high, const std::vector<Rounding>& rules, int words = 0) {
  ProofTally tally;
  for (const Format* f : named_formats()) {
    if (f->bits < low || f->bits > high) continue;
    const RationalCodec codec(f->name);
    tally += oracle::compare_encode(codec, oracle::probes(codec), rules, words);
  }
  return tally;
}

ProofTally prove_family(int low, int high, const std::vector<Rounding>& rules, int words = 0) {
  ProofTally tally;
  for (int k = low; k <= high; ++k) {
    for (const std::string& name : oracle::p3109_names(k)) {
      const RationalCodec codec(name);
      tally += oracle::compare_encode(codec, oracle::probes(codec), rules, words);
    }
  }
  return tally;
}

TEST_CASE("encode: named formats up to 8 bits in 6 modes x 3 overflows equal the oracle",
          "[fast]") {
  report("encode, named up to 8 bits x 6 modes x 3 overflows",
         prove_rows(1, 8, oracle::roundings()));
}

void prove_stochastic(const std::vector<int>& random_bits) {
  constexpr int kWords = 6;  // both extremes, both sides of the turn, two others
  const std::vector<Rounding> all = oracle::roundings(random_bits);
  report("encode, named up to 8 bits x sr(n) x 4 variants x 3 overflows x 6 words",
         prove_rows(1, 8, {all.begin() + std::size(oracle::kDeterministic), all.end()}, kWords));
}

TEST_CASE("encode: named formats up to 8 bits in sr(1) and sr(32) equal the oracle", "[fast]") {
  prove_stochastic({1, 32});
}

TEST_CASE("encode: named formats up to 8 bits in sr(1) to sr(32) equal the oracle", "[slow]") {
  prove_stochastic({1, 8, 23, 32});
}

TEST_CASE("encode: the P3109 family up to K = 8 equals the oracle", "[fast]") {
  report("encode, P3109 K 3..8 x 6 modes x 3 overflows", prove_family(3, 8, oracle::roundings()));
}

// Every 61st of the inputs that the slow run below takes all.
TEST_CASE("encode: a sample around 16-bit formats' values and midpoints equals the oracle",
          "[fast]") {
  constexpr std::size_t kStride = 61;
  ProofTally tally;
  for (const char* name : {"float16", "bfloat16", "dlfloat16", "hfp16_e6m9", "binary15p7se"}) {
    const RationalCodec codec(name);
    const std::vector<oracle::Input> all = oracle::probes(codec);
    std::vector<oracle::Input> sample;
    for (std::size_t i = 0; i < all.size(); i += kStride) sample.push_back(all[i]);
    tally += oracle::compare_encode(codec, sample, oracle::roundings({8, 32}), 4);
  }
  report("encode, samples of 16-bit formats x 6 modes and sr(8 32) x 4 variants x 3 overflows",
         tally);
}

// Too many values for a list: the oracle bisects the formula.
TEST_CASE("encode: float32 and float64 targets at both ends equal the oracle", "[fast]") {
  ProofTally tally;
  for (const char* name : {"float32", "float64", "e15m23+finite", "e12m20+nosub"}) {
    const RationalCodec codec(name);
    const std::uint64_t hidden = std::uint64_t{1} << codec.format().m;
    std::vector<oracle::Input> inputs;
    for (const std::uint64_t code :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, hidden / 2, hidden - 1, hidden,
          hidden + 1, 2 * hidden - 1, 2 * hidden, codec.largest() / 2, codec.largest() / 3,
          codec.largest() - 1, codec.largest()}) {
      const oracle::Dyadic low = codec.at(code), high = codec.at(code + 1);
      const oracle::Dyadic half = oracle::middle(low, high);
      for (const oracle::Dyadic& x : {low, half, oracle::next_above(half, 60, -1 << 20),
                                      oracle::next_below(half, 60, -1 << 20), high}) {
        for (const bool negative : {false, true})
          inputs.push_back({x.zero() ? Class::zero : Class::finite, negative, x});
      }
    }
    tally += oracle::compare_encode(codec, inputs, oracle::roundings({8, 32}), 4);
  }
  report("encode, formats beyond 20 bits x 6 modes and sr(8 32) x 4 variants x 3 overflows", tally);
}

TEST_CASE("encode: named formats of 9 to 19 bits in 6 modes x 3 overflows equal the oracle",
          "[slow]") {
  report("encode, named of 9 to 19 bits x 6 modes x 3 overflows",
         prove_rows(9, 19, oracle::roundings()));
}

TEST_CASE("encode: the whole P3109 family in 6 modes x 3 overflows equals the oracle", "[slow]") {
  report("encode, P3109 K 3..15 x 6 modes x 3 overflows", prove_family(3, 15, oracle::roundings()));
}

TEST_CASE("encode: the P3109 family up to K = 8 in sr(n) equals the oracle", "[slow]") {
  report("encode, P3109 K 3..8 x 6 modes and sr(3 16 32) x 4 variants x 6 words x 3 overflows",
         prove_family(3, 8, oracle::roundings({3, 16, 32}), 6));
}

TEST_CASE("encode: every described format up to 7 bits equals the oracle", "[slow]") {
  ProofTally tally;
  for (const std::string& name : oracle::descriptor_names(7)) {
    const Format& f = find_format(name);
    oracle::Specified described = oracle::specified(name);
    described.name = f.name;  // a description of a row is that row
    const RationalCodec codec(described);
    tally += oracle::compare_encode(codec, oracle::probes(codec), oracle::roundings({4}), 4);
  }
  report("encode, descriptors up to 7 bits x 6 modes and sr(4) x 4 variants x 3 overflows", tally);
}

TEST_CASE("encode: one described format of each kind equals the oracle", "[fast]") {
  ProofTally tally;
  for (const char* name :
       {"e4m3b8+fnuz", "e3m2+nosub", "e2m1+nosub+unsigned", "e3m0+finite", "e4m0",
        "e2m3+nan1+unsigned", "e3m2b9+finite", "e1m3+finite", "e3m0+nosub+finite", "e6m0+fnuz",
        "e3m3+fnuz+nosub", "e4m3b-20+ftz", "e4m2+ftz+unsigned", "e3m2b400+nan1"}) {
    const RationalCodec codec(name);
    tally += oracle::compare_encode(codec, oracle::probes(codec), oracle::roundings({4}), 4);
  }
  report("encode, described formats x 6 modes and sr(4) x 4 variants x 3 overflows", tally);
}

// The probes are in ascending order on each side of zero, adjacent float64 around every breakpoint.
// Codes as integers, mirrored on the negative side, must not descend.
std::int64_t descents(const RationalCodec& codec, const std::vector<Rounding>& rules) {
  const Format& f = find_format(codec.format().name);
  const std::vector<oracle::Input> inputs = oracle::probes(codec);
  std::int64_t count = 0;
  for (const Rounding& rounding : rules) {
    for (const Overflow overflow : {Overflow::saturate, Overflow::propagate}) {
      std::uint64_t before[2] = {0, 0};
      for (const oracle::Input& x : inputs) {
        if (x.kind == Class::nan || (x.negative && !f.is_signed)) continue;
        std::uint64_t code = encode(f, x.value(), rounding, overflow, 0x5a5a5a5a).code;
        if (x.negative && code != 0)
          code = f.kind == Kind::integer ? f.code_mask() + 1 - code : code & ~f.sign_bit();
        if (x.kind == Class::zero) continue;
        count += code < before[x.negative ? 1 : 0];
        before[x.negative ? 1 : 0] = code;
      }
    }
  }
  return count;
}

TEST_CASE("encode: monotone over adjacent numbers around every breakpoint", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 8) continue;
    INFO(f->name);
    CHECK(descents(RationalCodec(f->name), oracle::roundings({5})) == 0);
  }
}

TEST_CASE("encode: 16-bit formats are monotone around every breakpoint", "[slow]") {
  for (const Format* f : named_formats()) {
    if (f->bits <= 8 || f->bits > 19) continue;
    INFO(f->name);
    CHECK(descents(RationalCodec(f->name), oracle::roundings({5})) == 0);
  }
}

// -x must give the mirrored code; the directed modes change places.
TEST_CASE("encode: symmetric where signed, rup and rdn mirrored", "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 8 || !f->is_signed || f->kind != Kind::floating) continue;
    INFO(f->name);
    std::int64_t differences = 0;
    for (const oracle::Input& x : oracle::probes(RationalCodec(f->name))) {
      if (x.negative || x.kind == Class::nan) continue;
      Value v = x.value();
      for (Rounding rounding : oracle::roundings({5})) {
        for (const Overflow overflow : oracle::kOverflows) {
          v.negative = false;
          const Encoded up = encode(*f, v, rounding, overflow, 0x5a5a5a5a);
          Rounding mirrored = rounding;
          if (rounding.mode == RoundingMode::rup) mirrored.mode = RoundingMode::rdn;
          if (rounding.mode == RoundingMode::rdn) mirrored.mode = RoundingMode::rup;
          v.negative = true;
          const Encoded down = encode(*f, v, mirrored, overflow, 0x5a5a5a5a);
          const Value a = decode(*f, up.code), b = decode(*f, down.code);
          const bool one_zero = a.kind == Class::zero && !f->has_negative_zero();
          const bool signless = one_zero || a.kind == Class::nan;
          differences += a.kind != b.kind || a.significand != b.significand ||
                         a.exponent != b.exponent || up.flags != down.flags ||
                         (!signless && a.negative == b.negative);
        }
      }
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("encode: idempotent, and saturation never gives a special for a number", "[fast]") {
  std::vector<std::string> names = oracle::p3109_names(5);
  for (const Format* f : named_formats())
    if (f->bits <= 8) names.push_back(f->name);
  for (const std::string& name : names) {
    const Format& f = find_format(name);
    INFO(f.name);
    std::int64_t specials = 0, moved = 0;
    for (const oracle::Input& x : oracle::probes(RationalCodec(name))) {
      for (const Rounding& rounding : oracle::roundings({5})) {
        for (const Overflow overflow : oracle::kOverflows) {
          const Encoded once = encode(f, x.value(), rounding, overflow, 0x5a5a5a5a);
          const Value v = decode(f, once.code);
          const bool refused = x.negative && !f.is_signed;  // NaN in every overflow mode
          if (overflow == Overflow::saturate && x.kind != Class::nan && !refused)
            specials += v.kind == Class::nan || v.kind == Class::infinite;
          if (v.kind == Class::infinite && overflow == Overflow::saturate) continue;
          if (v.kind == Class::zero && !f.has_zero()) continue;
          moved += encode(f, v, rounding, overflow, 0xa5a5a5a5).code != once.code;
        }
      }
    }
    CHECK(specials == 0);
    CHECK(moved == 0);
  }
}

}  // namespace
}  // namespace numemu::encode_proof_test
