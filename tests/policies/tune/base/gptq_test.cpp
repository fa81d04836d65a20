// GPTQ: plain rounding where columns do not depend on each other, the least-squares optimum of the
// columns that follow, orders and groups; the grids of weights.
#include "policies/tune/base/gptq.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/tune/base/weight_rounding.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/linear_algebra.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/tune/base/roles.hpp"

namespace gptq_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

using Hessian = std::vector<double>;

/// X^T X of dependent inputs: neighbours share most of their noise.
Hessian dependent(std::int64_t n, std::uint32_t seed) {
  const std::int64_t rows = 4 * n;
  const net::Tensor x = noise({rows, n + 3}, seed);
  Hessian h(static_cast<std::size_t>(n * n));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const line = x.data.data() + r * (n + 3);
    const auto at = [&](std::int64_t i) {
      return double{line[i]} + double{line[i + 1]} + double{line[i + 2]} + double{line[i + 3]};
    };
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) h[i * n + j] += at(i) * at(j);
  }
  return h;
}

/// Adds the multiple `damping` of the mean of the diagonal to it.
void damp(Hessian& h, std::int64_t n, double damping) {
  double trace = 0;
  for (std::int64_t i = 0; i < n; ++i) trace += h[i * n + i];
  for (std::int64_t i = 0; i < n; ++i) h[i * n + i] += damping * trace / static_cast<double>(n);
}

/// Makes up for `error` in column i: the columns behind it change by the least-squares optimum.
void make_up(std::vector<double>& w, const Hessian& h, std::int64_t i, double error) {
  const auto n = static_cast<std::int64_t>(w.size());
  std::vector<double> rest, column;
  for (std::int64_t r = i + 1; r < n; ++r) {
    column.push_back(h[r * n + i]);
    for (std::int64_t c = i + 1; c < n; ++c) rest.push_back(h[r * n + c]);
  }
  if (column.empty()) return;
  const std::vector<double> change = oracle::solve(rest, column, static_cast<int>(column.size()));
  for (std::int64_t r = i + 1; r < n; ++r) w[r] -= change[r - i - 1] * error;
}

/// What a row's columns in `order` become when each one's rounding error is made up for by the
/// least-squares optimum of the columns that follow, the solution of their normal equations.
std::vector<float> by_least_squares(const WeightGrid& grid, const net::Tensor& weight,
                                    std::int64_t row, const Hessian& hessian, double damping,
                                    const std::vector<std::int64_t>& order) {
  const auto n = static_cast<std::int64_t>(order.size());
  Hessian h;
  std::vector<double> w;
  for (const std::int64_t i : order) {
    for (const std::int64_t j : order) h.push_back(hessian[i * n + j]);
    w.push_back(weight.data[row * n + i]);
  }
  damp(h, n, damping);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const float q = grid.nearest(row * n + order[i], static_cast<float>(w[i]));
    out[order[i]] = q;
    make_up(w, h, i, double{q} - w[i]);
  }
  return out;
}

float largest_of(const net::Tensor& w, std::int64_t first, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = first; i < first + count; ++i)
    largest = std::max(largest, std::abs(w.data[i]));
  return largest;
}

std::vector<std::int64_t> natural(std::int64_t n) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) order.push_back(i);
  return order;
}

}  // namespace

