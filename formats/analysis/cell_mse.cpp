#include "formats/analysis/cell_mse.hpp"

#include <algorithm>
#include <cmath>

#include "formats/portable/math.hpp"

namespace numemu {

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
