// A classifier whose weights are rows of a Hadamard matrix, signs that training leaves as they are.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// Element (row, column) of the Hadamard matrix of any size 2^n (Sylvester's): -1 where row and
/// column have an odd number of bits in common, else 1.
float hadamard_element(std::int64_t row, std::int64_t column);

/// y [.., classes] = -scale H x / (|x| + 1e-8) + bias for x [.., features], H the first classes
/// rows and features columns of a Hadamard matrix, scale one trained number, at first classes^-1/2
/// (Hoffer et al., Fix your classifier, ICLR 2018; the sign is that of the published code). |y -
/// bias| is at most |scale| sqrt(features).
///
/// |x| is summed in float64; x / (|x| + 1e-8) is rounded to float32 and is the left operand of the
/// product, whose result times -scale plus bias is rounded twice. The bias starts at 0.
class HadamardClassifier final : public Op {
 public:
  /// Throws Error when a size is not positive.
  HadamardClassifier(std::int64_t features, std::int64_t classes);
  std::string_view kind() const override { return "hadamard_classifier"; }
  ResultKind result() const override { return ResultKind::product; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::vector<OpProduct> products() const override { return {{"", 0}}; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  std::optional<Use> input_use(std::size_t) const override { return Use::statistic; }
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t features_, classes_;
  std::vector<Parameter> parameters_;  // weight (never trained), scale, bias
};

}  // namespace numemu::net
