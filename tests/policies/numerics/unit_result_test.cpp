// Results of registers that are not float32.
#include "policies/numerics/unit_result.hpp"

#include <cmath>
#include <cstring>

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace unit_result_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("a wide number times alpha is rounded once", "[fast]") {
  // 2^31 - 1 takes 31 bits: float32 first would round it, and the product again.
  const RandomSource source{.seed = 4, .stream = Stream::vectors};
  std::int64_t twice = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double a = static_cast<std::int32_t>(source.bits(2 * i, 32));
    const float b = static_cast<float>(0.5 + source.uniform(2 * i + 1));
    // 32 + 24 bits: exact in 64.
    const auto exact = static_cast<long double>(a) * b;
    CHECK(rounded_product(a, b) == static_cast<float>(exact));
    twice += rounded_product(a, b) != static_cast<float>(a) * b;
  }
  CHECK(twice > 0);
}

TEST_CASE("integers and halves become float32 under the scales", "[fast]") {
  net::Tensor d({2, 2});
  net::Product p;
  p.m = p.n = 2;
  p.d = d.data.data();
  const OperandScales half{OperandScales::Kind::one, {0.5f}, 1};
  UnitResult integers(unit::find_unit("nvidia.a100.mma.s8.s32"), p);
  REQUIRE(integers.target().bytes == 4);
  const std::int32_t numbers[] = {-3, 16777217, 2147483647, -2147483647 - 1};
  std::memcpy(integers.target().d, numbers, sizeof(numbers));
  integers.finish(half, {});
  CHECK(d.data == std::vector<float>{-1.5f, 8388608.5f, 0x1p30f, -0x1p30f});
  UnitResult halves(unit::find_unit("nvidia.h100.wgmma.e4m3.f16"), p);
  REQUIRE(halves.target().bytes == 2);
  const std::uint16_t codes[] = {0x3c00, 0xc000, 0x0001, 0x7c00};
  std::memcpy(halves.target().d, codes, sizeof(codes));
  halves.finish(half, {});
  CHECK(d.data == std::vector<float>{0.5f, -1.0f, 0x1p-25f, HUGE_VALF});
  UnitResult floats(unit::find_unit("exact"), p);
  CHECK(floats.target().d == d.data.data());
}

}  // namespace unit_result_test
