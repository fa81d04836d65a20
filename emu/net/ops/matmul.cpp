// Stacked products: one description of the three stacks serves forward and both gradients.
#include "emu/net/ops/matmul.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// y (m x n) = a (m x k) x b, for every matrix of the stacks; `a` may be one matrix for all.
struct Plan {
  std::int64_t m, n, k;
  Stack a, b, y;
  Shape shape;  // of y
};

[[noreturn]] void refuse(const std::string& expected, const Shape& a, const Shape& b) {
  throw Error("matmul: expected " + expected + ", got " + to_string(a) + " and " + to_string(b));
}

Plan plan_heads(std::int64_t heads, bool scores, const Shape& a, const Shape& b) {
  const std::string h = std::to_string(heads);
  if (scores) {
    if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[2] || a[2] % heads != 0)
      refuse("[batch, t, " + h + " heads d] and [batch, s, " + h + " heads d]", a, b);
    const std::int64_t d = a[2] / heads;
    const Stack side{a[0], heads, d};
    return {a[1], b[1], d, side, side, {a[0] * heads, 1, b[1]}, {a[0], heads, a[1], b[1]}};
  }
  if (a.size() != 4 || b.size() != 3 || a[0] != b[0] || a[1] != heads || a[3] != b[1] ||
      b[2] % heads != 0) {
    refuse("[batch, " + h + " heads, t, s] and [batch, s, " + h + " heads d]", a, b);
  }
  const std::int64_t d = b[2] / heads;
  const Stack side{a[0], heads, d};
  return {a[2], d, a[3], {a[0] * heads, 1, a[3]}, side, side, {a[0], a[2], b[2]}};
}

Plan plan_numpy(bool transpose_b, const Shape& a, const Shape& b) {
  const std::string expected =
      transpose_b ? "[.., m, k] and [.., n, k]" : "[.., m, k] and [.., k, n]";
  if (a.size() < 2 || b.size() < 2) refuse(expected, a, b);
  const std::int64_t m = a[a.size() - 2], k = a.back();
  const std::int64_t n = transpose_b ? b[b.size() - 2] : b.back();
  if ((transpose_b ? b.back() : b[b.size() - 2]) != k) refuse(expected, a, b);
  const std::size_t leading = std::max(a.size(), b.size()) - 2;
  const auto lead = [&](const Shape& s) {
    Shape axes(leading - (s.size() - 2), 1);
    axes.insert(axes.end(), s.begin(), s.end() - 2);
    return axes;
  };
  const Shape lead_a = lead(a), lead_b = lead(b);
  const std::int64_t count_a = element_count(lead_a), count_b = element_count(lead_b);
  const std::int64_t width_b = transpose_b ? k : n;
  Shape shape = count_b == 1 ? lead_a : lead_b;
  shape.insert(shape.end(), {m, n});
  // One right operand for all: the left matrices are the rows of a single one.
  if (count_b == 1)
    return {count_a * m, n, k, {1, 1, k}, {1, 1, width_b}, {1, 1, n}, std::move(shape)};
  if (lead_a != lead_b && count_a != 1)
    refuse("leading axes that are equal or all 1 on one side", a, b);
  return {m, n, k, {count_a, 1, k}, {count_b, 1, width_b}, {count_b, 1, n}, std::move(shape)};
}

Plan make_plan(const MatMulOptions& o, const Shape& a, const Shape& b) {
  return o.heads > 0 ? plan_heads(o.heads, o.transpose_b, a, b) : plan_numpy(o.transpose_b, a, b);
}

void scale(float alpha, Tensor& y) {
  if (alpha == 1) return;
  float* const data = y.data.data();
  for_each_element(y.size(), [=](std::int64_t i) { data[i] = neutral(data[i] * alpha); });
}

// `count` matrices [rows, depth] or, transposed, [depth, rows], side by side along the depth.
unit::Gather joined(std::int64_t count, std::int64_t rows, std::int64_t depth, bool transposed) {
  if (count * rows * depth > std::numeric_limits<std::int32_t>::max()) {
    throw Error("matmul: " + std::to_string(count) + " matrices of " +
                std::to_string(rows * depth) +
                " elements are beyond the 2^31 a gather can address; use a smaller batch");
  }
  const unit::Gather one = unit::Gather::matrix(rows, depth, transposed);
  unit::Gather gather{one.padding, one.row, {}};
  gather.padding.outer *= count;
  gather.depth.reserve(static_cast<std::size_t>(count * depth));
  for (std::int64_t i = 0; i < count; ++i) {
    for (const std::int32_t offset : one.depth)
      gather.depth.push_back(static_cast<std::int32_t>(i * rows * depth) + offset);
  }
  return gather;
}

