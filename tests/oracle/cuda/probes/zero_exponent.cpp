// Zero times a large number beside small products: their low bits are lost where the zero raises
// the exponent of the alignment.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "zero-exponent";

Exact near_one(int exponent) { return scaled(129, exponent - 7); }

/// Least exponent, every bit of the significand set.
Exact least_full(Element e) {
  const int mantissa = info(e).mantissa_bits;
  return scaled((std::uint64_t{2} << mantissa) - 1, least_exponent(e) - mantissa);
}

}  // namespace

void ask_zero_exponent(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  sheet.add(sheet.draft("Z1", kQuestion)
                .factors(0, zero(), power(120))
                .factors(1, near_one(0), near_one(-26))
                .factors(2, near_one(0), near_one(-27)));
  sheet.add(sheet.draft("Z2", kQuestion)
                .factors(0, power(120), zero())
                .factors(1, near_one(0), near_one(-26))
                .factors(2, -near_one(0), near_one(-29)));
  sheet.add(sheet.draft("Z3", kQuestion)
                .factors(0, zero(), power(126))
                .factors(1, near_one(0), near_one(-20))
                .c(scaled(0xffffff, -33)));
  // Types of few exponents: a zero that counts as the least exponent raises it all the same.
  sheet.add(sheet.draft("zero-exponent.a", kQuestion)
                .factors(together(i, 0), zero(), largest(i.b))
                .factors(together(i, 1), least_full(i.a), least_full(i.b)));
  sheet.add(sheet.draft("zero-exponent.b", kQuestion)
                .factors(together(i, 0), largest(i.a), zero())
                .factors(together(i, 1), least_full(i.a), least_full(i.b)));
  // Beside a tiny C and nothing else, even an exponent of -126 + 8 is too high.
  const Exact tiny = tiny_c(i);
  sheet.add(
      sheet.draft("zero-exponent.a-and-c", kQuestion).factors(0, zero(), largest(i.b)).c(tiny));
  sheet.add(
      sheet.draft("zero-exponent.b-and-c", kQuestion).factors(0, largest(i.a), zero()).c(tiny));
  // A zero whose block has the largest scale.
  sheet.add(sheet.draft("zero-exponent.scale-and-c", kQuestion)
                .only_if(i.scales() == 1)
                .common_scale(254)
                .factors(0, zero(), largest(i.b))
                .c(scaled(0xffffff, -23)));
  if (i.scales() < 2) return;
  // A block of zeros with a large scale beside a small block; twice, 30 and 40 bits apart.
  const int last = together(i, 3);
  for (const int distance : {30, 36, 40}) {
    const int high = i.scale == Element::ue8m0 ? 20 : 16;
    sheet.add(sheet.draft("zero-exponent.scale." + std::to_string(distance), kQuestion)
                  .scales(0, scale_code(i.scale, high / 2), scale_code(i.scale, high / 2))
                  .product(last, power(high - distance)));
  }
}

}  // namespace numemu::oracle::recording::probing
