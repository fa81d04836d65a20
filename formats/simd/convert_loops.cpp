// The loops over float32 arrays, one set per instruction set, dispatched at run time.
#include "formats/simd/convert_loops.hpp"

#include <bit>

#include "formats/codec.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/convert_loops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

// What one vector becomes; only what the loop stores is computed.
struct Converted {
  FloatVector value;
  WordVector code, flags;
};

// The lean conversion: a saturating format with sign. A magnitude beyond the largest is cut to it
// first and then exact; flags come from thresholds. Only for flags that depend on random bits does
// the magnitude keep what lies beyond the largest value.
template <Step kStep, bool kCodes, bool kFlags>
struct Plain {
  static constexpr bool kRandom = kStep == Step::stochastic, kBeyond = kRandom && kFlags;

  static HWY_INLINE Converted convert(const Plan& plan, FloatVector x, WordVector random) {
    Converted result{};
    const FloatMask number = is_number(x);
    const FloatVector largest = set(plan.largest), nan = set(plan.nan.value);
    const FloatVector limit = kBeyond ? set(plan.beyond) : largest;
    const FloatVector a =
        kRandom ? clamp_magnitude(x, limit, number, nan) : clamp(x, limit, number, nan);
    const Sum sum = round_magnitude<kStep>(plan, a, random);
    FloatVector y = rounded_of(plan, sum);
    const FloatMask over = hn::Gt(y, largest);
    if (kBeyond) y = hn::IfThenElse(over, largest, y);
    if (kCodes) {
      WordVector magnitude = code_of(plan, sum);
      if (kBeyond) magnitude = choose(over, set(plan.over.code), magnitude);
      result.code = code_with_nan(plan, magnitude, x, number);
    } else {
      result.value = value_with_nan(plan, y, x, number);
    }
    if (kBeyond) {
      const FloatMask inexact = hn::Or(differ(y, hn::Abs(x)), over);
      WordVector flags = flag_words(inexact, is_tiny_at_random(plan, a, random), over, kInexact,
                                    kInexact | kUnderflow, kInexact | kOverflow);
      flags = choose(number, flags, set(plan.nan.flags));
      result.flags = flag_signalling(flags, x, number, kInvalid);
    } else if (kFlags) {
      result.flags = flags_of(plan, x, y, number);
    }
    return result;
  }

  static HWY_INLINE WordVector code_with_nan(const Plan& plan, WordVector magnitude, FloatVector x,
                                             FloatMask number) {
    const WordVector nan = set(plan.nan.code);
    if (plan.nan_keeps_sign) return signed_code(plan, choose(number, magnitude, nan), x);
    return choose(number, signed_code(plan, magnitude, x), nan);
  }

  // The rounded number y has its sign unless the step is random, but a zero need not.
  static HWY_INLINE FloatVector value_with_nan(const Plan& plan, FloatVector y, FloatVector x,
                                               FloatMask number) {
    const FloatVector nan = set(plan.nan.value);
    if (!kRandom && !plan.keeps_zero_sign) return y;  // NaN has no sign either
    FloatVector value = mix(set(0x80000000U), x, y);
    if (!plan.keeps_zero_sign) value = hn::IfThenZeroElse(hn::Eq(y, hn::Zero(kFloats)), value);
    return plan.nan_keeps_sign ? value : hn::IfThenElse(number, value, nan);
  }

  static HWY_INLINE WordVector flags_of(const Plan& plan, FloatVector x, FloatVector y,
                                        FloatMask number) {
    const FloatVector magnitude = hn::Abs(x);
    FloatVector tiny = set(plan.tiny_below.positive), over = set(plan.over_from.positive);
    if (plan.sided) {
      const FloatMask negative = hn::Lt(x, hn::Zero(kFloats));
      tiny = hn::IfThenElse(negative, set(plan.tiny_below.negative), tiny);
      over = hn::IfThenElse(negative, set(plan.over_from.negative), over);
    }
    const WordVector flags = flag_words(y, x, magnitude, tiny, over, kInexact,
                                        kInexact | kUnderflow, kInexact | kOverflow);
    if (plan.nan.flags != 0) return choose(number, flags, set(plan.nan.flags));
    return flag_signalling(flags, x, number, kInvalid);
  }
};

