// Builds the inputs of the proofs and runs the comparisons.
#include "tests/oracle/proof.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace numemu::oracle {
namespace {

// A number of `precision` significant bits with units and magnitudes of that range?
bool fits(const Dyadic& x, int precision, std::int64_t lowest, std::int64_t highest) {
  return !x.zero() && x.lead <= highest && x.lead >= lowest && x.bits << precision == 0 &&
         (x.lead - lowest >= precision - 1 || x.bits << (x.lead - lowest + 1) == 0);
}

void add_with_neighbours(std::vector<Dyadic>& list, const Dyadic& x) {
  constexpr int kFloat32 = 24, kFloat64 = 53;
  constexpr std::int64_t kUnbounded = std::int64_t{1} << 20;  // beyond any format
  list.push_back(x);
  if (fits(x, kFloat32, -149, 127)) {
    list.push_back(next_above(x, kFloat32, -149));
    list.push_back(next_below(x, kFloat32, -149));
  }
  const std::int64_t lowest = fits(x, kFloat64, -1074, 1023) ? -1074 : -kUnbounded;
  if (!x.zero()) {
    list.push_back(next_above(x, kFloat64, lowest));
    list.push_back(next_below(x, kFloat64, lowest));
  }
}

// A keyed sequence of words: the position through a bijective mixer (SplitMix64's).
std::uint32_t word_at(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>((z ^ z >> 31) >> 32);
}

bool same(const Value& got, const Decoded& want) {
  if (got.kind != want.kind || got.sticky) return false;
  if (got.negative != want.negative) return false;
  return want.kind != Class::finite ||
         rational(dyadic(Wide{got.significand}, got.exponent)) == want.magnitude;
}

}  // namespace

std::vector<Rounding> roundings(const std::vector<int>& random_bits) {
  std::vector<Rounding> list;
  for (const RoundingMode mode : kDeterministic) list.push_back({.mode = mode});
  for (const int n : random_bits) {
    for (const StochasticVariant variant : kVariants)
      list.push_back({.mode = RoundingMode::sr, .variant = variant, .random_bits = n});
  }
  return list;
}

Value Input::value() const {
  if (kind == Class::finite) return oracle::value(magnitude, negative);
  return {.kind = kind, .negative = negative, .significand = signalling ? 1u : 0u};
}

Place Input::place(const RationalCodec& codec) const {
  return kind == Class::finite ? codec.place(magnitude, negative)
                               : codec.special(kind, negative, signalling);
}

std::vector<Input> probes(const RationalCodec& codec) {
  std::vector<Dyadic> list;
  for (const double x : {0x1p-1074, 0x1p-149, 0x1p-126, 0x1p-24, 1.0, 0x1p127, 0x1p128,
                         0x1.fffffep127, 0x1.fffffffffffffp1023})
    list.push_back(dyadic(x));
  const std::uint64_t last = codec.largest(true);
  for (std::uint64_t code = 0; code <= last; ++code) {
    add_with_neighbours(list, codec.at(code));
    add_with_neighbours(list, middle(codec.at(code), codec.at(code + 1)));
  }
  const Dyadic beyond = codec.at(last + 1);
  add_with_neighbours(list, beyond);
  add_with_neighbours(list, dyadic(beyond.bits, beyond.lead - 126));
  for (std::int64_t down = 1; down <= 3; ++down)  // below everything
    add_with_neighbours(list, dyadic(Wide{1}, codec.at(codec.has_zero() ? 1 : 0).lead - down));
  if (!codec.format().integer) {
    add_with_neighbours(list, codec.below_normal());
    add_with_neighbours(list, middle(codec.below_normal(), codec.smallest_normal()));
  }
  std::stable_sort(list.begin(), list.end());  // merges: they are in order but for neighbours
  list.erase(std::unique(list.begin(), list.end()), list.end());

  std::vector<Input> inputs;
  inputs.reserve(2 * list.size() + 6);
  for (const bool negative : {false, true}) {
    for (const Dyadic& x : list)
      inputs.push_back({x.zero() ? Class::zero : Class::finite, negative, x});
    inputs.push_back({Class::zero, negative, {}});
    inputs.push_back({Class::infinite, negative, {}});
    for (const bool signalling : {false, true})
      inputs.push_back({Class::nan, negative, {}, signalling});
  }
  return inputs;
}

std::string ProofTally::text(const Encoded& e) {
  return " code " + std::to_string(e.code) + " flags " + std::to_string(e.flags);
}

