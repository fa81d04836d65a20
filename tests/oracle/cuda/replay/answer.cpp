// The answer of a rule: its core, then the payload of a NaN.
#include "tests/oracle/cuda/replay/cores.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// The quieted NaN of `code` in type `to`.
std::uint64_t carried(Element from, std::uint64_t code, Element to) {
  const ElementInfo in = info(from), out = info(to);
  const Number n = decode(in, code);
  const int widening = out.mantissa_bits - in.mantissa_bits;
  const std::uint64_t payload =
      widening >= 0 ? n.significand << widening : n.significand >> -widening;
  const std::uint64_t quiet = std::uint64_t{1} << (out.mantissa_bits - 1);
  return infinity_code(to, n.negative) | payload | quiet;
}

/// The first NaN operand in the order of the rule; `otherwise` where none is NaN.
std::uint64_t first_nan(const Rule& rule, const Dot& dot, std::uint64_t otherwise) {
  const Instruction& i = *dot.instruction;
  const std::uint64_t c = code_at(dot.c, i.c, 0);
  if (rule.nan == NanPayload::c_a_b && is_nan(i.c, c)) return carried(i.c, c, i.d);
  for (int j = 0; j < i.kept(); ++j) {
    const std::uint64_t a = code_at(dot.a, i.a, j), b = code_at(dot.b, i.b, position(dot, j));
    if (is_nan(i.a, a)) return carried(i.a, a, i.d);
    if (is_nan(i.b, b)) return carried(i.b, b, i.d);
  }
  return is_nan(i.c, c) ? carried(i.c, c, i.d) : otherwise;
}

std::uint64_t core_answer(const Rule& rule, const Dot& dot) {
  switch (rule.core) {
    case Core::fused:
      return fused_answer(rule, dot);
    case Core::fma_chain:
      return fma_answer(rule, dot);
    case Core::lowered_fp8:
      return lowered_answer(rule, dot);
    case Core::four_groups:
      return groups_answer(rule, dot);
    case Core::integer:
      return integer_answer(rule, dot);
  }
  return 0;
}

}  // namespace
}  // namespace numemu::oracle::recording::replay

std::uint64_t numemu::oracle::recording::answer(const Rule& rule, const Dot& dot) {
  const std::uint64_t code = replay::core_answer(rule, dot);
  const bool as_is = rule.nan == NanPayload::canonical || !replay::is_nan(dot.instruction->d, code);
  return as_is ? code : replay::first_nan(rule, dot, code);
}
