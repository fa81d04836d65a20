// The random numbers of a register block, step by step: Philox4x32-10 in vectors; per Highway
// target.
//
// Output (i, j) of step k reads piece (e mod P) of the block at counter (e / P, k, tensor,
// `accumulate`), e = i N + j (docs/random.md). A row of a register block reads neighbouring pieces,
// so the first counter words of its blocks are the same in every step.
#if defined(NUMEMU_MAC_RANDOM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_MAC_RANDOM_INL
#undef NUMEMU_MAC_RANDOM_INL
#else
#define NUMEMU_MAC_RANDOM_INL
#endif

#include <algorithm>

#include "emu/unit/mac/block-inl.hpp"
#include "formats/random.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Philox blocks of the steps k, k + 1, ... k + kStreams - 1 at once: enough to hide the latency of
/// the multiplications.
constexpr int kStreams = 4;

#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kCounters = 1;

inline void PhiloxGroup(const RandomSource& source, const std::uint64_t* first, std::uint32_t k,
                        std::uint32_t* to, std::int64_t to_step) {
  for (int s = 0; s < kStreams; ++s) {
    const PhiloxBlock block =
        philox(source.seed, {static_cast<std::uint32_t>(*first), k + static_cast<unsigned>(s),
                             source.tensor, static_cast<std::uint32_t>(source.stream)});
    std::copy(block.begin(), block.end(), to + s * to_step);
  }
}
#else
using Wide = hn::ScalableTag<std::uint64_t>;
using Words = hn::Repartition<std::uint32_t, Wide>;
constexpr std::int64_t kCounters = static_cast<std::int64_t>(hn::MaxLanes(Wide()));

/// Counter words in the low halves of 64-bit lanes, where the widening multiplication reads them;
/// the high halves hold what happens to be there.
struct Counters {
  using V = hn::Vec<Words>;
  V c0, c1, c2, c3;

  static HWY_INLINE V Mix(V x, V y, std::uint32_t key) {
    const Words words;
#if NUMEMU_MAC_AVX512
    return V{_mm512_ternarylogic_epi32(x.raw, y.raw, hn::Set(words, key).raw, 0x96)};
#else
    return hn::Xor(x, hn::Xor(y, hn::Set(words, key)));
#endif
  }
  HWY_INLINE void Round(std::uint32_t key0, std::uint32_t key1) {
    const Words words;
    const auto product0 = hn::MulEven(c0, hn::Set(words, 0xD2511F53u));
    const auto product1 = hn::MulEven(c2, hn::Set(words, 0xCD9E8D57u));
    c0 = Mix(hn::BitCast(words, hn::ShiftRight<32>(product1)), c1, key0);
    c2 = Mix(hn::BitCast(words, hn::ShiftRight<32>(product0)), c3, key1);
    c1 = hn::BitCast(words, product1);
    c3 = hn::BitCast(words, product0);
  }
  /// Block b to to[4 b .. 4 b + 3], where lanes 2 b hold blocks b < n / 2 and lanes 2 b + 1 the
  /// others.
  HWY_INLINE void Store(std::uint32_t* to) const {
    const Wide wide;
    const Words words;
    const auto joined = [&](V low, V high) HWY_ATTR {
      const V up = hn::BitCast(words, hn::ShiftLeft<32>(hn::BitCast(wide, high)));
      return hn::BitCast(wide, hn::OddEven(up, low));
    };
    const auto low = joined(c0, c1), high = joined(c2, c3);
    hn::Store(hn::BitCast(words, hn::InterleaveLower(wide, low, high)), words, to);
    hn::Store(hn::BitCast(words, hn::InterleaveUpper(wide, low, high)), words,
              to + hn::Lanes(words));
  }
};

/// The blocks of kCounters first counter words (in the order Counters::Store undoes) for kStreams
/// steps, to_step words apart.
HWY_INLINE void PhiloxGroup(const RandomSource& source, const std::uint64_t* first, std::uint32_t k,
                            std::uint32_t* to, std::int64_t to_step) {
  const Wide wide;
  const Words words;
  const auto c0 = hn::BitCast(words, hn::Load(wide, first));
  const auto start = [&](unsigned s) HWY_ATTR {
    return Counters{c0, hn::Set(words, k + s), hn::Set(words, source.tensor),
                    hn::Set(words, static_cast<std::uint32_t>(source.stream))};
  };
  Counters a = start(0), b = start(1), c = start(2), e = start(3);
  auto key0 = static_cast<std::uint32_t>(source.seed);
  auto key1 = static_cast<std::uint32_t>(source.seed >> 32);
  constexpr int kRounds = 10;
  for (int r = 0; r < kRounds; ++r) {
    a.Round(key0, key1);
    b.Round(key0, key1);
    c.Round(key0, key1);
    e.Round(key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  a.Store(to);
  b.Store(to + to_step);
  c.Store(to + 2 * to_step);
  e.Store(to + 3 * to_step);
}
#endif

/// to[i] = 2^-M (1 + r 2^-n), or with (r + 1/2), r the top n bits of pieces[i].
template <class T, class Piece>
HWY_INLINE void Uniform(const Constants<T>& c, const Piece* pieces, std::int64_t count, T* to) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<Piece, decltype(d)> narrow;
  using Word = hn::TFromD<decltype(words)>;
  constexpr int kTop = Constants<T>::kTop, kPiece = 8 * static_cast<int>(sizeof(Piece));
  const auto mask = hn::Set(words, c.random_mask), base = hn::Set(words, c.random_base);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto piece = hn::LoadU(narrow, pieces + i);
    auto word = hn::Zero(words);
    if constexpr (sizeof(Piece) == sizeof(Word)) {
      word = piece;
    } else if constexpr (sizeof(Piece) == 1 && sizeof(Word) == 8) {
      word = hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<std::uint32_t, decltype(d)>(), piece));
    } else if constexpr (sizeof(Piece) == 2 && sizeof(Word) == 8) {
      word = hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<std::uint32_t, decltype(d)>(), piece));
    } else {
      word = hn::PromoteTo(words, piece);
    }
    if constexpr (kTop >= kPiece) {
      word = hn::ShiftLeft<kTop - kPiece>(word);
    } else {
      word = hn::ShiftRight<kPiece - kTop>(word);
    }
    hn::Store(hn::BitCast(d, hn::Or(hn::And(word, mask), base)), d, to + i);
  }
}

