// Scale rule mse(exact): of all scales that the scale format has the one with the least squared
// error.
#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codec.hpp"
#include "formats/scaling/element_grid.hpp"
#include "formats/scaling/scale_exponent.hpp"
#include "formats/scaling/scale_search.hpp"
#include "formats/simd/block_scales.hpp"

namespace numemu {
namespace {

constexpr int kFewBits = 8;  // of a scale format: every code that may be the best is tried

/// The elements of a block, and what its scale has to reach.
class Sample {
 public:
  Sample(const ElementGrids& grids, Overflow overflow, const float* x, std::int64_t n)
      : grids_(grids), clips_(overflow == Overflow::saturate), x_(x), n_(n) {
    const simd::FiniteRange range = simd::finite_range(x, n);
    highest_ = std::max(0.0f, range.high);
    lowest_ = std::min(0.0f, range.low);
  }

  /// The error, or that of the first elements where it reaches `enough`: their terms and sums never
  /// exceed those of all.
  double error(double step, double enough) const {
    constexpr std::int64_t kFirst = 64, kMore = 4;
    std::int64_t n = std::min(n_, kFirst);
    double error = squared_error(grids_.line, x_, n, step).sum;
    while (n < n_ && !(error >= enough)) {
      n = std::min(n_, kMore * n);
      error = squared_error(grids_.line, x_, n, step).sum;
    }
    return error;
  }
  const ElementGrids& grids() const { return grids_; }
  const float* x() const { return x_; }
  std::int64_t size() const { return n_; }

  /// No element lies beyond the largest of its sign. Negative elements of unsigned formats never
  /// fit, for any scale.
  bool fits(double step) const {
    const double top = grids_.line.high.back(), bottom = grids_.line.low.front();
    return top * step >= highest_ && (bottom >= 0 || bottom * step <= lowest_);
  }
  /// An element becomes infinite in float32: no error is as large.
  bool overflows(double step) const {
    return grids_.positive.overflows(highest_, step) || grids_.negative.overflows(-lowest_, step);
  }
  bool may_overflow(double step) const {
    return grids_.positive.may_overflow(step) || grids_.negative.may_overflow(step);
  }
  /// The error of the largest elements alone, of each sign: the error is never less. It falls as
  /// the step grows.
  double beyond(double step) const {
    const double up = std::max(0.0, highest_ - grids_.line.high.back() * step);
    const double down = std::max(0.0, grids_.line.low.front() * step - lowest_);
    return (up * up + down * down) * (1 - 0x1p-50);  // whatever rounds, not above
  }
  /// Larger steps may be less wrong only where infinities are the price of clipping, or clipping
  /// costs less than `error`.
  bool too_small(double step, double error) const {
    return clips_ ? beyond(step) > error : !fits(step);
  }
  /// No larger step has less error: nothing saturates under half of this one, or everything lies in
  /// the pieces next to zero.
  bool large_enough(double step) const {
    if (grids_.doubles) return fits(step / 2);
    const auto within = [&](const ElementGrid& half, double amax) {
      return half.size() < 2 || half.from[1] * step >= amax;
    };
    return within(grids_.positive, highest_) && within(grids_.negative, -lowest_);
  }

 private:
  const ElementGrids& grids_;
  bool clips_;
  const float* x_;
  std::int64_t n_;
  double lowest_ = 0, highest_ = 0;
};

/// The best of the codes from `lowest` to `highest`: from `start` down while something may be
/// gained, ties to the larger, then up, ties to the smaller.
template <class StepOf>
std::int64_t best_of_all(const Sample& sample, std::int64_t lowest, std::int64_t start,
                         std::int64_t highest, const StepOf& step_of) {
  LeastOfCodes least(sample.grids().line, sample.x(), sample.size());
  const auto consider = [&](std::int64_t code) {
    if (!sample.overflows(step_of(code))) least.consider(code, step_of(code));
  };
  while (start < highest && sample.too_small(step_of(start), HUGE_VAL)) ++start;
  consider(start);
  for (std::int64_t code = start - 1; code >= lowest; --code) {
    if (sample.too_small(step_of(code), least.at_most())) break;
    consider(code);
  }
  for (std::int64_t code = start + 1; code <= highest; ++code) consider(code);
  return std::isfinite(least.at_most()) ? least.code() : start;
}

/// The first code in [lowest, highest] of which something holds that holds of all above; `highest`
/// where it holds of none.
template <class Predicate>
std::int64_t first_code(std::int64_t lowest, std::int64_t highest, const Predicate& holds) {
  while (lowest < highest) {
    const std::int64_t middle = lowest + (highest - lowest) / 2;
    if (holds(middle)) {
      highest = middle;
    } else {
      lowest = middle + 1;
    }
  }
  return lowest;
}

/// The last code that may be the best, of those from `start` to `largest`: the first under which
/// `enough` holds; `largest` where elements may become infinite, so that half a scale may be worse.
template <class StepOf, class Enough>
std::int64_t last_code(const Sample& sample, std::int64_t start, std::int64_t largest,
                       const StepOf& step_of, const Enough& enough) {
  const std::int64_t last =
      first_code(start, largest, [&](std::int64_t code) { return enough(step_of(code)); });
  return sample.may_overflow(step_of(last)) ? largest : last;
}

/// The positive codes of a scale format, and what an element is divided by.
struct Codes {
  const Format& format;
  double unit;  ///< tensor scale and element exponent

