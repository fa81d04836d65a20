// Tiny sums with C = 0: where the exponent of the alignment has a floor, the smaller term is lost.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "exponent-floor";

/// Where the rivals' answers flip, and the whole series on the dense instruction of full width.
std::vector<int> flips(const Instruction& i) {
  if (i.scales() > 1) return {150, 161, 162, 167, 168, 169};
  if (i.kind != Kind::mma || i.k != 16) return {150, 151, 152, 158, 159, 160, 168};
  std::vector<int> all;
  for (int j = 150; j <= 168; ++j) all.push_back(j);
  return all;
}

/// 2^-149 - 2^-j: cut to 0 where the small term survives, else the least subnormal.
Draft below_least_float(Sheet& sheet, int j) {
  const Instruction& i = sheet.instruction();
  Draft draft = sheet.draft("F" + std::to_string(j), kQuestion);
  draft.only_if(i.d == Element::f32);
  if (i.block == 0)
    return draft.factors(0, power(-75), power(-74)).factors(1, -power(-84), power(84 - j));
  if (i.scales() == 1) draft.common_scale(-(149 + j) / 2);
  return draft.product(together(i, 0), power(-149))
      .product(together(i, 2), -power(-j))
      .least_scales();
}

/// Half of the least float16 subnormal and a small term: a tie where that is lost.
void ask_ties_of_half(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.d != Element::f16) return;
  for (int n = 0; n < 6; ++n)
    sheet.add(sheet.draft("H" + std::to_string(n), kQuestion)
                  .factors(0, power(-10), power(-15))
                  .factors(1, power(-24), power(n - 24)));
  // The same with a subnormal factor, whose exponent is the least normal one, and C = -0.
  for (int n = 0; n < 4; ++n)
    sheet.add(sheet.draft("G" + std::to_string(n), kQuestion)
                  .factors(0, power(-20), power(-5))
                  .factors(1, power(-24), power(n - 24))
                  .c(-zero()));
  for (int j = 26; j <= 32; ++j)
    sheet.add(sheet.draft("exponent-floor.tie." + std::to_string(j), kQuestion)
                  .only_if(info(i.a).bits == 8)
                  .product(together(i, 0), power(-25))
                  .product(together(i, 1), power(-j)));
}

}  // namespace

void ask_exponent_floor(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  for (const int j : flips(i)) sheet.add(below_least_float(sheet, j));
  ask_ties_of_half(sheet);
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string(kQuestion) + "." + id, kQuestion);
  };
  const Exact tiny = power(subnormal_exponent(i.c));
  const std::uint64_t one = std::uint64_t{1} << info(i.c).mantissa_bits;
  sheet.add(draft("product").product(0, power(subnormal_exponent(i.d))).least_scales());
  sheet.add(draft("c").c(tiny).least_scales());
  sheet.add(draft("normal-c").c(scaled(one + 1, subnormal_exponent(i.c))).least_scales());
  sheet.add(draft("both")
                .factors(0, power(subnormal_exponent(i.a)), power(subnormal_exponent(i.b)))
                .c(tiny)
                .least_scales());
}

}  // namespace numemu::oracle::recording::probing
