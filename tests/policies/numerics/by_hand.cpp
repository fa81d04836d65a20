#include "tests/policies/numerics/by_hand.hpp"

namespace numemu::policies::test {

net::Tensor noise(net::Shape shape, std::uint32_t seed) {
  net::Tensor x(std::move(shape));
  RandomSource source;
  source.seed = seed;
  source.stream = Stream::vectors;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double u = source.uniform(static_cast<std::uint64_t>(i)) - 0.5;
    x.data[i] = static_cast<float>(u * u * u * 16);
  }
  return x;
}

PlainProduct::PlainProduct(const net::Tensor& x, const net::Tensor& w)
    : a(unit::Gather::matrix(x.dim(0), x.dim(1))),
      b(unit::Gather::matrix(w.dim(0), x.dim(1))),
      y({x.dim(0), w.dim(0)}) {
  p.layer = "fc";
  p.m = x.dim(0);
  p.n = w.dim(0);
  p.k = x.dim(1);
  p.a = {&x, &a, net::Role::activation, {.width = p.k}};
  p.b = {&w, &b, net::Role::weight, {.width = p.k}};
  p.d = y.data.data();
  p.d_stack = {.width = p.n};
}

std::vector<float> product_of(const unit::Unit& unit, const net::Product& p,
                              const std::vector<float>& a, const std::vector<float>& b) {
  const unit::Gather ga = unit::Gather::matrix(p.m, p.k), gb = unit::Gather::matrix(p.n, p.k);
  const Format& float32 = find_format("float32");
  std::vector<float> d(static_cast<std::size_t>(p.m * p.n));
  unit::Gemm gemm;
  gemm.m = p.m;
  gemm.n = p.n;
  gemm.k = p.k;
  gemm.a = {&float32, a.data(), &ga};
  gemm.b = {&float32, b.data(), &gb};
  gemm.d = d.data();
  unit.multiply_reference(gemm);
  return d;
}

std::vector<float> result_of(const net::Product& p, std::int64_t b) {
  std::vector<float> d;
  const std::int64_t inner = p.d_stack.inner;
  for (std::int64_t r = 0; r < p.m; ++r) {
    const float* row = p.d + ((b / inner * p.m + r) * inner + b % inner) * p.n;
    d.insert(d.end(), row, row + p.n);
  }
  return d;
}

std::int64_t differences(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return -1;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += !(a[i] == b[i]);
  return count;
}

void run_op(net::Op& op, const net::Shape& shape, net::Numerics& numerics) {
  op.parameters()[0].value = noise(op.parameters()[0].value.shape, 1);
  const net::Tensor x = noise(shape, 2);
  const std::vector<const net::Tensor*> inputs = {&x};
  const std::vector<net::Shape> shapes = {shape};
  net::Tensor y(op.output_shape(shapes));
  const net::OpCall call{"layer", numerics, net::Phase::training};
  op.forward(call, inputs, y);
  const net::Tensor g = noise(y.shape, 3);
  std::vector<net::Tensor> grad_inputs{net::Tensor(shape)}, grad_parameters;
  for (const net::Parameter& parameter : op.parameters())
    grad_parameters.emplace_back(parameter.value.shape);
  op.backward(call, {inputs, &y, g, grad_inputs, grad_parameters, true});
}

RolePolicy element_policy(const char* format, Granularity granularity, const char* rounding) {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.rounding = parse_rounding(rounding);
  policy.scale = "absmax";
  policy.granularity = granularity;
  return policy;
}

RolePolicy block_policy(const char* block, BlockAxis axis, const char* rounding) {
  RolePolicy policy;
  policy.block = &find_block_format(block);
  policy.format = policy.block->element;
  policy.rounding = parse_rounding(rounding);
  policy.scale = policy.block->default_rule;
  policy.granularity = Granularity::block;
  policy.axis = axis;
  return policy;
}

std::shared_ptr<const unit::Unit> unit_named(const char* name) {
  return {&unit::find_unit(name), [](const unit::Unit*) {}};
}

LayerRecipe layer_recipe(const std::optional<RolePolicy>& policy, const char* unit) {
  LayerRecipe recipe;
  recipe[policies::RolePart::weight] = recipe[policies::RolePart::activation] =
      recipe[policies::RolePart::gradient_dgrad] = recipe[policies::RolePart::gradient_wgrad] =
          policy;
  recipe.fprop = recipe.dgrad = recipe.wgrad = unit_named(unit);
  return recipe;
}

}  // namespace numemu::policies::test
