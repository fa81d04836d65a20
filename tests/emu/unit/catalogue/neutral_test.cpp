// The neutral float32 chain: exact definition, orders, specials, threads.
#include <omp.h>

#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace neutral_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

const Unit& sequential() { return find_unit("f32.sequential"); }

}  // namespace

TEST_CASE("f32.sequential: the reference is a chain of IEEE fused multiply-adds", "[fast]") {
  const Problem p = make_matrices("float32", "float32", 9, 7, 40, {}, Fill::any, 1);
  std::vector<float> d;
  sequential().multiply_reference(p.gemm(d));
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k)
        sum = std::fma(p.a.floats[i * p.k + k], p.b.floats[j * p.k + k], sum);
      const std::uint32_t bits = std::isnan(sum) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(sum);
      REQUIRE(std::bit_cast<std::uint32_t>(d[i * p.n + j]) == bits);
    }
  }
}

TEST_CASE("f32.sequential: fast equals reference over shapes and layouts", "[fast]") {
  struct Size {
    std::int64_t m, n, k;
  };
  const Size sizes[] = {{1, 1, 1},   {1, 1, 0},   {5, 3, 0},    {0, 4, 3},    {4, 0, 3},
                        {1, 33, 5},  {33, 1, 5},  {2, 2, 700},  {13, 31, 9},  {12, 32, 64},
                        {25, 65, 3}, {65, 25, 3}, {6, 25, 259}, {7, 40, 256}, {40, 7, 257},
                        {3, 3, 3},   {17, 49, 33}};
  std::uint64_t seed = 10;
  for (const Size& s : sizes) {
    for (int layout = 0; layout < 8; ++layout) {
      const MatrixLayout l{(layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0};
      for (const Fill fill : {Fill::any, Fill::finite}) {
        if (s.m * s.n * s.k > 10'000 && layout % 3 != 0) continue;
        const Problem p = make_matrices("float32", "float32", s.m, s.n, s.k, l, fill, ++seed);
        INFO(s.m << "x" << s.n << "x" << s.k << " layout " << layout);
        REQUIRE(mismatches(sequential(), p) == 0);
      }
    }
  }
}

TEST_CASE("f32.sequential: every format of at most 8 bits, 16-bit formats and tfloat32", "[fast]") {
  std::uint64_t seed = 1000;
  const auto formats = operand_formats(sequential(), 32);
  REQUIRE(formats.size() > 20);
  for (const std::string& format : formats) {
    INFO(format);
    for (const Fill fill : {Fill::any, Fill::finite}) {
      const Problem p = make_matrices(format, "int8", 5, 18, 11, {true, false, true}, fill, ++seed);
      CHECK(mismatches(sequential(), p) == 0);
      const Problem q = make_matrices("float32", format, 18, 5, 11, {}, fill, ++seed);
      CHECK(mismatches(sequential(), q) == 0);
    }
  }
}

TEST_CASE("f32.sequential: convolutions with padding, dilation and stride, and their gradients",
          "[fast]") {
  const Convolution shapes[] = {{2, 9, 9, 1, 5, 2, 1, 1},
                                {2, 6, 7, 6, 3, 0, 1, 1},
                                {1, 5, 5, 4, 3, 2, 2, 1},
                                {2, 8, 8, 3, 3, 1, 1, 2},
                                {1, 12, 12, 1, 5, 0, 1, 1}};
  std::uint64_t seed = 2000;
  for (const Convolution& shape : shapes) {
    for (const Fill fill : {Fill::any, Fill::finite}) {
      for (const char* format : {"float32", "float8_e4m3fn", "int4", "float16"}) {
        const Problem p = make_convolution(format, "float8_e5m2", shape, 6, fill, ++seed);
        INFO(format << " channels " << shape.channels << " dilation " << shape.dilation);
        CHECK(mismatches(sequential(), p) == 0);
      }
      CHECK(mismatches(sequential(), make_weight_gradient(shape, 5, fill, ++seed)) == 0);
    }
  }
}

TEST_CASE("f32.sequential: 1, 2 and 3 threads give the same bits, also inside a parallel region",
          "[fast]") {
  const int before = omp_get_max_threads();
  const Problem problems[] = {
      make_matrices("float32", "float32", 131, 117, 300, {}, Fill::finite, 3000),
      make_convolution("float8_e4m3fn", "int8", {12, 28, 28, 1, 5, 2, 1, 1}, 6, Fill::any, 3001),
      make_weight_gradient({20, 28, 28, 1, 5, 2, 1, 1}, 6, Fill::finite, 3002)};
  for (const Problem& p : problems) {
    std::vector<float> one, more, inside;
    omp_set_num_threads(1);
    sequential().multiply(p.gemm(one));
    for (const int threads : {2, 3}) {
      omp_set_num_threads(threads);
      sequential().multiply(p.gemm(more));
      CHECK(differing(one, more) == 0);
    }
    const Gemm g = p.gemm(inside);
#pragma omp parallel num_threads(2)
    {
#pragma omp single
      sequential().multiply(g);
    }
    CHECK(differing(one, inside) == 0);
  }
  omp_set_num_threads(before);
}

TEST_CASE("f32.sequential: large enough for several slices of k and several tiles", "[slow]") {
  const Problem p = make_matrices("float32", "float8_e4m3fn", 130, 70, 1100, {false, true, true},
                                  Fill::any, 4000);
  CHECK(mismatches(sequential(), p) == 0);
  const Problem q =
      make_matrices("float32", "float32", 1100, 14, 70, {true, false, true}, Fill::any, 4001);
  CHECK(mismatches(sequential(), q) == 0);
}

}  // namespace neutral_test
