// Elements rounded under a scale, and their squared error: float64 with a bound, and integers where
// that does not decide.
#include "formats/scaling/element_grid.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "formats/analysis/cells.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

void add_piece(ElementGrid& grid, double from, bool closed, double low, double high) {
  grid.from.push_back(from);
  grid.closed.push_back(closed ? 1 : 0);
  grid.least.push_back(closed ? from : std::nextafter(from, kInf));
  grid.low.push_back(low);
  grid.high.push_back(high);
}

ElementGrid line_of(const Conversion& c) {
  ElementGrid grid;
  if (!c.rounding.stochastic()) {
    for (const Cell& cell : cells(*c.format, c.rounding, c.symmetric))
      add_piece(grid, cell.low, cell.low_closed, cell.value, cell.value);
    return grid;
  }
  const std::vector<Cell> gaps = brackets(*c.format, c.symmetric);
  add_piece(grid, -kInf, true, gaps.front().low, gaps.front().low);
  for (const Cell& gap : gaps) add_piece(grid, gap.low, true, gap.low, gap.high);
  add_piece(grid, gaps.back().high, true, gaps.back().high, gaps.back().high);
  return grid;
}

/// The pieces above zero.
ElementGrid half_of(const ElementGrid& line) {
  ElementGrid half;
  for (std::size_t k = 0; k < line.size(); ++k) {
    if (k + 1 < line.size() && line.from[k + 1] <= 0) continue;
    const bool first = half.size() == 0;
    add_piece(half, first ? 0 : line.from[k], first || line.closed[k] != 0, line.low[k],
              line.high[k]);
  }
  return half;
}

ElementGrid mirrored(const ElementGrid& line) {
  ElementGrid mirror;
  for (std::size_t k = line.size(); k-- > 0;) {
    const bool last = k + 1 == line.size();
    add_piece(mirror, last ? -kInf : -line.from[k + 1], last || line.closed[k + 1] == 0,
              -line.high[k], -line.low[k]);
  }
  return mirror;
}

bool same(const ElementGrid& a, const ElementGrid& b) {
  return a.from == b.from && a.closed == b.closed && a.low == b.low && a.high == b.high;
}

bool holds_doubles(const ElementGrid& line) {
  const std::vector<double>& values = line.high;  // ascending
  return std::all_of(values.begin(), values.end(), [&](double v) {
    return 2 * v < values.front() || 2 * v > values.back() ||
           std::binary_search(values.begin(), values.end(), 2 * v);
  });
}

