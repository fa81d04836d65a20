// A chain of fused multiply-adds in float64: k ascending from C, each rounded to nearest even.
#include "tests/oracle/cuda/replay/cores.hpp"
#include "tests/oracle/cuda/replay/wide.hpp"

namespace numemu::oracle::recording::replay {
namespace {

std::uint64_t fma(const Rule& rule, std::uint64_t code_a, std::uint64_t code_b,
                  std::uint64_t code_c) {
  const ElementInfo e = info(Element::f64);
  const Number a = decode(e, code_a), b = decode(e, code_b), c = decode(e, code_c);
  const bool negative = a.negative != b.negative;
  const auto zero = [](const Number& n) { return n.kind == Class::finite && n.significand == 0; };
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  if (a.kind == Class::nan || b.kind == Class::nan || c.kind == Class::nan ||
      (infinite && (zero(a) || zero(b))) ||
      (infinite && c.kind == Class::infinite && c.negative != negative))
    return canonical_nan(Element::f64);
  if (infinite) return infinity_code(Element::f64, negative);
  if (c.kind == Class::infinite) return infinity_code(Element::f64, c.negative);
  WideDouble sum;
  if (!zero(a) && !zero(b)) {
    const auto product = static_cast<unsigned __int128>(a.significand) * b.significand;
    sum.add(negative, static_cast<std::uint64_t>(product >> 64),
            static_cast<std::uint64_t>(product), a.exponent + b.exponent - 2 * e.mantissa_bits);
  }
  if (!zero(c)) sum.add(c.negative, 0, c.significand, c.exponent - e.mantissa_bits);
  const WideDouble::Top top = sum.top();
  const Writing to{Element::f64, Rounding::nearest_even, e.mantissa_bits, false,
                   true,         rule.flush_result};
  return encode(to, top.magnitude == 0 ? negative && c.negative : top.negative, top.magnitude,
                top.exponent);
}

}  // namespace

std::uint64_t fma_answer(const Rule& rule, const Dot& dot) {
  constexpr std::uint64_t kOne = 0x3ff0000000000000, kMinusZero = 0x8000000000000000;
  const std::uint64_t c = code_at(dot.c, Element::f64, 0);
  // -0 is the neutral element of addition.
  std::uint64_t sum = rule.chain == Chain::c_last ? kMinusZero : c;
  for (int j = 0; j < dot.instruction->k; ++j) {
    const int k = rule.chain == Chain::descending ? dot.instruction->k - 1 - j : j;
    const std::uint64_t a = code_at(dot.a, Element::f64, k), b = code_at(dot.b, Element::f64, k);
    sum = rule.chain == Chain::rounded_products ? fma(rule, fma(rule, a, b, kMinusZero), kOne, sum)
                                                : fma(rule, a, b, sum);
  }
  return rule.chain == Chain::c_last ? fma(rule, c, kOne, sum) : sum;
}

}  // namespace numemu::oracle::recording::replay
