// The loops of Philox4x32-10 (Salmon et al., SC 2011), dispatched at run time.
#include "formats/simd/philox.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/philox.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void fill(const RandomSource& source, int bits, std::uint64_t first, std::int64_t n,
          std::uint32_t* words) {
  for (std::int64_t i = 0; i < n; ++i)
    words[i] = source.bits(first + static_cast<std::uint64_t>(i), bits);
}

void fill_bytes(const RandomSource& source, std::uint64_t first, std::int64_t n,
                std::uint8_t* bytes) {
  for (std::int64_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::uint8_t>(source.bits(first + static_cast<std::uint64_t>(i), 8));
}

#else

using Wides = hn::RepartitionToWide<Words>;
using WideVector = hn::Vec<Wides>;
constexpr Wides kWides;

// Counters are in the low halves of 64-bit lanes, where the widening multiplication reads them;
// the high halves hold what happens to be there.
struct State {
  WordVector c0, c1, c2, c3;
};

HWY_INLINE WordVector words_of(WideVector x) { return hn::BitCast(kWords, x); }
HWY_INLINE WideVector wides_of(WordVector x) { return hn::BitCast(kWides, x); }
// a comes last: it takes the longest to compute.
HWY_INLINE WordVector exclusive_or(WordVector a, WordVector b, WordVector c) {
#if NUMEMU_AVX512
  return WordVector{_mm512_ternarylogic_epi32(a.raw, b.raw, c.raw, 0x96)};
#else
  // As floats, because gcc would else put first what a round waits for.
  return hn::Xor(a, bits_of(hn::Xor(float_of(b), float_of(c))));
#endif
}

HWY_INLINE void round(State& s, WordVector key0, WordVector key1) {
  const WideVector product0 = hn::MulEven(s.c0, set(0xD2511F53U));
  const WideVector product1 = hn::MulEven(s.c2, set(0xCD9E8D57U));
  s.c0 = exclusive_or(words_of(hn::ShiftRight<32>(product1)), s.c1, key0);
  s.c2 = exclusive_or(words_of(hn::ShiftRight<32>(product0)), s.c3, key1);
  s.c1 = words_of(product1);
  s.c3 = words_of(product0);
}

// Lanes 0, 2, 4... hold the first half of the blocks and 1, 3, 5... the second, so that the
// transposition below leaves them in order.
HWY_INLINE WideVector lane_blocks() {
  const auto n = static_cast<std::uint64_t>(hn::Lanes(kWides));
  alignas(64) std::uint64_t order[hn::MaxLanes(Wides())];
  for (std::uint64_t i = 0; i < n; ++i) order[i] = i / 2 + (i % 2) * (n / 2);
  return hn::Load(kWides, order);
}

HWY_INLINE State start(const RandomSource& source, std::uint64_t first) {
  const WideVector index = hn::Add(lane_blocks(), hn::Set(kWides, first));
  const WideVector high = hn::Or(hn::And(hn::ShiftRight<32>(index), hn::Set(kWides, 0xffff)),
                                 hn::Set(kWides, std::uint64_t{source.draw} << 16));
  return {words_of(index), words_of(high), set(source.tensor),
          set(static_cast<std::uint32_t>(source.stream))};
}

HWY_INLINE void store(const State& s, std::uint8_t* to) {
  const hn::Repartition<std::uint8_t, Words> bytes;
  const auto low01 = wides_of(hn::OddEven(words_of(hn::ShiftLeft<32>(wides_of(s.c1))), s.c0));
  const auto low23 = wides_of(hn::OddEven(words_of(hn::ShiftLeft<32>(wides_of(s.c3))), s.c2));
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveLower(kWides, low01, low23)), bytes, to);
  hn::StoreU(hn::BitCast(bytes, hn::InterleaveUpper(kWides, low01, low23)), bytes,
             to + hn::Lanes(bytes));
}

// The keys of every round, vector by vector: operands in memory, which leaves registers to
// counters.
struct Keys {
  static constexpr int kRounds = 10;
  alignas(64) std::uint32_t of[kRounds][2][hn::MaxLanes(Words())];

