// Sums whose answer shows whether C was aligned with the products or added to their rounded sum.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "c-entry";

}  // namespace

void ask_c_entry(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  const int top = top_exponent(i);
  // Lost beside the products in an alignment, kept by an addition.
  for (const int d : {28, 38}) {
    Draft draft = sheet.draft("c-entry.small." + std::to_string(d), kQuestion);
    sheet.add(cancelling_pair(draft).c(power(top - d)));
  }
  // The sum of the products has a bit more than the result holds: rounded before C cancels it, or
  // not.
  const int digits = info(i.d).mantissa_bits + 1;
  sheet.add(sheet.draft("c-entry.rounded-sum", kQuestion)
                .product(together(i, 0), power(digits / 2))
                .product(together(i, 1), power(digits / 2 - digits))
                .c(-power(digits / 2)));
  if (i.d != Element::f32) return;
  // Three quarters of an ulp of C: cut, or rounded up by an addition to nearest.
  sheet.add(sheet.draft("c-entry.large.up", kQuestion)
                .c(scaled((1 << 23) + 1, 2))
                .product(0, scaled(3, 0)));
  sheet.add(sheet.draft("c-entry.large.down", kQuestion).c(power(24)).product(0, -power(-1)));
  sheet.add(sheet.draft("c-entry.large.near", kQuestion).c(power(24)).product(0, -power(-2)));
}

}  // namespace numemu::oracle::recording::probing
