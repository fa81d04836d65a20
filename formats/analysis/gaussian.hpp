// Pieces of the standard normal law that keep their relative accuracy in both tails.
#pragma once

namespace numemu::gaussian {

/// The density exp(-z^2/2) / sqrt(2 pi); 0 at infinity.
double pdf(double z);
/// P(Z <= z), accurate to a few ulp in the lower tail too.
double cdf(double z);
/// P(a <= Z <= b) for a <= b, from the tail where both numbers are small.
double between(double a, double b);
/// exp(t^2) erfc(t) for t >= 0, without overflow.
double scaled_erfc(double t);

}  // namespace numemu::gaussian