// Matrices [columns, rows] one after the other to a stack of [rows, columns].
void turn(std::span<const float> from, const Stack& stack, std::int64_t rows, Tensor& to) {
  const float* const source = from.data();
  float* const target = to.data.data();
  const std::int64_t columns = stack.width, inner = stack.inner;
  for_each_row(stack.outer * rows, inner * columns, [=](std::int64_t line) {
    const std::int64_t outer = line / rows, row = line % rows;
    for (std::int64_t i = 0; i < inner; ++i) {
      const float* const matrix = source + (outer * inner + i) * rows * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        target[(line * inner + i) * columns + c] = matrix[c * rows + row];
    }
  });
}

}  // namespace

MatMul::MatMul(const MatMulOptions& options)
    : Op({.kind = "matmul", .result = ResultKind::product, .products = {{"", -1}}}),
      options_(options) {
  if (options_.heads < 0 || !std::isfinite(options_.alpha)) {
    throw Error("matmul: expected heads of at least 0 and a finite alpha, got " +
                std::to_string(options_.heads) + " and " + std::to_string(options_.alpha));
  }
}

Shape MatMul::output_shape(Shapes inputs) const {
  if (inputs.size() != 2)
    throw Error("matmul: expected two inputs, got " + std::to_string(inputs.size()));
  return make_plan(options_, inputs[0], inputs[1]).shape;
}

void MatMul::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  const Plan p = make_plan(options_, a.shape, b.shape);
  const bool turned = !options_.transpose_b;
  const unit::Gather left = unit::Gather::matrix(p.m, p.k),
                     right = unit::Gather::matrix(p.n, p.k, turned);
  call.numerics.product(call.step, {call.layer,
                                    GemmKind::fprop,
                                    p.m,
                                    p.n,
                                    p.k,
                                    {&a, &left, Role::activation, p.a},
                                    {&b, &right, Role::activation, p.b, turned},
                                    output.data.data(),
                                    p.y});
  scale(options_.alpha, output);
}

void MatMul::backward(const OpCall& call, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Tensor &a = *back.inputs[0], &b = *back.inputs[1], &g = back.grad_output;
  const Plan p = make_plan(options_, a.shape, b.shape);
  const bool turned = !options_.transpose_b;
  {
    // The right gradient as [n, k] = g^T [n, m] x a [m, k].
    const unit::Gather left = unit::Gather::matrix(p.n, p.m, true),
                       right = unit::Gather::matrix(p.k, p.m, true);
    std::vector<float> aside(turned ? b.data.size() : 0);
    call.numerics.product(call.step, {call.layer,
                                      GemmKind::wgrad,
                                      p.n,
                                      p.k,
                                      p.m,
                                      {&g, &left, Role::gradient, p.y, true},
                                      {&a, &right, Role::activation, p.a, true},
                                      turned ? aside.data() : back.grad_inputs[1].data.data(),
                                      turned ? Stack{p.b.count(), 1, p.k} : p.b});
    if (turned) turn(aside, p.b, p.k, back.grad_inputs[1]);
    scale(options_.alpha, back.grad_inputs[1]);
  }
  const bool shared = p.a.count() < p.y.count();
  const std::int64_t count = shared ? p.y.count() : 1;
  const unit::Gather left = joined(count, p.m, p.n, false),
                     right = joined(count, p.k, p.n, options_.transpose_b);
  call.numerics.product(call.step,
                        {call.layer,
                         GemmKind::dgrad,
                         p.m,
                         p.k,
                         count * p.n,
                         {&g, &left, Role::gradient, shared ? Stack{.width = p.n} : p.y},
                         {&b, &right, Role::activation, shared ? Stack{.width = p.b.width} : p.b,
                          options_.transpose_b},
                         back.grad_inputs[0].data.data(),
                         p.a});
  scale(options_.alpha, back.grad_inputs[0]);
}

}  // namespace numemu::net
