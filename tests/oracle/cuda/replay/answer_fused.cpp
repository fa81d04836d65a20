// A dot as a sequence of fused steps through the accumulator.
#include <algorithm>

#include "tests/oracle/cuda/replay/cores.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// Other orders than stretches of ascending k: each product moves to where its step takes it.
void reorder(const Rule& rule, int length, Products& products) {
  if (rule.step == 0 || (rule.interleaved == 0 && !rule.swapped)) return;
  const int steps = (length + rule.step - 1) / rule.step;
  const auto moved = [&](int place) {
    const int run = rule.interleaved;
    const int step = run == 0 ? place / rule.step : place / run % steps;
    return (rule.swapped ? steps - 1 - step : step) * rule.step;
  };
  for (int i = 0; i < products.count; ++i) {
    Product& p = products.list[static_cast<std::size_t>(i)];
    p.place = moved(p.place);
  }
  std::stable_sort(products.list.begin(), products.list.begin() + products.count,
                   [](const Product& x, const Product& y) { return x.place < y.place; });
}

}  // namespace

std::uint64_t fused_answer(const Rule& rule, const Dot& dot) {
  const Instruction& i = *dot.instruction;
  Products products;
  gather(rule, dot, products);
  reorder(rule, rule.counts_positions || rule.expands ? i.k : i.kept(), products);
  const bool last = rule.c == CEnters::after_rounding;
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  Element in = last ? i.d : i.c;
  Number sum = last ? decode(info(in), 0) : accumulator(rule, in, c);
  std::uint64_t result = 0;
  // A dot whose products were all skipped is still one step.
  for (int from = 0, to = 0; from == 0 || from < products.count; from = to) {
    const Product* first = products.list.data() + from;
    for (to = from; to < products.count; ++to) {
      const int place = products.list[static_cast<std::size_t>(to)].place;
      if (rule.step != 0 && place / rule.step != first->place / rule.step) break;
    }
    result = fused_step(rule, first, to - from, products.fraction, in, sum, i.d);
    in = i.d;
    sum = decode(info(in), result);
    if (to == from) break;
  }
  return last ? rounded_sum(rule, i.c, c, i.d, result) : result;
}

}  // namespace numemu::oracle::recording::replay
