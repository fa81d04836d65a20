#include "formats/analysis/scale_mse.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "formats/error.hpp"
#include "formats/portable/math.hpp"

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

using Pair = std::pair<double, double>;

/// Bits in the order of finite numbers; both zeros are one.
std::uint64_t ordered_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}

/// std::sort() of pairs of finite numbers, digit by digit: comparisons of draws took a third of a
/// search, because no branch of them is foretold.
void sort_pairs(std::vector<Pair>& pairs) {
  constexpr int kDigits = 8;
  std::array<std::array<std::size_t, 256>, kDigits> counts{};
  for (const Pair& pair : pairs) {
    const std::uint64_t bits = ordered_bits(pair.first);
    for (int d = 0; d < kDigits; ++d) ++counts[d][bits >> (8 * d) & 255];
  }
  std::vector<Pair> other(pairs.size());
  for (int d = 0; d < kDigits; ++d) {
    std::size_t begin = 0;
    for (std::size_t& count : counts[d]) begin += std::exchange(count, begin);
    for (const Pair& pair : pairs)
      other[counts[d][ordered_bits(pair.first) >> (8 * d) & 255]++] = pair;
    pairs.swap(other);
  }
  for (auto first = pairs.begin(); first != pairs.end();) {
    auto last = first + 1;
    while (last != pairs.end() && last->first == first->first) ++last;
    if (last - first > 1) std::sort(first, last);
    first = last;
  }
}

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
  std::vector<Pair> pairs;  // v and its scale
  pairs.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    if (scales[i] > 0) {
      pairs.emplace_back(double{x[i]} / scales[i], scales[i]);
    } else {
      lost_ += double{x[i]} * x[i];
    }
  }
  sort_pairs(pairs);
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

CellMse::CellMse(const Format& f, const Rounding& rounding, const Density& law, bool symmetric_law)
    : cells_(cells(f, rounding, true)), law_(law) {
  const std::size_t n = cells_.size();
  bool symmetric =
      symmetric_law && rounding.mode != RoundingMode::rup && rounding.mode != RoundingMode::rdn;
  for (std::size_t i = 0; symmetric && i < n; ++i)
    symmetric =
        cells_[i].value == -cells_[n - 1 - i].value && cells_[i].low == -cells_[n - 1 - i].high;
  if (!symmetric) return;
  half_ = true;
  std::erase_if(cells_, [](const Cell& cell) { return cell.high <= 0; });
  cells_.front().low = 0;
}

double CellMse::smallest() const {
  double least = HUGE_VAL;
  for (const Cell& cell : cells_)
    if (cell.value != 0) least = std::min(least, std::abs(cell.value));
  return least;
}

double CellMse::largest() const {
  return std::max(std::abs(cells_.front().value), std::abs(cells_.back().value));
}

double CellMse::operator()(double scale) const {
  double sum = 0;
  for (const Cell& cell : cells_) {
    const Density::Moments m = law_.moments(cell.low * scale, cell.high * scale);
    const double v = cell.value * scale;
    sum += m.p2 - 2 * v * m.p1 + v * v * m.p0;
  }
  return half_ ? 2 * sum : sum;
}

double CellMse::best_scale(double rms, double reach, bool power_of_two) const {
  const int low = std::ilogb(rms / largest()) - 3;
  const int high = std::ilogb(std::min(reach, 64 * rms) / smallest()) + 2;
  int best = 0;
  double least = HUGE_VAL;
  for (int k = low; k <= high; ++k) {
    const double square = (*this)(std::ldexp(1.0, k));
    if (square < least * (1 - 1e-9) || (square <= least && std::abs(k) < std::abs(best))) {
      least = square;
      best = k;
    }
  }
  if (power_of_two) return std::ldexp(1.0, best);
  constexpr int kPerOctave = 16, kMinima = 2, kSections = 16;
  std::vector<double> squares;
  for (int t = -kPerOctave; t <= kPerOctave; ++t)
    squares.push_back((*this)(portable::exp2(best + static_cast<double>(t) / kPerOctave)));
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i + 1 < squares.size(); ++i)
    if (squares[i] <= squares[i - 1] && squares[i] <= squares[i + 1]) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return squares[i]; });
  if (order.size() > kMinima) order.resize(kMinima);
  double scale = std::ldexp(1.0, best);
  for (const std::size_t i : order) {
    const double middle = best + static_cast<double>(i) / kPerOctave - 1;
    double a = middle - 1.0 / kPerOctave, b = middle + 1.0 / kPerOctave;
    constexpr double kGolden = 0.6180339887498949;
    double c = b - kGolden * (b - a), d = a + kGolden * (b - a);
    double at_c = (*this)(portable::exp2(c)), at_d = (*this)(portable::exp2(d));
    for (int step = 0; step < kSections; ++step) {
      if (at_c < at_d) {
        b = d, d = c, at_d = at_c;
        c = b - kGolden * (b - a);
        at_c = (*this)(portable::exp2(c));
      } else {
        a = c, c = d, at_c = at_d;
        d = a + kGolden * (b - a);
        at_d = (*this)(portable::exp2(d));
      }
    }
    if (const double found = std::min(at_c, at_d); found < least) {
      least = found;
      scale = portable::exp2(at_c < at_d ? c : d);
    }
  }
  return static_cast<double>(static_cast<float>(scale));
}

}  // namespace numemu
