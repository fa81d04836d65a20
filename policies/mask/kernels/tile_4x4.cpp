// All 90 masks of 4 x 4 tiles in vectors, one tile per lane, in fixed point with a proof per tile.
//
// Magnitudes are rounded to multiples of a unit, 2^-20 of the tile's largest binade, in whatever
// direction the host rounds, so the difference of two sums of eight is within 8 units of the true
// one. Where the best sum is more than 8 units above the second, it is the best; else the sums
// decide if none of the tile's magnitudes was rounded, and the reference if one was.
//
// The numbers of masks (tile_4x4.hpp) add up in the low eight bits of the sums, so that the
// largest of these is the best mask, the first of equals, and contains its number.
//
// The masks by what rows 0 and 1 leave to rows 2 and 3: with column counts (2, 2, 0, 0) one way
// each, 6 masks; (2, 1, 1, 0) two ways each, 12 x 4; (1, 1, 1, 1) six ways each, 36. Within such a
// class the best is the sum of the best.
#include "policies/mask/kernels/tile_4x4.hpp"

#include <algorithm>
#include <array>

#include "policies/mask/tile_mask.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/mask/kernels/tile_4x4.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "formats/simd/lanes-inl.hpp"

#ifndef NUMEMU_POLICIES_TILE_4X4
#define NUMEMU_POLICIES_TILE_4X4
namespace numemu::policies {
namespace {

using namespace tile_4x4;

// The two columns that are neither.
constexpr std::array<int, 2> others(int a, int b) {
  std::array<int, 2> columns{};
  int count = 0;
  for (int column = 0; column < kRows; ++column)
    if (column != a && column != b) columns[static_cast<std::size_t>(count++)] = column;
  return columns;
}

constexpr int kPlaceBits = 8;
static_assert(kPlaces <= 1 << kPlaceBits && place(0) < 1 << kPlaceBits);

// By place: all ones where kept.
struct alignas(64) Kept {
  std::uint32_t words[kTile];
};
struct alignas(16) KeptBytes {
  std::uint8_t bytes[kTile];
};
constexpr std::array<Kept, kPlaces> kKept = [] {
  std::array<Kept, kPlaces> kept{};
  for (const MaskAt& m : kMasks)
    for (int e = 0; e < kTile; ++e) kept[m.place].words[e] = (m.mask >> (15 - e) & 1) ? ~0U : 0;
  return kept;
}();
constexpr std::array<KeptBytes, kPlaces> kKeptBytes = [] {
  std::array<KeptBytes, kPlaces> kept{};
  for (const MaskAt& m : kMasks)
    for (int e = 0; e < kTile; ++e) kept[m.place].bytes[e] = m.mask >> (15 - e) & 1;
  return kept;
}();

// Two masks whose sums are this far apart are in the order of their true sums; the place makes up
// for less than one unit.
constexpr std::uint32_t kProof = (8 + 1) << kPlaceBits;

// The place of a mask that the reference found.
std::uint32_t place_of(Mask4x4 mask) {
  const auto* const at =
      std::find_if(kMasks.begin(), kMasks.end(), [&](const MaskAt& m) { return m.mask == mask; });
  return static_cast<std::uint32_t>(at->place);
}

}  // namespace
}  // namespace numemu::policies
#endif

