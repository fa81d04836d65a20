// One vector of float32 rounded to a format's grid: the four steps, and what may follow them.
//
// A magnitude a in the binade of m = 2^e plus m * 2^(23 - M) is a float32 whose last bit is worth
// 2^(e - M): the addition rounds at the format's step, subnormals included (m is at least the
// lowest binade), and carries into the next binade by itself. Subtracting m * 2^(23 - M) again is
// exact. Products with m are exact because m is a power of two, so it does not matter whether the
// host fuses them; where the other summand may be subnormal they stay apart, since additions take
// subnormal numbers at full speed and fused multiply-adds and multiplications do not.
#if defined(NUMEMU_ROUND_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_ROUND_INL
#undef NUMEMU_ROUND_INL
#else
#define NUMEMU_ROUND_INL
#endif
#include "formats/simd/lanes-inl.hpp"
#include "formats/simd/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

/// A rounded vector: the sum whose low bits count steps, and its binade, both with one sign.
struct Sum {
  FloatVector sum, binade;
};

HWY_INLINE FloatVector rounded_of(const Plan& plan, const Sum& s) {
  return hn::NegMulAdd(s.binade, set(plan.magic), s.sum);
}

/// fine_magic: the sum of the binade m and |a| whose last bits are those of |a| in 2^-n of a step,
/// with r added to them and then left out. `offset` is what is to be taken off again.
HWY_INLINE FloatVector fine_sum(const Plan& plan, FloatVector a, FloatVector offset, WordVector r) {
  const WordVector sum = hn::Add(bits_of(hn::Add(offset, a)), r);
  return float_of(hn::And(sum, set(~0U << static_cast<unsigned>(plan.random_bits))));
}

