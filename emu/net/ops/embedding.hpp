// Rows of a trained table, selected by index.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// [batch, ...] of whole numbers in [0, count), as floats -> [batch, ..., width], rows of weight
/// [count, width]. A row's gradient is the pairwise float64 sum over its readers, rounded once;
/// the numbers have none (zeros). The result is `vector`: here the rows become an activation.
class Embedding final : public Op {
 public:
  /// Throws Error when a size is not positive or count is beyond 2^24, the whole numbers of
  /// float32.
  Embedding(std::int64_t count, std::int64_t width);
  /// With that table [count, width], without a copy.
  explicit Embedding(Tensor table);
  std::string_view kind() const override { return "embedding"; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::optional<Use> input_use(std::size_t) const override { return Use::index; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  /// Throws Error naming the layer and the element for a number that is not a row.
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<std::int64_t> row_numbers(std::string_view layer, const Tensor&) const;

  std::int64_t count_, width_;
  std::vector<Parameter> parameters_;  // weight
};

}  // namespace numemu::net
