// Operators along axes: sums, means, extremes, norms and products (one row of a table each),
// running sums, the largest elements.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

struct ReduceRule {
  /// What is added up over the axes; or what is chosen or multiplied instead.
  enum class Over : std::uint8_t {
    sum,
    mean,
    magnitude,
    square,
    exponential,
    product,
    most,
    least
  };
  /// What becomes of the total.
  enum class Then : std::uint8_t { nothing, root, logarithm };

  std::string_view kind;
  std::string_view onnx;
  std::string_view formula;
  Over over;
  Then then = Then::nothing;
  std::optional<Use> use = std::nullopt;  ///< what the gradient reads x for
};

std::span<const ReduceRule> reduce_rules();

/// An operator of the table over `axes`: sums pairwise in float64, products in float64 in row-major
/// order, rounded once. With `keep` these axes stay with extent 1, else they go. Equal extremes
/// share the gradient.
class Reduce final : public Op {
 public:
  /// Negative axes count from the end; none at all means every axis. Throws Error for an unknown
  /// kind, with the nearest known one.
  explicit Reduce(std::string_view kind, std::vector<std::int64_t> axes = {}, bool keep = true);
  /// Throws Error when the input lacks an axis, has one twice, or has no elements along one.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::vector<bool> reduced(const Shape& x) const;

  const ReduceRule& rule_;
  std::vector<std::int64_t> axes_;
  bool keep_;
};

struct CumulativeSumOptions {
  std::int64_t axis = -1;
  bool exclusive = false;  ///< without the element itself
  bool reverse = false;    ///< from the last element on
};

/// y[i] = x[0] + .. + x[i] along one axis: added in order in float64, each rounded once.
class CumulativeSum final : public Op {
 public:
  explicit CumulativeSum(const CumulativeSumOptions& options)
      : Op({.kind = "cumulative_sum", .inputs = kNoInput}), options_(options) {}
  /// Throws Error unless there is one input with that axis.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  CumulativeSumOptions options_;
};

struct TopKOptions {
  std::int64_t axis = -1;
  std::int64_t k = 1;
  bool largest = true;
  bool places = false;      ///< y is where they lie along the axis, else they themselves
  bool last_first = false;  ///< of equal elements the later one comes first, else the earlier one
  bool keep = true;         ///< with k = 1: false drops the axis
};

/// [.., n, ..] -> [.., k, ..], in order. NaN counts as the largest. The gradient goes to the chosen
/// elements; places have none.
class TopK final : public Op {
 public:
  /// Throws Error unless k >= 1, and k = 1 where the axis is dropped.
  explicit TopK(const TopKOptions&);
  /// Throws Error unless there is one input that has the axis, of at least k elements.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  /// visit(result element, input element, its place along the axis) for every chosen one.
  template <class Visit>
  void for_each_chosen(const Tensor& x, const Visit& visit) const;

  TopKOptions options_;
};

}  // namespace numemu::net
