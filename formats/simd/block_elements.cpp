// The loops over elements, one set per instruction set, dispatched at run time.
#include "formats/simd/block_elements.hpp"

#include <algorithm>
#include <bit>

#include "formats/codec.hpp"
#include "formats/simd/convert_loops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/block_elements.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

HWY_INLINE WordVector element_flags(FloatMask inexact, FloatMask tiny, FloatMask over) {
  return flag_words(inexact, tiny, over, kInexact, kInexact | kUnderflow, kInexact | kOverflow);
}

struct Element {
  FloatVector value;
  WordVector code, flags;
};

// x with a magnitude of at least `low`.
HWY_INLINE FloatVector at_least(FloatVector x, FloatVector low) {
#if NUMEMU_AVX512
  return FloatVector{_mm512_range_ps(x.raw, low.raw, 0x3)};
#else
  const FloatVector sign = hn::And(x, float_of(set(0x80000000U)));
  return hn::Or(hn::Max(hn::Abs(x), low), sign);
#endif
}

// |x|, zero for subnormal numbers: scales are far above them here.
HWY_INLINE FloatVector normal_magnitude(FloatVector x) {
  const FloatVector magnitude = hn::Abs(x);
  return hn::IfThenElseZero(hn::Ge(magnitude, set(0x1p-126F)), magnitude);
}

// Power-of-two scales: the quotient is exact, or so small that nothing but zero is near. Numbers
// keep their sign where it decides the rounding, and where one instruction cuts such a number.
template <Step kStep, bool kSigned, bool kCodes, bool kFlags>
struct Powers {
  static HWY_INLINE Element convert(const Plan& plan, const BlockRun& to, std::int64_t b,
                                    std::int64_t i) {
    Element result{};
    const FloatVector x = hn::LoadU(kFloats, to.x + i), scale = set(to.scale[b]);
    const FloatVector low = set(to.low[b]);
    FloatVector q =
        hn::Mul(kSigned ? at_least(x, low) : hn::Max(hn::Abs(x), low), set(to.inverse[b]));
    if (kSigned && plan.sided)  // next to nothing
      q = hn::IfThenZeroElse(hn::Eq(x, hn::Zero(kFloats)), q);
    // Whether random bits overflow shows only in what lies beyond the largest value.
    constexpr bool kBeyond = kFlags && kStep == Step::stochastic;
    const FloatVector largest = set(plan.largest), limit = kBeyond ? set(plan.beyond) : largest;
    const WordVector random =
        kStep == Step::stochastic ? hn::LoadU(kWords, to.random + i) : hn::Zero(kWords);
    const FloatVector a =
        kSigned ? clamp(q, limit, hn::Eq(largest, largest), q) : hn::Min(q, limit);
    const Sum sum = kSigned ? round_magnitude<kStep>(plan, a, random)
                            : round_in<kStep>(plan, a, binade(a, set(plan.first_binade)), random);
    FloatVector y = rounded_of(plan, sum);
    if (kFlags && kSigned) y = hn::Abs(y);
    const FloatMask over = hn::Gt(y, largest);
    if (kBeyond) y = hn::Min(y, largest);
    if (kCodes) {
      WordVector code = code_of(plan, sum);
      if (kBeyond) code = hn::Min(code, set(plan.over.code));
      result.code = signed_code(plan, code, x);
    } else {
      FloatVector element = kSigned ? mix(set(0x80000000U), x, y) : hn::CopySignToAbs(y, x);
      if (!plan.keeps_zero_sign)
        element = hn::IfThenZeroElse(hn::Eq(y, hn::Zero(kFloats)), element);
      result.value = hn::Mul(element, scale);
    }
    if (kFlags) {
      // The quotient may have become zero; the product has not.
      const FloatVector product = hn::Mul(y, scale), exact = hn::Abs(x);
      if (kBeyond) {
        result.flags = element_flags(hn::Or(differ(product, exact), over),
                                     is_tiny_at_random(plan, a, random), over);
      } else {
        const FloatMask negative = hn::Lt(x, hn::Zero(kFloats));
        const auto threshold = [&](const Sided& t) {
          return plan.sided ? hn::IfThenElse(negative, set(t.negative), set(t.positive))
                            : set(t.positive);
        };
        result.flags = flag_words(product, exact, hn::Abs(q), threshold(plan.tiny_below),
                                  threshold(plan.over_from), kInexact, kInexact | kUnderflow,
                                  kInexact | kOverflow);
      }
    }
    return result;
  }
};

