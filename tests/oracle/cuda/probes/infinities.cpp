// Infinite operands and C: alone, opposed in one step and across steps, times zero.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {

void ask_infinities(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (is_integer(i.a)) return;
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string("infinities.") + id, "infinities");
  };
  const Code plus = infinity_code(i.a), minus = infinity_code(i.a, true);
  const Code one = code_of(i.b, power(0));
  const int last = i.kept() - 1;
  sheet.add(draft("plus").codes(0, plus, one));
  sheet.add(draft("minus").codes(last, minus, one));
  sheet.add(draft("times-minus").codes(0, plus, code_of(i.b, -power(0))));
  sheet.add(draft("times-zero").codes(0, plus, code_of(i.b, zero())));
  sheet.add(draft("zero-times").codes(last, code_of(i.a, zero()), infinity_code(i.b)));
  sheet.add(draft("times-infinity").codes(0, plus, infinity_code(i.b, true)));
  sheet.add(draft("opposed").codes(together(i, 0), plus, one).codes(together(i, 1), minus, one));
  sheet.add(draft("opposed-far").codes(0, plus, one).codes(last, minus, one));
  sheet.add(draft("opposed-c").codes(0, plus, one).c_code(infinity_code(i.c, true)));
  sheet.add(draft("c").c_code(infinity_code(i.c)).product(0, -power(0)));
  sheet.add(draft("c-minus").c_code(infinity_code(i.c, true)));
}

}  // namespace numemu::oracle::recording::probing
