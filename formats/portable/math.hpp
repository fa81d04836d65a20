// Elementary functions of doubles from IEEE operations alone: the same bits on every machine, which
// no C library promises. Zeros, infinities, NaN, overflow and underflow give what ISO C, annex F,
// asks.
#pragma once

namespace numemu::portable {

// Within 1 ulp.
double exp(double x);
double exp2(double x);
double log(double x);
double log2(double x);   ///< exact for powers of two
double log10(double x);  ///< exact for powers of ten
double log1p(double x);
double pow(double x, double y);
double hypot(double x, double y);

// Within 2 ulp.
double expm1(double x);

// Within 5 ulp.
double tanh(double x);
double atanh(double x);
double acos(double x);
double erf(double x);
/// Its rest to 1, in the upper tail too.
double erfc(double x);
/// exp(x^2) erfc(x), without overflow for x >= -26.6.
double scaled_erfc(double x);

/// exp(high + low), |low| <= ulp(high): the exponential of a product or square without its
/// rounding.
double exp_of_sum(double high, double low);

}  // namespace numemu::portable
