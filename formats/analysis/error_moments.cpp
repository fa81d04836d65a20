// Error moments under a density: each cell's partial moments, and the point mass at zero on its
// own.
#include "formats/analysis/error_moments.hpp"

#include <algorithm>
#include <cmath>

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

}  // namespace numemu
