// neutral.exact: against Boost.Multiprecision, fast against reference on every path, permutations.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "emu/unit/exact/exact_plan.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/oracle/rational.hpp"

namespace exact_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using oracle::Rational;

namespace {

const Unit& exact() { return find_unit("exact"); }

/// Every finite float32 and product of two is a multiple of 2^kLow, with at most 48 bits.
constexpr int kLow = -500;

Rational scaled(double x) { return Rational::of(std::ldexp(x, -kLow)); }

/// Whether `rounded` is the float32 nearest to sum * 2^kLow, ties to even: no neighbour is nearer.
bool is_nearest(const Rational& sum, float rounded) {
  if (std::isinf(rounded)) {
    const Rational limit = (scaled(0x1.fffffep127) + scaled(0x1p128)) / 2;
    return rounded > 0 ? sum >= limit : sum <= -limit;
  }
  const Rational error = abs(sum - scaled(rounded));
  for (const float direction : {-INFINITY, INFINITY}) {
    const float next = std::nextafter(rounded, direction);
    // Beyond the largest float the grid continues to 2^128.
    const double neighbour = std::isinf(next) ? std::copysign(0x1p128, next) : next;
    const Rational other = abs(sum - scaled(neighbour));
    if (other < error) return false;
    if (other == error && (std::bit_cast<std::uint32_t>(rounded) & 1) != 0) return false;
  }
  return true;
}

double element(const OperandData& operand, std::int64_t r, std::int64_t k) {
  const std::int64_t i = operand.gather.row[r] + operand.gather.depth[k];
  const std::uint64_t code = !operand.bytes.empty() ? operand.bytes[i]
                             : !operand.halves.empty()
                                 ? operand.halves[i]
                                 : std::bit_cast<std::uint32_t>(operand.floats[i]);
  return to_double(decode(*operand.format, code));
}

std::int64_t not_nearest(const Problem& p) {
  std::vector<float> d;
  exact().multiply(p.gemm(d));
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      Rational sum = p.c.empty() ? Rational(0) : scaled(p.c[i * p.n + j]);
      for (std::int64_t k = 0; k < p.k; ++k) {
        const double a = element(p.a, i, k), b = element(p.b, j, k);
        if (a != 0 && b != 0) sum += scaled(a * b);
      }
      bad += !is_nearest(sum, d[i * p.n + j]);
    }
  }
  return bad;
}

ExactPlan::Way way(const Problem& p) {
  std::vector<float> d;
  const Gemm g = p.gemm(d);
  Exponents c;
  for (const float x : p.c) c.include(value_of(x));
  return plan_exact(scan(g.a, g.m, g.k).exponents, scan(g.b, g.n, g.k).exponents, c, g.k).way;
}

}  // namespace

TEST_CASE("exact: one rounding of the exact sum, by every way of computing it", "[fast]") {
  using Way = ExactPlan::Way;
  struct Row {
    const char *a, *b;
    std::int64_t k;
    bool with_c;
    Way way;
  };
  const Row rows[] = {{"int4", "float4_e2m1fn", 60, false, Way::float32},
                      {"int8", "int8", 200, false, Way::float32},
                      {"int8", "int8", 3000, false, Way::float64},
                      {"float8_e4m3fn", "float8_e4m3fn", 200, true, Way::float64},
                      {"float8_e4m3fn", "int8", 333, false, Way::float64},
                      {"float8_e5m2", "float8_e5m2", 200, false, Way::split},
                      {"float8_e5m2", "float8_e4m3fn", 200, true, Way::split},
                      {"float32", "int8", 70, true, Way::float64},
                      {"float16", "float16", 50, true, Way::split},
                      {"float32", "float32", 40, false, Way::split},
                      {"bfloat16", "float8_e4m3fn", 30, false, Way::kulisch}};
  std::uint64_t seed = 1;
  for (const Row& row : rows) {
    INFO(row.a << " x " << row.b << " k " << row.k);
    const Problem p =
        make_matrices(row.a, row.b, 9, 20, row.k, {false, false, row.with_c}, Fill::finite, ++seed);
    CHECK(way(p) == row.way);
    CHECK(not_nearest(p) == 0);
    CHECK(mismatches(exact(), p) == 0);
  }
}

TEST_CASE("exact: fast equals reference with NaN, infinity and signed zeros in every format",
          "[fast]") {
  std::uint64_t seed = 100;
  for (const std::string& format : operand_formats(exact(), 32)) {
    for (const char* other : {"int8", "float8_e4m3fn", "float8_e5m2"}) {
      for (const Fill fill : {Fill::any, Fill::finite}) {
        INFO(format << " x " << other);
        CHECK(mismatches(exact(), make_matrices(format, other, 5, 9, 7, {false, true, true}, fill,
                                                ++seed)) == 0);
        CHECK(mismatches(exact(), make_matrices(other, format, 9, 5, 21, {}, fill, ++seed)) == 0);
      }
    }
  }
}

