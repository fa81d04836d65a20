// The loops over elements, one set per instruction set, dispatched at run time.
#include "formats/simd/block_elements.hpp"

#include <algorithm>
#include <bit>

#include "formats/codec.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/block_elements.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

HWY_INLINE WordVector element_flags(FloatMask inexact, FloatMask tiny, FloatMask over) {
  WordVector flags =
      hn::IfThenElseZero(hn::RebindMask(kWords, inexact), set(std::uint32_t{kInexact}));
  flags = choose(hn::And(inexact, tiny), set(std::uint32_t{kInexact | kUnderflow}), flags);
  return choose(over, set(std::uint32_t{kInexact | kOverflow}), flags);
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

// Power-of-two scales: the quotient is exact, or so small that nothing but zero is near.
template <Step kStep, bool kCodes, bool kFlags>
struct Powers {
  static HWY_INLINE Element convert(const Plan& plan, const BlockRun& to, std::int64_t b,
                                    std::int64_t i) {
    Element result{};
    const FloatVector x = hn::LoadU(kFloats, to.x + i), scale = set(to.scale[b]);
    FloatVector q = hn::Mul(at_least(x, set(to.low[b])), set(to.inverse[b]));
    if (plan.sided) q = hn::IfThenZeroElse(hn::Eq(x, hn::Zero(kFloats)), q);  // next to nothing
    // Whether random bits overflow shows only in what lies beyond the largest value.
    constexpr bool kBeyond = kFlags && kStep == Step::stochastic;
    const FloatVector largest = set(plan.largest), limit = kBeyond ? set(plan.beyond) : largest;
    const FloatMask all = hn::Eq(largest, largest);
    const WordVector random =
        kStep == Step::stochastic ? hn::LoadU(kWords, to.random + i) : hn::Zero(kWords);
    const FloatVector a =
        kStep == Step::stochastic ? clamp_magnitude(q, limit, all, q) : clamp(q, limit, all, q);
    const Sum sum = round_magnitude<kStep>(plan, a, random);
    FloatVector y = rounded_of(plan, sum);
    if (kFlags) y = hn::Abs(y);
    const FloatMask over = hn::Gt(y, largest);
    if (kBeyond) y = hn::Min(y, largest);
    if (kCodes) {
      WordVector code = code_of(plan, sum);
      if (kBeyond) code = hn::Min(code, set(plan.over.code));
      result.code = signed_code(plan, code, x);
    } else {
      FloatVector element = mix(set(0x80000000U), x, y);
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

struct Nearest {
  Sum low;        // the step below
  FloatVector y;  // the nearest value, not yet cut to the largest
  FloatMask up;
};

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
  static HWY_INLINE Element convert(const Plan& plan, const BlockRun& to, std::int64_t b,
                                    std::int64_t i) {
    Element result{};
    const FloatVector x = hn::LoadU(kFloats, to.x + i), magnitude = normal_magnitude(x);
    const Division by{set(to.scale[b]), set(to.scale_rest[b]), set(to.inverse[b])};
    const Nearest nearest = nearest_quotient(plan, magnitude, by);
    const FloatVector largest = set(plan.largest), y = hn::Min(nearest.y, largest);
    if (kCodes) {
      const WordVector low = code_of(plan, nearest.low);
      const WordVector code =
          hn::Add(low, hn::IfThenElseZero(hn::RebindMask(kWords, nearest.up), set(1U)));
      const WordVector top = set(plan.over.code);
      result.code = signed_code(plan, hn::Min(code, top), x);
    } else {
      const FloatVector product = hn::MulAdd(by.scale, y, hn::Mul(by.rest, y));
      result.value = mix(set(0x80000000U), x, product);
      if (!plan.keeps_zero_sign)
        result.value = hn::IfThenZeroElse(hn::Eq(y, hn::Zero(kFloats)), result.value);
    }
    if (kFlags) {
      const FloatVector product =
          hn::Sub(hn::NegMulAdd(y, by.scale, magnitude), hn::Mul(y, by.rest));
      const FloatMask left_out = differ(magnitude, hn::Abs(x));
      const FloatMask inexact = hn::Or(differ(product, hn::Zero(kFloats)), left_out);
      const FloatMask over = hn::Gt(nearest.y, largest);
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

template <class Kernel, bool kCodes>
HWY_INLINE Element convert_one(const Plan& plan, const BlockRun& to, std::int64_t b,
                               std::int64_t i) {
  const Element e = Kernel::convert(plan, to, b, i);
  if (!kCodes && to.stream) {
    hn::Stream(e.value, kFloats, to.values + i);
  } else if (!kCodes) {
    hn::StoreU(e.value, kFloats, to.values + i);
  }
  return e;
}

// Four vectors from element i on, kPerBlock of them in each block from b on.
template <class Kernel, bool kCodes, bool kFlags, int kPerBlock>
HWY_INLINE void convert_four(const Plan& plan, const BlockRun& to, std::int64_t b, std::int64_t i) {
  const std::int64_t n = lanes();
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
  if (kCodes) store_bytes(e0.code, e1.code, e2.code, e3.code, to.codes + i);
  if (kFlags) store_bytes(e0.flags, e1.flags, e2.flags, e3.flags, to.flags + i);
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

template <Step kStep>
void run_powers(const Plan& plan, const BlockRun& to) {
  if (to.values != nullptr && to.flags == nullptr)
    return loop<Powers<kStep, false, false>, false, false>(plan, to);
  if (to.values != nullptr) return loop<Powers<kStep, false, true>, false, true>(plan, to);
  if (to.flags == nullptr) return loop<Powers<kStep, true, false>, true, false>(plan, to);
  return loop<Powers<kStep, true, true>, true, true>(plan, to);
}

void powers(const Plan& plan, const BlockRun& to) {
  switch (plan.step) {
    case Step::host:
      return run_powers<Step::host>(plan, to);
    case Step::away:
      return run_powers<Step::away>(plan, to);
    case Step::odd:
      return;  // no loop: see convert_powers()
    case Step::stochastic:
      return run_powers<Step::stochastic>(plan, to);
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