/// The random numbers of one register block.
template <class T>
class BlockRandom {
 public:
  /// Steps one fill() can make: their numbers stay in the first-level cache.
  static constexpr std::int64_t kSteps = 16;
  static_assert(kSteps % kStreams == 0);

  BlockRandom(const Plan& plan, const Constants<T>& constants, const RandomSource& source)
      : constants_(constants),
        source_(source),
        piece_bytes_(plan.random_bits <= 8    ? 1
                     : plan.random_bits <= 16 ? 2
                                              : 4) {}

  /// Outputs (row + i, lane + j) of a product with n columns.
  void place(std::int64_t row, std::int64_t lane, std::int64_t n) {
    const std::int64_t pieces = 16 / piece_bytes_, width = BlockWidth<T>();
    std::uint64_t ordered[kMaxCounters];
    blocks_ = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int64_t element = (row + i) * n + lane;
      begin_[i] = blocks_ * 16 + element % pieces * piece_bytes_;
      for (std::int64_t e = element / pieces; e <= (element + width - 1) / pieces; ++e)
        ordered[blocks_++] = static_cast<std::uint64_t>(e);
    }
    for (; blocks_ % kCounters != 0; ++blocks_) ordered[blocks_] = 0;
    constexpr std::int64_t kHalf = std::max<std::int64_t>(kCounters / 2, 1);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      const std::int64_t in_group = b % kCounters;
      const std::int64_t lane_of_b = in_group % kHalf * 2 + in_group / kHalf;
      counters_[b - in_group + (kCounters == 1 ? 0 : lane_of_b)] = ordered[b];
    }
  }

  /// The numbers of steps [k, k + count), count <= kSteps, as MultiplyBlock reads them.
  const T* fill(std::int64_t k, std::int64_t count) {
    const std::int64_t width = BlockWidth<T>();
    for (std::int64_t s = 0; s < count; s += kStreams) {
      for (std::int64_t b = 0; b < blocks_; b += kCounters)
        PhiloxGroup(source_, counters_ + b, static_cast<std::uint32_t>(k + s), raw_ + 4 * b,
                    kMaxWords);
      for (std::int64_t step = 0; step < std::min<std::int64_t>(kStreams, count - s); ++step) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(raw_ + step * kMaxWords);
        T* to = numbers_ + (s + step) * kRows * width;
        for (std::int64_t i = 0; i < kRows; ++i) expand(bytes + begin_[i], width, to + i * width);
      }
    }
    return numbers_;
  }

 private:
  static constexpr std::int64_t kMaxWidth =
      kVectors * static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  /// Four-byte pieces, every row beginning inside a block, up to whole groups.
  static constexpr std::int64_t kMaxCounters = kRows * (kMaxWidth / 4 + 2) + kCounters;
  static constexpr std::int64_t kMaxWords = (4 * kMaxCounters + 15) / 16 * 16;

  void expand(const std::uint8_t* pieces, std::int64_t count, T* to) const {
    if (piece_bytes_ == 1) {
      Uniform(constants_, pieces, count, to);
    } else if (piece_bytes_ == 2) {
      Uniform(constants_, reinterpret_cast<const std::uint16_t*>(pieces), count, to);
    } else {
      Uniform(constants_, reinterpret_cast<const std::uint32_t*>(pieces), count, to);
    }
  }

  const Constants<T>& constants_;
  RandomSource source_;
  std::int64_t piece_bytes_, blocks_ = 0, begin_[kRows] = {};
  alignas(64) std::uint64_t counters_[kMaxCounters] = {};
  alignas(64) std::uint32_t raw_[kStreams * kMaxWords] = {};
  alignas(64) T numbers_[kSteps * kRows * kMaxWidth] = {};
};

}  // namespace numemu::unit::mac::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_MAC_RANDOM_INL
