// Fully connected: three products of plain matrices, transposed by their gathers.
#include "emu/net/ops/linear.hpp"

#include "emu/net/ops/bias.hpp"
#include "formats/error.hpp"

namespace numemu::net {

using unit::Gather;

Linear::Linear(std::int64_t in, std::int64_t out, bool bias) : in_(in), out_(out) {
  if (in < 1 || out < 1) throw Error("linear: the numbers of inputs and outputs must be positive");
  parameters_.push_back({"weight", Tensor({out, in}), in});
  if (bias) parameters_.push_back({"bias", Tensor({out}), 0});
}

Shape Linear::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 2 || inputs[0][1] != in_) {
    throw Error("linear: expected one input [batch, " + std::to_string(in_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  return {inputs[0][0], out_};
}

void Linear::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                     Tensor& output) const {
  const Tensor& x = *inputs[0];            // [batch, in]
  const Tensor& w = parameters_[0].value;  // [out, in]
  const Gather a = Gather::matrix(x.dim(0), in_), b = Gather::matrix(out_, in_);
  call.numerics.product({call.layer,
                         GemmKind::fprop,
                         x.dim(0),
                         out_,
                         in_,
                         {&x, &a, Role::activation, 1},
                         {&w, &b, Role::weight, 1},
                         output.data.data()});
  if (parameters_.size() > 1) add_bias(parameters_[1].value, output);
}

void Linear::backward(const OpCall& call, std::span<const Tensor* const> inputs, const Tensor*,
                      const Tensor& grad_output, std::span<Tensor> grad_inputs,
                      std::span<Tensor> grad_parameters, bool want_inputs) const {
  const Tensor& x = *inputs[0];            // [batch, in]
  const Tensor& w = parameters_[0].value;  // [out, in]
  const Tensor& g = grad_output;           // [batch, out]
  const std::int64_t batch = x.dim(0);
  if (parameters_.size() > 1) bias_gradient(g, grad_parameters[1]);
  {
    const Gather a = Gather::matrix(out_, batch, true), b = Gather::matrix(in_, batch, true);
    call.numerics.product({call.layer,
                           GemmKind::wgrad,
                           out_,
                           in_,
                           batch,
                           {&g, &a, Role::gradient, 0},
                           {&x, &b, Role::activation, 0},
                           grad_parameters[0].data.data()});
  }
  if (!want_inputs) return;
  const Gather a = Gather::matrix(batch, out_), b = Gather::matrix(in_, out_, true);
  call.numerics.product({call.layer,
                         GemmKind::dgrad,
                         batch,
                         in_,
                         out_,
                         {&g, &a, Role::gradient, 1},
                         {&w, &b, Role::weight, 0},
                         grad_inputs[0].data.data()});
}

}  // namespace numemu::net
