// Probes of how a step sums: its products, the bits it keeps, where C enters, what is written.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>
#include <string>

#include "emu/oracle/probes/families.hpp"

namespace numemu::oracle::probing {

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
