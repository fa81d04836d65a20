#include "emu/stats/rounded_dots.hpp"

namespace numemu::stats {

Moments product(const Moments& a, const Moments& b) {
  return {a.mean * b.mean,
          a.variance * b.variance + a.variance * b.mean * b.mean + b.variance * a.mean * a.mean};
}

Moments sum(const Moments& a, const Moments& b, double factor) {
  return {a.mean + factor * b.mean, a.variance + factor * factor * b.variance};
}

StochasticLaw::StochasticLaw(const Format& format, const Rounding& rounding)
    : law_(outcome_law(format, rounding, Overflow::saturate)) {}

RoundedElement StochasticLaw::of(double x, double scale) const {
  if (x == 0) return {};
  const OutcomePiece& piece = piece_at(law_.pieces, x, scale);
  if (!piece.stochastic()) return {0, 2 * scale * piece.near.value};
  const double up =
      up_probability(law_.rounding, (x / scale - piece.from) / (piece.to - piece.from));
  const double gap = scale * (piece.far.value - piece.near.value);
  return {up * (1 - up) * gap * gap, scale * (piece.far.value + piece.near.value)};
}

std::vector<RoundedElement> StochasticLaw::of(std::span<const float> x, double scale) const {
  std::vector<RoundedElement> all;
  all.reserve(x.size());
  for (const float element : x) all.push_back(of(double{element}, scale));
  return all;
}

Moments two_draws(const RoundedVector& x, const RoundedVector& y) {
  Moments dot;
  for (std::size_t i = 0; i < x.x.size(); ++i) {
    const double a = x.x[i], b = y.x[i], v = x.rounded[i].variance, w = y.rounded[i].variance;
    dot.mean += a * b;
    dot.variance += a * a * w + b * b * v + v * w;
  }
  return dot;
}

Moments one_draw(const RoundedVector& x) {
  Moments square;
  for (std::size_t i = 0; i < x.x.size(); ++i) {
    const double a = x.x[i], v = x.rounded[i].variance, ends = x.rounded[i].ends;
    square.mean += a * a + v;
    square.variance += v * ends * ends;
  }
  return square;
}

}  // namespace numemu::stats