HWY_BEFORE_NAMESPACE();
namespace numemu::policies {
namespace HWY_NAMESPACE {
using namespace simd::HWY_NAMESPACE;

using Word = WordVector;

#define NUMEMU_BLOCKS_OF_128 (HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE)

#if NUMEMU_BLOCKS_OF_128
// 4 x 4 words inside every 128 bits: v[k] gets element k of each of the four.
HWY_INLINE void transpose(Word v[4]) {
  const hn::Repartition<std::uint64_t, Words> wide;
  const auto a = hn::BitCast(wide, hn::InterleaveLower(kWords, v[0], v[1]));
  const auto b = hn::BitCast(wide, hn::InterleaveUpper(kWords, v[0], v[1]));
  const auto c = hn::BitCast(wide, hn::InterleaveLower(kWords, v[2], v[3]));
  const auto d = hn::BitCast(wide, hn::InterleaveUpper(kWords, v[2], v[3]));
  v[0] = hn::BitCast(kWords, hn::InterleaveLower(wide, a, c));
  v[1] = hn::BitCast(kWords, hn::InterleaveUpper(wide, a, c));
  v[2] = hn::BitCast(kWords, hn::InterleaveLower(wide, b, d));
  v[3] = hn::BitCast(kWords, hn::InterleaveUpper(wide, b, d));
}

// x[4 i + k]: row i of tiles k, k + 4, ... beside each other.
HWY_INLINE void load_rows(const std::uint32_t* tiles, Word x[kTile]) {
#if NUMEMU_AVX512
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t* tile = tiles + kTile * k;
    const __m512i t0 = _mm512_loadu_si512(tile), t1 = _mm512_loadu_si512(tile + 4 * kTile);
    const __m512i t2 = _mm512_loadu_si512(tile + 8 * kTile);
    const __m512i t3 = _mm512_loadu_si512(tile + 12 * kTile);
    const __m512i a = _mm512_shuffle_i32x4(t0, t1, 0x44), b = _mm512_shuffle_i32x4(t0, t1, 0xee);
    const __m512i c = _mm512_shuffle_i32x4(t2, t3, 0x44), d = _mm512_shuffle_i32x4(t2, t3, 0xee);
    x[k] = Word{_mm512_shuffle_i32x4(a, c, 0x88)};
    x[4 + k] = Word{_mm512_shuffle_i32x4(a, c, 0xdd)};
    x[8 + k] = Word{_mm512_shuffle_i32x4(b, d, 0x88)};
    x[12 + k] = Word{_mm512_shuffle_i32x4(b, d, 0xdd)};
  }
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<Words> half;
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) {
    const std::uint32_t* row = tiles + kTile * (i % 4) + i / 4 * 4;
    x[i] = hn::Combine(kWords, hn::LoadU(half, row + 4 * kTile), hn::LoadU(half, row));
  }
#else
  for (int i = 0; i < kTile; ++i) x[i] = hn::LoadU(kWords, tiles + kTile * (i % 4) + i / 4 * 4);
#endif
}
#endif

// x[e] = element e of every tile, as bits; lane t is tile t.
HWY_INLINE void load_tiles(const float* tiles, Word x[kTile]) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(tiles);
#if NUMEMU_BLOCKS_OF_128
  load_rows(words, x);
#pragma GCC unroll 4
  for (int row = 0; row < kRows; ++row) transpose(x + 4 * row);
#else
  alignas(64) std::uint32_t lane[hn::MaxLanes(Words())];
  for (int e = 0; e < kTile; ++e) {
    for (std::int64_t t = 0; t < lanes(); ++t) lane[t] = words[kTile * t + e];
    x[e] = hn::Load(kWords, lane);
  }
#endif
}

// The largest and the second largest of what was seen.
template <class V>
struct Top {
  V first, second;
};

template <class V>
HWY_INLINE Top<V> top_of(V a, V b) {
  return {hn::Max(a, b), hn::Min(a, b)};
}
template <class V>
HWY_INLINE Top<V> either(const Top<V>& a, const Top<V>& b) {
  return {hn::Max(a.first, b.first),
          hn::Max(hn::Min(a.first, b.first), hn::Max(a.second, b.second))};
}
// Of all sums of one of each: the second replaces the one or the other.
template <class V>
HWY_INLINE Top<V> sums(const Top<V>& a, const Top<V>& b) {
  return {hn::Add(a.first, b.first),
          hn::Max(hn::Add(a.first, b.second), hn::Add(a.second, b.first))};
}

// row[i][p]: the two elements that pair p keeps of row i, their places in the low bits.
template <class V>
using Rows = V[kRows][kPairs];

template <class V>
HWY_INLINE V upper(const Rows<V>& row, int p, int q) {
  return hn::Add(row[0][p], row[1][q]);
}
template <class V>
HWY_INLINE V lower(const Rows<V>& row, int r, int s) {
  return hn::Add(row[2][r], row[3][s]);
}

// Rows 0 and 1 keep the same columns, rows 2 and 3 the others.
template <class V>
HWY_INLINE V same(const Rows<V>& row, int p) {
  return hn::Add(upper(row, p, p), lower(row, 5 - p, 5 - p));
}

// Rows 0 and 1 keep every column once, so do rows 2 and 3.
template <class V>
HWY_INLINE Top<V> once_each(const Rows<V>& row) {
  const Top<V> above = either(top_of(upper(row, 0, 5), upper(row, 5, 0)),
                              either(top_of(upper(row, 1, 4), upper(row, 4, 1)),
                                     top_of(upper(row, 2, 3), upper(row, 3, 2))));
  const Top<V> below = either(top_of(lower(row, 0, 5), lower(row, 5, 0)),
                              either(top_of(lower(row, 1, 4), lower(row, 4, 1)),
                                     top_of(lower(row, 2, 3), lower(row, 3, 2))));
  return sums(above, below);
}