// Every other conversion: the magnitude is cut to the step after the largest value, and what lies
// outside the format is replaced afterwards.
template <Step kStep>
struct General {
  // yes where x is negative.
  static HWY_INLINE FloatVector sided(FloatMask negative, float positive, float other) {
    return hn::IfThenElse(negative, set(other), set(positive));
  }
  static HWY_INLINE WordVector sided(FloatMask negative, std::uint32_t positive,
                                     std::uint32_t other) {
    return choose(negative, set(other), set(positive));
  }
  static HWY_INLINE void replace(FloatMask where, FloatMask negative, const Special& positive,
                                 const Special& other, Converted& result) {
    result.value =
        hn::IfThenElse(where, sided(negative, positive.value, other.value), result.value);
    result.code = choose(where, sided(negative, positive.code, other.code), result.code);
    result.flags = choose(where, sided(negative, positive.flags, other.flags), result.flags);
  }

  static HWY_INLINE Converted convert(const Plan& plan, FloatVector x, WordVector random) {
    const hn::RebindToSigned<Floats> integers;
    const FloatVector zero = hn::Zero(kFloats), magnitude = hn::Abs(x);
    const FloatMask negative =
        hn::RebindMask(kFloats, hn::Lt(hn::BitCast(integers, x), hn::Zero(integers)));
    const FloatMask number = is_number(x);
    const FloatVector beyond = set(plan.beyond);
    const FloatVector a = kStep == Step::stochastic ? clamp_magnitude(x, beyond, number, zero)
                                                    : clamp(x, beyond, number, zero);
    const Sum sum = round_magnitude<kStep>(plan, a, random);
    FloatVector y = hn::Abs(rounded_of(plan, sum));
    WordVector code = hn::And(code_of(plan, sum), set(plan.code_mask));
    if (plan.gap) {
      const FloatVector smallest = set(plan.smallest);
      const FloatMask in_gap = hn::Lt(magnitude, smallest);
      const FloatMask up =
          hn::Ge(magnitude, sided(negative, plan.up_from.positive, plan.up_from.negative));
      y = hn::IfThenElse(in_gap, hn::IfThenElseZero(up, smallest), y);
      code = choose(in_gap, hn::IfThenElseZero(hn::RebindMask(kWords, up), set(1U)), code);
    }
    if (plan.flush) {
      const FloatMask flushed = hn::Lt(y, set(plan.smallest_normal));
      y = hn::IfThenElse(flushed, zero, y);
      code = choose(flushed, hn::Zero(kWords), code);
    }
    const FloatMask over = hn::Gt(
        y, sided(negative, plan.largest, plan.is_signed ? plan.largest_negative : plan.largest));
    const FloatMask inexact = differ(y, magnitude);
    const FloatMask tiny = hn::And(inexact, is_tiny(plan, a, magnitude, negative, random));
    Converted result;
    result.flags = choose(inexact, set(std::uint32_t{kInexact}), hn::Zero(kWords));
    result.flags = choose(tiny, set(std::uint32_t{kInexact | kUnderflow}), result.flags);

    const FloatMask is_zero = hn::Eq(y, zero);
    const FloatMask has_sign =
        plan.keeps_zero_sign ? negative : hn::And(negative, hn::Not(is_zero));
    result.value = hn::IfThenElse(has_sign, hn::Neg(y), y);
    const WordVector with_sign = plan.twos_complement
                                     ? hn::And(hn::Sub(hn::Zero(kWords), code), set(plan.code_mask))
                                     : hn::Or(code, set(plan.sign_bit));
    result.code = choose(has_sign, with_sign, code);

    replace(over, negative, plan.over, plan.over_negative, result);
    replace(hn::Eq(magnitude, set(HUGE_VALF)), negative, plan.infinity, plan.infinity_negative,
            result);
    if (!plan.is_signed)
      replace(hn::And(negative, hn::Not(is_zero)), negative, plan.refused, plan.refused, result);
    replace(hn::Not(number), negative, plan.nan, plan.nan_negative, result);
    result.flags = flag_signalling(result.flags, x, number, kInvalid);
    return result;
  }

