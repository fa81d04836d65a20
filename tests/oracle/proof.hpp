// Shared by all proofs: the tables of modes, the inputs around a format's values, and the tally.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle {

/// The modes that the proofs go through. tests/formats/registry_guard_test.cpp compares them with
/// the enumerations of formats/rounding.hpp, so that a new mode cannot stay unproven.
inline constexpr RoundingMode kDeterministic[] = {RoundingMode::rne, RoundingMode::rna,
                                                  RoundingMode::rtz, RoundingMode::rup,
                                                  RoundingMode::rdn, RoundingMode::rodd};
inline constexpr StochasticVariant kVariants[] = {StochasticVariant::a, StochasticVariant::b,
                                                  StochasticVariant::c, StochasticVariant::odd};
inline constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};

/// The deterministic modes, and optionally sr(n) in every variant.
std::vector<Rounding> roundings(const std::vector<int>& random_bits = {});

/// One number: NaN, an infinity, a zero, or a magnitude with its sign.
struct Input {
  Class kind = Class::zero;
  bool negative = false;
  Dyadic magnitude;
  bool signalling = false;  ///< NaN

  Value value() const;
  Place place(const RationalCodec&) const;
};

/// Of both signs: every value of the format and of the next two codes, every midpoint, the float32
/// and float64 neighbours of both; the same around the smallest normal number and its lower
/// neighbour; extremes and specials. Magnitudes ascend.
std::vector<Input> probes(const RationalCodec&);

/// Counts what was compared and keeps the first difference.
struct ProofTally {
  std::int64_t formats = 0, comparisons = 0, differences = 0;
  std::string first;

  void compare(const Encoded& got, const Encoded& want, const auto& describe) {
    ++comparisons;
    if (got.code == want.code && got.flags == want.flags) return;
    if (differences++ == 0) first = describe() + text(got) + ", oracle" + text(want);
  }
  static std::string text(const Encoded&);
  ProofTally& operator+=(const ProofTally&);
  /// "named formats: 22 formats x 6 modes..., 1234 comparisons, 0 differences".
  std::string report(const std::string& what) const;
};

/// encode() against the oracle: inputs x roundings x overflow modes; `words` random words for each
/// stochastic rounding (a keyed sequence that holds both extremes).
ProofTally compare_encode(const RationalCodec&, const std::vector<Input>&,
                          const std::vector<Rounding>&, int words = 0);
/// Every code: decode() against the oracle, finite values strictly increasing in code order on
/// each side of zero, and encode(decode(c)) = c without flags in every rounding and overflow mode,
/// for infinities in those that keep them.
ProofTally compare_decode(const RationalCodec&);

std::string describe(const std::string& format, const Input&, const Rounding&, Overflow);

}  // namespace numemu::oracle