// Rows 0 and 1 keep column kTwice twice and kNever not at all, rows 2 and 3 the other way round.
template <int kTwice, int kNever, class V>
HWY_INLINE Top<V> one_twice(const Rows<V>& row) {
  constexpr auto kOthers = others(kTwice, kNever);
  constexpr int p = pair_of(kTwice, kOthers[0]), q = pair_of(kTwice, kOthers[1]);
  constexpr int r = pair_of(kNever, kOthers[0]), s = pair_of(kNever, kOthers[1]);
  return sums(top_of(upper(row, p, q), upper(row, q, p)),
              top_of(lower(row, r, s), lower(row, s, r)));
}

template <class V>
HWY_INLINE Top<V> best_masks(const Rows<V>& row) {
  // Three chains, so that none waits for itself.
  Top<V> a = once_each(row), b = top_of(same(row, 0), same(row, 1)),
         c = top_of(same(row, 2), same(row, 3));
  a = either(a, one_twice<0, 1>(row));
  b = either(b, one_twice<0, 2>(row));
  c = either(c, one_twice<0, 3>(row));
  a = either(a, one_twice<1, 0>(row));
  b = either(b, one_twice<1, 2>(row));
  c = either(c, one_twice<1, 3>(row));
  a = either(a, one_twice<2, 0>(row));
  b = either(b, one_twice<2, 1>(row));
  c = either(c, one_twice<2, 3>(row));
  a = either(a, one_twice<3, 0>(row));
  b = either(b, one_twice<3, 1>(row));
  c = either(c, one_twice<3, 2>(row));
  b = either(b, top_of(same(row, 4), same(row, 5)));
  return either(a, either(b, c));
}

// unit[e]: element e of every tile in units, times 2^kPlaceBits, plus its place.
template <class V>
HWY_INLINE Top<V> best_of_units(const V unit[kTile]) {
  Rows<V> row;
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p)
      row[i][p] = hn::Add(unit[4 * i + kPair[p][0]], unit[4 * i + kPair[p][1]]);
  return best_masks(row);
}

// Binades of the anchor above the largest magnitude, which is then below 2^20 units: sums of eight
// and the numbers below them have room in 32 bits.
constexpr int kAbove = 4;

// Places of the best masks of as many tiles as there are lanes; a one in `undecided` where the sums
// do not tell. Whether there is such a tile.
HWY_INLINE bool best_places(const float* tiles, std::uint32_t* places, std::uint32_t* undecided) {
  Word x[kTile];
  load_tiles(tiles, x);
  const Word magnitude = set(0x7fffffffU);
#pragma GCC unroll 16
  for (int e = 0; e < kTile; ++e) x[e] = hn::And(x[e], magnitude);
  Word largest = x[0];
#pragma GCC unroll 16
  for (int e = 1; e < kTile; ++e) largest = hn::Max(largest, x[e]);
  // Added to the anchor, a magnitude is rounded to a multiple of the anchor's ulp, its last bits.
  // Of the anchor's own bits one is left when places come in below, and none when two are added.
  const Word anchor = hn::Add(hn::And(largest, set(0x7f800000U)), set(std::uint32_t{kAbove} << 23));
  Word unit[kTile];
#pragma GCC unroll 16
  for (int e = 0; e < kTile; ++e) {
    const Word t = bits_of(hn::Add(float_of(x[e]), float_of(anchor)));
    unit[e] = hn::Or(hn::ShiftLeft<kPlaceBits>(t), set(static_cast<std::uint32_t>(place(e))));
  }
  const Top<Word> top = best_of_units(unit);
  const Word found =
      hn::And(hn::Sub(top.first, set(std::uint32_t{kFirstPlace})), set((1U << kPlaceBits) - 1));
  hn::StoreU(found, kWords, places);

  // 255 - kAbove: the anchor would be no number.
  const Word limit = set((std::uint32_t{255 - kAbove} << 23) - 1);
  const auto close = hn::Lt(hn::Sub(top.first, top.second), set(kProof));
  const auto beyond = hn::Gt(largest, limit);
  if (HWY_LIKELY(hn::AllFalse(kWords, hn::Or(close, beyond)))) return false;
  Word rounded = hn::Zero(kWords);
  for (int e = 0; e < kTile; ++e) {
    x[e] = hn::IfThenZeroElse(beyond, x[e]);  // subnormal differences cost a hundred cycles
    const FloatVector t = hn::Add(float_of(x[e]), float_of(anchor));
    rounded = hn::Or(rounded, hn::Xor(bits_of(hn::Sub(t, float_of(anchor))), x[e]));
  }
  const auto inexact = hn::Ne(rounded, hn::Zero(kWords));
  const auto unsure = hn::Or(beyond, hn::And(close, inexact));
  hn::StoreU(hn::IfThenElseZero(unsure, set(1U)), kWords, undecided);
  return !hn::AllFalse(kWords, unsure);
}

