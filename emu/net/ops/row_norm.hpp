// Shared by layer, group and root mean square normalisation: statistics of each row.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y = (x - m) / sqrt(mean((x - m)^2) + epsilon) * weight [+ bias] for each row x [.., size] of the
/// last axis, or of each group of channels; m is the row's mean and there is a bias where
/// `centred`, else m = 0. Statistics in float64 by a fixed tree, computed again in backward.
class RowNorm : public Op {
 public:
  std::string_view kind() const final { return kind_; }
  using Op::parameters;
  std::span<Parameter> parameters() final { return parameters_; }
  std::optional<Use> input_use(std::size_t) const final { return Use::statistic; }
  std::int64_t size() const { return size_; }
  double epsilon() const { return epsilon_; }
  /// Throws Error unless there is one input whose last axis, or with groups the second one, has
  /// `size` elements.
  Shape output_shape(std::span<const Shape> inputs) const final;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const final;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const final;

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

  std::string_view kind_;
  std::int64_t size_;
  double epsilon_;
  bool centred_;
  std::int64_t groups_;
  std::vector<Parameter> parameters_;  // weight, then bias if centred
};

}  // namespace numemu::net
