// Sums, means, extremes, norms and products over some axes, one row of a table each.
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
  std::string_view kind() const override { return rule_.kind; }
  std::optional<Use> input_use(std::size_t) const override { return rule_.use; }
  /// Throws Error when the input lacks an axis, has one twice, or has no elements along one.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<bool> reduced(const Shape& x) const;

  const ReduceRule& rule_;
  std::vector<std::int64_t> axes_;
  bool keep_;
};

}  // namespace numemu::net
