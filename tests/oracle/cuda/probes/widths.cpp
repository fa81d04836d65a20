// The places of rival widths, and the pair of products that every probe of a width begins with.
#include <algorithm>

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording::probing {

std::vector<int> candidate_widths(const Instruction& i) {
  if (i.scales() > 1) return {25, 35};
  return info(i.a).bits <= 8 ? std::vector<int>{13, 24, 25} : std::vector<int>{23, 24, 25};
}

std::optional<Exact> small_beside(const Instruction& i) {
  const int top = top_exponent(i);
  if (i.scales() > 1) return power(top - (i.scale == Element::ue8m0 ? 40 : 36));
  const int least = subnormal_exponent(i.a) + subnormal_exponent(i.b);
  const int small = std::max({top - 40, least, subnormal_exponent(i.d)});
  if (top - small <= 26) return {};
  return power(small);
}

Exact tiny_c(const Instruction& i) {
  const int digits = info(i.c).mantissa_bits;
  return scaled((std::uint64_t{1} << digits) + (std::uint64_t{1} << (digits - 10)) + 1,
                subnormal_exponent(i.c));
}

Draft& cancelling_pair(Draft& draft) {
  const Instruction& i = draft.instruction();
  const Exact large = power(top_exponent(i));
  return draft.product(together(i, 0), large).product(together(i, 1), -large);
}

}  // namespace numemu::oracle::recording::probing
