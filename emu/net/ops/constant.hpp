// A tensor that is part of the network.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// No inputs; y = value, a parameter, by default an untrained one.
class Constant final : public Op {
 public:
  explicit Constant(Tensor value, bool trained = false);
  std::string_view kind() const override { return "constant"; }
  ResultKind result() const override { return ResultKind::view; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::optional<Use> input_use(std::size_t) const override { return std::nullopt; }
  /// Throws Error when it is given inputs.
  Shape output_shape(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::vector<Parameter> parameters_;  // value
};

}  // namespace numemu::net
