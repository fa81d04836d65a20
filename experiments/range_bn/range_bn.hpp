// Closed forms of Scalable 8-bit training: ranges of normal numbers, angles of quantized vectors.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/numerics.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::range_bn {

/// E[max - min] of n standard normal numbers lies between
/// 2 sqrt(2 ln n) / (1 + sqrt(pi ln 4)) and 2 sqrt(2 ln n) (Banner et al. 2018).
double least_range(std::int64_t n);
double most_range(std::int64_t n);
/// Mean estimates of the deviation of n standard normal numbers whose E[range] is `d2`: by the
/// published constant 1 / sqrt(2 ln n), and by that of the published code,
/// 0.175 (1 + sqrt(pi ln 4)) / sqrt(2 ln n).
double published_estimate(std::int64_t n, double d2);
double repository_estimate(std::int64_t n, double d2);

/// What a min-max quantizer of that many bits makes of numbers: codes RNE((x - min) / D) with
/// D = (max - min) / (2^bits - 1), computed in float64 in this order (GEMMLOWP).
struct MinMax {
  double low = 0, step = 0;  ///< an element is low + code step
  std::vector<int> codes;
};
MinMax min_max(const std::vector<float>& x, int bits);

/// <x, y> / (|x| |y|), y the quantized numbers, or their signs.
double cosine(const std::vector<float>& x, const MinMax&);
double sign_cosine(const std::vector<float>& x);

/// 1 / sqrt(1 + step^2 / (12 variance)): errors uniform and independent of x.
double model_cosine(double step, double variance);
/// The cosine of standard normal numbers between the ends of the codes, exactly, by the cell of
/// each code: drawn numbers are such ones, but for the two at the ends.
double normal_cosine(double low, double step, int bits);
/// The published lower bound 2^bits / (2^bits + sqrt(ln n)).
double least_cosine(int bits, std::int64_t n);
/// sqrt(2 / pi): signs of normal numbers.
double normal_sign_cosine();
/// In degrees.
double angle_of(double cosine);

/// Deviations estimated from ranges of normal numbers (settings sizes, samples).
void add_statistics(const ExperimentRun&, Conclusion&);

/// The angle between numbers and their min-max codes: normal numbers and the weights of a network
/// (settings numbers, repeats, bits, net, gradient_train).
void add_angles(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Networks trained with batch and range normalisation, with the backward of the variance on
/// ranges, and in 8 bits (settings net, epochs, batch, train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Numerics under which the forward pass of every norm is that of `inner` and its backward pass
/// takes the statistics for those of the variance: a contrast, not a rule that anyone should use.
std::unique_ptr<net::Numerics> variance_backward(net::Numerics& inner);

}  // namespace numemu::experiments::range_bn
