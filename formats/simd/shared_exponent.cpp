// Rounding float32 by dropping low bits of its code, in integers only, dispatched at run time.
#include "formats/simd/shared_exponent.hpp"

#include <algorithm>

#include "formats/codec.hpp"
#include "formats/simd/convert_loops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/shared_exponent.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

using Step = SharedExponentPlan::Step;
using WordMask = hn::Mask<Words>;

constexpr std::uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kNan = 0x7fc00000;
constexpr std::uint32_t kFirstNormal = 0x00800000;

// x > y for words below 2^31: cheaper than the comparison of unsigned words in most sets.
HWY_INLINE WordMask greater(WordVector x, WordVector y) {
  const hn::RebindToSigned<Words> integers;
  return hn::RebindMask(kWords, hn::Gt(hn::BitCast(integers, x), hn::BitCast(integers, y)));
}

// yes where x is negative; `negative` is all ones there and zero elsewhere.
HWY_INLINE WordVector sided(WordVector negative, std::uint32_t no, std::uint32_t yes) {
  return hn::Xor(set(no), hn::And(negative, set(no ^ yes)));
}

// The magnitude a < 2^32 - 2^cut_bits rounded to a multiple of 2^cut_bits.
template <Step kStep>
HWY_INLINE WordVector round_bits(const SharedExponentPlan& plan, WordVector a, WordVector negative,
                                 WordVector random) {
  const WordVector low = set((1U << plan.cut_bits) - 1);
  if constexpr (kStep == Step::odd)
    return hn::AndNot(low, hn::Or(a, hn::Add(hn::And(a, low), low)));
  WordVector more = sided(negative, plan.constant, plan.constant_negative);
  if constexpr (kStep != Step::constant) {
    const WordVector flipped = kStep == Step::even ? a : hn::Xor(a, set(plan.tie_flip));
    more = hn::Add(set(plan.constant),
                   hn::And(hn::ShiftRightSame(flipped, plan.tie_shift), set(plan.tie_mask)));
  }
  if constexpr (kStep == Step::stochastic) {
    const WordVector left = hn::ShiftLeftSame(random, plan.random_left);
    more = hn::Add(more, hn::ShiftRightSame(left, plan.random_right));
  }
  return hn::AndNot(low, hn::Add(a, more));
}

// Tininess is what rounding gives with one bit more in the binade below the first normal number;
// doubling the bits of a makes that the same cut. Lower binades never get near.
HWY_INLINE WordMask is_tiny_at_random(const SharedExponentPlan& plan, WordVector a,
                                      WordVector random) {
  const WordVector cut = hn::Min(a, set(kFirstNormal));
  const WordVector twice =
      round_bits<Step::stochastic>(plan, hn::Add(cut, cut), hn::Zero(kWords), random);
  return greater(set(2 * kFirstNormal), twice);
}

struct Result {
  WordVector bits;  // of the float32
  WordVector flags;
};

template <Step kStep, bool kFlags>
HWY_INLINE Result convert(const SharedExponentPlan& plan, WordVector x, WordVector random) {
  const hn::RebindToSigned<Words> integers;
  const WordVector sign = hn::And(x, set(kSign)), a = hn::AndNot(set(kSign), x);
  const WordVector negative = hn::BitCast(kWords, hn::ShiftRight<31>(hn::BitCast(integers, x)));
  const WordVector infinity = set(kInfinity);
  const WordVector rounded = round_bits<kStep>(plan, a, negative, random);
  WordVector y = hn::Min(rounded, set(plan.limit));
  y = hn::IfThenElse(hn::Eq(a, infinity), set(plan.infinity), y);
  const WordMask nan = greater(a, infinity);
  Result result{};
  if constexpr (kFlags) {
    const WordMask tiny =
        kStep == Step::stochastic
            ? is_tiny_at_random(plan, a, random)
            : greater(sided(negative, plan.tiny_below, plan.tiny_below_negative), a);
    // A result that overflows differs from a, except for an infinity that stays one.
    WordVector flags = hn::IfThenElse(tiny, set(std::uint32_t{kInexact | kUnderflow}),
                                      set(std::uint32_t{kInexact}));
    flags =
        hn::IfThenElse(hn::Eq(rounded, infinity), set(std::uint32_t{kInexact | kOverflow}), flags);
    result.flags = hn::IfThenZeroElse(hn::Or(hn::Eq(y, a), nan), flags);
    // Few vectors hold a NaN at all.
    if (HWY_UNLIKELY(!hn::AllFalse(kWords, nan))) {
      const WordMask signals = hn::And(nan, greater(set(kNan), a));
      result.flags = hn::IfThenElse(signals, set(std::uint32_t{kInvalid}), result.flags);
    }
  }
  result.bits = hn::Or(sign, hn::IfThenElse(nan, set(kNan), y));
  return result;
}

