// The rules each conversion is replayed with: the documents' first, then its rivals.
#include <utility>

#include "tests/oracle/cuda/conversions/convert.hpp"

namespace numemu::oracle::recording {
namespace {

/// The first rule and copies of it, each with one change.
class Rivals {
 public:
  explicit Rivals(const ConversionRule& first) : rules_{first} {}

  template <class Change>
  void add(const char* name, const char* question, Change change) {
    ConversionRule rival = rules_.front();
    rival.name = name;
    rival.question = question;
    change(rival);
    rules_.push_back(rival);
  }
  std::vector<ConversionRule> take() { return std::move(rules_); }

 private:
  std::vector<ConversionRule> rules_;
};

/// cvt.f32.bf16 is a shift and cvt.rna.tf32 an addition and a mask: no unit sees the NaN.
bool is_lowered(const Conversion& c) {
  return (c.d == Element::f32 && c.a == Element::bf16) || c.rounding == CvtRounding::rna;
}

/// Random bits per number: PTX ISA, "cvt", rbits.
int documented_random_bits(Element d) {
  return d == Element::f16 ? 13 : d == Element::e2m1 ? 8 : 16;
}

void add_nan_rivals(Rivals& rivals, const Conversion& c) {
  if (info(c.d).specials == Specials::finite || c.d == Element::ue8m0 ||
      info(c.a).specials == Specials::finite)
    return;
  const auto nan = [&](const char* name, NanCode code) {
    rivals.add(name, "conversion-nan", [=](ConversionRule& r) { r.nan = code; });
  };
  const bool ieee = info(c.d).specials == Specials::ieee;
  if (ieee) nan("NaN becomes positive, top mantissa bit only", NanCode::quiet);
  // PTX ISA: with .relu the NaN is canonical.
  if (c.relu || !info(c.a).has_sign) return;
  nan("NaN keeps its sign, all ones", NanCode::signed_ones);
  if (!ieee) return;
  nan("NaN keeps sign and payload, made quiet", NanCode::payload);
  if (is_lowered(c))
    nan("NaN becomes positive, all ones", NanCode::ones);
  else
    nan("NaN keeps sign and upper payload as they are", NanCode::cut);
}

}  // namespace

std::vector<ConversionRule> conversion_rules(const Conversion& c) {
  ConversionRule first;
  first.name = "PTX ISA, cvt";
  if (is_lowered(c)) first.nan = NanCode::cut;
  if (c.rounding == CvtRounding::rs) first.random_bits = documented_random_bits(c.d);
  Rivals rivals(first);

  add_nan_rivals(rivals, c);
  const bool source_has_infinity = info(c.a).specials == Specials::ieee;
  if (c.satfinite && source_has_infinity && info(c.d).specials != Specials::finite)
    rivals.add("infinity is not saturated", "conversion-infinity",
               [](ConversionRule& r) { r.infinity_saturates = false; });
  if (c.relu)
    rivals.add(".relu keeps -0", "conversion-relu-zero",
               [](ConversionRule& r) { r.relu_zero = ReluZero::kept; });
  if (c.d == Element::ue8m0) {
    rivals.add("a negative number is scale 0", "conversion-negative-scale",
               [](ConversionRule& r) { r.negative = NegativeScale::zero; });
    rivals.add("a negative number is NaN", "conversion-negative-scale",
               [](ConversionRule& r) { r.negative = NegativeScale::nan; });
  }
  if (c.rounding == CvtRounding::rs && c.d == Element::e2m1)
    rivals.add("sixteen random bits", "conversion-random-bits",
               [](ConversionRule& r) { r.random_bits = 16; });
  if (c.rounding == CvtRounding::rs && !c.satfinite)
    rivals.add("overflow ends at the largest number", "conversion-random-overflow",
               [](ConversionRule& r) { r.stochastic_stays_finite = true; });
  if (c.d == Element::tf32)
    rivals.add("the low 13 bits stay", "conversion-tf32-low-bits",
               [](ConversionRule& r) { r.tf32_low_zero = false; });
  return rivals.take();
}

}  // namespace numemu::oracle::recording
