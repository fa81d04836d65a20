#include "emu/unit/error/sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/analysis/outcome_law.hpp"

namespace numemu::unit {

std::int64_t Draws::from_deck(std::int64_t n) {
  if (deck_.empty()) {
    for (std::int64_t i = 0; i < n; ++i) deck_.push_back(i);
    for (std::int64_t i = n - 1; i > 0; --i) std::swap(deck_[i], deck_[below(i + 1)]);
  }
  const std::int64_t top = deck_.back();
  deck_.pop_back();
  return top;
}

Steps::Steps(const Register& r) : rounding_(r.rounding) {
  constexpr int kFixed = 1 << 12;  // above the exponent of every sum
  if (r.format != nullptr) {
    least_ = std::ilogb(smallest_normal(*r.format));
    mantissa_ = r.format->mantissa_bits;
  } else {
    least_ = kFixed;
    mantissa_ = kFixed + r.fraction;
  }
}

double Steps::round(double x, double word) const {
  if (x == 0) return x;
  const double u = at(std::ilogb(x));
  const double down = std::floor(x / u), fraction = x / u - down;
  if (fraction == 0) return x;
  const bool odd = std::fmod(down, 2.0) != 0;
  bool up = false;
  switch (rounding_.mode) {
    case RoundingMode::rne:
      up = fraction > 0.5 || (fraction == 0.5 && odd);
      break;
    case RoundingMode::rna:
      up = fraction > 0.5 || (fraction == 0.5 && x > 0);
      break;
    case RoundingMode::rtz:
      up = x < 0;
      break;
    case RoundingMode::rup:
      up = true;
      break;
    case RoundingMode::rdn:
      break;
    case RoundingMode::rodd:
      up = !odd;
      break;
    case RoundingMode::sr:
      up = x > 0 ? word < up_probability(rounding_, fraction)
                 : word >= up_probability(rounding_, 1 - fraction);
      break;
  }
  return (down + (up ? 1 : 0)) * u;
}

RoundingError rounding_error(const Rounding& rounding, double x, double u, bool negative) {
  const double fraction = x / u - std::floor(x / u);
  if (fraction == 0) return {};
  double up = 0;  // its probability
  switch (rounding.mode) {
    case RoundingMode::rne:
      up = fraction == 0.5 ? 0.5 : fraction > 0.5 ? 1 : 0;
      break;
    case RoundingMode::rna:
      up = fraction == 0.5 ? (negative ? 0 : 1) : fraction > 0.5 ? 1 : 0;
      break;
    case RoundingMode::rtz:
      up = negative ? 1 : 0;
      break;
    case RoundingMode::rup:
      up = 1;
      break;
    case RoundingMode::rdn:
      break;
    case RoundingMode::rodd:  // S is odd: an inexact sum before left it so
      up = std::fmod(std::floor(x / u), 2.0) != 0 ? 1 : 0;
      break;
    case RoundingMode::sr:
      up = negative ? 1 - up_probability(rounding, 1 - fraction)
                    : up_probability(rounding, fraction);
      break;
  }
  const double below = -fraction * u, above = (1 - fraction) * u;
  return {up * above + (1 - up) * below, up * above * above + (1 - up) * below * below};
}

}  // namespace numemu::unit