/// |a| with r / 2^n of a step of the binade m added, cut where the variant cuts it; where there is
/// a fine_magic, cut to a step. Elsewhere the host rounds toward zero, and truncating this sum to
/// float32 first and to the format's step afterwards is safe: the second grid is part of the first.
HWY_INLINE FloatVector add_random(const Plan& plan, FloatVector a, FloatVector m, WordVector r) {
  if (plan.fine_magic != 0) {
    const FloatVector offset = hn::Mul(m, set(plan.fine_magic));
    return hn::Sub(fine_sum(plan, a, offset, r), offset);
  }
  const int n = plan.random_bits, fine = plan.mantissa_bits + n;
  const hn::RebindToSigned<Floats> integers;
  const auto number = [&](WordVector bits) {
    return hn::ConvertTo(kFloats, hn::BitCast(integers, bits));  // exact: at most 24 bits
  };
  const auto power = [](int exponent) {
    return float_of(set(static_cast<std::uint32_t>(exponent + 127) << 23));
  };
  if (plan.variant == StochasticVariant::b) {
    const WordVector odd = hn::Or(hn::ShiftLeft<1>(r), set(1U));
    return hn::Add(hn::Mul(number(odd), hn::Mul(m, power(-fine - 1))), a);
  }
  const FloatVector weight = hn::Mul(m, power(-fine));
  if (plan.variant == StochasticVariant::a) return hn::Add(hn::Mul(number(r), weight), a);
  // a in units of the weight, made an integer; where it is one already this changes nothing.
  const FloatVector reciprocal =
      float_of(hn::Sub(set(static_cast<std::uint32_t>(254 + fine) << 23), bits_of(m)));
  // (Subnormal numbers and zero alike become 0.)
  const FloatVector scaled = hn::Mul(hn::Max(set(0x1p-126F), a), reciprocal);
#if NUMEMU_AVX512
  if (plan.variant == StochasticVariant::c && fine < 30) {
    // That sum in integers: their sum may lose its last bits on the way back, toward zero.
    const __m512i steps =
        _mm512_cvt_roundps_epi32(scaled.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return hn::Mul(number(WordVector{_mm512_add_epi32(steps, r.raw)}), weight);
  }
#endif
  FloatVector cut = nearest_integer(scaled);
  if (plan.variant == StochasticVariant::odd) {  // ties go to the other side
    const FloatVector rest = hn::Sub(scaled, cut);
    const FloatMask tie = hn::Eq(hn::Abs(rest), set(0.5F));
    cut = hn::Add(cut, hn::IfThenElseZero(tie, hn::Add(rest, rest)));
  }
  return hn::MulAdd(number(r), weight, hn::Mul(cut, weight));
}

/// `a` carries its sign unless the step is stochastic; m likewise.
template <Step kStep>
HWY_INLINE Sum round_in(const Plan& plan, FloatVector a, FloatVector m, WordVector random) {
  const FloatVector magic = set(plan.magic);
  if (kStep == Step::away) a = hn::Add(hn::Mul(m, set(plan.half_step)), a);
  if (kStep == Step::stochastic) a = add_random(plan, a, m, random);
  FloatVector sum = hn::Add(hn::Mul(m, magic), a);
  if (kStep == Step::odd) {
    const FloatMask cut = differ(hn::NegMulAdd(m, magic, sum), a);
    sum = float_of(hn::Or(bits_of(sum), hn::IfThenElseZero(hn::RebindMask(kWords, cut), set(1U))));
  }
  return {sum, m};
}

/// round_in(), finding the binade first; kSigned as for round_in.
template <Step kStep>
HWY_INLINE Sum round_magnitude(const Plan& plan, FloatVector a, WordVector random) {
  const FloatVector first = set(plan.first_binade);
  const FloatVector m = kStep == Step::stochastic ? binade(a, first) : signed_binade(a, first);
  return round_in<kStep>(plan, a, m, random);
}

/// Whether stochastic rounding with exponents that go on downwards stays below the smallest normal
/// number.
HWY_INLINE FloatMask is_tiny_at_random(const Plan& plan, FloatVector a, WordVector random) {
  // From that number on none is; few vectors have one below.
  const FloatVector normal = set(plan.smallest_normal);
  const FloatMask below = hn::Lt(a, normal);
  if (HWY_LIKELY(hn::AllFalse(kFloats, below))) return below;
  const FloatVector m = binade(a, set(plan.tiny_binade));
  const FloatVector y = rounded_of(plan, round_in<Step::stochastic>(plan, a, m, random));
  return hn::Lt(y, normal);
}

/// The format's code of a rounded magnitude, without its sign. Bits above the code are undefined
/// where the sum is negative.
HWY_INLINE WordVector code_of(const Plan& plan, const Sum& s) {
  const WordVector steps = hn::Sub(bits_of(s.sum), bits_of(s.binade));
  const WordVector m = hn::And(bits_of(s.binade), set(0x7fffffffU));
  const auto shift = set(static_cast<std::uint32_t>(23 - plan.mantissa_bits));
  return hn::Add(hn::Add(steps, hn::Shr(m, shift)), set(plan.code_offset));
}

/// The code of a rounded magnitude with the sign of x.
HWY_INLINE WordVector signed_code(const Plan& plan, WordVector magnitude, FloatVector x) {
  if (plan.twos_complement) {
    const hn::RebindToSigned<Floats> integers;
    const WordVector sign =
        hn::BitCast(kWords, hn::ShiftRight<31>(hn::BitCast(integers, x)));  // all ones or none
    return hn::And(hn::Sub(hn::Xor(magnitude, sign), sign), set(plan.code_mask));
  }
  const auto shift = set(static_cast<std::uint32_t>(32 - plan.code_bits));
  const WordVector code =
      hn::Or(magnitude, hn::And(hn::Shr(bits_of(x), shift), set(plan.sign_bit)));
  if (plan.keeps_zero_sign) return code;
  const WordVector zero = hn::Zero(kWords);
  return hn::IfThenElse(hn::Eq(magnitude, zero), zero, code);
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();
#endif
