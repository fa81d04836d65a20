#include "formats/analysis/sample_mse.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "formats/error.hpp"

namespace numemu {
namespace {

/// A running sum whose rounding does not add up (Neumaier).
class Running {
 public:
  double add(double x) {
    const double next = sum_ + x;
    rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
    return sum_ + rest_;
  }

 private:
  double sum_ = 0, rest_ = 0;
};

}  // namespace

SampleMse::SampleMse(const double* x, std::int64_t n) : count_(static_cast<double>(n)) {
  if (n <= 0) throw Error("mean squared error of an empty sample");
  sorted_.assign(x, x + n);
  std::sort(sorted_.begin(), sorted_.end());
  sums_ = {sorted_.data(), sorted_.size()};
}

SampleMse::SampleMse(const float* x, const double* scales, std::int64_t n)
    : count_(static_cast<double>(n)) {
  if (n <= 0) throw Error("mean squared error of an empty sample");
  std::vector<std::pair<double, double>> pairs;  // v and its scale
  pairs.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    if (scales[i] > 0) {
      pairs.emplace_back(double{x[i]} / scales[i], scales[i]);
    } else {
      lost_ += double{x[i]} * x[i];
    }
  }
  std::sort(pairs.begin(), pairs.end());
  sorted_.reserve(pairs.size());
  scaled_.reserve(pairs.size() + 1);
  scaled_.emplace_back();
  Running weight, first, second;
  for (const auto& [v, scale] : pairs) {
    sorted_.push_back(v);
    const double square = scale * scale;
    scaled_.push_back({weight.add(square), first.add(square * v), second.add(square * v * v)});
  }
}

SampleMse::Sums SampleMse::between(std::size_t first, std::size_t last) const {
  if (scaled_.empty()) {
    const auto [s1, s2] = sums_.between(sorted_.data(), first, last);
    return {static_cast<double>(last - first), s1, s2};
  }
  const Sums &low = scaled_[first], &high = scaled_[last];
  return {high.weight - low.weight, high.first - low.first, high.second - low.second};
}

double SampleMse::largest() const {
  return std::max(std::abs(sorted_.front()), std::abs(sorted_.back()));
}

double SampleMse::signal() const { return (between(0, sorted_.size()).second + lost_) / count_; }

double SampleMse::at(const OutcomeLaw& law, double scale) const {
  double sum = lost_;
  std::size_t first = 0;
  for (std::size_t i = 0; i < law.pieces.size() && first < sorted_.size(); ++i) {
    const OutcomePiece& piece = law.pieces[i];
    const bool closed = i + 1 < law.pieces.size() && !law.pieces[i + 1].low_closed;
    const double bound = piece.high * scale;
    const std::size_t end = first_outside(first, sorted_.size(), [&](std::size_t k) {
      return closed ? sorted_[k] <= bound : sorted_[k] < bound;
    });
    if (end == first) continue;
    const auto [weight, s1, s2] = between(first, end);
    const double near = piece.near.value * scale, far = piece.far.value * scale;
    double square = (near * weight - 2 * s1) * near + s2;
    if (piece.stochastic()) {
      // P (far - near) (far + near - 2 x) more, with P = (x - from) / length.
      const double from = piece.from * scale, length = (piece.to - piece.from) * scale;
      const double both = far + near;
      square += (far - near) / length * ((both + 2 * from) * s1 - 2 * s2 - from * both * weight);
    }
    sum += std::max(0.0, square);
    first = end;
  }
  return sum / count_;
}

}  // namespace numemu
