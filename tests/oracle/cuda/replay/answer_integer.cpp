// Integers: exact products; the sum wraps modulo 2^32 or is clamped, once or after each step
// (specification of matrix units, 1.3).
#include <algorithm>

#include "tests/oracle/cuda/replay/cores.hpp"

namespace numemu::oracle::recording::replay {

std::uint64_t integer_answer(const Rule& rule, const Dot& dot) {
  const Instruction& i = *dot.instruction;
  const ElementInfo of_a = info(i.a), of_b = info(i.b);
  const auto clamped = [](std::int64_t x) {
    return std::clamp<std::int64_t>(x, INT32_MIN, INT32_MAX);
  };
  std::int64_t sum = decode_integer(info(i.c), code_at(dot.c, i.c, 0));
  int previous = 0;
  for (int j = 0; j < i.kept(); ++j) {
    const int k = position(dot, j);
    const int step = rule.step == 0 ? 0 : (rule.counts_positions ? k : j) / rule.step;
    if (rule.saturation == Saturation::per_step && step != previous) sum = clamped(sum);
    previous = step;
    sum +=
        decode_integer(of_a, code_at(dot.a, i.a, j)) * decode_integer(of_b, code_at(dot.b, i.b, k));
  }
  if (rule.saturation != Saturation::never) sum = clamped(sum);
  return static_cast<std::uint32_t>(sum);
}

}  // namespace numemu::oracle::recording::replay
