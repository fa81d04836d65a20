// Sweeps of the distance between a large and a small term: the flip of the answers is the width F.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "kept-bits";

std::string id(const char* series, int distance) {
  return std::string(kQuestion) + "." + series + "." + std::to_string(distance);
}

/// Distances on both sides of every candidate width.
std::vector<int> near_widths(const Instruction& i) {
  if (i.scales() > 1) return {24, 25, 26, 34, 35, 36, 37};
  if (info(i.a).bits <= 8) return {12, 13, 14, 23, 24, 25, 26};
  return {22, 23, 24, 25, 26};
}

}  // namespace

void ask_kept_bits(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  const int top = top_exponent(i);
  // Two products cancel; the third is the answer, or lost.
  for (const int d : {11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27, 28, 33, 34, 35, 36, 37}) {
    Draft draft = sheet.draft(id("product", d), kQuestion);
    sheet.add(cancelling_pair(draft).product(together(i, 2), power(top - d)));
  }
  for (const int d : near_widths(i)) {
    Draft small_c = sheet.draft(id("small-c", d), kQuestion);
    sheet.add(cancelling_pair(small_c).c(power(top - d)));
    Draft large_c = sheet.draft(id("large-c", d), kQuestion);
    if (i.d == Element::f16) {
      // A tie of the rounding to float16, broken by the small term where it is kept.
      large_c.c(power(15)).product(together(i, 0), power(4)).product(together(i, 1), power(15 - d));
    } else {
      large_c.c(power(d)).product(0, -power(0));
    }
    sheet.add(large_c);
  }
}

}  // namespace numemu::oracle::recording::probing