// What a division by scale + rest needs. An approximate quotient finds a step and the midpoint
// above it; on which side of the midpoint the exact quotient lies is the sign of x - midpoint *
// (scale + rest), which the fused multiply-add gives exactly where it is small: midpoint * rest has
// few bits. A step too low or too high by the error of the approximation decides the same, because
// then the quotient is nowhere near that midpoint.
struct Division {
  FloatVector scale, rest, inverse;
};

/// A quotient's nearest step and value, not yet cut to the largest, and the next step's where `up`.
struct Nearest {
  Sum low;
  FloatVector y;
  FloatMask up;
};

/// The nearest value to an approximate quotient, which is that of the exact one where `beside` is
/// not positive: no midpoint is as near as the error, below 2^-22 of the quotient.
struct Probable {
  Sum step;
  FloatVector y, beside;
};

HWY_INLINE Probable probable_quotient(const Plan& plan, FloatVector magnitude, const Division& by,
                                      FloatVector limit) {
  const FloatVector q = hn::Min(hn::Mul(magnitude, by.inverse), limit);
  const FloatVector m = binade(q, set(plan.first_binade)), magic = set(plan.magic);
  const FloatVector sum = hn::MulAdd(m, magic, q), y = hn::NegMulAdd(m, magic, sum);
  constexpr float kError = 0x1p-20F;  // of the binade
  return {{sum, m}, y, hn::NegMulAdd(m, set(plan.half_step - kError), hn::Abs(hn::Sub(q, y)))};
}

HWY_INLINE Nearest nearest_quotient(const Plan& plan, FloatVector magnitude, const Division& by) {
  const hn::RebindToSigned<Floats> integers;
  const FloatVector first = set(plan.first_binade), half = set(plan.half_step);
  const FloatVector lowest = set(plan.first_binade * plan.half_step);
  FloatVector q = hn::Mul(magnitude, by.inverse);
  q = hn::Max(hn::Min(q, set(plan.beyond)), lowest);
  const FloatVector m = binade(q, first);
  // Half a step less, rounded to nearest: the step below, or the one below that at a step itself.
  const FloatVector sum = hn::MulAdd(m, set(plan.magic), hn::NegMulAdd(m, half, q));
  const FloatVector low = hn::NegMulAdd(m, set(plan.magic), sum);
  const FloatVector middle = hn::MulAdd(m, half, low);
  const FloatVector rest =
      hn::Sub(hn::NegMulAdd(middle, by.scale, magnitude), hn::Mul(middle, by.rest));
  // Above the midpoint, or on it and the code of `low` odd.
  const auto odd = hn::BitCast(integers, hn::And(bits_of(sum), set(1U)));
  const auto side = hn::Add(hn::BitCast(integers, rest), odd);
  const FloatMask up = hn::RebindMask(kFloats, hn::Gt(side, hn::Zero(integers)));
  const FloatVector next = hn::MulAdd(m, hn::Add(half, half), low);
  return {{sum, m}, hn::IfThenElse(up, next, low), up};
}

template <bool kCodes, bool kFlags>
struct Quotients {
  static HWY_INLINE Division division(const BlockRun& to, std::int64_t b) {
    return {set(to.scale[b]), set(to.scale_rest[b]), set(to.inverse[b])};
  }

