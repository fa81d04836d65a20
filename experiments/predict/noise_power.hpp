// Powers of tensors and their ratios in decibels, the unit of predictions and measurements.
#pragma once
#include "emu/net/tensor.hpp"

namespace numemu::experiments {

/// Mean of x^2 in float64; 0 for an empty tensor.
double mean_square(const net::Tensor& x);
/// 10 log10(signal / noise); +inf without noise, NaN when either is NaN.
double decibels(double signal, double noise);

}  // namespace numemu::experiments
