// A fully connected layer: y = x W^T + b.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// y [batch, .., out] = x [batch, .., in] * weight [out, in]^T + bias [out]; the bias is added
/// after the product.
class Linear final : public Op {
 public:
  /// Throws Error when a size is not positive.
  Linear(std::int64_t in, std::int64_t out, bool bias = true);
  /// With that weight [out, in], without a copy; the bias is zero.
  Linear(Tensor weight, bool bias);
  std::string_view kind() const override { return "linear"; }
  ResultKind result() const override { return ResultKind::product; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::vector<OpProduct> products() const override { return {{"", 0}}; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t in_, out_;
  std::vector<Parameter> parameters_;  // weight, then bias if there is one
};

}  // namespace numemu::net
