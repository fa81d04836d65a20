// Float64: fused or rounded products, the order of the chain, the rounding of each link.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {

void ask_double_chain(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (i.a != Element::f64) return;
  const auto draft = [&](const std::string& id) {
    return sheet.draft("double-chain." + id, "double-chain");
  };
  // (1 + 2^-30)^2 less its rounding: 2^-60 where the product is not rounded.
  const Exact near_one = scaled((1 << 30) + 1, -30);
  sheet.add(draft("fused").factors(0, near_one, near_one).c(-scaled((1 << 29) + 1, -29)));
  sheet.add(draft("fused-products")
                .factors(0, -scaled((1 << 29) + 1, -29), power(0))
                .factors(1, near_one, near_one));
  // 1 where position 1 comes after position 0 has met C.
  for (int k = 1; k < i.k; k *= 2) {
    const std::string n = std::to_string(k);
    sheet.add(draft("after." + n)
                  .factors(0, power(60), power(0))
                  .factors(k, power(0), power(0))
                  .c(-power(60)));
    sheet.add(draft("before." + n)
                  .factors(k, power(60), power(0))
                  .factors(0, power(0), power(0))
                  .c(-power(60)));
    // Two halves of an ulp: each a tie to even in a chain, a whole ulp in an exact sum.
    sheet.add(draft("halves." + n)
                  .factors(0, power(-53), power(0))
                  .factors(k, power(-53), power(0))
                  .c(power(0)));
  }
  sheet.add(draft("up").factors(0, scaled(3, -54), power(0)).c(power(0)));
  sheet.add(draft("tie").factors(0, power(-53), power(0)).c(scaled((1ULL << 52) + 1, -52)));
  sheet.add(draft("down").factors(0, -scaled(3, -55), power(0)).c(-power(0)));
}

}  // namespace numemu::oracle::recording::probing