  double step(std::int64_t code) const {
    if (format.bits == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(code)) * unit;
    return to_double(decode(format, static_cast<std::uint64_t>(code))) * unit;
  }
};

std::int64_t best_real(const Sample& sample, const Codes& codes, std::int64_t start) {
  const auto largest = static_cast<std::int64_t>(codes.format.largest_code());
  // The half of a scale is one too, above the subnormal numbers.
  const double halves = 2 * smallest_normal(codes.format) * codes.unit;
  const auto step_of = [&](std::int64_t code) { return codes.step(code); };
  const std::int64_t highest = last_code(sample, start, largest, step_of, [&](double step) {
    return step >= halves && sample.large_enough(step);
  });
  if (codes.format.bits <= kFewBits) return best_of_all(sample, 1, start, highest, step_of);
  // Under the least scale nothing becomes infinite.
  const std::int64_t finite = sample.overflows(codes.step(start)) ? 1 : start;
  // No scale is too small where the error is at least what the largest elements alone lose under
  // the least scale.
  const double error = sample.error(codes.step(finite), sample.beyond(codes.step(1)));
  ScaleCodes search;
  search.lowest = first_code(
      1, highest, [&](std::int64_t code) { return !sample.too_small(codes.step(code), error); });
  search.start = std::max(start, search.lowest);
  search.highest = highest;
  search.format = &codes;
  search.factor = [](const void* format, std::int64_t code) {
    return static_cast<const Codes*>(format)->step(code);
  };
  return least_error_code(sample.grids(), sample.x(), sample.size(), search);
}

float best_scale(const ScaleRequest& r) {
  static const Format& float32 = find_format("float32");
  const double amax = largest_magnitude(r.x, r.n);
  const float widest = r.block ? absmax_block_scale(r) : absmax_scale(amax, *r.conversion);
  if (amax == 0) return widest;
  std::vector<float> finite;
  const float* x = r.x;
  std::int64_t n = r.n;
  if (!simd::finite_range(x, n).all) {
    std::copy_if(x, x + n, std::back_inserter(finite), [](float v) { return std::isfinite(v); });
    x = finite.data();
    n = static_cast<std::int64_t>(finite.size());
  }
  const Codes codes{r.block ? *r.block->scale : float32,
                    r.block ? std::ldexp(double{r.tensor_scale}, r.block->element_exponent) : 1};
  const Sample sample(element_grids(*r.conversion), r.conversion->overflow, x, n);
  const std::int64_t start =
      first_code(1, static_cast<std::int64_t>(codes.format.largest_code()),
                 [&](std::int64_t code) { return codes.step(code) >= widest * codes.unit; });
  const std::int64_t best = best_real(sample, codes, start);
  return static_cast<float>(to_double(decode(codes.format, static_cast<std::uint64_t>(best))));
}

void best_exponents(const ExponentRequest& r) {
  const ExponentRange range = exponent_range(*r.format->scale);
  const std::int32_t down = leading(largest_element(*r.format)).exponent;
  const ElementGrids& grids = element_grids(*r.conversion);
  // Under floor + 1 nothing saturates; it counts for its ties with floor.
  for_each_block(r, [&](const Leading& amax) { return amax.exponent - down + 1; });
  for (std::int64_t b = 0; b < r.blocks; ++b) {
    if (r.amax[b] == 0) continue;
    const Sample sample(grids, r.conversion->overflow, r.x + r.offsets[b],
                        r.offsets[b + 1] - r.offsets[b]);
    const auto step_of = [&](std::int64_t s) {
      return std::ldexp(1.0, static_cast<int>(s) + r.format->element_exponent);
    };
    const std::int64_t start = r.exponents[b];
    const std::int64_t highest = last_code(sample, start, range.highest, step_of,
                                           [&](double step) { return sample.large_enough(step); });
    r.exponents[b] =
        static_cast<std::int32_t>(best_of_all(sample, range.lowest, start, highest, step_of));
  }
}

}  // namespace

extern const ScaleRule scale_mse{"mse(exact)",
                                 "least squared error of all scales that the scale format has",
                                 /*fills_range=*/true,
                                 /*stores_scale=*/true,
                                 best_scale,
                                 best_exponents,
                                 /*reads_elements=*/true,
                                 /*serves_affine=*/false,
                                 /*lands_on=*/nullptr,
                                 /*needs_largest_alone=*/false,
                                 /*alias=*/"mse",
                                 /*serves_tensor_scale=*/true};

}  // namespace numemu
