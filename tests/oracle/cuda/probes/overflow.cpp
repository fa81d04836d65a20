// Results beyond the largest number, and terms beyond it that cancel.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "overflow";

/// Sums at the end of float16, from factors of half precision.
void ask_half(Sheet& sheet) {
  const Exact almost_256 = scaled(2047, -3);  // times 2^8: 65504
  const auto at_end = [&](const char* id) {
    return sheet.draft(id, kQuestion)
        .only_if(sheet.instruction().d == Element::f16)
        .factors(0, power(8), almost_256);
  };
  sheet.add(at_end("O1"));
  sheet.add(at_end("O2").factors(1, power(0), power(4)));
  sheet.add(at_end("O3").factors(1, power(0), scaled(2047, -7)));
}

/// Sums at the end of float32, from factors of its range.
void ask_single(Sheet& sheet) {
  const auto draft = [&](const char* id) {
    return sheet.draft(id, kQuestion).only_if(sheet.instruction().d == Element::f32);
  };
  sheet.add(draft("O4").factors(0, power(127), power(0)).factors(1, power(127), power(0)));
  sheet.add(draft("O5")
                .factors(0, power(127), scaled(3, -1))
                .factors(1, power(127), scaled(3, -1))
                .factors(2, -power(127), power(1)));
  sheet.add(draft("O6")
                .factors(0, power(127), power(100))
                .factors(1, -power(127), power(100))
                .c(power(0)));
  sheet.add(draft("O7")
                .factors(0, scaled(255, 120), power(0))
                .factors(1, scaled(255, 113), scaled(255, -8))
                .c(scaled(0xffffff, 103)));
}

/// C is the largest number; a product of one ulp, half an ulp, or less is added.
void ask_beside_largest_c(Sheet& sheet, bool negative) {
  const Instruction& i = sheet.instruction();
  const Exact end = largest(i.c);
  for (const int ulps_down : {0, 1, 2}) {
    Draft draft = sheet.draft(
        std::string("overflow.") + (negative ? "minus" : "plus") + std::to_string(ulps_down),
        kQuestion);
    if (i.scales() == 1) draft.common_scale(end.exponent - ulps_down);
    const Exact part = power(end.exponent - ulps_down);
    sheet.add(draft.c(negative ? -end : end).product(0, negative ? -part : part));
  }
}

}  // namespace

void ask_overflow(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (is_integer(i.a)) return;
  ask_half(sheet);
  ask_single(sheet);
  ask_beside_largest_c(sheet, false);
  ask_beside_largest_c(sheet, true);
  const int end = greatest_exponent(i.d);
  const auto draft = [&](const char* id) {
    Draft empty = sheet.draft(id, kQuestion);
    if (i.scales() == 1) empty.common_scale(end);
    return empty;
  };
  const int first = together(i, 0), second = together(i, 1), third = together(i, 2);
  sheet.add(draft("overflow.sum").product(first, power(end)).product(second, power(end)));
  sheet.add(draft("overflow.cancel")
                .product(first, power(end))
                .product(second, power(end))
                .product(third, -power(end)));
  // Products beyond the range, equal and opposite.
  sheet.add(draft("overflow.beyond")
                .product(first, power(end + 1))
                .product(second, -power(end + 1))
                .c(power(end - 10)));
  sheet.add(draft("overflow.cancel-c")
                .product(first, power(end))
                .product(second, power(end))
                .c(-power(end)));
}

}  // namespace numemu::oracle::recording::probing
