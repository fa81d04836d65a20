// Probes of how a step sums: what bounds its alignment from below, its products, the bits it keeps,
// where C enters, what is written.
#include <algorithm>
#include <string>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle::probing {

// Zero times a large number beside small products: their low bits are lost where the zero raises
// the exponent of the alignment.

namespace {

constexpr const char* kZeroExponent = "zero-exponent";

Value near_one(int exponent) { return number(129, exponent - 7); }

/// Least exponent, every bit of the significand set.
Value least_full(const Format* e) {
  const int mantissa = e->mantissa_bits;
  return number((std::uint64_t{2} << mantissa) - 1, least_exponent(e) - mantissa);
}

}  // namespace

void ask_zero_exponent(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  sheet.add(probe(sheet, "Z1", kZeroExponent)
                .factors(0, zero(), power(120))
                .factors(1, near_one(0), near_one(-26))
                .factors(2, near_one(0), near_one(-27)));
  sheet.add(probe(sheet, "Z2", kZeroExponent)
                .factors(0, power(120), zero())
                .factors(1, near_one(0), near_one(-26))
                .factors(2, -near_one(0), near_one(-29)));
  sheet.add(probe(sheet, "Z3", kZeroExponent)
                .factors(0, zero(), power(126))
                .factors(1, near_one(0), near_one(-20))
                .c(number(0xffffff, -33)));
  // Types of few exponents: a zero that counts as the least exponent raises it all the same.
  sheet.add(probe(sheet, "zero-exponent.a", kZeroExponent)
                .factors(together(ports, 0), zero(), largest(ports.b))
                .factors(together(ports, 1), least_full(ports.a), least_full(ports.b)));
  sheet.add(probe(sheet, "zero-exponent.b", kZeroExponent)
                .factors(together(ports, 0), largest(ports.a), zero())
                .factors(together(ports, 1), least_full(ports.a), least_full(ports.b)));
  // Beside a tiny C and nothing else, even an exponent of -126 + 8 is too high.
  const Value tiny = tiny_c(ports);
  sheet.add(probe(sheet, "zero-exponent.a-and-c", kZeroExponent)
                .factors(0, zero(), largest(ports.b))
                .c(tiny));
  sheet.add(probe(sheet, "zero-exponent.b-and-c", kZeroExponent)
                .factors(0, largest(ports.a), zero())
                .c(tiny));
  // A zero whose block has the largest scale.
  sheet.add(probe(sheet, "zero-exponent.scale-and-c", kZeroExponent)
                .only_if(ports.scales() == 1)
                .common_scale(254)
                .factors(0, zero(), largest(ports.b))
                .c(number(0xffffff, -23)));
  if (ports.scales() < 2) return;
  // A block of zeros with a large scale beside a small block; twice, 30 and 40 bits apart.
  const int last = together(ports, 3);
  for (const int distance : {30, 36, 40}) {
    const int high = is_power(ports.scale) ? 20 : 16;
    sheet.add(probe(sheet, "zero-exponent.scale." + std::to_string(distance), kZeroExponent)
                  .scales(0, scale_code(ports.scale, high / 2), scale_code(ports.scale, high / 2))
                  .product(last, power(high - distance)));
  }
}

// Tiny sums with C = 0: where the exponent of the alignment has a floor, the smaller term is lost.

