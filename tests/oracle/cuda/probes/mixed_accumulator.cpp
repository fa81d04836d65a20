// C in float16 and D in float32 (m8n8k4 of Volta): sums that float16 could not have held on the
// way.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {

void ask_mixed_accumulator(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.c != Element::f16 || i.d != Element::f32) return;
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string("mixed-accumulator.") + id, "mixed-accumulator");
  };
  sheet.add(draft("fraction").c(power(0)).product(0, power(-20)));
  sheet.add(draft("beyond").c(largest(i.c)).product(0, power(15)).product(1, power(15)));
  sheet.add(draft("returns").c(largest(i.c)).product(0, power(15)).product(1, -power(15)));
  sheet.add(draft("below").c(power(-24)).product(0, power(-26)));
  sheet.add(draft("subnormal").c(scaled(3, -24)));
  sheet.add(draft("cancels").c(power(11)).product(0, -power(11)).product(1, power(-10)));
}

}  // namespace numemu::oracle::recording::probing
