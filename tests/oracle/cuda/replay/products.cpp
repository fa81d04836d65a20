// Gathering by metadata, and exact products.
#include "tests/oracle/cuda/replay/products.hpp"

#include <algorithm>

namespace numemu::oracle::recording::replay {
namespace {

/// float16 normalizes what was subnormal in FP8 (the lowered sequence converts first).
void to_half(Number& n, const ElementInfo& e) {
  if (n.significand == 0) return;
  for (; n.significand >> e.mantissa_bits == 0 && n.exponent > -14; --n.exponent)
    n.significand <<= 1;
}

/// A tf32 with other low bits than zeros, as the rule takes it.
std::uint64_t tf32_code(LowBits low_bits, std::uint64_t code) {
  if (low_bits == LowBits::dropped || low_bits == LowBits::used) return code;
  const std::uint64_t odd = code >> 13 & 1;
  const std::uint64_t finite = (code & 0x7f800000) != 0x7f800000 ? 1 : 0;
  return code + finite * (low_bits == LowBits::nearest_even ? 0xfff + odd : 0x1000);
}

/// The element as which A and B are decoded.
ElementInfo operand_element(const Rule& rule, Element e) {
  return info(e == Element::tf32 && rule.low_bits == LowBits::used ? Element::f32 : e);
}

Number operand(const Rule& rule, const ElementInfo& e, std::uint64_t code) {
  Number n = decode(e, code);
  if (rule.no_infinities && n.kind != Class::finite && e.specials == Specials::ieee) {
    n = {n.significand | std::uint64_t{1} << e.mantissa_bits, e.bias + 1, n.negative,
         Class::finite};
  }
  if (rule.flush_ab && n.kind == Class::finite && n.significand >> e.mantissa_bits == 0) {
    n.significand = 0;
    n.exponent = kZeroExponent;
  }
  if (rule.core == Core::lowered_fp8 && n.kind == Class::finite) to_half(n, e);
  return n;
}

Class kind_of(const Number& a, const Number& b) {
  if (a.kind == Class::nan || b.kind == Class::nan) return Class::nan;
  if (a.kind == Class::finite && b.kind == Class::finite) return Class::finite;
  const bool zero = (a.kind == Class::finite && a.significand == 0) ||
                    (b.kind == Class::finite && b.significand == 0);
  return zero ? Class::nan : Class::infinite;
}

/// The leading bit of a product decides.
void amend(const Rule& rule, int fraction, Product& p) {
  if (p.kind != Class::finite || p.significand == 0) return;
  const int leading = 63 - __builtin_clzll(p.significand) - fraction;
  if (rule.infinite_at_once && p.exponent + leading >= 128) p.kind = Class::infinite;
  if (!rule.normalised_products) return;
  p.shift = leading;
  p.exponent += leading;
}

/// What a block's two scales do to its products.
struct Scale {
  int exponent;
  bool nan;
};
Scale scale_of(const Rule& rule, const Dot& dot, int block) {
  const ElementInfo e = info(dot.instruction->scale);
  const Number a = decode(e, dot.scale_a[block]), b = decode(e, dot.scale_b[block]);
  return {scale_exponent(rule, a, b), a.kind == Class::nan || b.kind == Class::nan};
}

}  // namespace

int scale_exponent(const Rule& rule, const Number& a, const Number& b) {
  const int sum = a.exponent + b.exponent;
  return rule.clamps_scales ? std::clamp(sum, -127, 127) : sum;
}

int position(const Dot& dot, int j) {
  switch (dot.instruction->sparsity) {
    case Sparsity::dense:
      return j;
    case Sparsity::two_of_four:
      return 4 * (j / 2) + (dot.metadata[j / 2] >> (2 * (j % 2)) & 3);
    case Sparsity::one_of_two:
      return 2 * j + (dot.metadata[j] == 0xE ? 1 : 0);
    case Sparsity::pairs_of_four:
      return 8 * (j / 4) + 2 * (dot.metadata[j / 4] >> (2 * (j % 4 / 2)) & 3) + j % 2;
  }
  return j;
}

void gather(const Rule& rule, const Dot& dot, Products& products) {
  const Instruction& i = *dot.instruction;
  const ElementInfo of_a = operand_element(rule, i.a), of_b = operand_element(rule, i.b);
  const bool tf32 = i.a == Element::tf32;
  const bool dense = i.sparsity == Sparsity::dense;
  products.fraction = of_a.mantissa_bits + of_b.mantissa_bits;
  products.count = 0;
  Scale scale{0, false};
  const auto add = [&](std::uint64_t code_a, int j, int k) {
    if (i.block != 0 && k % i.block == 0) scale = scale_of(rule, dot, k / i.block);
    const Number a = operand(rule, of_a, tf32 ? tf32_code(rule.low_bits, code_a) : code_a);
    if (rule.skip_kept_zeros && a.kind == Class::finite && a.significand == 0) return;
    const std::uint64_t code_b = code_at(dot.b, of_b.bytes, k);
    const Number b = operand(rule, of_b, tf32 ? tf32_code(rule.low_bits, code_b) : code_b);
    Product& p = products.list[static_cast<std::size_t>(products.count++)];
    p.significand = a.significand * b.significand;
    p.shift = 0;
    p.exponent = a.exponent + b.exponent + scale.exponent;
    p.place = rule.counts_positions || rule.expands ? k : j;
    p.negative = a.negative != b.negative;
    p.kind = kind_of(a, b);
    if (scale.nan && (p.significand != 0 || !rule.nan_needs_nonzero)) p.kind = Class::nan;
    if (rule.normalised_products || rule.infinite_at_once) amend(rule, products.fraction, p);
  };
  for (int j = 0, next = 0; j < i.kept(); ++j) {
    const int k = dense ? j : position(dot, j);
    for (; rule.expands && next < k; ++next) add(0, j, next);
    next = k + 1;
    add(code_at(dot.a, of_a.bytes, j), j, k);
    for (; rule.expands && j + 1 == i.kept() && next < i.k; ++next) add(0, j, next);
  }
}

}  // namespace numemu::oracle::recording::replay
