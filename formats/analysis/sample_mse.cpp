#include "formats/analysis/sample_mse.hpp"

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"

namespace numemu {

SampleMse::SampleMse(const double* x, std::int64_t n) {
  if (n <= 0) throw Error("mean squared error of an empty sample");
  sorted_.assign(x, x + n);
  std::sort(sorted_.begin(), sorted_.end());
  values_.reserve(sorted_.size());
  squares_.reserve(sorted_.size());
  for (const double value : sorted_) {
    values_.add(value);
    squares_.add(value * value);
  }
}

double SampleMse::largest() const {
  return std::max(std::abs(sorted_.front()), std::abs(sorted_.back()));
}

/// The first index from `first` on whose number lies beyond the bound: steps that double, then
/// bisection, because most pieces hold few numbers.
std::size_t SampleMse::end_of(std::size_t first, double bound, bool bound_is_inside) const {
  const auto inside = [&](std::size_t i) {
    return bound_is_inside ? sorted_[i] <= bound : sorted_[i] < bound;
  };
  std::size_t last = first, step = 1;
  while (last < sorted_.size() && inside(last)) {
    first = last + 1;
    last += step;
    step *= 2;
  }
  last = std::min(last, sorted_.size());
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (inside(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

double SampleMse::at(const OutcomeLaw& law, double scale) const {
  double sum = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < law.pieces.size() && first < sorted_.size(); ++i) {
    const OutcomePiece& piece = law.pieces[i];
    const bool closed = i + 1 < law.pieces.size() && !law.pieces[i + 1].low_closed;
    const std::size_t end = end_of(first, piece.high * scale, closed);
    if (end == first) continue;
    const auto count = static_cast<double>(end - first);
    const double s1 = values_.between(first, end), s2 = squares_.between(first, end);
    const double near = piece.near.value * scale, far = piece.far.value * scale;
    double square = (near * count - 2 * s1) * near + s2;
    if (piece.stochastic()) {
      // P (far - near) (far + near - 2 x) more, with P = (x - from) / length.
      const double from = piece.from * scale, length = (piece.to - piece.from) * scale;
      const double both = far + near;
      square += (far - near) / length * ((both + 2 * from) * s1 - 2 * s2 - from * both * count);
    }
    sum += std::max(0.0, square);
    first = end;
  }
  return sum / static_cast<double>(sorted_.size());
}

}  // namespace numemu
