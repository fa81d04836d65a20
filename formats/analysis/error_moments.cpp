// Error moments under a density: each cell's partial moments, and the point mass at zero on its
// own.
#include "formats/analysis/error_moments.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/cells.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/value.hpp"

namespace numemu {
namespace {

/// Integral of (v - x)^2, never negative whatever its three parts cancel to.
double square_error(const Density::Moments& m, double v) {
  return std::max(0.0, (v * m.p0 - 2 * m.p1) * v + m.p2);
}

/// Adds the mass `m` that all becomes `v`.
void add_rounded(const Density::Moments& m, double v, bool normal, ErrorMoments* out) {
  const double square = square_error(m, v);
  out->mean += v * m.p0 - m.p1;
  out->mse += square;
  if (normal) out->mse_normal += square;
}

/// The value that exactly zero rounds to: the cell that owns 0.
double image_of_zero(const std::vector<Cell>& cells) {
  const auto begins_after_zero = [](double zero, const Cell& c) {
    return c.low > zero || (c.low == zero && !c.low_closed);
  };
  const auto next = std::upper_bound(cells.begin(), cells.end(), 0.0, begins_after_zero);
  return next == cells.begin() ? cells.front().value : std::prev(next)->value;
}

void check(const std::vector<Cell>& cells, double scale) {
  if (cells.empty()) throw Error("error moments of no cells, expected at least one");
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error moments: the scale must be finite and positive");
}

}  // namespace

double ErrorMoments::sqnr_db() const {
  return mse == 0 ? kInf : 10 * portable::log10(signal / mse);
}

ErrorMoments error_moments(const std::vector<Cell>& cells, double scale, const Density& density) {
  check(cells, scale);
  ErrorMoments out;
  const double lowest = cells.front().value * scale, largest = cells.back().value * scale;
  const Density::Moments below = density.moments(-kInf, lowest),
                         above = density.moments(largest, kInf);
  add_rounded(below, lowest, false, &out);
  for (const Cell& cell : cells) {
    const double low = std::max(cell.low * scale, lowest),
                 high = std::min(cell.high * scale, largest);
    const Density::Moments m = density.moments(low, high);
    add_rounded(m, cell.value * scale, cell.normal, &out);
    if (cell.value == 0) out.flushed += m.p0;
  }
  add_rounded(above, largest, false, &out);
  add_rounded({density.zero_mass(), 0, 0}, image_of_zero(cells) * scale, false, &out);
  out.saturated = below.p0 + above.p0;
  out.signal = density.moments(-kInf, kInf).p2;
  return out;
}

ErrorMoments stochastic_error_moments(const std::vector<Cell>& brackets, double scale,
                                      const Density& density) {
  check(brackets, scale);
  ErrorMoments out;
  const double lowest = brackets.front().low * scale, largest = brackets.back().high * scale;
  const Density::Moments below = density.moments(-kInf, lowest),
                         above = density.moments(largest, kInf);
  add_rounded(below, lowest, false, &out);
  for (const Cell& bracket : brackets) {
    const double a = bracket.low * scale, b = bracket.high * scale;
    const Density::Moments m = density.moments(a, b);
    const double variance = std::max(0.0, (a + b) * m.p1 - m.p2 - a * b * m.p0);
    out.mse += variance;
    if (bracket.normal) out.mse_normal += variance;
    // Becomes zero with probability 1 - x / (the other end).
    if (a == 0) out.flushed += m.p0 - m.p1 / b;
    if (b == 0) out.flushed += m.p0 - m.p1 / a;
    if (a < 0 && 0 < b) out.mse += -a * b * density.zero_mass();  // a grid without zero
  }
  add_rounded(above, largest, false, &out);
  if (density.zero_mass() > 0 && (lowest > 0 || largest < 0)) {
    add_rounded({density.zero_mass(), 0, 0}, lowest > 0 ? lowest : largest, false, &out);
  }
  out.saturated = below.p0 + above.p0;
  out.signal = density.moments(-kInf, kInf).p2;
  return out;
}

// Error moments over a sample: every float32 is looked up in its cell and its error formed exactly
// in float64.

namespace {

constexpr std::uint64_t kSaturated = 1, kFlushed = std::uint64_t{1} << 32;
constexpr std::int64_t kElementsOfThread =
    std::int64_t{1} << 16;  // one thread's unit of work; its counts fit in 32 bits

struct SampleSums {
  double error = 0, square = 0, square_normal = 0, signal = 0, saturated = 0, flushed = 0;
  friend SampleSums operator+(const SampleSums& a, const SampleSums& b) {
    return {a.error + b.error,   a.square + b.square,       a.square_normal + b.square_normal,
            a.signal + b.signal, a.saturated + b.saturated, a.flushed + b.flushed};
  }
};

/// Sum of leaf(first, count) over [first, first + n), the tree of pairwise_sum.
template <class Leaf>
SampleSums tree_sum(std::int64_t first, std::int64_t n, std::int64_t width, const Leaf& leaf) {
  if (n <= width) return leaf(first, n);
  const std::int64_t half = ((n / 2 + width - 1) / width) * width;
  return tree_sum(first, half, width, leaf) + tree_sum(first + half, n - half, width, leaf);
}

/// The mean of leaf(first, count), chunks on several threads, their sums joined in a fixed order.
template <class Leaf>
ErrorMoments mean_of(std::int64_t n, const Leaf& leaf) {
  const std::int64_t chunks = (n + kElementsOfThread - 1) / kElementsOfThread;
  std::vector<SampleSums> sums(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(dynamic) if (chunks > 1)
  for (std::int64_t c = 0; c < chunks; ++c) {
    sums[c] =
        tree_sum(c * kElementsOfThread, std::min(kElementsOfThread, n - c * kElementsOfThread),
                 CellSearch::kBlock, leaf);
  }
  const SampleSums all =
      tree_sum(0, chunks, 1, [&](std::int64_t c, std::int64_t) { return sums[c]; });
  const auto count = static_cast<double>(n);
  return {all.error / count,  all.square / count,    all.square_normal / count,
          all.signal / count, all.saturated / count, all.flushed / count};
}

/// An interval of inputs that share one treatment; it starts at a threshold and ends at the next
/// piece's.
struct Piece {
  double low, high;           ///< scaled values x may become; equal under deterministic rounding
  double normal;              ///< 1 where the error counts as proportional
  double flush, flush_slope;  ///< probability of becoming zero = flush + flush_slope * x
  std::uint64_t tally;        ///< what one element adds to the packed counts
};

/// Pieces with the float32 thresholds between them.
struct Partition {
  std::vector<float> thresholds;
  std::vector<Piece> pieces;
  explicit Partition(std::size_t cells) {
    constexpr std::size_t kMore = 5;  // two ends, and the pieces around zero
    thresholds.reserve(cells + kMore);
    pieces.reserve(cells + kMore);
  }
  void add(double bound, bool closed, const Piece& piece) {
    if (!pieces.empty()) thresholds.push_back(float_threshold(bound, closed));
    pieces.push_back(piece);
  }
};

void check(const std::vector<Cell>& cells, double scale, std::int64_t n) {
  if (cells.empty()) throw Error("error moments of no cells, expected at least one");
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error moments: the scale must be finite and positive");
  if (n <= 0) throw Error("error moments of an empty sample");
}

/// The cells, cut where x leaves the format's range and around exactly zero, so that the counts
/// come from the lookup.
Partition partition_of(const std::vector<Cell>& cells, double scale) {
  Partition p(cells.size());
  const double lowest = cells.front().value * scale, largest = cells.back().value * scale;
  p.add(0, true, {lowest, lowest, 0, 0, 0, kSaturated});
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double value = cells[i].value * scale, normal = cells[i].normal ? 1 : 0;
    const bool zero = cells[i].value == 0;
    p.add(i == 0 ? lowest : cells[i].low * scale, i == 0 || cells[i].low_closed,
          {value, value, normal, 0, 0, zero && i > 0 ? kFlushed : 0});
    if (zero) {
      p.add(0, true, {0, 0, 0, 0, 0, 0});
      p.add(0, false, {0, 0, 0, 0, 0, kFlushed});
    }
  }
  p.add(largest, false, {largest, largest, 0, 0, 0, kSaturated});
  return p;
}

Partition bracket_partition(const std::vector<Cell>& brackets, double scale) {
  Partition p(brackets.size());
  const double lowest = brackets.front().low * scale, largest = brackets.back().high * scale;
  p.add(0, true, {lowest, lowest, 0, 0, 0, kSaturated});
  for (const Cell& bracket : brackets) {
    const double a = bracket.low * scale, b = bracket.high * scale;
    Piece piece{a, b, bracket.normal ? 1.0 : 0.0, 0, 0, 0};
    if (a == 0) p.add(a, true, {0, 0, 0, 0, 0, 0});
    if (a == 0) piece.flush = 1, piece.flush_slope = -1 / b;
    if (b == 0) piece.flush = 1, piece.flush_slope = -1 / a;
    p.add(a, a != 0, piece);
  }
  // A value at the very top is exact; its own piece keeps it out of the saturated ones.
  p.add(largest, true, {largest, largest, 0, 0, 0, 0});
  p.add(largest, false, {largest, largest, 0, 0, 0, kSaturated});
  return p;
}

}  // namespace

ErrorMoments error_moments(const std::vector<Cell>& cells, double scale, const float* x,
                           std::int64_t n) {
  check(cells, scale, n);
  const Partition partition = partition_of(cells, scale);
  const CellSearch search(partition.thresholds);
  return mean_of(n, [&](std::int64_t first, std::int64_t count) {
    std::uint32_t index[CellSearch::kBlock];
    search.find(x + first, static_cast<int>(count), index);
    SampleSums sums;
    std::uint64_t tally = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Piece& piece = partition.pieces[index[i]];
      const double value = x[first + i];
      const double error = piece.low - value, square = error * error;
      sums.error += error;
      sums.square += square;
      sums.square_normal += square * piece.normal;
      sums.signal += value * value;
      tally += piece.tally;
    }
    sums.saturated = static_cast<double>(tally % kFlushed);
    sums.flushed = static_cast<double>(tally / kFlushed);
    return sums;
  });
}

ErrorMoments stochastic_error_moments(const std::vector<Cell>& brackets, double scale,
                                      const float* x, std::int64_t n) {
  check(brackets, scale, n);
  const Partition partition = bracket_partition(brackets, scale);
  const CellSearch search(partition.thresholds);
  return mean_of(n, [&](std::int64_t first, std::int64_t count) {
    std::uint32_t index[CellSearch::kBlock];
    search.find(x + first, static_cast<int>(count), index);
    SampleSums sums;
    for (std::int64_t i = 0; i < count; ++i) {
      const Piece& piece = partition.pieces[index[i]];
      const double value = x[first + i];
      // Inside a bracket the error has mean zero; where both ends are one value it is that value's
      // error.
      const bool fixed = piece.low == piece.high;
      const double error = fixed ? piece.low - value : 0;
      const double square = fixed ? error * error : (value - piece.low) * (piece.high - value);
      sums.error += error;
      sums.square += square;
      sums.square_normal += square * piece.normal;
      sums.signal += value * value;
      sums.saturated += static_cast<double>(piece.tally);
      sums.flushed += piece.flush + piece.flush_slope * value;
    }
    return sums;
  });
}

}  // namespace numemu