namespace {

constexpr const char* kExponentFloor = "exponent-floor";

/// Where the rivals' answers flip, and the whole series on the dense instruction of full width.
std::vector<int> flips(const Ports& ports) {
  if (ports.scales() > 1) return {150, 161, 162, 167, 168, 169};
  if (ports.k != 16 || !ports.sparsity.dense()) return {150, 151, 152, 158, 159, 160, 168};
  std::vector<int> all;
  for (int j = 150; j <= 168; ++j) all.push_back(j);
  return all;
}

/// 2^-149 - 2^-j: cut to 0 where the small term survives, else the least subnormal.
Draft below_least_float(Sheet& sheet, int j) {
  const Ports& ports = sheet.ports();
  Draft draft = probe(sheet, "F" + std::to_string(j), kExponentFloor);
  draft.only_if(is_single(ports.d));
  if (ports.block == 0)
    return draft.factors(0, power(-75), power(-74)).factors(1, -power(-84), power(84 - j));
  if (ports.scales() == 1) draft.common_scale(-(149 + j) / 2);
  return draft.product(together(ports, 0), power(-149))
      .product(together(ports, 2), -power(-j))
      .least_scales();
}

/// Half of the least float16 subnormal and a small term: a tie where that is lost.
void ask_ties_of_half(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!is_half(ports.d)) return;
  for (int n = 0; n < 6; ++n)
    sheet.add(probe(sheet, "H" + std::to_string(n), kExponentFloor)
                  .factors(0, power(-10), power(-15))
                  .factors(1, power(-24), power(n - 24)));
  // Sums with a subnormal factor, whose exponent is the least normal one, and C = -0.
  for (int n = 0; n < 4; ++n)
    sheet.add(probe(sheet, "G" + std::to_string(n), kExponentFloor)
                  .factors(0, power(-20), power(-5))
                  .factors(1, power(-24), power(n - 24))
                  .c(-zero()));
  for (int j = 26; j <= 32; ++j)
    sheet.add(probe(sheet, "exponent-floor.tie." + std::to_string(j), kExponentFloor)
                  .only_if(ports.a->bits == 8)
                  .product(together(ports, 0), power(-25))
                  .product(together(ports, 1), power(-j)));
}

}  // namespace

void ask_exponent_floor(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  for (const int j : flips(ports)) sheet.add(below_least_float(sheet, j));
  ask_ties_of_half(sheet);
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string(kExponentFloor) + "." + id, kExponentFloor);
  };
  const Value tiny = power(subnormal_exponent(ports.c));
  const std::uint64_t one = std::uint64_t{1} << ports.c->mantissa_bits;
  sheet.add(draft("product").product(0, power(subnormal_exponent(ports.d))).least_scales());
  sheet.add(draft("c").c(tiny).least_scales());
  sheet.add(draft("normal-c").c(number(one + 1, subnormal_exponent(ports.c))).least_scales());
  sheet.add(draft("both")
                .factors(0, power(subnormal_exponent(ports.a)), power(subnormal_exponent(ports.b)))
                .c(tiny)
                .least_scales());
}

// The places of rival widths, and the pair of products that every probe of a width begins with.

std::vector<int> candidate_widths(const Ports& ports) {
  if (ports.scales() > 1) return {25, 35};
  return ports.a->bits <= 8 ? std::vector<int>{13, 24, 25} : std::vector<int>{23, 24, 25};
}

std::optional<Value> small_beside(const Ports& ports) {
  const int top = top_exponent(ports);
  if (ports.scales() > 1) return power(top - (is_power(ports.scale) ? 40 : 36));
  const int least = subnormal_exponent(ports.a) + subnormal_exponent(ports.b);
  const int small = std::max({top - 40, least, subnormal_exponent(ports.d)});
  if (top - small <= 26) return {};
  return power(small);
}

Value tiny_c(const Ports& ports) {
  const int digits = ports.c->mantissa_bits;
  return number((std::int64_t{1} << digits) + (std::int64_t{1} << std::max(digits - 10, 0)) + 1,
                subnormal_exponent(ports.c));
}

Draft& cancelling_pair(Draft& draft) {
  const Ports& ports = draft.ports();
  const Value large = power(top_exponent(ports));
  return draft.product(together(ports, 0), large).product(together(ports, 1), -large);
}

// A large and a small product that C helps to distinguish: does the second enter in a later step?
// The step maps test every pair; these probes are in the records of every run.