  // Whether rounding with exponents that go on downwards stays below the smallest normal number.
  static HWY_INLINE FloatMask is_tiny(const Plan& plan, FloatVector a, FloatVector magnitude,
                                      FloatMask negative, WordVector random) {
    if (kStep == Step::stochastic) return is_tiny_at_random(plan, a, random);
    return hn::Lt(magnitude, sided(negative, plan.tiny_below.positive, plan.tiny_below.negative));
  }
};

HWY_INLINE WordVector random_of(const Plan& plan, const Arrays& to, std::int64_t i) {
  if (to.random8 == nullptr) return hn::LoadU(kWords, to.random + i);
  const hn::Rebind<std::uint8_t, Words> bytes;
  return hn::ShiftRightSame(hn::PromoteTo(kWords, hn::LoadU(bytes, to.random8 + i)),
                            8 - plan.random_bits);
}

template <class Kernel, Step kStep, bool kCodes>
HWY_INLINE Converted convert_one(const Plan& plan, const Arrays& to, std::int64_t i) {
  const WordVector random = kStep == Step::stochastic ? random_of(plan, to, i) : hn::Zero(kWords);
  const Converted result = Kernel::convert(plan, hn::LoadU(kFloats, to.x + i), random);
  if (kCodes) {
    if (to.codes8 == nullptr) {
      const hn::Rebind<std::uint16_t, Words> halves;
      hn::StoreU(hn::TruncateTo(halves, result.code), halves, to.codes16 + i);
    }
  } else if (to.stream) {
    hn::Stream(result.value, kFloats, to.values + i);
  } else {
    hn::StoreU(result.value, kFloats, to.values + i);
  }
  return result;
}

std::int64_t step() { return kStepVectors * lanes(); }

// The elements that a step reads so much later.
HWY_INLINE void ask_ahead(const Arrays& to, std::int64_t i) {
  constexpr std::int64_t kAhead = 1024;
  if (to.ask) ask_for(to.x + i + kAhead, step());
}

// SSE4, for machines from before 2013, runs through the vectors of a step in a loop: written out,
// they make this file compile a sixth longer for everyone.
template <class Kernel, Step kStep, bool kCodes, bool kFlags>
HWY_INLINE void convert_some(const Plan& plan, const Arrays& to, std::int64_t i) {
  const std::int64_t n = lanes();
#if HWY_TARGET == HWY_SSE4
  Converted all[kStepVectors];
  for (int v = 0; v < kStepVectors; ++v)
    all[v] = convert_one<Kernel, kStep, kCodes>(plan, to, i + v * n);
  const auto [a, b, c, d] = all;
#else
  const Converted a = convert_one<Kernel, kStep, kCodes>(plan, to, i);
  const Converted b = convert_one<Kernel, kStep, kCodes>(plan, to, i + n);
  const Converted c = convert_one<Kernel, kStep, kCodes>(plan, to, i + 2 * n);
  const Converted d = convert_one<Kernel, kStep, kCodes>(plan, to, i + 3 * n);
#endif
  if (kCodes && to.codes8 != nullptr) store_bytes(a.code, b.code, c.code, d.code, to.codes8 + i);
  if (kFlags) store_bytes(a.flags, b.flags, c.flags, d.flags, to.flags + i);
}

