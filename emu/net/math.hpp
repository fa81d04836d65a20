// exp, log and cosine of our own: fixed series, at most 1 ulp, the same bits on every CPU and with
// every libm.
#pragma once

namespace numemu::net {

/// e^x within 1 ulp of float32; 0 below -103.98, +inf above 88.73, NaN for NaN.
float exp(float x);
/// ln x within 1 ulp of float32; -inf for 0, NaN for negatives.
float log(float x);
/// cos(pi x) within 2^-48, for |x| < 2^51.
double cos_pi(double x);

}  // namespace numemu::net
