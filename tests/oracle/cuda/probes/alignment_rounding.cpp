// Three quarters of the last kept bit beside a large term: what the alignment makes of it.
#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {
namespace {

constexpr const char* kQuestion = "alignment-rounding";

/// A negative C far below the last kept bit beside positive products: nothing where each term is
/// cut, a whole last bit less where the sum is.
void ask_opposite(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  const auto draft = [&](const char* id) {
    return sheet.draft(std::string(kQuestion) + "." + id, kQuestion);
  };
  const int top = top_exponent(i);
  sheet.add(draft("opposite")
                .only_if(i.d == Element::f32)
                .product(together(i, 0), power(top))
                .c(-power(top - 40)));
  if (i.d != Element::f16 || i.kept() < 32) return;
  // 28 * 36 + 17.5 = 1025.5, a tie of float16 that rounds up to even, in factors that FP4 has.
  Draft tie = draft("below-tie");
  for (int k = 0; k < 28; ++k) tie.factors(k, integer(6), integer(6));
  tie.product(28, power(4)).product(29, power(0)).product(30, power(-1));
  sheet.add(tie.c(-power(-24)));
}

}  // namespace

void ask_alignment_rounding(Sheet& sheet) {
  const Instruction& i = sheet.instruction();
  if (!sums_in_steps(i)) return;
  const int top = top_exponent(i);
  for (const int width : candidate_widths(i)) {
    const auto draft = [&](const char* id) {
      return sheet.draft(std::string(kQuestion) + "." + id + "." + std::to_string(width),
                         kQuestion);
    };
    const Exact part = scaled(3, top - width - 2);
    Draft plus = draft("plus"), minus = draft("minus"), two = draft("two"), c = draft("minus-c");
    sheet.add(cancelling_pair(plus).product(together(i, 2), part));
    sheet.add(cancelling_pair(minus).product(together(i, 2), -part));
    // Each is lost alone; their sum is one and a half of the last kept bit.
    sheet.add(cancelling_pair(two).product(together(i, 2), part).product(together(i, 3), part));
    sheet.add(cancelling_pair(c).c(-part));
    // C large, for types of few exponents: one less where the part was rounded away from zero.
    sheet.add(
        draft("beside-c").only_if(i.d == Element::f32).c(power(width)).product(0, -scaled(3, -2)));
  }
  ask_opposite(sheet);
}

}  // namespace numemu::oracle::recording::probing