TEST_CASE("weight grid: the recipe's numbers, and their neighbours", "[fast]") {
  const net::Tensor w = noise({6, 3, 20}, 1);
  for (const RolePolicy& policy :
       {integers(4), integers(8, Granularity::tensor), blocks("mxfp4"), blocks("nvfp4"),
        blocks("group(uint4,8,float16,zp)"), blocks("group(uint3,16,float16,min)"),
        blocks("group(int4,32,float16)", BlockAxis::reduction)}) {
    INFO(policy.describe());
    const WeightGrid grid(policy, w);
    // The recipe's own quantizer of the same elements.
    net::Tensor expected(w.shape);
    const RoleQuantizer quantizer(policy);
    const std::int64_t length = policy.axis == BlockAxis::reduction ? 60 : 20;
    if (policy.block != nullptr) {
      quantizer.quantize(block_layout(*policy.block, {w.size() / length, length}, 1), w.data.data(),
                         {}, {}, expected.data.data());
    } else {
      const bool rows = policy.granularity == Granularity::channel;
      for (std::int64_t r = 0; r < (rows ? 6 : 1); ++r) {
        const std::int64_t each = rows ? 60 : 360;
        const float* const x = w.data.data() + r * each;
        const float scale = quantizer.scale(x, each);
        const float largest = rows ? 7 : 127;
        for (std::int64_t i = 0; i < each; ++i)
          expected.data[r * each + i] =
              std::min(largest, std::max(-largest, std::nearbyint(x[i] / scale))) * scale;
      }
    }
    CHECK(grid.nearest(w).data == expected.data);
    bool apart = false;
    for (std::int64_t i = 0; i < w.size(); ++i) {
      const float x = w.data[i], low = grid.below(i, x), high = grid.above(i, x);
      const bool either = expected.data[i] == low || expected.data[i] == high;
      CHECK(either);
      CHECK(grid.nearest(i, low) == low);
      CHECK(grid.nearest(i, high) == high);
      if (low < x && x < high) {
        apart = true;
        CHECK(grid.nearest(i, low + (high - low) * 0.75f) == high);
      }
    }
    CHECK(apart);
  }
  RolePolicy stochastic = integers(4);
  stochastic.rounding = parse_rounding("sr(8)");
  CHECK_THROWS_AS(WeightGrid(stochastic, w), Error);
}

TEST_CASE("gptq: a diagonal Hessian leaves rounding to nearest", "[fast]") {
  const std::int64_t n = 24;
  Hessian diagonal(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) diagonal[i * n + i] = 1.0 + static_cast<double>(i % 5);
  const net::Tensor w = noise({5, n}, 2);
  for (const RolePolicy& policy : {integers(3), blocks("mx(float4_e2m1fn,8)")}) {
    const net::Tensor nearest = WeightGrid(policy, w).nearest(w);
    CHECK(gptq(policy, w, {diagonal}).data == nearest.data);
    CHECK(gptq(policy, w, {diagonal}, {.greedy = true}).data == nearest.data);
    // Inputs that are all zero leave nothing to make up for.
    CHECK(gptq(policy, w, {Hessian(static_cast<std::size_t>(n * n))}).data == nearest.data);
  }
}

TEST_CASE("gptq: the columns that follow are the least-squares optimum", "[fast]") {
  const std::int64_t n = 16, rows = 4;
  const net::Tensor w = noise({rows, n}, 3);
  const Hessian h = dependent(n, 4);
  const RolePolicy policy = integers(3);
  const WeightGrid grid(policy, w);
  std::vector<std::int64_t> falling = natural(n);
  std::stable_sort(falling.begin(), falling.end(),
                   [&](std::int64_t a, std::int64_t b) { return h[a * n + a] > h[b * n + b]; });
  REQUIRE(falling != natural(n));
  std::vector<float> natural_result, greedy_result;
  for (const bool greedy : {false, true}) {
    const net::Tensor q = gptq(policy, w, {h}, {.damping = 0.02, .greedy = greedy});
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::vector<float> expected =
          by_least_squares(grid, w, r, h, 0.02, greedy ? falling : natural(n));
      CHECK(std::vector<float>(q.data.begin() + r * n, q.data.begin() + (r + 1) * n) == expected);
    }
    (greedy ? greedy_result : natural_result) = q.data;
    // Its point: outputs change less than under rounding to nearest.
    CHECK(output_error(w, q, {h}) < 0.7 * output_error(w, grid.nearest(w), {h}));
  }
  CHECK(natural_result != greedy_result);
}

