// mma.sync FP8 on chips without a warp-level FP8 unit: two half-precision steps, then an addition
// of C (specification of matrix units, 1.4).
#include "tests/oracle/cuda/replay/cores.hpp"

namespace numemu::oracle::recording::replay {
namespace {

bool in_first_half(Split split, int place, int count) {
  switch (split) {
    case Split::low_of_four:
      return place % 4 < 2;
    case Split::first_half:
      return place < count / 2;
    case Split::even:
      return place % 2 == 0;
    case Split::none:
      return true;
  }
  return true;
}

}  // namespace

std::uint64_t lowered_answer(const Rule& rule, const Dot& dot) {
  const Instruction& i = *dot.instruction;
  Products products;
  gather(rule, dot, products);
  const int length = rule.counts_positions || rule.expands ? i.k : i.kept();
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  const bool first_c = rule.c == CEnters::in_alignment;
  Element in = first_c ? i.c : i.d;
  Number sum = first_c ? accumulator(rule, in, c) : decode(info(in), 0);
  std::uint64_t t = 0;
  Products half;
  for (const bool first : {!rule.swapped, rule.swapped}) {
    half.count = 0;
    for (int j = 0; j < products.count; ++j) {
      const Product& p = products.list[static_cast<std::size_t>(j)];
      if (in_first_half(rule.split, p.place, length) == first)
        half.list[static_cast<std::size_t>(half.count++)] = p;
    }
    const int step = rule.step == 0 ? half.count : rule.step;
    for (int from = 0; from < half.count; from += step) {
      const int count = from + step < half.count ? step : half.count - from;
      t = fused_step(rule, half.list.data() + from, count, products.fraction, in, sum, i.d);
      in = i.d;
      sum = decode(info(in), t);
    }
  }
  return first_c ? t : rounded_sum(rule, i.c, c, i.d, t);
}

}  // namespace numemu::oracle::recording::replay
