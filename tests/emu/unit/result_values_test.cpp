// Results of units as numbers: floating formats and registers of every container.
#include <cstdint>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"
#include "tests/catch.hpp"

namespace result_values_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

/// Of 2 x 3 - 5 x 1.5 and of 2 x -4 - 5 x -2, by that unit.
std::vector<double> results_of(const char* name) {
  const Format &from = find_format("float32"), &format = find_format("bfloat16");
  const std::vector<float> a = {2, -5}, b = {3, 1.5f, -4, -2};
  const auto codes = [&](const std::vector<float>& x) {
    std::vector<std::uint16_t> out(x.size());
    convert_codes(Conversion{.format = &format}, from, x.data(), std::ssize(x), out.data());
    return out;
  };
  const std::vector<std::uint16_t> left = codes(a), right = codes(b);
  const Unit& unit = find_unit(name);
  const Gather rows = Gather::matrix(1, 2), columns = Gather::matrix(2, 2);
  std::vector<std::uint64_t> d(2, ~std::uint64_t{0});
  unit.multiply({.m = 1,
                 .n = 2,
                 .k = 2,
                 .a = {&format, left.data(), &rows},
                 .b = {&format, right.data(), &columns},
                 .d = d.data()});
  return result_values(unit, d.data(), 2);
}

}  // namespace

TEST_CASE("result values: one number whatever the container", "[fast]") {
  for (const char* const name :
       {"neutral.f32.sequential", "neutral.mac.bfloat16", "neutral.mac.float16", "neutral.mac.e5m3",
        "neutral.mac.fixed8q2", "neutral.mac.fixed16q4", "neutral.mac.fixed24q8"}) {
    INFO(name);
    CHECK(results_of(name) == std::vector<double>{-1.5, 2});
  }
  CHECK(results_of("neutral.mac.int16") == std::vector<double>{-2, 2});  // -1.5 is a tie
}

}  // namespace result_values_test
