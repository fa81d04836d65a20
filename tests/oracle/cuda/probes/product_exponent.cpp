// The exponent that a product brings to the alignment, read from what is lost beside it.
#include <algorithm>

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "product-exponent";

/// Twice the product a * b, once negated, and a small product beside them (C, where the types have
/// no such product).
void add_pair(Sheet& sheet, const std::string& id, Exact a, Exact b, Exact small) {
  const Instruction& i = sheet.instruction();
  Draft pair = sheet.draft(kQuestion + ("." + id), kQuestion);
  pair.factors(together(i, 0), a, b).factors(together(i, 1), -a, b);
  Draft by_product = pair;
  by_product.product(together(i, 2), small);
  sheet.add(by_product.expressible() ? by_product : pair.c(small));
}

}  // namespace

void ask_product_exponent(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  const int half = top_exponent(i) / 2;
  const int x = std::min(half, greatest_exponent(i.a) - 1);
  const int y = std::min(half, greatest_exponent(i.b) - 1);
  for (const int width : candidate_widths(i)) {
    const std::string n = std::to_string(width);
    const int a = i.scales() > 1 ? 0 : x, b = i.scales() > 1 ? 0 : y;
    // 1.5 * 1.5: kept at exponent a + b, lost at the normalised exponent a + b + 1.
    add_pair(sheet, "carry." + n, scaled(3, a - 1), scaled(3, b - 1), power(a + b - width));
    if (i.scales() > 1) {
      // Elements raise nothing where the scales alone give the exponent of a group.
      add_pair(sheet, "group." + n, largest(i.a), largest(i.b), power(-width));
      continue;
    }
    // A subnormal factor: lost at the least normal exponent, kept at its own.
    const int beside_a = std::min(greatest_exponent(i.b), 13 - least_exponent(i.a));
    const int beside_b = std::min(greatest_exponent(i.a), 13 - least_exponent(i.b));
    add_pair(sheet, "subnormal-a." + n, power(subnormal_exponent(i.a)), power(beside_a),
             power(least_exponent(i.a) + beside_a - width - 1));
    add_pair(sheet, "subnormal-b." + n, power(beside_b), power(subnormal_exponent(i.b)),
             power(least_exponent(i.b) + beside_b - width - 1));
  }
}

}  // namespace numemu::oracle::recording::probing