template <class Kernel, Step kStep, bool kCodes, bool kFlags>
void loop(const Plan& shared, const Arrays& to) {
  const Plan plan = shared;  // a local copy: its numbers stay in registers
  for (std::int64_t i = 0; i < to.n; i += step()) {
    ask_ahead(to, i);
    convert_some<Kernel, kStep, kCodes, kFlags>(plan, to, i);
  }
}

#if HWY_TARGET == HWY_AVX2
// Most conversions on most machines: a saturating format with sign, NaN and -0, rounded alike on
// both sides. Magnitudes are rounded, and the sign of x is put back. NaN passes through: the
// minimum takes its second operand, and afterwards no number is as large as a NaN.
namespace lean {

bool serves(const Plan& plan, const Arrays& to) {
  constexpr std::uint32_t kNaN = 0x7fc00000;
  const bool codes = to.values == nullptr;
  if (codes ? !plan.plain_codes || to.codes8 == nullptr : !plan.plain_values) return false;
  if (!plan.keeps_zero_sign || !plan.nan_keeps_sign || plan.twos_complement || plan.sided)
    return false;
  if (std::bit_cast<std::uint32_t>(plan.nan.value) != kNaN || plan.nan.flags != 0 ||
      plan.nan.code <= plan.over.code)
    return false;
  if (plan.step == Step::stochastic) return plan.fine_magic != 0 && to.flags == nullptr;
  return plan.step == Step::host;
}

// A magnitude with its rounded magnitude, still NaN or its code's lower bits.
struct Rounded {
  FloatVector x, magnitude, y;
  WordVector code;
};

template <Step kStep, bool kCodes, bool kFlags>
HWY_INLINE Rounded round(const Plan& plan, const Arrays& to, std::int64_t i) {
  Rounded r;
  r.x = hn::LoadU(kFloats, to.x + i);
  r.magnitude = hn::Abs(r.x);
  const FloatVector a{_mm256_min_ps(set(plan.largest).raw, r.magnitude.raw)};
  const FloatVector m = binade(a, set(plan.first_binade));
  if (kStep == Step::stochastic) {
    const FloatVector offset = hn::Mul(m, set(plan.fine_magic));
    r.y = hn::Sub(fine_sum(plan, a, offset, random_of(plan, to, i)), offset);
    if (kCodes) r.code = code_of(plan, {hn::MulAdd(m, set(plan.magic), r.y), m});
  } else {
    const Sum sum{hn::Add(hn::Mul(m, set(plan.magic)), a), m};
    if (!kCodes || kFlags) r.y = rounded_of(plan, sum);
    if (kCodes) r.code = code_of(plan, sum);
  }
  if (kCodes) {
    r.code = hn::Min(r.code, set(plan.nan.code));
  } else {
    const WordVector value = hn::Min(bits_of(r.y), set(0x7fc00000U));
    const WordVector sign = hn::Xor(bits_of(r.x), bits_of(r.magnitude));
    const FloatVector result = float_of(hn::Or(value, sign));
    if (to.stream) {
      hn::Stream(result, kFloats, to.values + i);
    } else {
      hn::StoreU(result, kFloats, to.values + i);
    }
  }
  return r;
}

// Words that fit 16 signed bits (all ones or none, say), or are cut to them, as bytes in the order
// that store() mends.
HWY_INLINE __m256i bytes_of(WordVector a, WordVector b, WordVector c, WordVector d) {
  return _mm256_packs_epi16(_mm256_packs_epi32(a.raw, b.raw), _mm256_packs_epi32(c.raw, d.raw));
}

HWY_INLINE void store(__m256i bytes, std::uint8_t* to) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
}