  explicit Keys(std::uint64_t seed) {
    auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
    for (auto& keys : of) {
      hn::Store(set(key0), kWords, keys[0]);
      hn::Store(set(key1), kWords, keys[1]);
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
  }
};

// Several groups of counters at once hide the latency of the multiplications; written out, because
// compilers keep an array of them in memory. Each takes four registers and more within a round.
constexpr int kGroups = NUMEMU_AVX512 ? 4 : 3;

// kGroups * Lanes(kWides) consecutive blocks of 16 bytes, from `first` on.
HWY_INLINE void blocks(const RandomSource& source, const Keys& keys, std::uint64_t first,
                       std::uint8_t* to) {
  constexpr std::int64_t kBytes = 16;
  const auto n = static_cast<std::uint64_t>(hn::Lanes(kWides));
  State a = start(source, first), b = start(source, first + n), c = start(source, first + 2 * n);
#if NUMEMU_AVX512
  State d = start(source, first + 3 * n);
#endif
  for (const auto& pair : keys.of) {
    const WordVector k0 = hn::Load(kWords, pair[0]), k1 = hn::Load(kWords, pair[1]);
    round(a, k0, k1);
    round(b, k0, k1);
    round(c, k0, k1);
#if NUMEMU_AVX512
    round(d, k0, k1);
#endif
  }
  store(a, to);
  store(b, to + kBytes * static_cast<std::int64_t>(n));
  store(c, to + 2 * kBytes * static_cast<std::int64_t>(n));
#if NUMEMU_AVX512
  store(d, to + 3 * kBytes * static_cast<std::int64_t>(n));
#endif
}

// Pieces of one element type widened to words, the top `bits` of each.
template <class Piece>
void widen(const Piece* pieces, std::int64_t n, int bits, std::uint32_t* words) {
  const hn::Rebind<Piece, Words> d;
  const auto shift =
      set(static_cast<std::uint32_t>(8 * sizeof(Piece)) - static_cast<unsigned>(bits));
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes())
    hn::StoreU(hn::Shr(hn::PromoteTo(kWords, hn::LoadU(d, pieces + i)), shift), kWords, words + i);
  for (; i < n; ++i)
    words[i] =
        static_cast<std::uint32_t>(pieces[i]) >> (8 * sizeof(Piece) - static_cast<unsigned>(bits));
}

void take(const std::uint32_t* pieces, std::int64_t n, int bits, std::uint32_t* words) {
  const auto shift = set(static_cast<std::uint32_t>(32 - bits));
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes())
    hn::StoreU(hn::Shr(hn::LoadU(kWords, pieces + i), shift), kWords, words + i);
  for (; i < n; ++i) words[i] = pieces[i] >> (32 - bits);
}

void fill(const RandomSource& source, int bits, std::uint64_t first, std::int64_t n,
          std::uint32_t* words) {
  alignas(64) std::uint32_t buffer[4 * kGroups * hn::MaxLanes(Wides())];
  const Keys keys(source.seed);
  const std::int64_t pieces = bits <= 8 ? 16 : bits <= 16 ? 8 : 4;  // of a block
  const std::int64_t in_buffer = kGroups * static_cast<std::int64_t>(hn::Lanes(kWides)) * pieces;
  std::uint64_t block = first / static_cast<std::uint64_t>(pieces);
  auto skip = static_cast<std::int64_t>(first % static_cast<std::uint64_t>(pieces));
  while (n > 0) {
    blocks(source, keys, block, reinterpret_cast<std::uint8_t*>(buffer));
    const std::int64_t take_now = std::min(n, in_buffer - skip);
    if (bits <= 8) {
      widen(reinterpret_cast<const std::uint8_t*>(buffer) + skip, take_now, bits, words);
    } else if (bits <= 16) {
      widen(reinterpret_cast<const std::uint16_t*>(buffer) + skip, take_now, bits, words);
    } else {
      take(buffer + skip, take_now, bits, words);
    }
    words += take_now;
    n -= take_now;
    skip = 0;
    block += static_cast<std::uint64_t>(in_buffer / pieces);
  }
}

void fill_bytes(const RandomSource& source, std::uint64_t first, std::int64_t n,
                std::uint8_t* bytes) {
  alignas(64) std::uint8_t buffer[16 * kGroups * hn::MaxLanes(Wides())];
  const Keys keys(source.seed);
  constexpr std::int64_t kPieces = 16;
  const std::int64_t in_buffer = kGroups * static_cast<std::int64_t>(hn::Lanes(kWides)) * kPieces;
  std::uint64_t block = first / kPieces;
  auto skip = static_cast<std::int64_t>(first % kPieces);
  while (n > 0) {
    const std::int64_t now = std::min(n, in_buffer - skip);
    if (now == in_buffer) {
      blocks(source, keys, block, bytes);
    } else {
      blocks(source, keys, block, buffer);
      std::copy_n(buffer + skip, now, bytes);
    }
    bytes += now;
    n -= now;
    skip = 0;
    block += static_cast<std::uint64_t>(in_buffer / kPieces);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(fill);
HWY_EXPORT(fill_bytes);

void fill_random(const RandomSource& source, int bits, std::uint64_t first, std::int64_t n,
                 std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(fill)(source, bits, first, n, words);
}

void fill_random_bytes(const RandomSource& source, std::uint64_t first, std::int64_t n,
                       std::uint8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(fill_bytes)(source, first, n, bytes);
}

}  // namespace numemu::simd
#endif