namespace {

constexpr const char* kStepWidth = "step-width";

/// FP4 with several scales: two halves of the last kept bit, at 0 and at k, are one bit where both
/// are in a group whose sum is exact, and lost where each is cut alone.
void ask_groups(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const int top = top_exponent(ports);
  for (const int width : {34, 35, 36}) {
    const Value half = power(top - width - 1);
    for (const int k : {1, 2, 4, 8, 15, 16})
      sheet.add(probe(sheet, "step-width.group." + std::to_string(width) + "." + std::to_string(k),
                      kStepWidth)
                    .product(ports.kept() - 1, power(top))
                    .product(0, half)
                    .product(k, half)
                    .c(-power(top)));
  }
}

}  // namespace

void ask_step_width(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  const int top = top_exponent(ports);
  const Value large = power(top);
  const std::optional<Value> small = small_beside(ports);
  for (int k = 1; k < ports.kept(); k *= 2) {
    const std::string n = std::to_string(k);
    if (small) {
      // `small` where k enters after the large product has met C, else 0.
      sheet.add(probe(sheet, "step-width.after." + n, kStepWidth)
                    .product(0, large)
                    .product(k, *small)
                    .c(-large));
      sheet.add(probe(sheet, "step-width.before." + n, kStepWidth)
                    .product(k, large)
                    .product(0, *small)
                    .c(-large));
      // A small product before and after large ones within a pair of neighbours, where C enters
      // last.
      if (ports.a->bits == 8 && k > 1)
        sheet.add(probe(sheet, "step-width.pair." + n, kStepWidth)
                      .product(0, large)
                      .product(1, -large)
                      .product(k, *small));
    }
    // One less than C where both halves of an ulp meet in one step, two less where each is cut.
    if (is_single(ports.d))
      sheet.add(probe(sheet, "step-width.halves." + n, kStepWidth)
                    .product(0, -power(0))
                    .product(k, -power(0))
                    .c(number(3, 23)));
    // Three eighths of an ulp each: rounded up where they meet, lost one by one.
    if (is_half(ports.d))
      sheet.add(probe(sheet, "step-width.halves." + n, kStepWidth)
                    .product(0, number(3, -1))
                    .product(k, number(3, -1))
                    .c(number(3, 11)));
  }
  if (ports.scales() > 1) ask_groups(sheet);
}

// Sweeps of the distance between a large and a small term: the flip of the answers is the width F.

namespace {

constexpr const char* kKeptBits = "kept-bits";

std::string id(const char* series, int distance) {
  return std::string(kKeptBits) + "." + series + "." + std::to_string(distance);
}

/// Distances on both sides of every candidate width.
std::vector<int> near_widths(const Ports& ports) {
  if (ports.scales() > 1) return {24, 25, 26, 34, 35, 36, 37};
  if (ports.a->bits <= 8) return {12, 13, 14, 23, 24, 25, 26};
  return {22, 23, 24, 25, 26};
}

}  // namespace

void ask_kept_bits(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  const int top = top_exponent(ports);
  // Two products cancel; the third is the answer, or lost.
  for (const int d : {11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27, 28, 33, 34, 35, 36, 37}) {
    Draft draft = probe(sheet, id("product", d), kKeptBits);
    sheet.add(cancelling_pair(draft).product(together(ports, 2), power(top - d)));
  }
  for (const int d : near_widths(ports)) {
    Draft small_c = probe(sheet, id("small-c", d), kKeptBits);
    sheet.add(cancelling_pair(small_c).c(power(top - d)));
    Draft large_c = probe(sheet, id("large-c", d), kKeptBits);
    if (is_half(ports.d)) {
      // A tie of the rounding to float16, broken by the small term where it is kept.
      large_c.c(power(15))
          .product(together(ports, 0), power(4))
          .product(together(ports, 1), power(15 - d));
    } else {
      large_c.c(power(d)).product(0, -power(0));
    }
    sheet.add(large_c);
  }
}

// Three quarters of the last kept bit beside a large term: what the alignment makes of it.