  /// The elements where `beside`, the largest of before, stays below 0.
  static HWY_INLINE Element probable(const Plan& plan, const BlockRun& to, std::int64_t b,
                                     std::int64_t i, FloatVector& beside) {
    // Numbers below the smallest normal one are as good as nothing, and slow. What overflows shows
    // beyond the largest value; it ends there all the same.
    const FloatVector x = hn::LoadU(kFloats, to.x + i);
    const FloatVector magnitude = hn::Max(hn::Abs(x), set(0x1p-126F));
    const Division by = division(to, b);
    const Probable found =
        probable_quotient(plan, magnitude, by, set(kFlags ? plan.beyond : plan.largest));
    beside = hn::Max(beside, found.beside);
    return element<kFlags>(plan, by, x, found.y,
                           kCodes ? code_of(plan, found.step) : hn::Zero(kWords));
  }

  static HWY_INLINE Element convert(const Plan& plan, const BlockRun& to, std::int64_t b,
                                    std::int64_t i) {
    const FloatVector x = hn::LoadU(kFloats, to.x + i), magnitude = normal_magnitude(x);
    const Division by = division(to, b);
    const Nearest nearest = nearest_quotient(plan, magnitude, by);
    const WordVector one = hn::IfThenElseZero(hn::RebindMask(kWords, nearest.up), set(1U));
    return element<true>(plan, by, x, nearest.y,
                         kCodes ? hn::Add(code_of(plan, nearest.low), one) : one);
  }

 private:
  /// Of the nearest value and its code, which kCut cuts to the largest.
  template <bool kCut>
  static HWY_INLINE Element element(const Plan& plan, const Division& by, FloatVector x,
                                    FloatVector value, WordVector code) {
    Element result{};
    const FloatVector largest = set(plan.largest), y = kCut ? hn::Min(value, largest) : value;
    if (kCodes) {
      result.code = signed_code(plan, kCut ? hn::Min(code, set(plan.over.code)) : code, x);
    } else {
      const FloatVector product = hn::MulAdd(by.scale, y, hn::Mul(by.rest, y));
      result.value = hn::CopySignToAbs(product, x);
      if (!plan.keeps_zero_sign)
        result.value = hn::IfThenZeroElse(hn::Eq(y, hn::Zero(kFloats)), result.value);
    }
    if (kFlags) {
      const FloatVector magnitude = normal_magnitude(x);
      const FloatVector product =
          hn::Sub(hn::NegMulAdd(y, by.scale, magnitude), hn::Mul(y, by.rest));
      const FloatMask left_out = differ(magnitude, hn::Abs(x));
      const FloatMask inexact = hn::Or(differ(product, hn::Zero(kFloats)), left_out);
      const FloatMask over = hn::Gt(value, largest);
      const FloatVector normal = set(plan.tiny_below.positive);
      const FloatMask tiny =
          hn::Lt(hn::Sub(hn::NegMulAdd(normal, by.scale, magnitude), hn::Mul(normal, by.rest)),
                 hn::Zero(kFloats));
      result.flags = element_flags(hn::Or(inexact, over), tiny, over);
    }
    return result;
  }
};

[[maybe_unused]] HWY_INLINE void store_one(WordVector v, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, Words> bytes;
  hn::StoreU(hn::TruncateTo(bytes, v), bytes, to);
}

template <class Kernel>
concept HasProbable = requires {
  Kernel::probable;
};

template <bool kCodes>
HWY_INLINE void store_values(const Element& e, const BlockRun& to, std::int64_t i) {
  if (!kCodes && to.stream) {
    hn::Stream(e.value, kFloats, to.values + i);
  } else if (!kCodes) {
    hn::StoreU(e.value, kFloats, to.values + i);
  }
}

template <class Kernel, bool kCodes>
HWY_INLINE Element convert_one(const Plan& plan, const BlockRun& to, std::int64_t b,
                               std::int64_t i) {
  const Element e = Kernel::convert(plan, to, b, i);
  store_values<kCodes>(e, to, i);
  return e;
}

