// Sums with more fraction bits than a narrow register holds: which of them are written.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "written-bits";

/// Positions of the last step: an earlier one is aligned, and cut, once more.
int last(const Instruction& i, int n) {
  return i.scales() > 1 ? i.kept() - 16 * (n + 1) : i.kept() - 1 - together(i, n);
}

}  // namespace

void ask_written_bits(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i) || i.d != Element::f32) return;
  for (const int n : {12, 13, 14, 22, 23})
    sheet.add(sheet.draft("written-bits.one." + std::to_string(n), kQuestion)
                  .product(last(i, 0), power(0))
                  .product(last(i, 1), power(-n)));
  // 2 + 2 + 2^(1-n): kept by the alignment, one bit below the n that a result of exponent 2 writes.
  for (const int n : {13, 23})
    sheet.add(sheet.draft("written-bits.carry." + std::to_string(n), kQuestion)
                  .product(last(i, 0), power(1))
                  .product(last(i, 1), power(1))
                  .product(last(i, 2), power(1 - n)));
  // The same with C as the small term, for types of few exponents.
  for (const int n : {13, 23})
    sheet.add(sheet.draft("written-bits.carry-c." + std::to_string(n), kQuestion)
                  .product(last(i, 0), power(1))
                  .product(last(i, 1), power(1))
                  .c(power(1 - n)));
  sheet.add(sheet.draft("written-bits.c", kQuestion).c(scaled(0xffffff, -23)));
  sheet.add(sheet.draft("written-bits.c-and-product", kQuestion)
                .c(scaled(0xffffff, -23))
                .product(0, power(0)));
}

}  // namespace numemu::oracle::recording::probing
