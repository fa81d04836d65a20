// Fully connected: the products of a dense layer, and a bias.
#include "emu/net/ops/linear.hpp"

#include <utility>

#include "emu/net/ops/bias.hpp"
#include "emu/net/ops/dense.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Linear::Linear(std::int64_t in, std::int64_t out, bool bias) : in_(in), out_(out) {
  if (in < 1 || out < 1) throw Error("linear: the numbers of inputs and outputs must be positive");
  parameters_.push_back({"weight", Tensor({out, in}), in});
  if (bias) parameters_.push_back({"bias", Tensor({out}), 0});
}

Linear::Linear(Tensor weight, bool bias) : in_(weight.dim(1)), out_(weight.dim(0)) {
  if (weight.empty()) throw Error("linear: the numbers of inputs and outputs must be positive");
  parameters_.push_back({"weight", std::move(weight), in_});
  if (bias) parameters_.push_back({"bias", Tensor({out_}), 0});
}

Shape Linear::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0].back() != in_) {
    throw Error("linear: expected one input [batch, ..., " + std::to_string(in_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.back() = out_;
  return shape;
}

void Linear::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                     Tensor& output) const {
  dense_forward(call, {call.layer}, *inputs[0], parameters_[0].value, output);
  if (parameters_.size() > 1) add_bias(parameters_[1].value, output);
}

void Linear::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs,
                      std::span<Tensor> grad_parameters, bool want_inputs) const {
  if (parameters_.size() > 1) bias_gradient(grad_output, grad_parameters[1]);
  dense_weight_gradient(call, {call.layer}, grad_output, *inputs[0], grad_parameters[0]);
  if (!want_inputs) return;
  dense_input_gradient(call, {call.layer}, grad_output, parameters_[0].value, grad_inputs[0]);
}

}  // namespace numemu::net