// Where one loop reads and writes.
template <class Out>
struct Slice {
  const float* x = nullptr;
  Out* out = nullptr;
  std::uint8_t* flags = nullptr;
  const std::uint32_t* random = nullptr;
  bool stream = false;
};

HWY_INLINE void store(const SharedExponentPlan&, WordVector bits, float* to, bool stream) {
  if (stream) return hn::Stream(float_of(bits), kFloats, to);
  hn::StoreU(float_of(bits), kFloats, to);
}
HWY_INLINE void store(const SharedExponentPlan& plan, WordVector bits, std::uint16_t* to, bool) {
  const hn::Rebind<std::uint16_t, Words> halves;
  hn::StoreU(hn::TruncateTo(halves, hn::ShiftRightSame(bits, plan.code_shift)), halves, to);
}
HWY_INLINE void store(const SharedExponentPlan& plan, WordVector bits, std::uint32_t* to,
                      bool stream) {
  const WordVector codes = hn::ShiftRightSame(bits, plan.code_shift);
  if (stream) return hn::Stream(codes, kWords, to);
  hn::StoreU(codes, kWords, to);
}

template <Step kStep, bool kFlags, class Out>
HWY_INLINE WordVector convert_one(const SharedExponentPlan& plan, const Slice<Out>& s,
                                  std::int64_t i) {
  WordVector random = hn::Zero(kWords);
  if constexpr (kStep == Step::stochastic) random = hn::LoadU(kWords, s.random + i);
  const Result result = convert<kStep, kFlags>(plan, bits_of(hn::LoadU(kFloats, s.x + i)), random);
  store(plan, result.bits, s.out + i, s.stream);
  return result.flags;
}

std::int64_t shared_exponent_step() { return kStepVectors * lanes(); }

template <Step kStep, bool kFlags, class Out>
HWY_INLINE void convert_some(const SharedExponentPlan& plan, const Slice<Out>& s, std::int64_t i) {
  const std::int64_t n = lanes();
#if HWY_TARGET == HWY_SSE4  // in a loop, for the sake of compile time: see convert_loops.cpp
  WordVector all[kStepVectors];
  for (int v = 0; v < kStepVectors; ++v) all[v] = convert_one<kStep, kFlags>(plan, s, i + v * n);
  const auto [a, b, c, d] = all;
#else
  const WordVector a = convert_one<kStep, kFlags>(plan, s, i);
  const WordVector b = convert_one<kStep, kFlags>(plan, s, i + n);
  const WordVector c = convert_one<kStep, kFlags>(plan, s, i + 2 * n);
  const WordVector d = convert_one<kStep, kFlags>(plan, s, i + 3 * n);
#endif
  if constexpr (kFlags) store_bytes(a, b, c, d, s.flags + i);
}

template <Step kStep, bool kFlags, class Out>
void loop(const SharedExponentPlan& shared, const Slice<Out>& s, std::int64_t n) {
  const SharedExponentPlan plan = shared;  // a local copy: its numbers stay in registers
  const std::int64_t step = shared_exponent_step();
  for (std::int64_t i = 0; i < n; i += step) convert_some<kStep, kFlags>(plan, s, i);
}

template <Step kStep, class Out>
void run_to(const SharedExponentPlan& plan, const Arrays& to, Out* out) {
  const Slice<Out> slice{to.x, out, to.flags, to.random, to.stream};
  if (to.flags != nullptr) return loop<kStep, true>(plan, slice, to.n);
  return loop<kStep, false>(plan, slice, to.n);
}

template <Step kStep>
void run_step(const SharedExponentPlan& plan, const Arrays& to) {
  if (to.values != nullptr) return run_to<kStep>(plan, to, to.values);
  if (to.codes16 != nullptr) return run_to<kStep>(plan, to, to.codes16);
  return run_to<kStep>(plan, to, to.codes32);
}

