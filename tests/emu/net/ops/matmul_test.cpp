// Stacked products against loops in float64 and against the fused chain, their stacks and roles.
#include "emu/net/ops/matmul.hpp"

#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::matmul_test {
namespace {

// Matrices of a case: element (matrix, row, column) of each tensor as a flat index.
struct Case {
  std::string name;
  MatMulOptions options;
  Shape a, b, y;
  std::int64_t count, m, n, k;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"plain", {}, {3, 4}, {4, 5}, {3, 5}, 1, 3, 5, 4},
      {"plain, transposed", {.transpose_b = true}, {3, 4}, {5, 4}, {3, 5}, 1, 3, 5, 4},
      {"stacked", {}, {2, 3, 4, 2}, {2, 3, 2, 5}, {2, 3, 4, 5}, 6, 4, 5, 2},
      {"stacked, transposed, alpha",
       {.transpose_b = true, .alpha = 0.3f},
       {4, 3, 2},
       {4, 5, 2},
       {4, 3, 5},
       4,
       3,
       5,
       2},
      {"one right", {.alpha = 0.7f}, {2, 3, 4}, {4, 5}, {2, 3, 5}, 2, 3, 5, 4},
      {"one right, transposed",
       {.transpose_b = true},
       {2, 3, 4},
       {1, 1, 5, 4},
       {1, 2, 3, 5},
       2,
       3,
       5,
       4},
      {"one left", {}, {3, 4}, {2, 2, 4, 5}, {2, 2, 3, 5}, 4, 3, 5, 4},
      {"one left, transposed",
       {.transpose_b = true, .alpha = -2},
       {1, 3, 4},
       {3, 5, 4},
       {3, 3, 5},
       3,
       3,
       5,
       4},
      {"scores",
       {.heads = 2, .transpose_b = true, .alpha = 0.5773503f},
       {2, 4, 6},
       {2, 5, 6},
       {2, 2, 4, 5},
       4,
       4,
       5,
       3},
      {"values", {.heads = 2}, {2, 2, 4, 5}, {2, 5, 6}, {2, 4, 6}, 4, 4, 3, 5}};
  return all;
}

// Calls body(y, a, b) for every product, in ascending order of k for each result.
template <class Body>
void for_each_product(const Case& c, const Body& body) {
  const std::int64_t heads = c.options.heads;
  const auto interleaved = [&](std::int64_t i, std::int64_t row, std::int64_t column,
                               std::int64_t rows, std::int64_t columns) {
    return ((i / heads * rows + row) * heads + i % heads) * columns + column;
  };
  const bool one_a = element_count(c.a) == c.m * c.k, one_b = element_count(c.b) == c.n * c.k;
  for (std::int64_t i = 0; i < c.count; ++i)
    for (std::int64_t r = 0; r < c.m; ++r)
      for (std::int64_t s = 0; s < c.n; ++s)
        for (std::int64_t t = 0; t < c.k; ++t) {
          std::int64_t y = (i * c.m + r) * c.n + s, a = ((one_a ? 0 : i) * c.m + r) * c.k + t;
          std::int64_t b = (one_b ? 0 : i) * c.n * c.k;
          b += c.options.transpose_b ? s * c.k + t : t * c.n + s;
          if (heads > 0 && c.options.transpose_b) {
            a = interleaved(i, r, t, c.m, c.k);
            b = interleaved(i, s, t, c.n, c.k);
          } else if (heads > 0) {
            b = interleaved(i, t, s, c.k, c.n);
            y = interleaved(i, r, s, c.m, c.n);
          }
          body(y, a, b);
        }
}

TEST_CASE("matmul and its gradients are those of loops in float64", "[fast]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    MatMul op(c.options);
    const std::vector<Shape> shapes{c.a, c.b};
    REQUIRE(op.output_shape(shapes) == c.y);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(c.y)));
      for_each_product(c, [&](auto i, auto a, auto b) {
        y[i] += double{c.options.alpha} * arguments[0][a] * arguments[1][b];
      });
      return y;
    };
    // A gradient of the operand that serves all sums count * max(m, n) products; alpha is at
    // most 2.
    test::check_op(op, {test::random_tensor(c.a, 1), test::random_tensor(c.b, 2)}, reference,
                   2 * test::dot_tolerance(c.count * std::max({c.m, c.n, c.k})));
  }
}

TEST_CASE("matmul's products are fused chains bit for bit and then scaled by alpha", "[fast]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const MatMul op(c.options);
    const Tensor a = test::random_tensor(c.a, 1), b = test::random_tensor(c.b, 2),
                 g = test::random_tensor(c.y, 3);
    Numerics numerics;
    const std::vector<const Tensor*> inputs{&a, &b};
    Tensor y(c.y);
    op.forward({"qk", numerics}, inputs, y);
    std::vector<Tensor> grads{Tensor(c.a), Tensor(c.b)};
    op.backward({"qk", numerics}, {inputs, nullptr, g, grads, {}, true});
    std::vector<float> fprop(y.data.size()), dgrad(a.data.size()), wgrad(b.data.size());
    for_each_product(c, [&](auto i, auto l, auto r) {
      fprop[i] = std::fma(a.data[l], b.data[r], fprop[i]);
      dgrad[l] = std::fma(g.data[i], b.data[r], dgrad[l]);
      wgrad[r] = std::fma(g.data[i], a.data[l], wgrad[r]);
    });
    for (std::vector<float>* list : {&fprop, &dgrad, &wgrad})
      for (float& x : *list) x *= c.options.alpha;
    CHECK(fprop == y.data);
    CHECK(dgrad == grads[0].data);
    CHECK(wgrad == grads[1].data);
  }
}

