// Branch and bound over intervals of scales, by sums over sorted elements.
#include "formats/scaling/scale_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/analysis/scale_mse.hpp"

namespace numemu {
namespace {

// Below kFew std::sort, whose branches are predicted; below kSome four digits of 8 bits, whose
// tables are small; else three of 11.
constexpr std::size_t kFew = 128, kSome = 1024;

template <int kBits>
float* sort_by_digits(float* x, float* other, std::size_t n) {
  constexpr int kDigits = (31 + kBits - 1) / kBits;
  const auto digit_of = [](float v, int digit) {
    return std::bit_cast<std::uint32_t>(v) >> (digit * kBits) & ((1U << kBits) - 1);
  };
  std::array<std::array<std::size_t, std::size_t{1} << kBits>, kDigits> places{};
  for (std::size_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++places[static_cast<std::size_t>(d)][digit_of(x[i], d)];
  for (int d = 0; d < kDigits; ++d) {
    auto& place = places[static_cast<std::size_t>(d)];
    if (place[digit_of(x[0], d)] == n) continue;  // all have this digit
    std::size_t next = 0;
    for (std::size_t& p : place) {
      const std::size_t count = p;
      p = next;
      next += count;
    }
    for (std::size_t i = 0; i < n; ++i) other[place[digit_of(x[i], d)]++] = x[i];
    std::swap(x, other);
  }
  return x;
}

}  // namespace

float* sort_magnitudes(float* x, float* other, std::size_t n) {
  if (n >= kSome) return sort_by_digits<11>(x, other, n);
  if (n >= kFew) return sort_by_digits<8>(x, other, n);
  std::sort(x, x + n);
  return x;
}

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// Passing elements of an interval that is looked at piece by piece; more are cheaper to halve.
constexpr std::int64_t kFewPasses = 400;
/// Runs that a search may visit, for each element and in all: some hundred times what elements of 8
/// bits take, half a second at most. Grids of 16 bits have too many pieces to tell scales apart.
constexpr std::int64_t kRunsEach = 1024, kMostRuns = std::int64_t{1} << 22;

/// A squared error as a function of the scale: a + b s + c s^2.
struct Quadratic {
  double a = 0, b = 0, c = 0;

  /// `count` elements of one piece with these sums.
  void add(const ElementGrid& grid, std::size_t k, double count,
           const PrefixSums<float>::Moments& sums) {
    const double low = grid.low[k], high = grid.high[k];
    const double sign = low == high ? 1 : -1;  // between two ends the product is negative
    a += sign * sums.second;
    b -= sign * (low + high) * sums.first;
    c += sign * low * high * count;
  }
  Quadratic& operator+=(const Quadratic& o) {
    a += o.a;
    b += o.b;
    c += o.c;
    return *this;
  }
  double at(double s) const { return (c * s + b) * s + a; }
  /// Where the least value in [low, high] lies.
  double lowest(double low, double high) const {
    if (c > 0) return std::clamp(-b / (2 * c), low, high);
    return at(low) <= at(high) ? low : high;
  }
};

/// The magnitudes of one sign, ascending.
struct Magnitudes {
  const ElementGrid* grid = nullptr;
  std::span<const float> x;
  std::unique_ptr<float[]> arrays;  ///< x, and room to sort it
  PrefixSums<float> sums;

