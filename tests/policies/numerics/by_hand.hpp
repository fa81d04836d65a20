// Products computed by hand: operands quantized by the references, gathered into plain matrices,
// multiplied by the unit's reference.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/op.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/unit.hpp"
#include "formats/random.hpp"
#include "policies/numerics/layer_state.hpp"

namespace numemu::policies::test {

/// Numbers of both signs around 1 with a spread of a few binades; a function of the seed.
net::Tensor noise(net::Shape shape, std::uint32_t seed);

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

/// y = x w^T of lines of one width, and what it reads.
struct PlainProduct {
  PlainProduct(const net::Tensor& x, const net::Tensor& w);
  PlainProduct(const PlainProduct&) = delete;
  unit::Gather a, b;
  net::Tensor y;
  net::Product p;
};

/// D of matrix b from plain m x k and n x k matrices of float32 numbers.
std::vector<float> product_of(const unit::Unit& unit, const net::Product& p,
                              const std::vector<float>& a, const std::vector<float>& b);

/// What D holds of matrix b.
std::vector<float> result_of(const net::Product& p, std::int64_t b);

/// How many numbers differ (NaN from anything), or -1 where there are more of one.
std::int64_t differences(const std::vector<float>& a, const std::vector<float>& b);

/// Forward and backward of an operator with one input, under fixed noise.
void run_op(net::Op& op, const net::Shape& shape, net::Numerics& numerics);

RolePolicy element_policy(const char* format, Granularity granularity = Granularity::tensor,
                          const char* rounding = "rne");

RolePolicy block_policy(const char* block, BlockAxis axis = BlockAxis::channel,
                        const char* rounding = "rne");

std::shared_ptr<const unit::Unit> unit_named(const char* name);

/// All roles under one policy, all products on one unit.
LayerRecipe layer_recipe(const std::optional<RolePolicy>& policy, const char* unit);

}  // namespace numemu::policies::test
