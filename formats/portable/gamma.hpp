// Gamma and beta functions and their shares, on portable functions alone: the same bits on every
// machine and with every version of a library.
#pragma once

namespace numemu::portable {

/// ln Gamma(x), x > 0; absolute error about 1e-15 near 1 and 2.
double log_gamma(double x);

/// Two parts of 1, each to its own relative accuracy, about 1e-14.
struct Shares {
  double below, above;
};
/// The gamma law of shape a > 0 below and above x >= 0.
Shares gamma_shares(double a, double x);
/// The beta law of shapes a, b > 0 below and above x; x + y = 1, so that neither loses digits.
Shares beta_shares(double a, double b, double x, double y);

/// Gamma(n+1) / (Gamma(i+1) Gamma(n-i+1)) p^i q^(n-i), 0 <= i <= n, q = 1 - p.
double binomial_density(double n, double i, double p, double q);

/// The point in [low, high] to the last bit at which `below`, true at low, becomes false.
template <class Below>
double crossing(double low, double high, const Below& below) {
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) return low;
    (below(middle) ? low : high) = middle;
  }
}

}  // namespace numemu::portable
