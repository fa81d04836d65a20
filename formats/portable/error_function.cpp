// Near zero by Taylor's series; elsewhere exp(-x^2) times a polynomial, so that the tail keeps its
// digits.
#include <cmath>

#include "formats/portable/double_double.hpp"
#include "formats/portable/math.hpp"

namespace numemu::portable {
namespace {

constexpr double kNear = 0.5;

/// erf(x), |x| <= 0.5, by Taylor's series: the term left out is below 2^-60 of it.
double erf_near_zero(double x) {
  // (-1)^n 2 / sqrt(pi) / (n! (2n + 1)), the first less 1.
  constexpr double kSeries[] = {
      0.1283791670955126,      -0.37612638903183754,   0.11283791670955126,
      -0.026866170645131252,   0.005223977625442188,   -0.0008548327023450853,
      0.00012055332981789664,  -1.492565035840625e-05, 1.6462114365889248e-06,
      -1.6365844691234924e-07, 1.4807192815879218e-08, -1.2290555301717928e-09,
      9.422759064650411e-11,   -6.7113668551641105e-12};
  return x + x * polynomial(kSeries, x * x);
}

/// exp(x^2) erfc(x), x >= 0: (1 + 2 x) times it is a polynomial of t = (x - 3.75) / (x + 3.75)
/// (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x^2) erfc x",
/// Mathematics of Computation 36, 1981). The coefficients are of a fit in 200 bits, error 2e-18.
double scaled_erfc_above(double x) {
  constexpr double kSeries[] = {
      1.2375126308378275,      -0.14024059858554697,    0.0035854154854644293,
      0.0822767384901452,      -0.10880393014174886,    0.09230432116037748,
      -0.05869339858963677,    0.028362277418956406,    -0.009746579558029276,
      0.0017556258528952954,   0.0002937136655913448,   -0.0002901540805408417,
      5.164909889268241e-05,   2.238423915508223e-05,   -1.1444146237700524e-05,
      -9.73559896736775e-07,   1.751637648849062e-06,   -5.7218230603224086e-08,
      -2.5866850716155884e-07, 2.3263508708859124e-08,  3.8675334242222354e-08,
      -3.744210080962018e-09,  -5.1739902140113095e-09, 3.1114333809799254e-10,
      4.2514714447963895e-10};
  const double t = 1 - 7.5 / (x + 3.75), square = t * t;
  // Four sums side by side: one of 25 terms would wait for each of its steps.
  const double fourth = square * square;
  double sums[4] = {kSeries[24], 0, 0, 0};
  for (int i = 20; i >= 0; i -= 4)
    for (int j = 0; j < 4; ++j) sums[j] = sums[j] * fourth + kSeries[i + j];
  return ((sums[0] + sums[1] * t) + square * (sums[2] + sums[3] * t)) / (1 + 2 * x);
}

/// erfc(x), x >= 0.
double erfc_above(double x) {
  if (x > 28) return 0;
  const DoubleDouble square = exact_product(x, x);
  return exp_of_sum(-square.high, -square.low) * scaled_erfc_above(x);
}

}  // namespace

double erf(double x) {
  const double size = std::fabs(x);
  if (!(size > kNear)) return erf_near_zero(x);
  return std::copysign(1 - erfc_above(size), x);
}

double erfc(double x) {
  if (!(std::fabs(x) > kNear)) return 1 - erf_near_zero(x);
  return x > 0 ? erfc_above(x) : 2 - erfc_above(-x);
}

double scaled_erfc(double x) {
  if (x >= kNear) return x < 1e300 ? scaled_erfc_above(x) : 0.5641895835477563 / x;
  const DoubleDouble square = exact_product(x, x);
  return exp_of_sum(square.high, square.low) * erfc(x);
}

}  // namespace numemu::portable