void run_shared_exponent(const SharedExponentPlan& plan, const Arrays& to) {
  switch (plan.step) {
    case Step::constant:
      return run_step<Step::constant>(plan, to);
    case Step::even:
      return run_step<Step::even>(plan, to);
    case Step::odd:
      return run_step<Step::odd>(plan, to);
    case Step::stochastic:
      return run_step<Step::stochastic>(plan, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

constexpr int kFraction = 23;  // of float32
constexpr std::uint32_t kInfinityBits = 0x7f800000;

bool shares_exponent(const Format& f) {
  return f.kind == Kind::floating && f.is_signed && f.exponent_bits == 8 && f.bias == 127 &&
         f.specials == Specials::ieee && f.field_zero == FieldZero::subnormal &&
         f.mantissa_bits >= 1 && f.mantissa_bits < kFraction &&
         f.mantissa_bits + f.container_shift <= kFraction;
}

// Adds the same to numbers of both signs.
void add_constant(SharedExponentPlan& plan, std::uint32_t constant) {
  plan.constant = plan.constant_negative = constant;
}

// With k = d - n > 0 of the d cut bits beyond the n that r meets, r stands 2^k higher. What the
// variants do to the bits below, before they compare, is a constant and perhaps the tie bit:
//   a  cuts them off                       0
//   b  gives r one more bit, a one         2^(k - 1)
//   c  rounds to nearest, ties to even     2^(k - 1) - 1 + bit k
//   odd                   ties to odd      2^(k - 1) - bit k
// With n >= d there is nothing below, and the low n - d bits of r decide nothing.
void plan_stochastic(const Rounding& rounding, SharedExponentPlan& plan) {
  plan.step = SharedExponentPlan::Step::stochastic;
  const int k = plan.cut_bits - rounding.random_bits;
  plan.random_left = std::max(k, 0);
  plan.random_right = std::max(-k, 0);
  if (k <= 0 || rounding.variant == StochasticVariant::a) return;
  const std::uint32_t half = 1U << (k - 1);
  add_constant(plan, half);
  if (rounding.variant == StochasticVariant::b) return;
  add_constant(plan, half - 1);
  plan.tie_shift = k;
  plan.tie_mask = 1;
  plan.tie_flip = rounding.variant == StochasticVariant::odd ? ~0U : 0;
}

void plan_rounding(const Rounding& rounding, SharedExponentPlan& plan) {
  const std::uint32_t half = 1U << (plan.cut_bits - 1), low = 2 * half - 1;
  switch (rounding.mode) {
    case RoundingMode::rne:
      plan.step = SharedExponentPlan::Step::even;
      add_constant(plan, half - 1);
      plan.tie_shift = plan.cut_bits;
      plan.tie_mask = 1;
      return;
    case RoundingMode::rna:
      return add_constant(plan, half);
    case RoundingMode::rtz:
      return;
    case RoundingMode::rup:
      plan.constant = low;
      return;
    case RoundingMode::rdn:
      plan.constant_negative = low;
      return;
    case RoundingMode::rodd:
      plan.step = SharedExponentPlan::Step::odd;
      return;
    case RoundingMode::sr:
      return plan_stochastic(rounding, plan);
  }
}

}  // namespace

std::optional<SharedExponentPlan> make_shared_exponent_plan(const Conversion& c) {
  const Format& f = *c.format;
  if (!shares_exponent(f)) return {};
  SharedExponentPlan plan;
  plan.cut_bits = kFraction - f.mantissa_bits;
  plan.code_shift = plan.cut_bits - f.container_shift;
  plan_rounding(c.rounding, plan);
  const std::uint32_t largest = kInfinityBits - (1U << plan.cut_bits);
  plan.limit = c.overflow == Overflow::ieee ? kInfinityBits : largest;
  plan.infinity = c.overflow == Overflow::saturate ? largest : kInfinityBits;
  // The doubled magnitude (see is_tiny_at_random) rounds up to the first normal number from here
  // on; the tie bit is set there.
  const auto tiny_below = [&](std::uint32_t constant) {
    return (1U << kFraction) - (constant + plan.tie_mask) / 2;
  };
  plan.tiny_below = tiny_below(plan.constant);
  plan.tiny_below_negative = tiny_below(plan.constant_negative);
  return plan;
}

HWY_EXPORT(run_shared_exponent);
HWY_EXPORT(shared_exponent_step);

void convert_shared_exponent(const SharedExponentPlan& plan, const Arrays& arrays) {
  run_whole_steps(arrays, HWY_DYNAMIC_DISPATCH(shared_exponent_step)(), [&](const Arrays& steps) {
    HWY_DYNAMIC_DISPATCH(run_shared_exponent)(plan, steps);
  });
}

}  // namespace numemu::simd
#endif
