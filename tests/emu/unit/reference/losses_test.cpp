// Losses add up: the result is the exact sum less what cuts and roundings took away.
#include "emu/unit/reference/losses.hpp"

#include "emu/unit/reference/divergence.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace losses_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("losses: cuts of products, roundings of sums and of a chain", "[fast]") {
  const Unit& unit = find_unit("nvidia.h100.wgmma.e4m3.f32");
  const std::uint8_t a[] = {0x78, 0x01}, b[] = {0x38, 0x38};  // 256 and 2^-9
  const Gather row = Gather::matrix(1, 2);
  Gemm g;
  g.m = g.n = 1;
  g.k = 2;
  g.a = {&find_format("float8_e4m3fn"), a, &row};
  g.b = {g.a.format, b, &row};
  Trace trace;
  ReferenceDot(*unit.description(), g).code(0, 0, &trace);
  const auto step = find_losses(*unit.description(), g, 0, 0, trace).front();
  CHECK_FALSE(step.terms[0]);
  CHECK(to_double(step.terms[1].value()) == 0x1p-9);
  CHECK_FALSE(step.rounding);
  CHECK(to_double(step.exact.value()) == 256 + 0x1p-9);
  CHECK(to_double(step.off.value()) == -0x1p-9);
  const Unit& chain = find_unit("neutral.mac.e5m4");
  trace = {};
  ReferenceDot(*chain.description(), g).code(0, 0, &trace);
  const auto chained = find_losses(*chain.description(), g, 0, 0, trace).front();
  CHECK_FALSE(chained.terms[1]);
  CHECK(to_double(chained.terms[2].value()) == 0x1p-9);
  CHECK(to_double(chained.off.value()) == -0x1p-9);
}

TEST_CASE("losses: they add up to the distance of the result from the exact sum", "[fast]") {
  for (const char* name : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.a100.mma.f16.f32",
                           "nvidia.b200.tcgen05.e4m3.f32.mx32", "neutral.mac.float16",
                           "amd.mi200.mfma_1k.bf16.f32", "nvidia.h100.wgmma.e4m3.f16"}) {
    const Unit& unit = find_unit(name);
    const UnitDescription& u = *unit.description();
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      INFO(name << " seed " << seed);
      const AnyProduct product(unit, 1, 1, 64, Data::moderate, seed);
      const Gemm& g = product.gemm();
      Trace trace;
      std::uint64_t code = ReferenceDot(u, g).code(0, 0, &trace);
      code <<= unit.d_format()->container_shift;
      const Value result = read_element(unit.d_format(), u.accumulator, &code, 0);
      const auto losses = find_losses(u, g, 0, 0, trace);
      Value sum = result;
      for (const StepLosses& step : losses) {
        for (const auto& lost : step.terms) {
          if (lost) sum = exact_sum({sum, *lost});
        }
        if (step.rounding) sum = exact_sum({sum, *step.rounding});
      }
      const UnitDescription stored = as_stored(u);
      const Value exact = ReferenceDot(stored, g).exact(0, 0);
      CHECK(same_number(losses.back().exact.value(), exact));
      const Value off = losses.back().off.value_or(Value{});
      CHECK(same_number(exact_sum({exact, off}), result));
      // A tree shows its inner sums beside the products, and rounds them, too.
      if (u.core != CoreKind::tree) CHECK(same_number(sum, exact));
    }
  }
}

}  // namespace losses_test
