// Batch normalisation over the last axis, by the statistics of the batch or the running ones.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// Statistics of the columns of a matrix, in float64.
struct BatchStatistics {
  std::vector<double> mean;
  /// The mean squared deviation; for the range the square of the mean of C(n) (max - min) over the
  /// chunks; for shifts the mean of d AP2(d), d the deviation (core::power_of_two()).
  std::vector<double> variance;
  /// Range only, [chunks, channels]: the first row with the largest and the smallest value of each
  /// column in each chunk.
  std::vector<std::int64_t> largest, smallest;
  std::vector<double> share;  ///< range only, [chunks]: C(n) / chunks
};

/// Statistics of x [rows, channels], rows >= 2: sums over the fixed tree of net::column_sums, the
/// deviations from the mean in a second pass. Chunk i of k is rows [i rows / k, (i + 1) rows / k),
/// at least 2.
BatchStatistics batch_statistics(const float* x, std::int64_t rows, std::int64_t channels,
                                 const NormRule&);

/// C(n), n >= 2: C(n) times the range of n normal values estimates their standard deviation.
/// - exact: 1 / d2(n), d2(n) = E[range] of n standard normal values; relative error below 1e-11.
/// - published: 1 / sqrt(2 ln n) (Banner et al. 2018, Scalable Methods for 8-bit Training), which
///   tends to twice the deviation.
/// - repository: (0.35 / 2) (1 + sqrt(pi ln 4)) / sqrt(2 ln n), of the published code; 2 to 33 %
///   below the deviation.
double range_factor(NormRule::Constant, std::int64_t n);

struct BatchNormOptions {
  std::int64_t channels = 1;
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< weight of the new statistics, 0 to 1
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias for each channel of x [n, ...,
/// channels].
///
/// Computed as y = x a + b in float32 with a = weight / sqrt(variance + epsilon) and
/// b = bias - mean a in float64, each rounded once. In inference mean and variance are the running
/// ones. In training they are those of the batch over all leading axes, in float64, two passes;
/// running' = (1 - momentum) running + momentum new goes to the call's buffers, with the unbiased
/// variance (n / (n - 1), as PyTorch documents). The numerics may select (NormRule)
/// - ghost batches: each `ghost_batch` consecutive samples have statistics of their own, which
///   enter the running ones in turn (Hoffer et al. 2017);
/// - range: the square of the mean of C(n) (max - min) over `chunks` consecutive parts of n values
///   takes the place of the variance everywhere (Banner et al. 2018; C(n): range_factor()); no
///   unbiased form. Its gradient goes to the first largest and the first smallest value of each
///   part;
/// - shift: the mean of d AP2(d), d = x - mean, takes the place of the variance, no unbiased
///   form; AP2(1 / deviation) and AP2(weight), also in inference, those of their arguments,
///   so that every product is one by a power of two (Hubara et al. 2016; AP2:
///   core::power_of_two()). Its gradients are those of the variance with these factors: AP2 counts
///   as the identity.
/// Training leaves means and inverse deviations, [groups, 2, channels], in the context.
///
/// Backward reads x as `linear`: the weight's gradient sum g u, u = (x - mean) / deviation, is
/// linear in x. dx has one term that is not, weight / deviation u mean(g u): a copy of x with
/// independent unbiased errors of variance v adds -weight / deviation^3 g v / n, one n-th of a
/// gradient. Under the range rule dx also depends on the copy's ends, and is biased.
class BatchNorm final : public Op {
 public:
  /// Throws Error when an option is out of range.
  explicit BatchNorm(const BatchNormOptions&);
  const BatchNormOptions& options() const { return options_; }
  /// Throws Error unless there is one input [n, ..., channels].
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  BatchNormOptions options_;
};

}  // namespace numemu::net
