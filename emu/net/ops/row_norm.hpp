// Layer, group and root mean square normalisation: statistics of each row.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y = (x - m) / sqrt(mean((x - m)^2) + epsilon) * weight [+ bias] for each row x [.., size] of the
/// last axis, or of each group of channels; m is the row's mean and there is a bias where
/// `centred`, else m = 0. Statistics in float64 by a fixed tree, computed again in backward.
class RowNorm : public Op {
 public:
  std::int64_t size() const { return size_; }
  double epsilon() const { return epsilon_; }
  /// Throws Error unless there is one input whose last axis, or with groups the second one, has
  /// `size` elements.
  Shape output_shape(Shapes inputs) const final;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const final;
  void backward(const OpCall&, const OpBackward&) const final;

 protected:
  /// `groups` 0: rows are the last axis, of `size` elements. Else the input is [n, size, ..], and
  /// a row is one of so many equal groups of channels with all that is behind them.
  RowNorm(std::string_view kind, std::int64_t size, double epsilon, bool centred,
          std::int64_t groups = 0);

 private:
  /// How the elements of a shape are rows, and which parameter each element has.
  struct Rows {
    std::int64_t count = 1, length = 1;
    std::int64_t run = 1;     ///< neighbours of one parameter
    std::int64_t groups = 1;  ///< rows after which the parameters repeat

    std::int64_t parameter(std::int64_t row, std::int64_t i) const {
      return row % groups * (length / run) + i / run;
    }
  };
  Rows rows_of(const Shape&) const;
  template <class Term>
  void sum_to_parameter(const Rows&, Tensor& gradient, const Term& term) const;

  std::int64_t size_;
  double epsilon_;
  bool centred_;
  std::int64_t groups_;
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis (the variance
/// divides by `size`), in float64, rounded once.
class LayerNorm final : public RowNorm {
 public:
  /// Throws Error unless size and epsilon are positive.
  explicit LayerNorm(std::int64_t size, double epsilon = 1e-5)
      : RowNorm("layer_norm", size, epsilon, true) {}
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias for x [n, channels, ..], with the mean
/// and the variance of each sample and group of neighbouring channels, and a weight and a bias for
/// each channel; in float64, rounded once (Wu and He 2018; Ulyanov et al. 2016).
class GroupNorm final : public RowNorm {
 public:
  /// Throws Error unless all are positive and the groups are equal.
  GroupNorm(std::int64_t channels, std::int64_t groups, double epsilon = 1e-5)
      : RowNorm("group_norm", channels, epsilon, true, groups) {}
};

/// y = x / sqrt(mean(x^2) + epsilon) * weight along the last axis, in float64, rounded once (Zhang
/// and Sennrich 2019).
class RmsNorm final : public RowNorm {
 public:
  /// Throws Error unless size and epsilon are positive.
  explicit RmsNorm(std::int64_t size, double epsilon = 1e-6)
      : RowNorm("rms_norm", size, epsilon, false) {}
};

}  // namespace numemu::net
