#include "formats/analysis/sample_mse.hpp"

#include <algorithm>
#include <cmath>

#include "formats/analysis/first_outside.hpp"
#include "formats/error.hpp"

namespace numemu {

SampleMse::SampleMse(const double* x, std::int64_t n) {
  if (n <= 0) throw Error("mean squared error of an empty sample");
  sorted_.assign(x, x + n);
  std::sort(sorted_.begin(), sorted_.end());
  sums_ = {sorted_.data(), sorted_.size()};
}

double SampleMse::largest() const {
  return std::max(std::abs(sorted_.front()), std::abs(sorted_.back()));
}

double SampleMse::at(const OutcomeLaw& law, double scale) const {
  double sum = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < law.pieces.size() && first < sorted_.size(); ++i) {
    const OutcomePiece& piece = law.pieces[i];
    const bool closed = i + 1 < law.pieces.size() && !law.pieces[i + 1].low_closed;
    const double bound = piece.high * scale;
    const std::size_t end = first_outside(first, sorted_.size(), [&](std::size_t k) {
      return closed ? sorted_[k] <= bound : sorted_[k] < bound;
    });
    if (end == first) continue;
    const auto count = static_cast<double>(end - first);
    const auto [s1, s2] = sums_.between(sorted_.data(), first, end);
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
