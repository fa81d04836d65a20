// Explanations of results from elsewhere: exact ones, and one that kept what the unit cut.
#include "emu/unit/reference/given_result.hpp"

#include <limits>
#include <string>

#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace given_result_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("given result: one that kept what the unit cut, and one rounded once", "[fast]") {
  const Unit& unit = find_unit("nvidia.h100.wgmma.e4m3.f32");
  const std::uint8_t a[] = {0x78, 0x01, 0x02}, b[] = {0x38, 0x38, 0x38};  // 256, 2^-9, 2^-8
  const Gather row = Gather::matrix(1, 3);
  Gemm g;
  g.m = g.n = 1;
  g.k = 3;
  g.a = {&find_format("float8_e4m3fn"), a, &row};
  g.b = {g.a.format, b, &row};
  CHECK(explain_result(*unit.description(), g, 0, 0, 0, value_of(256 + 0x1p-9)) ==
        std::vector<std::string>{
            "the given result is the unit's plus 0x1p-9 (0.001953125)",
            "the unit leaves the exact sum in step 0, k 0..2 and 29 of padding: off by -0x1.8p-8 "
            "(-0.005859375)",
            "its largest loss is at k 2 of step 0, k 0..2 and 29 of padding: 0x1p-8 (0.00390625)",
            "the difference is what it lost at k 1 of step 0, k 0..2 and 29 of padding"});
  const auto exact = explain_result(*unit.description(), g, 0, 0, 0, value_of(256 + 0x1.8p-8));
  REQUIRE(exact.size() == 4);
  CHECK(exact[1] == "the given result is the exact sum rounded once by rne, rna, rtz, rup, rdn");
  CHECK(explain_result(*unit.description(), g, 0, 0, 0, {.kind = Class::nan}).empty());
}

namespace {

/// Of a sum of float32 numbers.
Nearer judged(const std::vector<float>& terms, double first, double second) {
  static const std::vector<float> kOnes(16, 1);
  const UnitDescription u = unit_of(CoreKind::exact, "float32");
  const Gather row = Gather::matrix(1, static_cast<std::int64_t>(terms.size()));
  Gemm g;
  g.m = g.n = 1;
  g.k = static_cast<std::int64_t>(terms.size());
  g.a = {u.a, terms.data(), &row};
  g.b = {u.a, kOnes.data(), &row};
  return nearer(ReferenceDot(u, g), 0, 0, value_of(first), value_of(second));
}

}  // namespace

TEST_CASE("nearness: exact, with what no float64 holds", "[fast]") {
  CHECK(judged({1, 0x1p-100f}, 0, 2) == Nearer::second);
  CHECK(judged({1, -0x1p-100f}, 0, 2) == Nearer::first);
  CHECK(judged({1}, 0, 2) == Nearer::neither);
  CHECK(judged({1}, 2, 0) == Nearer::neither);
  CHECK(judged({1}, 3, 2) == Nearer::second);
  CHECK(judged({1}, -3, -2) == Nearer::second);
  CHECK(judged({1}, 1, 1) == Nearer::neither);
  CHECK(judged({0x1p127f, 0x1p127f, -0x1p-149f}, 0x1p128, 0x1p127) == Nearer::first);
}

TEST_CASE("nearness: infinity and NaN are near to themselves alone", "[fast]") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const float big = std::numeric_limits<float>::infinity();
  CHECK(judged({1}, inf, 1e30) == Nearer::second);
  CHECK(judged({1}, 1e30, nan) == Nearer::first);
  CHECK(judged({1}, nan, inf) == Nearer::neither);
  CHECK(judged({big}, inf, 5) == Nearer::first);
  CHECK(judged({big}, -inf, 5) == Nearer::neither);
  CHECK(judged({big, -big}, 1, nan) == Nearer::second);
}

TEST_CASE("nearness: ulps are steps between numbers", "[fast]") {
  const Format& half = find_format("float16");
  CHECK(ulps_between(&half, 0, 0x3c00, 0x3c01) == 1);
  CHECK(ulps_between(&half, 0, 0x8000, 0x0000) == 0);
  CHECK(ulps_between(&half, 0, 0x8001, 0x0001) == 2);
  CHECK(ulps_between(&half, 0, 0x7e00, 0x7e01) == 0);
  CHECK(ulps_between(&half, 0, 0x7e00, 0) == std::numeric_limits<std::uint64_t>::max());
  CHECK(ulps_between(nullptr, 32, 0xffffffff, 1) == 2);
  CHECK(ulps_between(&find_format("float64"), 0, 0, 0x7ff0000000000000) == 0x7ff0000000000000);
}

}  // namespace given_result_test