ProofTally& ProofTally::operator+=(const ProofTally& other) {
  formats += other.formats;
  comparisons += other.comparisons;
  differences += other.differences;
  if (first.empty()) first = other.first;
  return *this;
}

std::string ProofTally::report(const std::string& what) const {
  std::string line = what + ": " + std::to_string(formats) + " formats, " +
                     std::to_string(comparisons) + " comparisons, " + std::to_string(differences) +
                     " differences";
  return first.empty() ? line : line + "; the first: " + first;
}

std::string describe(const std::string& format, const Input& x, const Rounding& rounding,
                     Overflow overflow) {
  const char* kinds[] = {"0", "", "Inf", "NaN"};
  std::string number = (x.signalling ? "s" : "") + std::string(kinds[static_cast<int>(x.kind)]);
  if (x.kind == Class::finite) {
    const Value v = x.value();
    const int trailing = std::countr_zero(v.significand);
    number =
        std::to_string(v.significand >> trailing) + "*2^" + std::to_string(v.exponent + trailing);
  }
  return format + " of " + (x.negative ? "-" : "+") + number + " " + to_string(rounding) + " " +
         to_string(overflow);
}

ProofTally compare_encode(const RationalCodec& codec, const std::vector<Input>& inputs,
                          const std::vector<Rounding>& rules, int words) {
  const Format& f = find_format(codec.format().name);
  ProofTally tally{.formats = 1, .first = {}};
  std::uint64_t drawn = 0;
  for (const Input& x : inputs) {
    const Value v = x.value();
    const Place place = x.place(codec);
    for (const Rounding& rounding : rules) {
      const Plan plan = codec.plan(place, rounding);
      const int count = rounding.stochastic() ? words : 1;
      for (int i = 0; i < count; ++i) {
        std::uint32_t word = i == 0 ? 0 : i == 1 ? ~std::uint32_t{0} : word_at(drawn++);
        // The two words where the decision turns.
        if (i == 2) word = static_cast<std::uint32_t>(plan.up_from);
        if (i == 3) word = static_cast<std::uint32_t>(plan.up_from - 1);
        for (const Overflow overflow : kOverflows) {
          tally.compare(encode(f, v, rounding, overflow, word), codec.encode(plan, overflow, word),
                        [&] {
                          return describe(f.name, x, rounding, overflow) + " word " +
                                 std::to_string(word) + ":";
                        });
        }
      }
    }
  }
  return tally;
}

ProofTally compare_decode(const RationalCodec& codec) {
  const Format& f = find_format(codec.format().name);
  const bool reads_one_zero = f.kind == Kind::floating && !codec.has_negative_zero();
  const std::vector<Rounding> rules = roundings({8});
  ProofTally tally{.formats = 1, .first = {}};
  const auto expect = [&](bool holds, std::uint64_t code, const char* what) {
    ++tally.comparisons;
    if (!holds && tally.differences++ == 0)
      tally.first = f.name + " code " + std::to_string(code) + ": " + what;
  };
  Decoded before;
  const std::uint64_t last = (std::uint64_t{1} << codec.format().bits) - 1;
  for (std::uint64_t code = 0; code <= last; ++code) {
    const Decoded want = codec.decode(code);
    const Value got = decode(f, code);
    expect(same(got, want), code, "not the value of the specification");
    if (code > 0 && want.kind == Class::finite && before.kind == Class::finite &&
        want.negative == before.negative) {
      // Two's complement counts up to zero on the negative side; sign and magnitude down from it.
      const bool outward = !(codec.format().integer && want.negative);
      expect(outward ? want.magnitude > before.magnitude : want.magnitude < before.magnitude, code,
             "not in the order of the codes");
    }
    before = want;
    if (want.kind == Class::nan) continue;
    // Codes that read as a zero of another code, and flushed ones, come back as that zero.
    const bool plain_zero = code == 0 || (code == f.sign_bit() && !reads_one_zero);
    if (want.kind == Class::zero && !plain_zero) continue;
    for (const Rounding& rounding : rules) {
      for (const Overflow overflow : kOverflows) {
        if (want.kind == Class::infinite && overflow == Overflow::saturate) continue;
        const Encoded back = encode(f, got, rounding, overflow, 0xa5a5a5a5);
        expect(back.code == code && back.flags == 0, code, "does not come back");
      }
    }
  }
  return tally;
}

}  // namespace numemu::oracle
