// Student's, the chi-squared and the binomial law, of portable functions: the same bits everywhere.
#pragma once

namespace numemu::stats {

/// The point that Student's t law with `degrees` of freedom exceeds with probability `tail` in
/// (0, 1).
double student_quantile(double degrees, double tail);
/// Its inverse: the probability that the law exceeds t.
double student_tail(double degrees, double t);

/// The point below which the chi-squared law has probability p in (0, 1); degrees > 0.
double chi_square_quantile(double degrees, double p);
/// Upper tail of the chi-squared law; degrees > 0.
double chi_square_tail(double statistic, double degrees);

/// P(X = i) of a binomial law of n trials with success probability p in [0, 1], 0 <= i <= n.
double binomial_probability(int n, int i, double p);

/// ln Gamma(x), x > 0.
double log_gamma(double x);

}  // namespace numemu::stats
