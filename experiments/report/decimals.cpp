#include "experiments/report/decimals.hpp"

#include <fmt/format.h>

#include <cmath>

namespace numemu::experiments {

int shown_decimals(double x, int most) {
  constexpr double kBeyond = 1e5;  // the first of six digits
  double shown = std::abs(x);
  for (int i = 0; i < most; ++i) shown *= 10;
  int decimals = most;
  for (; decimals > 0 && std::isfinite(shown) && shown >= kBeyond; shown /= 10) --decimals;
  return decimals;
}

std::string decimal_text(double x, int most, bool sign) {
  const int decimals = shown_decimals(x, most);
  return sign ? fmt::format("{:+.{}f}", x, decimals) : fmt::format("{:.{}f}", x, decimals);
}

}  // namespace numemu::experiments