TEST_CASE("exact: shapes, empty sums and convolutions", "[fast]") {
  std::uint64_t seed = 300;
  for (const char* format : {"float8_e5m2", "float8_e4m3fn", "int4", "float32"}) {
    INFO(format);
    for (const auto& [m, n, k] :
         {std::array{1, 1, 1}, {3, 4, 0}, {1, 50, 9}, {50, 1, 9}, {13, 33, 40}, {70, 20, 19}}) {
      CHECK(mismatches(exact(), make_matrices(format, format, m, n, k, {true, true, true},
                                              Fill::any, ++seed)) == 0);
      CHECK(mismatches(exact(), make_matrices(format, format, m, n, k, {}, Fill::finite, ++seed)) ==
            0);
    }
    const Convolution shape{2, 7, 7, 2, 3, 1, 1, 1};
    CHECK(mismatches(exact(),
                     make_convolution(format, "float8_e5m2", shape, 5, Fill::any, ++seed)) == 0);
  }
}

TEST_CASE("exact: zeros keep a negative sign only when every term has it", "[fast]") {
  // Codes of float8_e5m2: 0x80 is -0, 0x3c is 1, 0xbc is -1; 0x7b and 0x01 force the split path.
  const Gather one_by_three = Gather::matrix(1, 3);
  const auto product = [&](std::vector<std::uint8_t> a, std::vector<std::uint8_t> b,
                           const float* c) {
    const Format& format = find_format("float8_e5m2");
    float d = 99, reference = 99;
    Gemm g{1, 1, 3, {&format, a.data(), &one_by_three}, {&format, b.data(), &one_by_three}, c, &d};
    exact().multiply(g);
    g.d = &reference;
    exact().multiply_reference(g);
    CHECK(std::bit_cast<std::uint32_t>(d) == std::bit_cast<std::uint32_t>(reference));
    return std::bit_cast<std::uint32_t>(d);
  };
  const float minus_zero = -0.0f, plus_zero = 0.0f;
  CHECK(product({0x80, 0x00, 0x80}, {0x3c, 0xbc, 0x3c}, &minus_zero) == 0x80000000u);
  CHECK(product({0x80, 0x00, 0x80}, {0x3c, 0xbc, 0x3c}, &plus_zero) == 0);
  CHECK(product({0x80, 0x00, 0x80}, {0x3c, 0xbc, 0x3c}, nullptr) == 0);
  CHECK(product({0x80, 0x80, 0x80}, {0x3c, 0xbc, 0x3c}, &minus_zero) == 0);
  CHECK(product({0x80, 0x00, 0x80}, {0x7b, 0x81, 0x01}, &minus_zero) == 0x80000000u);
  CHECK(product({0x7b, 0xfb, 0x80}, {0x01, 0x01, 0x7b}, &minus_zero) == 0);
}

TEST_CASE("exact: the order of the products does not matter", "[fast]") {
  for (const char* format : {"int8", "float8_e4m3fn", "float8_e5m2", "float32"}) {
    Problem p = make_matrices(format, format, 6, 17, 90, {}, Fill::finite, 500);
    std::vector<float> straight, shuffled;
    exact().multiply(p.gemm(straight));
    Dice dice(501);
    for (std::size_t k = p.a.gather.depth.size() - 1; k > 0; --k) {
      const auto other = static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(k) + 1));
      std::swap(p.a.gather.depth[k], p.a.gather.depth[other]);
      std::swap(p.b.gather.depth[k], p.b.gather.depth[other]);
    }
    exact().multiply(p.gemm(shuffled));
    INFO(format);
    CHECK(differing(straight, shuffled) == 0);
  }
}

TEST_CASE("exact: 1, 2 and 3 threads give the same bits", "[fast]") {
  const int before = omp_get_max_threads();
  for (const char* format : {"float8_e4m3fn", "float8_e5m2"}) {
    const Problem p = make_matrices(format, format, 140, 150, 200, {}, Fill::any, 600);
    std::vector<float> one, more;
    omp_set_num_threads(1);
    exact().multiply(p.gemm(one));
    for (const int threads : {2, 3}) {
      omp_set_num_threads(threads);
      exact().multiply(p.gemm(more));
      CHECK(differing(one, more) == 0);
    }
  }
  omp_set_num_threads(before);
}

TEST_CASE("exact: several slices of k on every path", "[slow]") {
  std::uint64_t seed = 700;
  for (const char* format : {"int4", "float8_e4m3fn", "float8_e5m2"}) {
    INFO(format);
    CHECK(mismatches(exact(), make_matrices(format, format, 70, 130, 1500, {false, true, true},
                                            Fill::any, ++seed)) == 0);
  }
}

}  // namespace exact_test