  /// The magnitudes of the elements that are wanted.
  template <class Wanted>
  void take(const float* from, std::int64_t n, const Wanted& wanted) {
    const auto most = static_cast<std::size_t>(n);
    arrays = std::make_unique_for_overwrite<float[]>(2 * most);
    float* const to = arrays.get();
    std::size_t count = 0;
    for (std::size_t i = 0; i < most; ++i) {  // without branches: signs and zeros are random
      to[count] = std::fabs(from[i]);
      count += wanted(from[i]) ? 1 : 0;
    }
    x = {sort_magnitudes(to, to + most, count), count};
    sums = {x.data(), count};
  }
  PrefixSums<float>::Moments between(std::size_t first, std::size_t last) const {
    return sums.between(x.data(), first, last);
  }
  std::size_t piece_from(std::size_t k, double v, double scale) const {
    return first_outside(k + 1, grid->size(),
                         [&](std::size_t i) { return grid->reaches(i, v, scale); }) -
           1;
  }
  /// visit(first, last, k, k_small) for every run of elements that lie in piece k under the scale
  /// `large` and in k_small >= k under `small`.
  template <class Visit>
  void for_each_run(double small, double large, const Visit& visit) const {
    std::size_t k = 0, k_small = 0;
    for (std::size_t i = 0; i < x.size();) {
      k = piece_from(k, x[i], large);
      k_small = piece_from(std::max(k, k_small), x[i], small);
      const bool top = k + 1 == grid->size(), top_small = k_small + 1 == grid->size();
      const std::size_t end = first_outside(i + 1, x.size(), [&](std::size_t j) {
        return (top || !grid->reaches(k + 1, x[j], large)) &&
               (top_small || !grid->reaches(k_small + 1, x[j], small));
      });
      visit(i, end, k, k_small);
      ++visited;
      i = end;
    }
  }
  mutable std::int64_t visited = 0;
};

/// Scales at which an element passes from a piece to the one below, and what that adds. At the
/// scale itself the element has passed unless the upper piece is closed: those come last, so that
/// what is summed before them is the error there. Under directed rounding no other scale may be as
/// good.
struct Pass {
  double at = 0;
  bool closed = false;
  Quadratic change;
  friend bool operator<(const Pass& p, const Pass& q) {
    return std::tie(p.at, p.closed, p.change.c, p.change.b) <
           std::tie(q.at, q.closed, q.change.c, q.change.b);
  }
};

struct Interval {
  double bound = 0;
  std::int64_t low = 0, high = 0;
  /// The most promising one on top of a heap.
  friend bool operator<(const Interval& p, const Interval& q) {
    return std::tie(p.bound, p.low) > std::tie(q.bound, q.low);
  }
};

class Search {
 public:
  Search(const ElementGrids& grids, const float* x, std::int64_t n, const ScaleCodes& codes)
      : codes_(codes), best_(codes.start) {
    magnitudes_[0].grid = &grids.positive;
    magnitudes_[1].grid = &grids.negative;
    const bool folds = grids.folds, zeros = !grids.keeps_zero;
    magnitudes_[0].take(
        x, n, [=](float v) { return ((v > 0) | (folds & (v < 0)) | (zeros & (v == 0))); });
    if (!folds) magnitudes_[1].take(x, n, [](float v) { return v < 0; });
    for (const Magnitudes& one : magnitudes_)
      if (!one.x.empty()) negligible_ += 0x1p-44 * one.between(0, one.x.size()).second;
  }

  std::int64_t run() {
    consider(codes_.start);
    if (dropped(0)) return best_;
    consider(codes_.lowest);
    consider(codes_.highest);
    consider_ends();
    open(codes_.lowest, codes_.highest);
    while (!heap_.empty() && !dropped(heap_.front().bound) && !spent()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Interval widest = heap_.back();
      heap_.pop_back();
      const std::int64_t middle = widest.low + (widest.high - widest.low) / 2;
      consider(middle);
      open(widest.low, middle);
      open(middle, widest.high);
    }
    return best_;
  }

 private:
  bool dropped(double bound) const {
    // Half the tolerance is left for the rounding of sums.
    return bound * (1 + kSearchTolerance / 2) >= least_ || least_ <= negligible_;
  }

  /// Counts alone decide, no clock: the same bits everywhere.
  bool spent() const {
    const auto elements =
        static_cast<std::int64_t>(magnitudes_[0].x.size() + magnitudes_[1].x.size());
    return magnitudes_[0].visited + magnitudes_[1].visited >
           std::min(kRunsEach * elements, kMostRuns);
  }

  double error(double scale) const {
    double sum = 0;
    for (const Magnitudes& one : magnitudes_)
      one.for_each_run(
          scale, scale, [&](std::size_t first, std::size_t last, std::size_t k, std::size_t) {
            Quadratic run;
            run.add(*one.grid, k, static_cast<double>(last - first), one.between(first, last));
            sum += std::max(0.0, run.at(scale));
          });
    return sum;
  }

  void consider(std::int64_t code) {
    const double scale = codes_.at(code);
    if (overflows(scale)) return;
    const double found = error(scale);
    if (!(found < least_)) return;
    least_ = found;
    best_ = code;
  }

  bool overflows(double scale) const {
    return std::any_of(magnitudes_.begin(), magnitudes_.end(), [&](const Magnitudes& one) {
      return !one.x.empty() && one.grid->overflows(one.x.back(), scale);
    });
  }

  /// The last code before each number of the grid leaves float32: the best one of a quadratic whose
  /// least value lies beyond.
  void consider_ends() {
    for (const Magnitudes& one : magnitudes_) {
      if (one.x.empty() || !one.grid->may_overflow(codes_.at(codes_.highest))) continue;
      for (std::size_t k = one.grid->size(); k-- > 0 && !spent();)
        if (one.grid->high[k] > 0)
          consider_around(kBeyondFloat32 / one.grid->high[k], codes_.lowest, codes_.highest);
    }
  }