struct Seen {
  GemmKind kind;
  Role a, b;
  Stack a_stack, b_stack;
  bool a_rows, b_rows;
};
struct Recorder : Numerics {
  std::vector<Seen> seen;
  void product(const Step& step, const Product& p) override {
    seen.push_back(
        {p.kind, p.a.role, p.b.role, p.a.stack, p.b.stack, p.a.along_rows, p.b.along_rows});
    Numerics::product(step, p);
  }
};

TEST_CASE("matmul of attention hands over one matrix a head and says how blocks run", "[fast]") {
  // Scores keep keys as they are stored; values are reduced along their rows.
  for (const Case& c : cases()) {
    if (c.options.heads == 0) continue;
    INFO(c.name);
    const bool scores = c.options.transpose_b;
    const MatMul op(c.options);
    REQUIRE(op.products().size() == 1);
    CHECK((op.products()[0].suffix.empty() && op.products()[0].weight == -1));
    const Tensor a = test::random_tensor(c.a, 1), b = test::random_tensor(c.b, 2);
    Recorder numerics;
    const std::vector<const Tensor*> inputs{&a, &b};
    Tensor y(c.y);
    op.forward({"qk", numerics}, inputs, y);
    std::vector<Tensor> grads{Tensor(c.a), Tensor(c.b)};
    op.backward({"qk", numerics}, {inputs, nullptr, y, grads, {}, true});
    REQUIRE(numerics.seen.size() == 3);
    const Seen &fprop = numerics.seen[0], &wgrad = numerics.seen[1], &dgrad = numerics.seen[2];
    CHECK((fprop.kind == GemmKind::fprop && wgrad.kind == GemmKind::wgrad &&
           dgrad.kind == GemmKind::dgrad));
    CHECK((fprop.a == Role::activation && fprop.b == Role::activation));
    CHECK((wgrad.a == Role::gradient && wgrad.b == Role::activation));
    CHECK((dgrad.a == Role::gradient && dgrad.b == Role::activation));
    CHECK((!fprop.a_rows && fprop.b_rows == !scores));
    CHECK((wgrad.a_rows && wgrad.b_rows));
    CHECK((!dgrad.a_rows && dgrad.b_rows == scores));
    CHECK((fprop.b_stack.outer == 2 && fprop.b_stack.inner == 2 && fprop.b_stack.width == 3));
    CHECK(fprop.a_stack.inner == (scores ? 2 : 1));
    CHECK(dgrad.b_stack.inner == 2);
  }
}

TEST_CASE("matmul refuses shapes that do not fit", "[fast]") {
  const auto shape = [](MatMulOptions o, const Shape& a, const Shape& b) {
    const std::vector<Shape> shapes{a, b};
    return MatMul(o).output_shape(shapes);
  };
  CHECK_THROWS_WITH(shape({}, {3, 4}, {5, 4}),
                    Catch::Contains("[.., m, k] and [.., k, n]") && Catch::Contains("[5, 4]"));
  CHECK_THROWS_WITH(shape({.transpose_b = true}, {3, 4}, {4, 5}), Catch::Contains("[.., n, k]"));
  CHECK_THROWS_WITH(shape({}, {4}, {4, 5}), Catch::Contains("[.., m, k]"));
  CHECK_THROWS_WITH(shape({}, {2, 3, 4}, {3, 4, 5}), Catch::Contains("leading axes"));
  CHECK_THROWS_WITH(shape({}, {2, 1, 3, 4}, {1, 2, 4, 5}), Catch::Contains("leading axes"));
  CHECK_THROWS_WITH(shape({.heads = 4, .transpose_b = true}, {2, 3, 6}, {2, 3, 6}),
                    Catch::Contains("4 heads d"));
  CHECK_THROWS_WITH(shape({.heads = 2}, {2, 3, 4, 5}, {2, 5, 6}),
                    Catch::Contains("[batch, 2 heads, t, s]"));
  const std::vector<Shape> one{{2, 2}};
  CHECK_THROWS_WITH(MatMul().output_shape(one), Catch::Contains("two inputs, got 1"));
  CHECK_THROWS_WITH(MatMul({.heads = -1}), Catch::Contains("heads"));
  CHECK_THROWS_WITH(MatMul({.alpha = std::numeric_limits<float>::infinity()}),
                    Catch::Contains("finite alpha"));
}

}  // namespace
}  // namespace numemu::net::matmul_test