template <bool kCodes, bool kFlags>
HWY_INLINE void store_four(const Element& e0, const Element& e1, const Element& e2,
                           const Element& e3, const BlockRun& to, std::int64_t i) {
  if (kCodes) store_bytes(e0.code, e1.code, e2.code, e3.code, to.codes + i);
  if (kFlags) store_bytes(e0.flags, e1.flags, e2.flags, e3.flags, to.flags + i);
}

// Four vectors from element i on, kPerBlock of them in each block from b on.
template <class Kernel, bool kCodes, bool kFlags, int kPerBlock>
HWY_INLINE void convert_four(const Plan& plan, const BlockRun& to, std::int64_t b, std::int64_t i) {
  const std::int64_t n = lanes();
  if (to.ask_ahead != 0) ask_for(to.x + i + to.ask_ahead, 4 * n);
  if constexpr (HasProbable<Kernel>) {
    FloatVector beside = set(-1.0F);
    const Element e0 = Kernel::probable(plan, to, b, i, beside);
    const Element e1 = Kernel::probable(plan, to, b + 1 / kPerBlock, i + n, beside);
    const Element e2 = Kernel::probable(plan, to, b + 2 / kPerBlock, i + 2 * n, beside);
    const Element e3 = Kernel::probable(plan, to, b + 3 / kPerBlock, i + 3 * n, beside);
    if (HWY_LIKELY(hn::AllTrue(kFloats, hn::Lt(beside, hn::Zero(kFloats))))) {
      store_values<kCodes>(e0, to, i);
      store_values<kCodes>(e1, to, i + n);
      store_values<kCodes>(e2, to, i + 2 * n);
      store_values<kCodes>(e3, to, i + 3 * n);
      return store_four<kCodes, kFlags>(e0, e1, e2, e3, to, i);
    }
  }
#if HWY_TARGET == HWY_SSE4  // in a loop, for the sake of compile time: see convert_loops.cpp
  Element e[4];
  for (int v = 0; v < 4; ++v)
    e[v] = convert_one<Kernel, kCodes>(plan, to, b + v / kPerBlock, i + v * n);
  const auto [e0, e1, e2, e3] = e;
#else
  const Element e0 = convert_one<Kernel, kCodes>(plan, to, b, i);
  const Element e1 = convert_one<Kernel, kCodes>(plan, to, b + 1 / kPerBlock, i + n);
  const Element e2 = convert_one<Kernel, kCodes>(plan, to, b + 2 / kPerBlock, i + 2 * n);
  const Element e3 = convert_one<Kernel, kCodes>(plan, to, b + 3 / kPerBlock, i + 3 * n);
#endif
  store_four<kCodes, kFlags>(e0, e1, e2, e3, to, i);
}

// The fewest vectors of a block: what no block needs is not compiled.
constexpr std::int64_t kFewest =
    std::max<std::int64_t>(1, kBlockGrain / static_cast<std::int64_t>(hn::MaxLanes(Floats())));

template <class Kernel, bool kCodes, bool kFlags>
void loop(const Plan& shared, const BlockRun& run) {
  const Plan plan = shared;  // local copies: their numbers stay in registers
  const BlockRun to = run;
  const std::int64_t n = lanes();
  std::int64_t b = 0, i = 0;
  if constexpr (kFewest <= 1)
    if (to.size == n)
      for (; b + 4 <= to.blocks; b += 4, i += 4 * n)
        convert_four<Kernel, kCodes, kFlags, 1>(plan, to, b, i);
  if constexpr (kFewest <= 2)
    if (to.size == 2 * n)
      for (; b + 2 <= to.blocks; b += 2, i += 4 * n)
        convert_four<Kernel, kCodes, kFlags, 2>(plan, to, b, i);
  for (; b < to.blocks; ++b) {
    const std::int64_t end = i + to.size;
    for (; i + 4 * n <= end; i += 4 * n) convert_four<Kernel, kCodes, kFlags, 4>(plan, to, b, i);
    if constexpr (kFewest % 4 != 0) {
      for (; i < end; i += n) {
        const Element e = convert_one<Kernel, kCodes>(plan, to, b, i);
        if (kCodes) store_one(e.code, to.codes + i);
        if (kFlags) store_one(e.flags, to.flags + i);
      }
    }
  }
}