namespace {

constexpr const char* kAlignmentRounding = "alignment-rounding";

/// A negative C far below the last kept bit beside positive products: nothing where each term is
/// cut, a whole last bit less where the sum is.
void ask_opposite(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string(kAlignmentRounding) + "." + id, kAlignmentRounding);
  };
  const int top = top_exponent(ports);
  sheet.add(draft("opposite")
                .only_if(is_single(ports.d))
                .product(together(ports, 0), power(top))
                .c(-power(top - 40)));
  if (!is_half(ports.d) || ports.kept() < 32) return;
  // 28 * 36 + 17.5 = 1025.5, a tie of float16 that rounds up to even, in factors that FP4 has.
  Draft tie = draft("below-tie");
  for (int k = 0; k < 28; ++k) tie.factors(k, number(6), number(6));
  tie.product(28, power(4)).product(29, power(0)).product(30, power(-1));
  sheet.add(tie.c(-power(-24)));
}

}  // namespace

void ask_alignment_rounding(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  const int top = top_exponent(ports);
  for (const int width : candidate_widths(ports)) {
    const auto draft = [&](const char* id) {
      return probe(sheet, std::string(kAlignmentRounding) + "." + id + "." + std::to_string(width),
                   kAlignmentRounding);
    };
    const Value part = number(3, top - width - 2);
    Draft plus = draft("plus"), minus = draft("minus"), two = draft("two"), c = draft("minus-c");
    sheet.add(cancelling_pair(plus).product(together(ports, 2), part));
    sheet.add(cancelling_pair(minus).product(together(ports, 2), -part));
    // Each is lost alone; their sum is one and a half of the last kept bit.
    sheet.add(
        cancelling_pair(two).product(together(ports, 2), part).product(together(ports, 3), part));
    sheet.add(cancelling_pair(c).c(-part));
    // C large, for types of few exponents: one less where the part was rounded away from zero.
    sheet.add(
        draft("beside-c").only_if(is_single(ports.d)).c(power(width)).product(0, -number(3, -2)));
  }
  ask_opposite(sheet);
}

// Sums whose answer shows whether C was aligned with the products or added to their rounded sum.

namespace {

constexpr const char* kCEntry = "c-entry";

}  // namespace

void ask_c_entry(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  const int top = top_exponent(ports);
  // Lost beside the products in an alignment, kept by an addition.
  for (const int d : {28, 38}) {
    Draft draft = probe(sheet, "c-entry.small." + std::to_string(d), kCEntry);
    sheet.add(cancelling_pair(draft).c(power(top - d)));
  }
  // The sum of the products has a bit more than the result holds: rounded before C cancels it, or
  // not.
  const int digits = ports.d->mantissa_bits + 1;
  sheet.add(probe(sheet, "c-entry.rounded-sum", kCEntry)
                .product(together(ports, 0), power(digits / 2))
                .product(together(ports, 1), power(digits / 2 - digits))
                .c(-power(digits / 2)));
  if (!is_single(ports.d)) return;
  // Three quarters of an ulp of C: cut, or rounded up by an addition to nearest.
  sheet.add(probe(sheet, "c-entry.large.up", kCEntry)
                .c(number((1 << 23) + 1, 2))
                .product(0, number(3, 0)));
  sheet.add(probe(sheet, "c-entry.large.down", kCEntry).c(power(24)).product(0, -power(-1)));
  sheet.add(probe(sheet, "c-entry.large.near", kCEntry).c(power(24)).product(0, -power(-2)));
}

// The exponent that a product brings to the alignment, read from what is lost beside it.

namespace {

constexpr const char* kProductExponent = "product-exponent";

/// Twice the product a * b, once negated, and a small product beside them (C, where the types have
/// no such product).
void add_pair(Sheet& sheet, const std::string& id, Value a, Value b, Value small) {
  const Ports& ports = sheet.ports();
  Draft pair = probe(sheet, kProductExponent + ("." + id), kProductExponent);
  pair.factors(together(ports, 0), a, b).factors(together(ports, 1), -a, b);
  Draft by_product = pair;
  by_product.product(together(ports, 2), small);
  sheet.add(by_product.expressible() ? by_product : pair.c(small));
}

}  // namespace

