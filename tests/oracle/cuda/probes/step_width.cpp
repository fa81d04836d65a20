// A large and a small product that C helps to distinguish: does the second enter in a later step?
// The step maps test every pair; these probes are in the records of every run.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "step-width";

/// FP4 with several scales: two halves of the last kept bit, at 0 and at k, are one bit where both
/// are in a group whose sum is exact, and lost where each is cut alone.
void ask_groups(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const int top = top_exponent(i);
  for (const int width : {34, 35, 36}) {
    const Exact half = power(top - width - 1);
    for (const int k : {1, 2, 4, 8, 15, 16})
      sheet.add(sheet
                    .draft("step-width.group." + std::to_string(width) + "." + std::to_string(k),
                           kQuestion)
                    .product(i.kept() - 1, power(top))
                    .product(0, half)
                    .product(k, half)
                    .c(-power(top)));
  }
}

}  // namespace

void ask_step_width(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  const int top = top_exponent(i);
  const Exact large = power(top);
  const std::optional<Exact> small = small_beside(i);
  for (int k = 1; k < i.kept(); k *= 2) {
    const std::string n = std::to_string(k);
    if (small) {
      // `small` where k enters after the large product has met C, else 0.
      sheet.add(sheet.draft("step-width.after." + n, kQuestion)
                    .product(0, large)
                    .product(k, *small)
                    .c(-large));
      sheet.add(sheet.draft("step-width.before." + n, kQuestion)
                    .product(k, large)
                    .product(0, *small)
                    .c(-large));
      // The same within a pair of neighbours, where C enters last.
      if (info(i.a).bits == 8 && k > 1)
        sheet.add(sheet.draft("step-width.pair." + n, kQuestion)
                      .product(0, large)
                      .product(1, -large)
                      .product(k, *small));
    }
    // One less than C where both halves of an ulp meet in one step, two less where each is cut.
    if (i.d == Element::f32)
      sheet.add(sheet.draft("step-width.halves." + n, kQuestion)
                    .product(0, -power(0))
                    .product(k, -power(0))
                    .c(scaled(3, 23)));
    // Three eighths of an ulp each: rounded up where they meet, lost one by one.
    if (i.d == Element::f16)
      sheet.add(sheet.draft("step-width.halves." + n, kQuestion)
                    .product(0, scaled(3, -1))
                    .product(k, scaled(3, -1))
                    .c(scaled(3, 11)));
  }
  if (i.scales() > 1) ask_groups(sheet);
}

}  // namespace numemu::oracle::recording::probing
