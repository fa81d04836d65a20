// Products computed by hand: operands quantized by the references, gathered into plain matrices,
// multiplied by the unit's reference.
#pragma once
#include <algorithm>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/op.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/unit.hpp"
#include "formats/random.hpp"
#include "policies/recipe/recipe_layer.hpp"

namespace numemu::policies::test {

/// Numbers of both signs around 1 with a spread of a few binades; a function of the seed.
inline net::Tensor noise(net::Shape shape, std::uint32_t seed) {
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

/// Element (r, k) of matrix b of a side, by `at(index)` of the source or `border` in the padding.
template <class T, class At>
std::vector<T> gathered(const net::ProductSide& side, std::int64_t b, std::int64_t rows,
                        std::int64_t depth, T border, const At& at) {
  const net::Stack& s = side.stack;
  const std::int64_t matrix_rows = s.rows(side.source->size());
  if (s.count() == 1) b = 0;
  const unit::Padding& p = side.gather->padding;
  std::vector<T> padded(static_cast<std::size_t>(p.padded_size()), border);
  for (std::int64_t i = 0; i < matrix_rows * s.width; ++i) {  // of the matrix
    const std::int64_t source =
        ((b / s.inner * matrix_rows + i / s.width) * s.inner + b % s.inner) * s.width + i % s.width;
    const std::int64_t c = i % p.channels, x = i / p.channels % p.width,
                       y = i / p.channels / p.width % p.height,
                       o = i / p.channels / p.width / p.height;
    const std::int64_t to = ((o * p.padded_height + p.top + y * p.row_dilation()) * p.padded_width +
                             p.left + x * p.dilation) *
                                p.channels +
                            c;
    padded[static_cast<std::size_t>(to)] = at(source);
  }
  std::vector<T> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < depth; ++k)
      out.push_back(padded[static_cast<std::size_t>(side.gather->row[r] + side.gather->depth[k])]);
  }
  return out;
}

/// D of matrix b from plain m x k and n x k matrices of float32 numbers.
inline std::vector<float> product_of(const unit::Unit& unit, const net::Product& p,
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

/// What D holds of matrix b.
inline std::vector<float> result_of(const net::Product& p, std::int64_t b) {
  std::vector<float> d;
  const std::int64_t inner = p.d_stack.inner;
  for (std::int64_t r = 0; r < p.m; ++r) {
    const float* row = p.d + ((b / inner * p.m + r) * inner + b % inner) * p.n;
    d.insert(d.end(), row, row + p.n);
  }
  return d;
}

/// How many numbers differ (NaN from anything), or -1 where there are more of one.
inline std::int64_t differences(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return -1;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += !(a[i] == b[i]);
  return count;
}

/// Forward and backward of an operator with one input, under fixed noise.
inline void run_op(net::Op& op, const net::Shape& shape, net::Numerics& numerics) {
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
  op.backward(call, inputs, &y, g, grad_inputs, grad_parameters, true);
}

inline RolePolicy element_policy(const char* format, Granularity granularity = Granularity::tensor,
                                 const char* rounding = "rne") {
  RolePolicy policy;
  policy.format = &find_format(format);
  policy.rounding = parse_rounding(rounding);
  policy.scale = "absmax";
  policy.granularity = granularity;
  return policy;
}

inline RolePolicy block_policy(const char* block, BlockAxis axis = BlockAxis::channel,
                               const char* rounding = "rne") {
  RolePolicy policy;
  policy.block = &find_block_format(block);
  policy.format = policy.block->element;
  policy.rounding = parse_rounding(rounding);
  policy.scale = policy.block->default_rule;
  policy.granularity = Granularity::block;
  policy.axis = axis;
  return policy;
}

inline std::shared_ptr<const unit::Unit> unit_named(const char* name) {
  return {&unit::find_unit(name), [](const unit::Unit*) {}};
}

/// All roles under one policy, all products on one unit.
inline LayerRecipe layer_recipe(const std::optional<RolePolicy>& policy, const char* unit) {
  LayerRecipe recipe;
  recipe.weight = recipe.activation = recipe.gradient_dgrad = recipe.gradient_wgrad = policy;
  recipe.fprop = recipe.dgrad = recipe.wgrad = unit_named(unit);
  return recipe;
}

}  // namespace numemu::policies::test
