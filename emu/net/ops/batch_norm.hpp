// Batch normalisation over the last axis, by the statistics of the batch or the running ones.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

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
  std::string_view kind() const override { return "batch_norm"; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  const BatchNormOptions& options() const { return options_; }
  bool in_place() const override { return true; }
  /// Throws Error unless there is one input [n, ..., channels].
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  BatchNormOptions options_;
  std::vector<Parameter> parameters_;  // weight, bias, running_mean, running_variance
};

}  // namespace numemu::net
