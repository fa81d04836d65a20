// Explanations of results from elsewhere: exact ones, and one that kept what the unit cut.
#include "emu/unit/reference/given_result.hpp"

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

}  // namespace given_result_test