/// The piece of x.
std::size_t piece_of(const ElementGrid& line, double x, double step) {
  std::size_t first = 1, last = line.size();  // the first piece reaches everything
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (line.reaches(middle, x, step)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first - 1;
}

/// The piece of y = x / step, without a branch that depends on y: elements are not sorted.
std::size_t piece_at(const ElementGrid& line, double y) {
  const double* first = line.least.data();
  for (std::size_t n = line.size(); n > 1;) {
    const std::size_t half = n / 2;
    first += first[half] <= y ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(first - line.least.data());
}

using boost::multiprecision::cpp_int;

/// v / 2^kUnit: float32 numbers are multiples of 2^-149, elements (bias at most 255, mantissa at
/// most 15 bits) of 2^-270, times 2^-282 for the least product of a scale and a tensor scale.
cpp_int in_units(double v) {
  constexpr int kUnit = -552, kDigits = 53;
  int exponent = 0;
  const double mantissa = std::ldexp(std::frexp(v, &exponent), kDigits);
  const int shift = exponent - kDigits - kUnit;
  cpp_int integer = static_cast<std::uint64_t>(std::fabs(mantissa));
  if (shift >= 0) integer <<= static_cast<unsigned>(shift);
  if (shift < 0) integer >>= static_cast<unsigned>(-shift);  // only zeros: v is a multiple
  if (mantissa < 0) integer.backend().negate();
  return integer;
}

/// What an element may become.
struct Ends {
  double low, high;
};

cpp_int exact_error(float x, const Ends& ends) {
  const cpp_int at = in_units(x);
  cpp_int product = (in_units(ends.low) - at) * (in_units(ends.high) - at);
  return abs(product);
}

}  // namespace

bool ElementGrid::overflows(double x, double scale) const {
  return may_overflow(scale) && high[piece_of(*this, x, scale)] * scale >= kBeyondFloat32;
}

ElementGrids::ElementGrids(const Conversion& c) : line(line_of(c)) {
  positive = half_of(line);
  negative = half_of(mirrored(line));
  folds = same(positive, negative);
  const std::size_t zero = piece_of(line, 0, 1);
  keeps_zero = line.low[zero] == 0 || line.high[zero] == 0;
  doubles = c.rounding.mode != RoundingMode::rodd && holds_doubles(line);
}

const ElementGrids& element_grids(const Conversion& c) {
  // Blocks come one by one, nearly always under the same conversion.
  struct Last {
    Format format;
    Rounding rounding;
    bool symmetric;
    ElementGrids grids;
  };
  thread_local std::unique_ptr<const Last> last;
  if (!last || last->format != *c.format || last->rounding != c.rounding ||
      last->symmetric != c.symmetric) {
    last = std::make_unique<const Last>(Last{*c.format, c.rounding, c.symmetric, ElementGrids(c)});
  }
  return last->grids;
}

// Differences, products and sums of numbers that are not negative: each rounds by a factor of at
// most 1 + 2^-53, and no element meets more of them than `rounds`; twice that covers the higher
// order terms, as rounds < 2^32. Elements times the step are exact. Nothing underflows: the least
// difference of two such numbers is above 2^-500.
Bounded squared_error(const ElementGrid& line, const float* x, std::int64_t n, double step) {
  constexpr std::int64_t kChunk = 4096;  // shorter chains of additions
  Bounded error;
  int exponent = 0;
  const bool power = std::frexp(step, &exponent) == 0.5;  // x / step is exact
  const double inverse = power ? std::ldexp(1.0, 1 - exponent) : 0;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    double sum = 0;
    for (std::int64_t i = begin; i < std::min(n, begin + kChunk); ++i) {
      const std::size_t k = power ? piece_at(line, x[i] * inverse) : piece_of(line, x[i], step);
      sum += std::fabs((line.low[k] * step - x[i]) * (line.high[k] * step - x[i]));
    }
    error.sum += sum;
  }
  const auto rounds = static_cast<double>(3 + std::min(n, kChunk) + n / kChunk);
  error.bound = error.sum * (2 * rounds * 0x1p-53);
  return error;
}

namespace {

/// Whether the error under `step` is below that under `other`, by integers. Elements that become
/// the same are left out, which are nearly all of a floating format.
bool exactly_less(const ElementGrid& line, const float* x, std::int64_t n, double step,
                  double other) {
  const auto ends_of = [&](double v, double unit) {
    const std::size_t k = piece_of(line, v, unit);
    return Ends{line.low[k] * unit, line.high[k] * unit};
  };
  cpp_int difference = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Ends a = ends_of(x[i], step), b = ends_of(x[i], other);
    if (a.low == b.low && a.high == b.high) continue;
    difference += exact_error(x[i], a) - exact_error(x[i], b);
  }
  return difference < 0;
}

}  // namespace

void LeastOfCodes::consider(std::int64_t code, double step) {
  if (step == step_) return;
  const Bounded error = squared_error(line_, x_, n_, step);
  const bool decided = std::fabs(error.sum - least_.sum) > error.bound + least_.bound;
  if (step_ != 0 && !(decided ? error.sum < least_.sum : exactly_less(line_, x_, n_, step, step_)))
    return;
  least_ = error;
  step_ = step;
  code_ = code;
}

}  // namespace numemu
