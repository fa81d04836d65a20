// The largest or smallest elements along an axis, or their places.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

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
  std::string_view kind() const override { return options_.places ? "top_k_places" : "top_k"; }
  std::optional<Use> input_use(std::size_t) const override {
    return options_.places ? std::nullopt : std::optional(Use::index);
  }
  /// Throws Error unless there is one input that has the axis, of at least k elements.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  /// visit(result element, input element, its place along the axis) for every chosen one.
  template <class Visit>
  void for_each_chosen(const Tensor& x, const Visit& visit) const;

  TopKOptions options_;
};

}  // namespace numemu::net