  /// Bounds the codes between two that were considered, and settles them or keeps them for later.
  void open(std::int64_t low, std::int64_t high) {
    if (high - low <= 1) return;
    const double small = codes_.at(low), large = codes_.at(high);
    Quadratic fixed;
    double rest = 0;
    std::int64_t passes = 0;
    for (const Magnitudes& one : magnitudes_) {
      const ElementGrid& grid = *one.grid;
      one.for_each_run(
          small, large,
          [&](std::size_t first, std::size_t last, std::size_t k, std::size_t k_small) {
            const auto count = static_cast<double>(last - first);
            if (k == k_small) {
              fixed.add(grid, k, count, one.between(first, last));
              return;
            }
            passes += static_cast<std::int64_t>((last - first) * (k_small - k));
            if (k + 1 < k_small || grid.low[k] != grid.high[k] ||
                grid.low[k_small] != grid.high[k_small])
              return;  // a number of the grid may come to lie on the element
            // How far small to large times a number stays from all elements of the run.
            const auto apart = [&](double value) {
              const double a = small * value, b = large * value;
              return std::max(
                  {0.0, std::min(a, b) - one.x[last - 1], one.x[first] - std::max(a, b)});
            };
            const double least = std::min(apart(grid.low[k]), apart(grid.low[k_small]));
            rest += count * least * least;
          });
    }
    const double bound = fixed.at(fixed.lowest(small, large)) + rest;
    if (dropped(bound)) return;
    if (passes <= kFewPasses) return sweep(low, high, fixed);
    heap_.push_back({bound, low, high});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Every quadratic between two codes.
  void sweep(std::int64_t low, std::int64_t high, Quadratic error) {
    const double small = codes_.at(low), large = codes_.at(high);
    passes_.clear();
    for (const Magnitudes& one : magnitudes_) {
      const ElementGrid& grid = *one.grid;
      one.for_each_run(
          small, large,
          [&](std::size_t first, std::size_t last, std::size_t k, std::size_t k_small) {
            if (k == k_small) return;
            for (std::size_t i = first; i < last; ++i) {
              const double x = one.x[i];
              for (std::size_t p = k_small; p > k; --p) {
                Quadratic before, after;
                before.add(grid, p, 1, {x, x * x});
                after.add(grid, p - 1, 1, {x, x * x});
                passes_.push_back({x / grid.from[p],
                                   grid.closed[p] != 0,
                                   {after.a - before.a, after.b - before.b, after.c - before.c}});
              }
              error.add(grid, k_small, 1, {x, x * x});
            }
          });
    }
    std::sort(passes_.begin(), passes_.end());
    // First the best of all, so that few others remain to be considered.
    double promising = 0, promised = kNone;
    const auto each = [&](const auto& look) {
      Quadratic piece = error;
      double from = small;
      for (std::size_t i = 0; i <= passes_.size(); ++i) {
        const double to = i < passes_.size() ? std::clamp(passes_[i].at, from, large) : large;
        const bool between = i > 0 && i < passes_.size() && passes_[i - 1].at == passes_[i].at &&
                             passes_[i - 1].closed == passes_[i].closed;
        if (!between) look(piece, from, to);  // else no scale has this sum
        if (i < passes_.size()) piece += passes_[i].change;
        from = to;
      }
    };
    each([&](const Quadratic& piece, double from, double to) {
      const double at = piece.lowest(from, to), value = piece.at(at);
      if (!(value < promised)) return;
      promised = value;
      promising = at;
    });
    if (dropped(promised)) return;
    consider_around(promising, low, high);
    each([&](const Quadratic& piece, double from, double to) {
      const double at = piece.lowest(from, to);
      if (dropped(piece.at(at))) return;
      consider_around(at, low, high);
      if (piece.c > 0) return;  // else no code beside the lower end may lie in the piece
      if (!dropped(piece.at(from))) consider_around(from, low, high);
      if (!dropped(piece.at(to))) consider_around(to, low, high);
    });
  }

  /// The two codes around a scale, and the one before: a piece may end at a code that belongs to
  /// the next one.
  void consider_around(double scale, const std::int64_t lowest, std::int64_t high) {
    std::int64_t low = lowest;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (codes_.at(middle) <= scale ? low : high) = middle;
    }
    for (const std::int64_t code : {low - 1, low, high})
      if (code >= lowest) consider(code);
  }

  const ScaleCodes& codes_;
  std::array<Magnitudes, 2> magnitudes_;
  double negligible_ = 0, least_ = kNone;
  std::int64_t best_;
  std::vector<Interval> heap_;
  std::vector<Pass> passes_;
};

}  // namespace

std::int64_t least_error_code(const ElementGrids& grids, const float* x, std::int64_t n,
                              const ScaleCodes& codes) {
  return Search(grids, x, n, codes).run();
}

}  // namespace numemu
