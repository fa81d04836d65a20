// The functions of one or two variables that operators need: fixed polynomials of our own in
// float64, the same bits on every CPU and with every libm.
#pragma once

namespace numemu::net {

// Loops over large tensors use the same functions in float64, which vectorise:
// formats/portable/vector_functions.hpp.

/// e^x within 1 ulp of float32; 0 below -103.98, +inf above 88.73, NaN for NaN.
float exp(float x);
/// ln x within 1 ulp of float32; -inf for 0, NaN for negatives.
float log(float x);
/// tanh x within 1 ulp of float32.
float tanh(float x);
/// The logistic function 1 / (1 + e^-x) within 1 ulp of float32.
float sigmoid(float x);
/// The error function within 1 ulp of float32.
float erf(float x);
/// Phi(x) = (1 + erf(x / sqrt 2)) / 2 within 1 ulp of float32, in its lower tail too.
float normal_cdf(float x);
/// x^y within 1 ulp of float32, correctly rounded for y = 2; special cases as in IEEE
/// 754-2019 9.2.1 (pow).
float pow(float x, float y);
/// sin x, cos x and tan x (x in radians, of any size) within 1 ulp of float32; NaN for infinities.
float sin(float x);
float cos(float x);
float tan(float x);
/// cos(pi x) within 2^-48, for |x| < 2^51.
double cos_pi(double x);

}  // namespace numemu::net
