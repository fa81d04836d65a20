// The chain kernel as a fast path: it takes plain float32 chains only, and then equals the
// reference.
#include "emu/unit/chain/chain.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/by_path.hpp"

namespace float_chain_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

UnitDescription plain() {
  UnitDescription u;
  u.name = "own";
  u.core = CoreKind::chain;
  u.c = u.d = u.accumulator.format = &find_format("float32");
  return u;
}

/// Whether the path takes it; then its bits are the reference's.
bool taken(const UnitDescription& u, const char* operand = "float16", Data data = Data::finite,
           bool with_c = true) {
  const auto unit = make_unit(u);
  AnyProduct product(*unit, 6, 21, 37, data, 11, with_c, operand);
  const auto reference = product.reference();
  std::vector<std::uint8_t> d(reference.size(), 0xa5);
  Gemm g = product.gemm();
  g.d = d.data();
  if (!by_path(multiply_float_chain, u, g)) {
    CHECK(d == std::vector<std::uint8_t>(d.size(), 0xa5));
    return false;
  }
  CHECK(d == reference);
  return true;
}

}  // namespace

TEST_CASE("float chain: plain chains of every operand", "[fast]") {
  for (const char* operand : {"float32", "tfloat32", "float16", "bfloat16", "float8_e5m2", "int8",
                              "float4_e2m1fn", "sign1"}) {
    for (const Data data : kAllData) {
      INFO(operand << " " << static_cast<int>(data));
      CHECK(taken(plain(), operand, data));
      CHECK(taken(plain(), operand, data, false));
    }
  }
}

TEST_CASE("float chain: everything else is declined", "[fast]") {
  const auto declined = [](auto change) {
    UnitDescription u = plain();
    change(u);
    return !taken(u);
  };
  CHECK(declined([](auto& u) { u.accumulator.rounding.mode = RoundingMode::rtz; }));
  CHECK(declined([](auto& u) { u.accumulator.overflow = Overflow::saturate; }));
  CHECK(declined([](auto& u) { u.chain.kahan = true; }));
  CHECK(declined([](auto& u) { u.chain.fused = false; }));
  CHECK(declined([](auto& u) { u.chain.chunk = 4; }));
  CHECK(declined([](auto& u) { u.k = 2; }));
  CHECK(declined([](auto& u) { u.c_entry = CEntry::after_rounding; }));
  CHECK(declined([](auto& u) { u.nan_code = 0x7fffffff; }));
  CHECK(declined([](auto& u) { u.nan = NanRule::x86; }));
  CHECK(declined([](auto& u) { u.subnormals.flush_results = true; }));
  CHECK(declined([](auto& u) { u.subnormals.flush_inputs = true; }));
  CHECK(declined([](auto& u) { u.subnormals.flush_c = true; }));
  CHECK(declined([](auto& u) {
    u.c = u.d = u.accumulator.format = &find_format("float16");
    u.nan_code = 0x7e00;
  }));
  CHECK(declined([](auto& u) { u.core = CoreKind::tree; }));
}

}  // namespace float_chain_test
