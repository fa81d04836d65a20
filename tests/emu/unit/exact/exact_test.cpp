// neutral.exact: against Boost.Multiprecision, fast against reference on every path, permutations.
#include "emu/unit/exact/exact.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/random.hpp"
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

namespace {

__extension__ typedef __int128 Integer;

constexpr int kLowest = -60;
constexpr std::int64_t kOutputs = 4099;

/// Terms of `count` arrays, as integers in units of 2^kLowest and as doubles.
struct Terms {
  std::vector<std::vector<Integer>> integers;
  std::vector<std::vector<double>> doubles;
  std::vector<const double*> sums;

  /// Every term has at most 53 bits and ends somewhere below 2^(kLowest + width).
  Terms(int count, int width, const RandomSource& random) {
    integers.resize(count);
    doubles.resize(count);
    for (int p = 0; p < count; ++p) {
      RandomSource own = random;
      own.draw = static_cast<std::uint16_t>(p);
      for (std::int64_t i = 0; i < kOutputs; ++i) {
        const std::uint64_t word =
            std::uint64_t{own.bits(2 * i, 32)} << 32 | own.bits(2 * i + 1, 32);
        const int bits = static_cast<int>(word % 54), shift = static_cast<int>(word / 64 % width);
        const auto magnitude = static_cast<Integer>(word >> 11 & ((std::uint64_t{1} << bits) - 1));
        Integer term = magnitude << std::max(0, std::min(shift, width - bits));
        if ((word >> 63) != 0) term = -term;
        // Cancellation leaves what is far below.
        if (p > 0 && p == count - 1 && i % 4 == 0) term = -integers[0][i];
        integers[p].push_back(term);
        doubles[p].push_back(std::ldexp(static_cast<double>(term), kLowest));
      }
      doubles[p].resize(kOutputs + kCombineSlack);
      sums.push_back(doubles[p].data());
    }
  }
};

std::int64_t differing(int count, int width, bool with_c) {
  const FloatGuard guard;
  const Terms terms(count, width, {.seed = static_cast<std::uint64_t>(100 * count + width)});
  const Exponents range{kLowest, kLowest + width};
  REQUIRE(can_combine(count, range));
  std::vector<float> c(kOutputs), d(kOutputs);
  for (std::int64_t i = 0; i < kOutputs; ++i)
    c[i] = static_cast<float>(
        std::ldexp(static_cast<double>(i % 257 - 128), kLowest + i % (width - 9)));
  combine_sums({terms.sums.data(), count, nullptr, range}, kOutputs, with_c ? c.data() : nullptr,
               d.data());
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < kOutputs; ++i) {
    Integer total =
        with_c ? static_cast<Integer>(std::ldexp(static_cast<double>(c[i]), -kLowest)) : 0;
    for (const auto& integers : terms.integers) total += integers[i];
    bad += d[i] != std::ldexp(static_cast<float>(total), kLowest);
  }
  return bad;
}

}  // namespace

TEST_CASE("exact_combine: totals of every width rounded once", "[fast]") {
  for (const int count : {1, 2, 3, 6, 9, 15}) {
    for (const int width : {54, 60, 73, 97}) {
      INFO(count << " terms of " << width << " bits");
      CHECK(differing(count, width, false) == 0);
      CHECK(differing(count, width, true) == 0);
    }
  }
}

TEST_CASE("exact_combine: halves of a float32 and one far below them", "[fast]") {
  const FloatGuard guard;
  const double large[1 + kCombineSlack] = {0x1p37 + 0x1p13};
  for (const double tiny : {0x1p-60, -0x1p-60, 0.0}) {
    const double small[1 + kCombineSlack] = {tiny};
    const double* sums[] = {large, small};
    float d = 0;
    combine_sums({sums, 2, nullptr, {-60, 37}}, 1, nullptr, &d);
    CHECK(d == (tiny > 0 ? 0x1.000002p37f : 0x1p37f));
  }
}

TEST_CASE("exact_combine: zeros, NaN and infinity", "[fast]") {
  const FloatGuard guard;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double x[5 + kCombineSlack] = {-0.0, -0.0, 0.0, 3.0, -0.0};
  const double y[5 + kCombineSlack] = {-0.0, 0.0, -0.0, -3.0, -0.0};
  const double special[5 + kCombineSlack] = {0, kInfinity, -kInfinity, kNan, 2.0};
  const float c[] = {-0.0f, -0.0f, 0.0f, -0.0f, -std::numeric_limits<float>::infinity()};
  const double* sums[] = {x, y};
  const auto bits = [&](const double* specials, const float* from, int i) {
    float d[5];
    combine_sums({sums, 2, specials, {-10, 10}}, 5, from, d);
    return std::bit_cast<std::uint32_t>(d[i]);
  };
  CHECK(bits(nullptr, c, 0) == 0x80000000);
  CHECK(bits(nullptr, nullptr, 0) == 0);
  for (const int i : {1, 2, 3}) CHECK(bits(nullptr, c, i) == 0);
  CHECK(bits(nullptr, c, 4) == 0xff800000);
  CHECK(bits(special, c, 1) == 0x7f800000);
  CHECK(bits(special, nullptr, 2) == 0xff800000);
  CHECK(bits(special, c, 3) == 0x7fc00000);
  CHECK(bits(special, c, 4) == 0xff800000);
}

TEST_CASE("exact_combine: what two doubles do not hold is refused", "[fast]") {
  CHECK(can_combine(15, {0, 97}));
  CHECK_FALSE(can_combine(16, {0, 97}));
  CHECK_FALSE(can_combine(15, {0, 98}));
  CHECK_FALSE(can_combine(2, {-901, -890}));
  CHECK_FALSE(can_combine(2, {790, 801}));
}

}  // namespace exact_test