#if HWY_TARGET != HWY_SCALAR
using Doubles = hn::RepartitionToWide<Floats>;
using DoubleVector = hn::Vec<Doubles>;
constexpr Doubles kDoubles;

// What best_places() leaves open, in float64: the unit is 2^-39 of the largest finite binade, 2^-36
// beside infinities, which are more than all finite elements together, 2^40 units. Sums of eight
// and places stay below 2^52.
constexpr std::uint32_t kFine = 39, kFineBeside = 36;
constexpr double kSpecial = 0x1p40;

// a < b below 2^31, where the comparison of signed numbers, which every instruction set has, does.
HWY_INLINE auto below(Word a, Word b) {
  const hn::RebindToSigned<Words> integers;
  return hn::RebindMask(kWords, hn::Lt(hn::BitCast(integers, a), hn::BitCast(integers, b)));
}

// Elements that the reference, whose integers have 126 bits, does not see beside the tile's largest
// become zero: at least 126 binades below it, less the bits that it spares. Where an element lies
// 80 binades below and is not one of these, the tile is the reference's: `left`. From there on it
// sees every bit.
HWY_INLINE void drop_unseen(Word x[kTile], Word exponent, Word spare, Word* left) {
  const auto bits_from = [](Word field) HWY_ATTR {  // of the smallest number with that exponent
    return hn::IfThenElseZero(hn::Gt(field, set(1U)), hn::ShiftLeft<23>(field));
  };
  const auto less = [](Word a, Word b) HWY_ATTR { return hn::Sub(hn::Max(a, b), b); };
  const Word unseen = bits_from(less(hn::Add(exponent, spare), set(125U)));
  const Word seen = bits_from(less(exponent, set(79U)));
  Word open = hn::Zero(kWords);
  for (int e = 0; e < kTile; ++e) {
    x[e] = hn::IfThenZeroElse(below(x[e], unseen), x[e]);
    open = hn::Max(open, hn::IfThenElseZero(below(x[e], seen), x[e]));
  }
  *left = open;
}

// As many tiles as there are double lanes: element e is x[e], a unit 1 / scale, an infinity
// `special`.
template <class Half>
HWY_INLINE void best_places_half(const Half x[kTile], DoubleVector scale, DoubleVector special,
                                 std::uint64_t* places, std::uint64_t* undecided) {
  const DoubleVector magic = hn::Set(kDoubles, 0x1.8p52),
                     whole = hn::Set(kDoubles, 1 << kPlaceBits);
  DoubleVector unit[kTile], rounded = hn::Zero(kDoubles);
#pragma GCC unroll 16
  for (int e = 0; e < kTile; ++e) {
    const DoubleVector exact = hn::Min(hn::Mul(hn::PromoteTo(kDoubles, x[e]), scale), special);
    const DoubleVector units = hn::Sub(hn::Add(exact, magic), magic);
    rounded = hn::Or(rounded, hn::Xor(units, exact));
    unit[e] = hn::MulAdd(units, whole, hn::Set(kDoubles, place(e)));
  }
  const Top<DoubleVector> top = best_of_units(unit);
  const hn::RebindToUnsigned<Doubles> words;
  const DoubleVector number = hn::Add(top.first, hn::Set(kDoubles, 0x1p52 - kFirstPlace));
  hn::StoreU(hn::And(hn::BitCast(words, number), hn::Set(words, (1U << kPlaceBits) - 1)), words,
             places);
  const auto close = hn::Lt(hn::Sub(top.first, top.second), hn::Set(kDoubles, kProof));
  const auto inexact = hn::Ne(hn::BitCast(words, rounded), hn::Zero(words));
  const auto unsure = hn::And(hn::RebindMask(words, close), inexact);
  hn::StoreU(hn::IfThenElseZero(unsure, hn::Set(words, 1)), words, undecided);
}

