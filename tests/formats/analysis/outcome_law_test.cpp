// The law of a format against the codec: values and flags around every breakpoint, and every word
// of stochastic rounding.
#include "formats/analysis/outcome_law.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "formats/codebooks/codebook.hpp"
#include "formats/codec.hpp"
#include "formats/conversion.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace outcome_law_test {

using namespace numemu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Breakpoints, their neighbours and points between, finite only.
std::vector<double> probes(const OutcomeLaw& law) {
  std::vector<double> out{0, 1e30, -1e30, 1e-300, -1e-300};
  const auto add = [&](double x) {
    for (const double y : {x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)})
      if (std::isfinite(y)) out.push_back(y);
  };
  for (const auto* list : {&law.pieces, &law.tiny}) {
    for (const OutcomePiece& piece : *list) {
      add(piece.low);
      if (std::isfinite(piece.low) && std::isfinite(piece.high))
        add(piece.low + (piece.high - piece.low) * 0.375);
    }
  }
  return out;
}

/// Counted without an assertion per piece: there are millions.
void check_touching(const std::vector<OutcomePiece>& list) {
  int wrong = (list.front().low != -kInfinity) + (list.back().high != kInfinity);
  for (std::size_t i = 0; i + 1 < list.size(); ++i)
    wrong += list[i].high != list[i + 1].low || list[i].low > list[i].high;
  REQUIRE(wrong == 0);
}

/// Number of probes at which law and codec differ under a deterministic rounding.
int differences(const Format& f, const Rounding& rounding, Overflow overflow) {
  const OutcomeLaw law = outcome_law(f, rounding, overflow);
  check_touching(law.pieces);
  check_touching(law.tiny);
  const Conversion c{.format = &f, .rounding = rounding, .overflow = overflow};
  int wrong = 0;
  for (const double x : probes(law)) {
    const Encoded expected = encode_element(c, value_of(x), 0);
    const double value = to_double(decode(f, expected.code));
    const PossibleResult& got = piece_at(law.pieces, x, 1).near;
    const bool tiny = piece_at(law.tiny, x, 1).near.value == 1 && got.value != x;
    const bool right = same(value, got.value) &&
                       got.overflow == ((expected.flags & kOverflow) != 0) &&
                       got.invalid == ((expected.flags & kInvalid) != 0) &&
                       tiny == ((expected.flags & kUnderflow) != 0);
    if (!right && ++wrong == 1)
      UNSCOPED_INFO(x << ": law " << got.value << " OF " << got.overflow << " NV " << got.invalid
                      << " UF " << tiny << ", codec " << value << " flags " << int{expected.flags});
  }
  return wrong;
}

/// What a number may become, with probabilities; NaN is filed under 1e99.
struct Tally {
  std::map<double, double> values;
  double overflow = 0, underflow = 0;
  void add(double value, double p) { values[std::isnan(value) ? 1e99 : value] += p; }
};

/// Every word of the random bits through the codec.
Tally counted(const Format& f, const Rounding& rounding, Overflow overflow, double x) {
  const std::uint32_t words = 1U << rounding.random_bits;
  Tally tally;
  for (std::uint32_t r = 0; r < words; ++r) {
    const Conversion c{
        .format = &f, .rounding = rounding, .overflow = overflow, .random_words = &r};
    const Encoded one = encode_element(c, value_of(x), 0);
    tally.add(to_double(decode(f, one.code)), 1.0 / words);
    tally.overflow += (one.flags & kOverflow) != 0 ? 1.0 / words : 0;
    tally.underflow += (one.flags & kUnderflow) != 0 ? 1.0 / words : 0;
  }
  return tally;
}

Tally by_law(const OutcomeLaw& law, double x) {
  const auto up = [&](const OutcomePiece& piece) {
    if (!piece.stochastic()) return 0.0;
    return up_probability(law.rounding, (x - piece.from) / (piece.to - piece.from));
  };
  Tally tally;
  const OutcomePiece& piece = piece_at(law.pieces, x, 1);
  const double p = up(piece);
  if (p < 1) tally.add(piece.near.value, 1 - p);
  if (p > 0) tally.add(piece.far.value, p);
  tally.overflow = (piece.near.overflow ? 1 - p : 0) + (piece.far.overflow ? p : 0);
  const bool exact = tally.values.size() == 1 && tally.values.begin()->first == x;
  const OutcomePiece& tiny = piece_at(law.tiny, x, 1);
  const double q = up(tiny);
  tally.underflow = exact ? 0 : (1 - q) * tiny.near.value + q * tiny.far.value;
  return tally;
}

/// Number of probes at which a stochastic law and the codec differ.
/// `short_only`: at numbers of few bits, whose fraction of a gap is exact in a double.
int stochastic_differences(const Format& f, const Rounding& rounding, Overflow overflow,
                           bool short_only = false) {
  constexpr double kSlack = 1e-12;  // sums of multiples of 2^-n, exact but for the law's products
  const OutcomeLaw law = outcome_law(f, rounding, overflow);
  check_touching(law.pieces);
  check_touching(law.tiny);
  int wrong = 0;
  for (const double x : probes(law)) {
    if (short_only && x != static_cast<float>(x)) continue;
    const Tally expected = counted(f, rounding, overflow, x);
    Tally got = by_law(law, x);
    bool right = std::abs(expected.overflow - got.overflow) <= kSlack &&
                 std::abs(expected.underflow - got.underflow) <= kSlack;
    for (const auto& [value, share] : expected.values)
      right &= std::abs(share - got.values[value]) <= kSlack;
    if (!right && ++wrong == 1)
      UNSCOPED_INFO("x " << x << " OF " << expected.overflow << " law " << got.overflow << " UF "
                         << expected.underflow << " law " << got.underflow);
  }
  return wrong;
}

