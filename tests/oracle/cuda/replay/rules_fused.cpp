// Rivals of a fused step: widths, exponents of zeros, rounding, where C enters, subnormals.
#include <string>

#include "tests/oracle/cuda/replay/number.hpp"
#include "tests/oracle/cuda/replay/rules.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// Leeds' lower clamp of the largest exponent: least exponent of the output - (5 + extra bits),
/// extra bits = F - 23 (specification of matrix units, 1.1 and 3).
int leeds_floor(const Rule& first, Element out) {
  return 1 - info(out).bias - (5 + first.fraction - 23);
}

void add_zeros(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  const auto add = [&](const char* question, const std::string& name, ZeroProduct zero, int floor) {
    Rule r = rival(first, question, name);
    r.zero = zero;
    r.exponent_floor = floor;
    all.push_back(r);
  };
  add("zero-exponent", "zero products dropped, floor -126", ZeroProduct::dropped, kZeroExponent);
  std::vector<int> floors = {INT_MIN};
  if (i.d == Element::f32) floors.insert(floors.end(), {-132, -133});
  if (i.d == Element::f16 && first.fraction >= 23) floors.push_back(leeds_floor(first, i.d));
  for (const int floor : floors) {
    const std::string text = floor == INT_MIN ? "no floor" : "floor " + std::to_string(floor);
    add("exponent-floor", "zero products dropped, " + text, ZeroProduct::dropped, floor);
    add("exponent-floor", "zero products counted, " + text, ZeroProduct::products_only, floor);
  }
}

void add_widths(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  const int products = first.core == Core::lowered_fp8 ? i.kept() / 2 : i.kept();
  const auto effective = [&](int g) { return g == 0 || g > products ? products : g; };
  if (first.core != Core::four_groups) {
    for (const int g : {4, 8, 16, 32, 0}) {
      if (effective(g) == effective(first.step) || (g != 0 && g >= products)) continue;
      all.push_back(rival(first, "step-width", g == 0 ? "G=all" : "G=" + std::to_string(g)));
      all.back().step = g;
    }
  } else {
    for (const int g : {1, 8, 32}) {
      if (g > i.block) continue;
      all.push_back(rival(first, "step-width", "groups of " + std::to_string(g)));
      all.back().step = g;
    }
  }
  if (first.core == Core::fused && first.step < products) {
    for (const int together : {1, 2}) {
      const std::string text = "steps take turns by " + std::to_string(together);
      all.push_back(rival(first, "step-width", text));
      all.back().interleaved = together;
    }
    all.push_back(rival(first, "step-width", "last step first"));
    all.back().swapped = true;
  }
  const bool narrow = first.fraction < 20;
  const bool wide = first.fraction > 30;
  const int from = narrow ? 12 : wide ? 34 : first.fraction == 23 ? 22 : 23;
  const int to = narrow ? 14 : wide ? 37 : first.fraction == 23 ? 25 : 26;
  for (int f = from; f <= to; ++f) {
    if (f == first.fraction) continue;
    all.push_back(rival(first, "kept-bits", "F=" + std::to_string(f)));
    all.back().fraction = f;
  }
  if (i.d != Element::f32) return;
  const int written = first.kept == 23 ? 13 : 23;
  all.push_back(rival(first, "written-bits", std::to_string(written) + " bits written"));
  all.back().kept = written;
}

void add_roundings(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  all.push_back(rival(first, "alignment-rounding", "aligned down"));
  all.back().align = Align::down;
  all.push_back(rival(first, "alignment-rounding", "aligned to nearest"));
  all.back().align = Align::nearest_even;
  all.push_back(rival(first, "alignment-rounding", "the sum is cut, not its terms"));
  all.back().align = Align::of_sum;
  all.push_back(rival(first, "product-exponent", "exponents of normalised products"));
  all.back().normalised_products = true;
  const bool last = first.c == CEnters::after_rounding;
  all.push_back(rival(first, "c-entry", last ? "C in the alignment" : "C after the rounding"));
  all.back().c = last ? CEnters::in_alignment : CEnters::after_rounding;
  if (i.d == Element::f32) {
    all.push_back(rival(first, "zero-sign", "-0 of a negative sum cut to zero"));
    all.back().zero_sign = ZeroSign::of_sum;
    all.push_back(rival(first, "overflow", "largest finite number"));
    all.back().overflow = Overflow::largest_finite;
    if (first.core == Core::fused) {
      all.push_back(rival(first, "overflow", "products of 2^128 infinite at once"));
      all.back().infinite_at_once = true;
    }
  }
  all.push_back(rival(first, "zero-sign", "-0 where every addend is -0"));
  all.back().zero_sign = ZeroSign::of_zeros;
  all.push_back(rival(first, "zero-sign", "-0 where every addend is negative"));
  all.back().zero_sign = ZeroSign::of_addends;
}

void add_corners(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  if (first.core != Core::four_groups) {
    all.push_back(rival(first, "subnormal-inputs", "subnormal A and B flushed"));
    all.back().flush_ab = true;
  }
  if (info(i.a).specials == Specials::ieee || info(i.b).specials == Specials::ieee) {
    all.push_back(rival(first, "infinities", "infinity and NaN of A, B are numbers"));
    all.back().no_infinities = true;
  }
  all.push_back(rival(first, "subnormal-inputs", "subnormal C flushed"));
  all.back().flush_c = true;
  all.push_back(rival(first, "subnormal-results", "subnormal results flushed"));
  all.back().flush_result = true;
}

}  // namespace

void add_fused_rivals(const Instruction& i, const Rule& first, std::vector<Rule>& all) {
  add_zeros(i, first, all);
  add_widths(i, first, all);
  add_roundings(i, first, all);
  add_corners(i, first, all);
}

}  // namespace numemu::oracle::recording::replay