template <Step kStep, bool kSigned>
void run_powers(const Plan& plan, const BlockRun& to) {
  if (to.values != nullptr && to.flags == nullptr)
    return loop<Powers<kStep, kSigned, false, false>, false, false>(plan, to);
  if (to.values != nullptr) return loop<Powers<kStep, kSigned, false, true>, false, true>(plan, to);
  if (to.flags == nullptr) return loop<Powers<kStep, kSigned, true, false>, true, false>(plan, to);
  return loop<Powers<kStep, kSigned, true, true>, true, true>(plan, to);
}

void powers(const Plan& plan, const BlockRun& to) {
  constexpr bool kCutsSigned = NUMEMU_AVX512 != 0;
  switch (plan.step) {
    case Step::host:
      if (kCutsSigned || plan.sided) return run_powers<Step::host, true>(plan, to);
      return run_powers<Step::host, kCutsSigned>(plan, to);
    case Step::away:
      return run_powers<Step::away, kCutsSigned>(plan, to);
    case Step::odd:
      return;  // no loop: see convert_powers()
    case Step::stochastic:
      return run_powers<Step::stochastic, false>(plan, to);
  }
}

bool fused() { return HWY_NATIVE_FMA != 0; }

void quotients([[maybe_unused]] const Plan& plan, [[maybe_unused]] const BlockRun& to) {
#if HWY_NATIVE_FMA  // otherwise nobody may call it: see has_quotients()
  if (to.values != nullptr && to.flags == nullptr)
    return loop<Quotients<false, false>, false, false>(plan, to);
  if (to.values != nullptr) return loop<Quotients<false, true>, false, true>(plan, to);
  if (to.flags == nullptr) return loop<Quotients<true, false>, true, false>(plan, to);
  return loop<Quotients<true, true>, true, true>(plan, to);
#endif
}

void rounded_quotients(const Plan& plan, const float* x, std::int64_t n, float divisor, float rest,
                       float* y) {
  const Division by{set(divisor), set(rest), set(1.0F / divisor)};
  const FloatVector largest = set(plan.largest);
  constexpr std::int64_t kMost = hn::MaxLanes(Floats());
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const Nearest nearest = nearest_quotient(plan, hn::LoadU(kFloats, x + i), by);
    hn::StoreU(hn::Min(nearest.y, largest), kFloats, y + i);
  }
  if (i == n) return;
  float last[kMost] = {};
  std::copy_n(x + i, n - i, last);
  const Nearest nearest = nearest_quotient(plan, hn::LoadU(kFloats, last), by);
  hn::StoreU(hn::Min(nearest.y, largest), kFloats, last);
  std::copy_n(last, n - i, y + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(powers);
HWY_EXPORT(fused);
HWY_EXPORT(quotients);
HWY_EXPORT(rounded_quotients);

void convert_powers(const Plan& plan, const BlockRun& run) {
  HWY_DYNAMIC_DISPATCH(powers)(plan, run);
}
bool has_quotients() { return HWY_DYNAMIC_DISPATCH(fused)(); }
void convert_quotients(const Plan& plan, const BlockRun& run) {
  HWY_DYNAMIC_DISPATCH(quotients)(plan, run);
}
void round_quotients(const Plan& plan, const float* x, std::int64_t n, float divisor,
                     float divisor_rest, float* y) {
  HWY_DYNAMIC_DISPATCH(rounded_quotients)(plan, x, n, divisor, divisor_rest, y);
}

}  // namespace numemu::simd
#endif