Format codebook_of(const std::vector<double>& entries) {
  Format f;
  f.name = "codebook";
  f.kind = Kind::codebook;
  f.bits = std::max(1, static_cast<int>(std::bit_width(entries.size() - 1)));
  f.field_zero = FieldZero::scale;
  f.codebook = std::make_shared<const Codebook>(entries, "codebook");
  return f;
}

const char* const kModes[] = {"rne", "rna", "rtz", "rup", "rdn", "rodd"};
const char* const kOverflows[] = {"saturate", "propagate", "ieee"};

}  // namespace

TEST_CASE("the law is the codec's: named formats of at most 8 bits, six modes, three overflows",
          "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 8) continue;
    for (const char* mode : kModes) {
      for (const char* overflow : kOverflows) {
        INFO(f->name << " " << mode << " " << overflow);
        CHECK(differences(*f, parse_rounding(mode), parse_overflow(overflow)) == 0);
      }
    }
  }
}

TEST_CASE("the law of formats that flush, have no subnormals, no mantissa or no sign", "[fast]") {
  for (const char* name : {"e4m3+ftz", "e3m0+finite+ftz", "e3m2+nosub", "e4m0+finite",
                           "e3m2+finite+unsigned", "e3m2+unsigned+ftz", "e3m2+unsigned+nosub",
                           "binary6p1se", "binary6p3uf", "binary7p7ue", "dlfloat16", "float16"}) {
    for (const char* mode : kModes) {
      for (const char* overflow : kOverflows) {
        INFO(name << " " << mode << " " << overflow);
        CHECK(differences(find_format(name), parse_rounding(mode), parse_overflow(overflow)) == 0);
      }
    }
  }
}

TEST_CASE("stochastic laws: probabilities of values and flags, counted over every word", "[fast]") {
  for (const char* name :
       {"float8_e4m3fn", "float4_e2m1fn", "float8_e5m2", "int4", "uint3", "sign1", "e3m2+ftz",
        "e3m2+nosub", "e3m2+unsigned", "e3m2+unsigned+ftz", "float8_e8m0fnu", "binary6p1se"}) {
    for (const char* mode : {"sr(1)", "sr(3,a)", "sr(3,b)", "sr(3,c)", "sr(4,odd)"}) {
      for (const char* overflow : kOverflows) {
        INFO(name << " " << mode << " " << overflow);
        CHECK(stochastic_differences(find_format(name), parse_rounding(mode),
                                     parse_overflow(overflow)) == 0);
      }
    }
  }
}

TEST_CASE("laws of codebooks, with zero, across zero and on one side of it", "[fast]") {
  const std::vector<std::vector<double>> lists = {
      {-1.5, -0.25, 0, 0.5, 2}, {-1.5, -0.5, 0.5, 2, 3}, {-1, 0.25}, {0.5, 1, 4}, {-4, -1}};
  for (const std::vector<double>& entries : lists) {
    const Format f = codebook_of(entries);
    for (const char* mode : kModes) {
      INFO(entries[0] << ", " << entries[1] << " " << mode);
      CHECK(differences(f, parse_rounding(mode), Overflow::saturate) == 0);
    }
    for (const char* mode : {"sr(2,a)", "sr(3)"}) {
      INFO(entries[0] << ", " << entries[1] << " " << mode);
      CHECK(stochastic_differences(f, parse_rounding(mode), Overflow::ieee, true) == 0);
    }
  }
}

TEST_CASE("up_probability steps where the variant says", "[fast]") {
  CHECK(up_probability(parse_rounding("sr(2,a)"), 0.4999) == 0.25);
  CHECK(up_probability(parse_rounding("sr(2,a)"), 0.5) == 0.5);
  CHECK(up_probability(parse_rounding("sr(2,b)"), 0.125) == 0.25);
  CHECK(up_probability(parse_rounding("sr(2,c)"), 0.125) == 0);
  CHECK(up_probability(parse_rounding("sr(2,c)"), 0.375) == 0.5);
  CHECK(up_probability(parse_rounding("sr(2,odd)"), 0.125) == 0.25);
  CHECK(up_probability(parse_rounding("sr(2,odd)"), 0.375) == 0.25);
  CHECK(up_probability(parse_rounding("sr(2)"), 1) == 1);
}

TEST_CASE("what has no law is refused", "[fast]") {
  CHECK_THROWS_AS(outcome_law(find_format("float32"), {}, Overflow::saturate), Error);
  CHECK_THROWS_AS(outcome_law(find_format("tfloat32"), parse_rounding("sr(4)"), Overflow::ieee),
                  Error);
}

}  // namespace outcome_law_test
