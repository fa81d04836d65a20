// Dense layers: three products of plain matrices, transposed by their gathers.
#include "emu/net/ops/dense.hpp"

namespace numemu::net {

using unit::Gather;

void dense_forward(const OpCall& call, const Repeated& product, const Tensor& x,
                   const Tensor& weight, Tensor& y) {
  const std::int64_t out = weight.dim(0), in = weight.dim(1), rows = x.size() / in;
  const Gather a = Gather::matrix(rows, in), b = Gather::matrix(out, in);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::fprop,
                                    rows,
                                    out,
                                    in,
                                    {&x, &a, Role::activation, {.width = in}},
                                    {&weight, &b, Role::weight, {.width = in}},
                                    y.data.data(),
                                    {.width = out},
                                    product.repetition,
                                    product.repetitions});
}

void dense_input_gradient(const OpCall& call, const Repeated& product, const Tensor& grad_y,
                          const Tensor& weight, Tensor& grad_x) {
  const std::int64_t out = weight.dim(0), in = weight.dim(1), rows = grad_y.size() / out;
  const Gather a = Gather::matrix(rows, out), b = Gather::matrix(in, out, true);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::dgrad,
                                    rows,
                                    in,
                                    out,
                                    {&grad_y, &a, Role::gradient, {.width = out}},
                                    {&weight, &b, Role::weight, {.width = in}, true},
                                    grad_x.data.data(),
                                    {.width = in},
                                    product.repetition,
                                    product.repetitions});
}

void dense_weight_gradient(const OpCall& call, const Repeated& product, const Tensor& grad_y,
                           const Tensor& x, Tensor& grad_weight) {
  if (grad_weight.empty()) return;
  const std::int64_t out = grad_weight.dim(0), in = grad_weight.dim(1), rows = x.size() / in;
  const Gather a = Gather::matrix(out, rows, true), b = Gather::matrix(in, rows, true);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::wgrad,
                                    out,
                                    in,
                                    rows,
                                    {&grad_y, &a, Role::gradient, {.width = out}, true},
                                    {&x, &b, Role::activation, {.width = in}, true},
                                    grad_weight.data.data(),
                                    {.width = in},
                                    product.repetition,
                                    product.repetitions});
}

}  // namespace numemu::net