TEST_CASE("gptq: groups choose their scale when their first column is rounded", "[fast]") {
  const std::int64_t n = 16;
  const net::Tensor w = noise({3, n}, 5);
  const Hessian h = dependent(n, 6);
  const RolePolicy policy = blocks("group(int4,8,float32)");
  const net::Tensor q = gptq(policy, w, {h}, {.damping = 0.02});
  // By hand: the first group under its own scales, then the second under those of what the
  // least-squares updates left of it.
  const WeightGrid first(policy, w);
  for (std::int64_t r = 0; r < 3; ++r) {
    Hessian a = h;
    damp(a, n, 0.02);
    std::vector<double> v(w.data.begin() + r * n, w.data.begin() + (r + 1) * n);
    for (std::int64_t i = 0; i < 8; ++i) {
      const double error = double{q.data[r * n + i]} - v[i];
      // The weight that decided the scale keeps its number, so that it decides it again.
      const bool decides = std::abs(w.data[r * n + i]) == largest_of(w, r * n, 8);
      const float x = decides ? w.data[r * n + i] : static_cast<float>(v[i]);
      CHECK(first.nearest(r * n + i, x) == q.data[r * n + i]);
      make_up(v, a, i, error);
    }
    double largest = 0;
    for (std::int64_t i = 8; i < n; ++i) largest = std::max(largest, std::abs(v[i]));
    // Codes times that scale, one of them the largest code.
    const double scale = largest / 7;
    for (std::int64_t i = 8; i < n; ++i) {
      const double code = double{q.data[r * n + i]} / scale;
      CHECK(code == Approx(std::round(code)).margin(1e-5));  // float32 scales and updates
    }
  }
  CHECK(gptq(policy, w, {h}, {.damping = 0.02, .current_groups = false}).data != q.data);
}

TEST_CASE("gptq: inference finds the scales of blocks again", "[fast]") {
  const std::int64_t n = 40;
  const net::Tensor w = noise({4, n}, 13);
  for (const char* format :
       {"mxfp4", "mx(float6_e2m3fn,8)", "group(int4,16,float16)", "bfp(4,8)"}) {
    INFO(format);
    for (const bool current : {false, true}) {
      const net::Tensor q =
          gptq(blocks(format), w, {dependent(n, 14)}, {.damping = 0.02, .current_groups = current});
      CHECK(q.data != WeightGrid(blocks(format), w).nearest(w).data);
      CHECK(WeightGrid(blocks(format), q).nearest(q).data == q.data);
    }
  }
}

TEST_CASE("gptq: groups of a convolution have Hessians of their own", "[fast]") {
  const std::int64_t n = 12;
  const net::Tensor w = noise({6, n}, 7);
  const Hessian a = dependent(n, 8), b = dependent(n, 9);
  const RolePolicy policy = integers(4);
  const net::Tensor q = gptq(policy, w, {a, b});
  net::Tensor second({3, n});
  std::copy_n(w.data.begin() + 3 * n, 3 * n, second.data.begin());
  const net::Tensor alone = gptq(policy, second, {b});
  CHECK(std::vector<float>(q.data.begin() + 3 * n, q.data.end()) == alone.data);
  CHECK_THROWS_AS(gptq(policy, w, {a, b, a, b}), Error);
  CHECK_THROWS_AS(gptq(policy, w, {Hessian(4)}), Error);
}

TEST_CASE("gptq: the error of the outputs is tr(D H D^T)", "[fast]") {
  const std::int64_t n = 10, rows = 40;
  const net::Tensor x = noise({rows, n}, 10), w = noise({3, n}, 11), changed = noise({3, n}, 12);
  Hessian h(static_cast<std::size_t>(n * n));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j)  // the lower triangle alone is read
        h[i * n + j] += double{x.data[r * n + i]} * double{x.data[r * n + j]};
  double expected = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < 3; ++o) {
      double off = 0;
      for (std::int64_t i = 0; i < n; ++i)
        off += double{x.data[r * n + i]} *
               (double{changed.data[o * n + i]} - double{w.data[o * n + i]});
      expected += off * off;
    }
  }
  CHECK(output_error(w, changed, {h}) == Approx(expected).epsilon(1e-12));  // float64 sums
}

}  // namespace gptq_test
