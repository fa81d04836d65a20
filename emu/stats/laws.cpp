// Boost.Math, instantiated nowhere else above formats/.
#include "emu/stats/laws.hpp"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>

namespace numemu::stats {

double student_quantile(double degrees, double tail) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), tail));
}

double student_tail(double degrees, double t) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), t));
}

double chi_square_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::chi_squared(degrees), p);
}

double chi_square_tail(double statistic, double degrees) {
  return statistic <= 0 ? 1 : boost::math::gamma_q(degrees / 2, statistic / 2);
}

double binomial_probability(int n, int i, double p) {
  return boost::math::pdf(boost::math::binomial(n, p), i);
}

double log_gamma(double x) { return boost::math::lgamma(x); }

}  // namespace numemu::stats
