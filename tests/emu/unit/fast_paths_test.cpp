// The list of fast paths: what one covers equals the reference, what none covers stays untouched.
#include "emu/unit/fast_paths.hpp"

#include "emu/unit/described_unit.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace fast_paths_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

/// Whether a fast path took it; then its bits are checked, else that nothing was written.
bool covered(const Unit& unit, AnyProduct& product) {
  const auto reference = product.reference();
  std::vector<std::uint8_t> d(reference.size(), 0xa5);
  Gemm g = product.gemm();
  g.d = d.data();
  INFO(unit.row().name);
  if (!multiply_fast(*unit.description(), g)) {
    CHECK(d == std::vector<std::uint8_t>(d.size(), 0xa5));
    return false;
  }
  CHECK(d == reference);
  return true;
}

}  // namespace

TEST_CASE("fast paths: the definitions are covered", "[fast]") {
  for (const char* name : {"neutral.f32.sequential", "neutral.exact"}) {
    AnyProduct product(find_unit(name), 5, 17, 33, Data::moderate, 1);
    CHECK(covered(find_unit(name), product));
  }
}

TEST_CASE("fast paths: described units of every kind equal the reference or decline", "[fast]") {
  std::uint64_t seed = 50;
  for (const char* name :
       {"neutral.mac.e5m10", "neutral.mac.e5m10.rtz", "neutral.mac.e5m10.sr8",
        "neutral.mac.e4m3+nan1.saturate", "neutral.mac.float64", "neutral.mac.tfloat32",
        "neutral.mac.e8m20", "neutral.mac.int16.wrap", "neutral.mac.int16", "neutral.mac.int32",
        "neutral.mac.fixed24q12.rtz", "neutral.chunk4.hfp16_e6m9", "neutral.chunk7.bfloat16.sr12a",
        "neutral.kahan.float16", "neutral.kahan.bfloat16.rtz", "neutral.mac.dlfloat16",
        "neutral.mac.hfp8_e5m2_finite", "neutral.mac.e5m10+ftz", "neutral.exact.nv16"}) {
    for (const Data data : kAllData) {
      for (const char* operand : {"float8_e4m3fn", "float16", "int8", "sign1", "float32"}) {
        ++seed;
        AnyProduct product(find_unit(name), 4, 9, 23, data, seed, seed % 2 == 0, operand);
        INFO(operand << " data " << static_cast<int>(data));
        (void)covered(find_unit(name), product);
      }
    }
  }
}

TEST_CASE("fast paths: small products of odd shapes", "[fast]") {
  for (const char* name : {"nvidia.h100.wgmma.e4m3.f32", "amd.mi300.mfma.bf16.f32",
                           "intel.emr.tdpbf16ps.bf16.f32", "neutral.mac.hfp16_e6m9"}) {
    for (const std::int64_t k : {0, 1, 2, 31, 33}) {
      for (const std::int64_t n : {1, 2, 15, 17}) {
        AnyProduct product(find_unit(name), 3, n, k, Data::finite, 7 + static_cast<unsigned>(k));
        (void)covered(find_unit(name), product);
      }
    }
  }
}

TEST_CASE("fast paths: operands that are rounded on their way in", "[fast]") {
  UnitDescription u;
  u.name = "own";
  u.core = CoreKind::chain;
  u.a = u.b = u.accumulator.format = &find_format("float32");
  u.c = u.d = u.a;
  u.input.format = &find_format("tfloat32");
  u.input.rounding.mode = RoundingMode::rtz;
  const auto unit = make_unit(u);
  AnyProduct product(*unit, 5, 6, 40, Data::moderate, 3);
  (void)covered(*unit, product);
  CHECK(product.mismatches() == 0);
}

}  // namespace fast_paths_test