HWY_INLINE __m256i all(std::uint32_t byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

// The code's low byte: what lies above it is zero.
HWY_INLINE void store_codes(const Plan& plan, const Rounded& a, const Rounded& b, const Rounded& c,
                            const Rounded& d, std::uint8_t* to) {
  const __m256i low = _mm256_packus_epi32(a.code.raw, b.code.raw);
  const __m256i magnitudes = _mm256_packus_epi16(low, _mm256_packus_epi32(c.code.raw, d.code.raw));
  const __m256i x = bytes_of(bits_of(a.x), bits_of(b.x), bits_of(c.x), bits_of(d.x));
  const __m256i negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
  store(_mm256_or_si256(magnitudes, _mm256_and_si256(negative, all(plan.sign_bit))), to);
}

HWY_INLINE void store_flags(const Plan& plan, const Rounded& a, const Rounded& b, const Rounded& c,
                            const Rounded& d, std::uint8_t* to) {
  // Magnitudes are compared as integers: infinities follow numbers, and NaN comes last.
  const auto above = [&](const Rounded& r, std::uint32_t limit) HWY_ATTR {
    return WordVector{_mm256_cmpgt_epi32(bits_of(r.magnitude).raw, set(limit).raw)};
  };
  const auto each = [&](auto mask)
                        HWY_ATTR { return bytes_of(mask(a), mask(b), mask(c), mask(d)); };
  const __m256i same = each([&](const Rounded& r) HWY_ATTR {
    return WordVector{_mm256_cmpeq_epi32(bits_of(r.magnitude).raw, bits_of(r.y).raw)};
  });
  const std::uint32_t tiny_below = std::bit_cast<std::uint32_t>(plan.tiny_below.positive);
  const std::uint32_t over_from = std::bit_cast<std::uint32_t>(plan.over_from.positive);
  const __m256i tiny = each([&](const Rounded& r) HWY_ATTR {
    return WordVector{_mm256_cmpgt_epi32(set(tiny_below).raw, bits_of(r.magnitude).raw)};
  });
  const __m256i over = each([&](const Rounded& r) HWY_ATTR { return above(r, over_from - 1); });
  __m256i flags = _mm256_or_si256(_mm256_and_si256(tiny, all(kUnderflow)), all(kInexact));
  flags = _mm256_or_si256(_mm256_andnot_si256(same, flags),
                          _mm256_and_si256(over, all(kOverflow | kInexact)));
  const __m256 some_nan = _mm256_or_ps(_mm256_cmp_ps(a.x.raw, b.x.raw, _CMP_UNORD_Q),
                                       _mm256_cmp_ps(c.x.raw, d.x.raw, _CMP_UNORD_Q));
  if (HWY_UNLIKELY(_mm256_movemask_ps(some_nan) != 0)) {
    const __m256i nan = each([&](const Rounded& r) HWY_ATTR { return above(r, 0x7f800000); });
    const __m256i quiet = each([&](const Rounded& r) HWY_ATTR { return above(r, 0x7fbfffff); });
    flags = _mm256_or_si256(_mm256_andnot_si256(nan, flags),
                            _mm256_and_si256(_mm256_andnot_si256(quiet, nan), all(kInvalid)));
  }
  store(flags, to);
}

template <Step kStep, bool kCodes, bool kFlags>
void loop(const Plan& shared, const Arrays& arrays) {
  const Plan plan = shared;
  const Arrays to = arrays;
  const std::int64_t n = lanes();
  for (std::int64_t i = 0; i < to.n; i += step()) {
    ask_ahead(to, i);
    const Rounded a = round<kStep, kCodes, kFlags>(plan, to, i);
    const Rounded b = round<kStep, kCodes, kFlags>(plan, to, i + n);
    const Rounded c = round<kStep, kCodes, kFlags>(plan, to, i + 2 * n);
    const Rounded d = round<kStep, kCodes, kFlags>(plan, to, i + 3 * n);
    if (kCodes) store_codes(plan, a, b, c, d, to.codes8 + i);
    if (kFlags) store_flags(plan, a, b, c, d, to.flags + i);
  }
}

void run(const Plan& plan, const Arrays& to) {
  const bool codes = to.values == nullptr, flags = to.flags != nullptr;
  if (plan.step == Step::stochastic)
    return (codes ? loop<Step::stochastic, true, false>
                  : loop<Step::stochastic, false, false>)(plan, to);
  if (codes)
    return (flags ? loop<Step::host, true, true> : loop<Step::host, true, false>)(plan, to);
  return (flags ? loop<Step::host, false, true> : loop<Step::host, false, false>)(plan, to);
}

}  // namespace lean
#endif

