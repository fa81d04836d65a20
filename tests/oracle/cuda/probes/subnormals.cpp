// Subnormal operands, a subnormal C and subnormal results: taken and written at their value?
#include <algorithm>

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

/// Every mantissa bit set, no leading bit.
Exact largest_subnormal(Element e) {
  return scaled((std::uint64_t{1} << info(e).mantissa_bits) - 1, subnormal_exponent(e));
}
Exact least_subnormal(Element e) { return power(subnormal_exponent(e)); }

void ask_inputs(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string("subnormal-inputs.") + id, "subnormal-inputs");
  };
  // Times the largest power of two, so that the result is normal where it can be.
  const Exact up_a = power(std::min(greatest_exponent(i.b), -subnormal_exponent(i.a)));
  const Exact up_b = power(std::min(greatest_exponent(i.a), -subnormal_exponent(i.b)));
  sheet.add(draft("a-least").factors(0, least_subnormal(i.a), up_a));
  sheet.add(draft("a-minus").factors(0, -least_subnormal(i.a), up_a));
  sheet.add(draft("a-largest").factors(0, largest_subnormal(i.a), up_a));
  sheet.add(draft("b-least").factors(0, up_b, least_subnormal(i.b)));
  sheet.add(draft("b-minus").factors(0, up_b, -least_subnormal(i.b)));
  sheet.add(draft("b-largest").factors(0, up_b, largest_subnormal(i.b)));
  sheet.add(draft("c-least").c(least_subnormal(i.c)).least_scales());
  sheet.add(draft("c-minus").c(-least_subnormal(i.c)).least_scales());
  sheet.add(draft("c-largest").c(largest_subnormal(i.c)).least_scales());
  // A normal result: 1.5 times the least normal number, C a third of it.
  Draft normal = draft("c-normal-result");
  const int least = least_exponent(i.c);
  if (i.scales() == 1) normal.common_scale(least);
  sheet.add(normal.c(power(least - 1)).product(0, power(least)).least_scales());
}

void ask_results(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const int least = subnormal_exponent(i.d);
  const auto draft = [&](const char* id) {
    Draft empty = sheet.draft(std::string("subnormal-results.") + id, "subnormal-results");
    if (i.scales() == 1) empty.common_scale(least);
    return empty;
  };
  const auto add = [&](Draft each) { sheet.add(each.least_scales()); };
  add(draft("least").product(0, power(least)));
  add(draft("minus").product(0, -power(least)));
  add(draft("half-normal").product(0, power(least_exponent(i.d) - 1)));
  // Fractions of the least subnormal, cut or rounded.
  add(draft("one-and-half").product(0, scaled(3, least - 1)));
  add(draft("half").product(0, power(least - 1)));
  add(draft("three-quarters").product(0, scaled(3, least - 2)));
  add(draft("minus-three-quarters").product(0, -scaled(3, least - 2)));
  add(draft("c").c(largest_subnormal(i.c)));
  add(draft("from-normal").c(power(least_exponent(i.c))).product(0, -power(least)));
}

}  // namespace

void ask_subnormals(Sheet& sheet) {
  if (is_integer(sheet.instruction().a)) return;
  ask_inputs(sheet);
  ask_results(sheet);
}

}  // namespace numemu::oracle::recording::probing