HWY_INLINE void best_places_fine(const float* tiles, std::uint32_t* places) {
  Word x[kTile];
  load_tiles(tiles, x);
  const Word infinity = set(0x7f800000U);
  Word largest = hn::Zero(kWords), specials = largest, least = set(~0U);
  for (int e = 0; e < kTile; ++e) {
    x[e] = hn::Min(hn::And(x[e], set(0x7fffffffU)), infinity);
    largest = hn::Max(largest, hn::IfThenElseZero(below(x[e], infinity), x[e]));
    specials = hn::Max(specials, x[e]);
    least = hn::Min(least, hn::Sub(x[e], set(1U)));  // of those that are not zero
  }
  const auto has_specials = hn::Eq(specials, infinity);
  const Word exponent = hn::Max(hn::ShiftRight<23>(largest), set(1U));
  constexpr std::uint32_t kSpare = 10, kSpareBeside = 20;  // tile_mask.cpp
  Word left = hn::Zero(kWords);
  const Word above_least = hn::Add(hn::ShiftRight<23>(least), set(79U));
  if (HWY_UNLIKELY(!hn::AllFalse(kWords, below(above_least, exponent))))
    drop_unseen(x, exponent, hn::IfThenElse(has_specials, set(kSpareBeside), set(kSpare)), &left);

  // Fields of powers of two: 2^(fine + 127 - exponent), and what infinities are.
  const Word fine = hn::IfThenElse(has_specials, set(kFineBeside), set(kFine));
  const Word scale = hn::Sub(hn::Add(fine, set(1023U + 127)), exponent);
  const hn::RebindToUnsigned<Doubles> wide;
  const hn::Half<Words> half_words;
  const hn::Half<Floats> half;
  alignas(64) std::uint64_t found[hn::MaxLanes(Words())], unsure[hn::MaxLanes(Words())];
  const std::int64_t n = lanes() / 2;
  const auto run = [&](auto half_of, std::int64_t first) HWY_ATTR {
    hn::Vec<hn::Half<Floats>> part[kTile];
#pragma GCC unroll 16
    for (int e = 0; e < kTile; ++e) part[e] = hn::BitCast(half, half_of(x[e]));
    const auto power = [&](auto field) HWY_ATTR {
      return hn::BitCast(kDoubles, hn::ShiftLeft<52>(hn::PromoteTo(wide, field)));
    };
    best_places_half(part, power(half_of(scale)), hn::Set(kDoubles, kSpecial), found + first,
                     unsure + first);
  };
  run([&](Word v) HWY_ATTR { return hn::LowerHalf(half_words, v); }, 0);
  run([&](Word v) HWY_ATTR { return hn::UpperHalf(half_words, v); }, n);
  alignas(64) std::uint32_t lefts[hn::MaxLanes(Words())];
  hn::Store(left, kWords, lefts);
  for (std::int64_t t = 0; t < lanes(); ++t) {
    const bool open = lefts[t] != 0 || unsure[t] != 0;
    places[t] = open ? place_of(best_4x4(tiles + kTile * t)) : static_cast<std::uint32_t>(found[t]);
  }
}
#else
HWY_INLINE void best_places_fine(const float* tiles, std::uint32_t* places) {
  places[0] = place_of(best_4x4(tiles));
}
#endif

HWY_INLINE void write_tiles(const float* x, const std::uint32_t* places, std::int64_t count,
                            float* y, std::uint8_t* keep) {
  if (y != nullptr)
    for (std::int64_t t = 0; t < count; ++t) {
      const Kept& kept = kKept[places[t]];
      for (std::int64_t e = 0; e < kTile; e += lanes()) {
        const FloatVector value = hn::LoadU(kFloats, x + kTile * t + e);
        hn::StoreU(hn::And(value, float_of(hn::Load(kWords, kept.words + e))), kFloats,
                   y + kTile * t + e);
      }
    }
  if (keep != nullptr)
    for (std::int64_t t = 0; t < count; ++t)
      std::copy_n(kKeptBytes[places[t]].bytes, kTile, keep + kTile * t);
}

// Tiles at a time: those that the coarse sums leave open fill whole vectors of the fine ones.
constexpr std::int64_t kBatch = 64;

