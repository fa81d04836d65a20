// The register block of rounded multiply-adds: rows by two vectors; once per Highway target.
#if defined(NUMEMU_MAC_BLOCK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_MAC_BLOCK_INL
#undef NUMEMU_MAC_BLOCK_INL
#else
#define NUMEMU_MAC_BLOCK_INL
#endif

#include "emu/unit/mac/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::mac::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kVectors = 2;
/// Eight chains (four rows) keep two ports busy where a step is long; the shortest step (`plain`)
/// takes sixteen, where there are registers for them. SSE4, for machines from before 2013, has one
/// row, two chains: slower there, but this file compiles in a tenth less time for everyone.
constexpr std::int64_t kRows = HWY_TARGET == HWY_SSE4 ? 1 : 4;
constexpr std::int64_t kTallRows = NUMEMU_MAC_AVX512 || HWY_TARGET == HWY_NEON ? 8 : 4;

template <class T>
std::int64_t BlockWidth() {
  return kVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

template <class D, class T = hn::TFromD<D>, class V = hn::Vec<D>>
HWY_INLINE Pair<V> LoadPair(D d, const T* from) {
  return {hn::Load(d, from), hn::Load(d, from + hn::Lanes(d))};
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void StorePair(D d, const Pair<V>& from, hn::TFromD<D>* to) {
  hn::Store(from.first, d, to);
  hn::Store(from.second, d, to + hn::Lanes(d));
}

/// The sums of a block's rows; recursion keeps every one in a register.
template <class D, std::int64_t kCount>
struct Sums {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  Pair<V> row;
  Sums<D, kCount - 1> rest;

  HWY_INLINE void LoadFrom(D d, const T* sums) {
    row = LoadPair(d, sums);
    rest.LoadFrom(d, sums + kVectors * hn::Lanes(d));
  }
  template <Rule kRule, Ends kEnds>
  HWY_INLINE void MulAdd(D d, const Numbers<D>& c, const T* rows, const Pair<V>& b,
                         const T* random) {
    Step<kRule, kEnds>(d, c, hn::Set(d, rows[0]), b, row, random);
    rest.template MulAdd<kRule, kEnds>(d, c, rows + 1, b, random + kVectors * hn::Lanes(d));
  }
  HWY_INLINE void StoreTo(D d, T* sums) const {
    StorePair(d, row, sums);
    rest.StoreTo(d, sums + kVectors * hn::Lanes(d));
  }
};

template <class D>
struct Sums<D, 0> {
  using T = hn::TFromD<D>;
  HWY_INLINE void LoadFrom(D, const T*) {}
  template <Rule kRule, Ends kEnds>
  HWY_INLINE void MulAdd(D, const Numbers<D>&, const T*, const Pair<hn::Vec<D>>&, const T*) {}
  HWY_INLINE void StoreTo(D, T*) const {}
};

/// sums[i][j] <- the chain over k of rows[k * kCount + i] * lanes[k * width + j] from sums[i][j];
/// random[k][i][j]: its random number.
template <class T, Rule kRule, Ends kEnds, std::int64_t kCount>
HWY_NOINLINE void MultiplyBlock(const Constants<T>& constants, const T* HWY_RESTRICT rows,
                                const T* HWY_RESTRICT lanes, std::int64_t k_count,
                                const T* HWY_RESTRICT random, T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  const Numbers<hn::ScalableTag<T>> numbers(d, constants);
  const std::int64_t width = BlockWidth<T>();
  Sums<hn::ScalableTag<T>, kCount> block;
  block.LoadFrom(d, sums);
  for (std::int64_t k = 0; k < k_count; ++k) {
    block.template MulAdd<kRule, kEnds>(d, numbers, rows, LoadPair(d, lanes), random);
    rows += kCount;
    lanes += width;
    random += kCount * width;
  }
  block.StoreTo(d, sums);
}

/// sums[i][j] <- the register after sums[i][j] + parts[i][j].
template <class T, Rule kRule, Ends kEnds>
HWY_NOINLINE void AddBlock(const Constants<T>& constants, std::int64_t rows,
                           const T* HWY_RESTRICT parts, const T* HWY_RESTRICT random,
                           T* HWY_RESTRICT sums) {
  const std::int64_t width = BlockWidth<T>();
  if constexpr (kRows == 1) {
    // A row is a block, and the sum one step with the factor 1: no second loop is compiled.
    const T one = 1;
    for (std::int64_t i = 0; i < rows * width; i += width)
      MultiplyBlock<T, kRule, kEnds, 1>(constants, &one, parts + i, 1, random + i, sums + i);
  } else {
    const hn::ScalableTag<T> d;
    const Numbers<hn::ScalableTag<T>> numbers(d, constants);
    const auto one = hn::Set(d, T{1});
    for (std::int64_t i = 0; i < rows * width; i += width) {
      auto sum = LoadPair(d, sums + i);
      Step<kRule, kEnds>(d, numbers, one, LoadPair(d, parts + i), sum, random + i);
      StorePair(d, sum, sums + i);
    }
  }
}

template <class T>
struct BlockFunctions {
  std::int64_t rows = 0;
  void (*multiply)(const Constants<T>&, const T*, const T*, std::int64_t, const T*, T*) = nullptr;
  void (*add)(const Constants<T>&, std::int64_t, const T*, const T*, T*) = nullptr;
};

template <class T, Rule kRule, Ends kEnds, std::int64_t kCount = kRows>
constexpr BlockFunctions<T> kBlock = {kCount, &MultiplyBlock<T, kRule, kEnds, kCount>,
                                      &AddBlock<T, kRule, kEnds>};

template <class T, Ends kEnds>
BlockFunctions<T> BlockOf(Rule rule, std::int64_t rows) {
  switch (rule) {
    case Rule::none:
      break;  // of two's complement, below
    case Rule::plain:
      if constexpr (sizeof(T) == sizeof(float)) {
        return rows > kRows ? kBlock<T, Rule::plain, kEnds, kTallRows>
                            : kBlock<T, Rule::plain, kEnds>;
      }
      break;
    case Rule::even:
      return kBlock<T, Rule::even, kEnds>;
    case Rule::away:
      return kBlock<T, Rule::away, kEnds>;
    case Rule::zero:
      return kBlock<T, Rule::zero, kEnds>;
    case Rule::up:
      return kBlock<T, Rule::up, kEnds>;
    case Rule::down:
      return kBlock<T, Rule::down, kEnds>;
    case Rule::odd:
      return kBlock<T, Rule::odd, kEnds>;
    case Rule::random_cut:
      return kBlock<T, Rule::random_cut, kEnds>;
    case Rule::random_even:
      return kBlock<T, Rule::random_even, kEnds>;
    case Rule::random_odd:
      return kBlock<T, Rule::random_odd, kEnds>;
  }
  return {};
}

/// The functions of a plan for lanes of T and a tile of so many rows. Plans for double lanes always
/// guard; two's complement is rounded in double lanes only, and there saturation is one more case
/// of wrapping.
template <class T>
BlockFunctions<T> BlockOf(const Plan& plan, std::int64_t rows) {
  if (plan.rule == Rule::none) {
    return plan.ends == Ends::clamped ? kBlock<T, Rule::none, Ends::clamped>
                                      : kBlock<T, Rule::none, Ends::wrapped>;
  }
  if (plan.ends == Ends::guarded) return BlockOf<T, Ends::guarded>(plan.rule, rows);
  constexpr Ends kOther = sizeof(T) == sizeof(float) ? Ends::free : Ends::wrapped;
  return BlockOf<T, kOther>(plan.rule, rows);
}

}  // namespace numemu::unit::mac::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_MAC_BLOCK_INL