template <Step kStep>
void run_step(const Plan& plan, const Arrays& to) {
  const bool codes = to.values == nullptr, flags = to.flags != nullptr;
  const bool plain = codes ? plan.plain_codes : plan.plain_values;
  if (plain && !flags) {
    if (codes) return loop<Plain<kStep, true, false>, kStep, true, false>(plan, to);
    return loop<Plain<kStep, false, false>, kStep, false, false>(plan, to);
  }
  if (plain) {
    if (codes) return loop<Plain<kStep, true, true>, kStep, true, true>(plan, to);
    return loop<Plain<kStep, false, true>, kStep, false, true>(plan, to);
  }
  if (codes && flags) return loop<General<kStep>, kStep, true, true>(plan, to);
  if (codes) return loop<General<kStep>, kStep, true, false>(plan, to);
  if (flags) return loop<General<kStep>, kStep, false, true>(plan, to);
  return loop<General<kStep>, kStep, false, false>(plan, to);
}

void run(const Plan& plan, const Arrays& to) {
#if HWY_TARGET == HWY_AVX2
  if (lean::serves(plan, to)) return lean::run(plan, to);
#endif
  switch (plan.step) {
    case Step::host:
      return run_step<Step::host>(plan, to);
    case Step::away:
      return run_step<Step::away>(plan, to);
    case Step::odd:
      return run_step<Step::odd>(plan, to);
    case Step::stochastic:
      return run_step<Step::stochastic>(plan, to);
  }
}

// Eight-bit lanes count up to 255 rounds before they are added up.
void count(const std::uint8_t* flags, std::int64_t n, std::int64_t* counts) {
  const hn::ScalableTag<std::uint8_t> bytes;
  const hn::Repartition<std::uint64_t, decltype(bytes)> sums;
  const auto width = static_cast<std::int64_t>(hn::Lanes(bytes));
  constexpr int kBits = 5, kRounds = 255;
  std::int64_t i = 0;
  while (i + width <= n) {
    auto a0 = hn::Zero(bytes), a1 = a0, a2 = a0, a4 = a0;
    const auto one = hn::Set(bytes, 1);
    for (int round = 0; round < kRounds && i + width <= n; ++round, i += width) {
      const auto f = hn::LoadU(bytes, flags + i);
      a0 = hn::Add(a0, hn::And(f, one));
      a1 = hn::Add(a1, hn::And(hn::ShiftRight<1>(f), one));
      a2 = hn::Add(a2, hn::And(hn::ShiftRight<2>(f), one));
      a4 = hn::Add(a4, hn::And(hn::ShiftRight<4>(f), one));
    }
    const auto total = [&](auto v) {
      return static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(sums, hn::SumsOf8(v))));
    };
    counts[0] += total(a0);
    counts[1] += total(a1);
    counts[2] += total(a2);
    counts[4] += total(a4);
  }
  for (; i < n; ++i)
    for (int bit = 0; bit < kBits; ++bit) counts[bit] += flags[i] >> bit & 1;
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(run);
HWY_EXPORT(step);
HWY_EXPORT(count);

void convert_vectors(const Plan& plan, const Arrays& arrays) {
  run_whole_steps(arrays, HWY_DYNAMIC_DISPATCH(step)(), [&](const Arrays& steps) {
    HWY_DYNAMIC_DISPATCH(run)(plan, steps);
  });
}

void count_flags(const std::uint8_t* flags, std::int64_t n, std::int64_t counts[5]) {
  HWY_DYNAMIC_DISPATCH(count)(flags, n, counts);
}

}  // namespace numemu::simd
#endif