/// places of `count` <= kBatch tiles, with room for whole vectors beyond. `mostly_open`: the coarse
/// sums decided few tiles of the last batches and are not tried. `copy`: tiles that fill no vector.
void find_places(const float* x, std::int64_t count, std::uint32_t* places, float* copy,
                 bool& mostly_open) {
  constexpr std::size_t kMost = hn::MaxLanes(Words());
  if (mostly_open) {
    for (std::int64_t t = 0; t < count; t += lanes()) {
      const std::int64_t now = std::min(lanes(), count - t);
      if (now < lanes()) std::copy_n(x + kTile * t, kTile * now, copy);
      best_places_fine(now < lanes() ? copy : x + kTile * t, places + t);
    }
    return;
  }
  alignas(64) std::uint32_t undecided[kMost];
  std::int64_t open[kBatch], found = 0;
  for (std::int64_t t = 0; t < count; t += lanes()) {
    const std::int64_t now = std::min(lanes(), count - t);
    if (now < lanes()) std::copy_n(x + kTile * t, kTile * now, copy);
    if (!best_places(now < lanes() ? copy : x + kTile * t, places + t, undecided)) continue;
    for (std::int64_t i = 0; i < now; ++i)
      if (undecided[i] != 0) open[found++] = t + i;
  }
  mostly_open = found > count / 2;
  alignas(64) std::uint32_t fine[kMost];
  for (std::int64_t o = 0; o < found; o += lanes()) {
    const std::int64_t now = std::min(lanes(), found - o);
    for (std::int64_t i = 0; i < now; ++i)
      std::copy_n(x + kTile * open[o + i], kTile, copy + kTile * i);
    best_places_fine(copy, fine);
    for (std::int64_t i = 0; i < now; ++i) places[open[o + i]] = fine[i];
  }
}

void keep_tiles(const float* x, std::int64_t count, float* y, std::uint8_t* keep) {
  constexpr std::int64_t kTryAgain = 16;  // batches
  alignas(64) std::uint32_t places[kBatch + hn::MaxLanes(Words())];
  alignas(64) float copy[kTile * hn::MaxLanes(Words())] = {};
  bool mostly_open = false;
  std::int64_t batch = 0;
  for (std::int64_t t = 0; t < count; t += kBatch, ++batch) {
    const std::int64_t now = std::min(kBatch, count - t);
    if (batch % kTryAgain == 0) mostly_open = false;
    find_places(x + kTile * t, now, places, copy, mostly_open);
    write_tiles(x + kTile * t, places, now, y == nullptr ? nullptr : y + kTile * t,
                keep == nullptr ? nullptr : keep + kTile * t);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::policies
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::policies {

namespace {

// [kPairs p + q]: what pair p keeps of the first row and pair q of the second.
template <class Cost>
std::array<Cost, kPairs * kPairs> two_rows(const Cost* first, const Cost* second) {
  std::array<Cost, kPairs * kPairs> sums;
  for (int p = 0; p < kPairs; ++p)
    for (int q = 0; q < kPairs; ++q)
      sums[kPairs * p + q] =
          (first[kPair[p][0]] + first[kPair[p][1]]) + (second[kPair[q][0]] + second[kPair[q][1]]);
  return sums;
}

template <class Cost>
Mask4x4 best_mask(const Cost* costs) {
  const auto upper = two_rows(costs, costs + kRows), lower = two_rows(costs + 8, costs + 12);
  Cost best = -1;
  Mask4x4 at = 0;
  for (const MaskAt& m : kMasks) {  // the largest bit string first
    const Cost sum = upper[m.upper] + lower[m.lower];
    at = sum > best ? m.mask : at;
    best = sum > best ? sum : best;
  }
  return at;
}

}  // namespace

Mask4x4 best_4x4(const float* x) {
  const TileUnit unit = tile_unit(x, kTile);
  if (unit.narrow) {
    std::int64_t costs[kTile];
    tile_costs(unit, x, kTile, costs);
    return best_mask(costs);
  }
  Wide costs[kTile];
  tile_costs(unit, x, kTile, costs);
  return best_mask(costs);
}

HWY_EXPORT(keep_tiles);

void keep_4x4(const float* x, std::int64_t count, float* y, std::uint8_t* keep) {
  HWY_DYNAMIC_DISPATCH(keep_tiles)(x, count, y, keep);
}

}  // namespace numemu::policies
#endif
