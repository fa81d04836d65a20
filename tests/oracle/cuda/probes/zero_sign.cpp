// Zero results of every origin: their sign.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "zero-sign";

/// The same two factors everywhere.
Draft everywhere(Sheet& sheet, const char* id, Exact a, Exact b) {
  Draft draft = sheet.draft(id, kQuestion);
  for (int k = 0; k < sheet.instruction().kept(); ++k) draft.factors(k, a, b);
  return draft;
}

}  // namespace

void ask_zero_sign(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (is_integer(i.a)) return;
  sheet.add(sheet.draft("S1", kQuestion).factors(0, -power(-80), power(-80)));
  sheet.add(sheet.draft("S2", kQuestion).factors(0, -power(0), zero()).c(-zero()));
  sheet.add(
      sheet.draft("S3", kQuestion).factors(0, -power(0), power(0)).factors(1, power(0), power(0)));
  sheet.add(sheet.draft("S4", kQuestion)
                .only_if(i.d == Element::f16)
                .factors(0, -power(-24), power(-10)));
  sheet.add(sheet.draft("zero-sign.c", kQuestion).c(-zero()));
  sheet.add(everywhere(sheet, "zero-sign.products", -zero(), power(0)));
  sheet.add(everywhere(sheet, "zero-sign.all", -zero(), power(0)).c(-zero()));
  sheet.add(sheet.draft("zero-sign.minus-c", kQuestion).product(0, power(0)).c(-power(0)));
  sheet.add(sheet.draft("zero-sign.plus-c", kQuestion).product(0, -power(0)).c(power(0)));
  sheet.add(sheet.draft("zero-sign.least", kQuestion)
                .factors(0, -power(subnormal_exponent(i.a)), power(subnormal_exponent(i.b))));
  // A sum that is cut or rounded to zero when it is written, by the last step.
  Draft written = sheet.draft("zero-sign.written", kQuestion);
  if (i.scales() == 1) written.common_scale(subnormal_exponent(i.d));
  sheet.add(written.product(i.kept() - 1, -power(subnormal_exponent(i.d) - 1)).least_scales());
  if (!sums_in_steps(i)) return;
  // A negative term that is lost beside two that cancel.
  const int top = top_exponent(i);
  Draft product = sheet.draft("zero-sign.cut", kQuestion);
  sheet.add(cancelling_pair(product).product(together(i, 2), -power(top - 38)));
  Draft c = sheet.draft("zero-sign.cut-c", kQuestion);
  sheet.add(cancelling_pair(c).c(-power(top - 38)));
}

}  // namespace numemu::oracle::recording::probing
