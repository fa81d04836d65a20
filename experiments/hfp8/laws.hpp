// Closed forms of HFP8: rounding noise of a floating format, sums that stall in a short register,
// what re-estimated statistics remove.
#pragma once
#include <functional>

#include "formats/analysis/density.hpp"
#include "formats/format.hpp"

namespace numemu::experiments::hfp8 {

// Sources: specs/training.md, 'HFP8', and specs/mechanisms.md, 'Accumulators in closed form'.

/// E[(err / x)^2] to nearest with m mantissa bits for log-uniform x: 3 / (8 ln 2) 4^-m / 12.
double relative_noise(int mantissa);
/// E[err^2] / E[x^2] of the same over whole binades: ln 2 / 18 4^-m.
double noise_to_signal(int mantissa);

/// The mean and the variance of what one addition adds to a register whose last place is u.
struct Added {
  double mean = 0, variance = 0;
};
using AddedAt = std::function<Added(double ulp)>;
/// Of numbers p of that law: u round(p / u), the variance about p.
AddedAt added_by(std::shared_ptr<const Density>, double mean);
/// Of the same number v every time, ties to even.
AddedAt added_by(double v);

/// The sum of K positive-mean numbers, added one by one to a register of `mantissa` bits to
/// nearest: binade after binade, 2^n / g(2^(n-mantissa)) additions in each. Relative error of the
/// expectation.
double expected_sum(const AddedAt&, double mean, double count, int mantissa);
/// In chunks: sums of `chunk` numbers, then the sum of those. `deviation`: of one number.
double expected_chunked_sum(const AddedAt&, double mean, double deviation, double count,
                            double chunk, int mantissa);

/// The share of the noise of a normalised linear layer that statistics of the quantized layer leave
/// over those of the float32 layer: errors of weights shift a channel's mean where inputs have one,
/// and re-estimation takes that shift away. `of_weights` and `of_inputs`: noise to signal of the
/// operands; `mean_square`: E[x]^2 / E[x^2] of the inputs.
double retuned_share(double of_weights, double of_inputs, double mean_square);

}  // namespace numemu::experiments::hfp8