void ask_product_exponent(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  const int half = top_exponent(ports) / 2;
  const int x = std::min(half, greatest_exponent(ports.a) - 1);
  const int y = std::min(half, greatest_exponent(ports.b) - 1);
  for (const int width : candidate_widths(ports)) {
    const std::string n = std::to_string(width);
    const int a = ports.scales() > 1 ? 0 : x, b = ports.scales() > 1 ? 0 : y;
    // 1.5 * 1.5: kept at exponent a + b, lost at the normalised exponent a + b + 1.
    add_pair(sheet, "carry." + n, number(3, a - 1), number(3, b - 1), power(a + b - width));
    if (ports.scales() > 1) {
      // Elements raise nothing where the scales alone give the exponent of a group.
      add_pair(sheet, "group." + n, largest(ports.a), largest(ports.b), power(-width));
      continue;
    }
    // A subnormal factor: lost at the least normal exponent, kept at its own.
    const int beside_a = std::min(greatest_exponent(ports.b), 13 - least_exponent(ports.a));
    const int beside_b = std::min(greatest_exponent(ports.a), 13 - least_exponent(ports.b));
    add_pair(sheet, "subnormal-a." + n, power(subnormal_exponent(ports.a)), power(beside_a),
             power(least_exponent(ports.a) + beside_a - width - 1));
    add_pair(sheet, "subnormal-b." + n, power(beside_b), power(subnormal_exponent(ports.b)),
             power(least_exponent(ports.b) + beside_b - width - 1));
  }
}

// Sums with more fraction bits than a narrow register holds: which of them are written.

namespace {

constexpr const char* kWrittenBits = "written-bits";

/// Positions of the last step: an earlier one is aligned, and cut, once more.
int last(const Ports& ports, int n) {
  return ports.scales() > 1 ? ports.kept() - 16 * (n + 1) : ports.kept() - 1 - together(ports, n);
}

}  // namespace

void ask_written_bits(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports) || !is_single(ports.d)) return;
  for (const int n : {12, 13, 14, 22, 23})
    sheet.add(probe(sheet, "written-bits.one." + std::to_string(n), kWrittenBits)
                  .product(last(ports, 0), power(0))
                  .product(last(ports, 1), power(-n)));
  // 2 + 2 + 2^(1-n): kept by the alignment, one bit below the n that a result of exponent 2 writes.
  for (const int n : {13, 23})
    sheet.add(probe(sheet, "written-bits.carry." + std::to_string(n), kWrittenBits)
                  .product(last(ports, 0), power(1))
                  .product(last(ports, 1), power(1))
                  .product(last(ports, 2), power(1 - n)));
  // The carry with C as the small term, for types of few exponents.
  for (const int n : {13, 23})
    sheet.add(probe(sheet, "written-bits.carry-c." + std::to_string(n), kWrittenBits)
                  .product(last(ports, 0), power(1))
                  .product(last(ports, 1), power(1))
                  .c(power(1 - n)));
  // Three quarters of the last bit: cut, or rounded.
  const int top = top_exponent(ports);
  for (const int sign : {1, -1})
    sheet.add(probe(sheet, std::string("written-bits.rounded.") + (sign > 0 ? "plus" : "minus"),
                    kWrittenBits)
                  .product(last(ports, 0), number(sign, top))
                  .product(last(ports, 1), number(3 * sign, top - 25)));
  sheet.add(probe(sheet, "written-bits.c", kWrittenBits).c(number(0xffffff, -23)));
  sheet.add(probe(sheet, "written-bits.c-and-product", kWrittenBits)
                .c(number(0xffffff, -23))
                .product(0, power(0)));
}

}  // namespace numemu::oracle::probing
