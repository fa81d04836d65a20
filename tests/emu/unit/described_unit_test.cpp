// Units made from descriptions: their rows, what they accept, and every product they refuse.
#include "emu/unit/described_unit.hpp"

#include <cstring>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace described_unit_test {

using namespace numemu;
using namespace numemu::unit;
using Catch::Contains;
using numemu::unit::test::AnyProduct;
using numemu::unit::test::Data;

namespace {

UnitDescription own() {
  UnitDescription u;
  u.name = "own";
  u.core = CoreKind::chain;
  u.accumulator.format = &find_format("float16");
  u.nan_code = 0x7e00;
  return u;
}

/// The line with which a product is refused.
std::string refusal(const Unit& unit, const Gemm& g) {
  std::string fast, reference;
  try {
    unit.multiply(g);
  } catch (const Error& error) {
    fast = error.what();
  }
  try {
    unit.multiply_reference(g);
  } catch (const Error& error) {
    reference = error.what();
  }
  CHECK(fast == reference);
  return fast;
}

}  // namespace

TEST_CASE("described unit: its row is derived from the description", "[fast]") {
  const auto unit = make_unit(own());
  CHECK(unit->row().name == "own");
  CHECK(unit->row().operand == "any");
  CHECK(unit->row().result == "float16");
  CHECK(unit->row().grade == Grade::described_by_you);
  CHECK(unit->c_format()->name == "float16");
  CHECK_THAT(unit->row().accumulation, Contains("float16"));
  UnitDescription typed = own();
  typed.a = &find_format("float8_e4m3fn");
  typed.b = &find_format("float8_e5m2");
  typed.c = typed.d = &find_format("float32");
  typed.nan_code = 0x7fc00000;
  const auto two = make_unit(typed);
  CHECK(two->row().operand == "float8_e4m3fn x float8_e5m2");
  CHECK(two->row().result == "float32");
  CHECK(two->operand_rule() == two->row().operand);
  CHECK(two->accepts_a(find_format("e4m3fn")));
  CHECK_FALSE(two->accepts_b(find_format("e4m3fn")));
  CHECK_FALSE(two->accepts(find_format("e4m3fn")));
}

TEST_CASE("described unit: a description that contradicts itself is no unit", "[fast]") {
  UnitDescription u = own();
  u.alignment.fraction_bits = 3;
  CHECK_THROWS_WITH(make_unit(u), Contains("own: alignment.fraction_bits"));
}

TEST_CASE("described unit: any format means what the core can multiply", "[fast]") {
  const auto chain = make_unit(own());
  for (const char* name : {"float16", "float32", "tfloat32", "int8", "sign1", "float4_e2m1fn"})
    CHECK(chain->accepts(find_format(name)));
  for (const char* name : {"float64", "binary15p3se", "e9m3"})
    CHECK_FALSE(chain->accepts(find_format(name)));
  CHECK(find_unit("exact").accepts(find_format("binary15p3se")));
}

TEST_CASE("described unit: sizes, operands, scales and metadata that do not fit", "[fast]") {
  const auto with = [](const char* name, std::int64_t k, auto change) {
    const Unit& unit = find_unit(name);
    AnyProduct product(unit, 2, 3, k, Data::moderate, 1);
    Gemm g = product.gemm();
    CHECK(refusal(unit, g).empty());
    change(g);
    const std::string text = refusal(unit, g);
    CHECK_THAT(text, Contains(unit.row().name));
    CHECK(text.find('\n') == text.npos);
    return text;
  };
  static const std::uint8_t bytes[64] = {};
  const char *dense = "nvidia.h100.wgmma.e4m3.f32", *scaled = "neutral.exact.mx32",
             *sparse = "nvidia.h100.wgmma.e4m3.f32.sp24";
  CHECK_THAT(with(dense, 8, [](Gemm& g) { g.m = -1; }), Contains("negative size -1 x 3 x 8"));
  CHECK_THAT(with(dense, 8, [](Gemm& g) { g.a.format = &find_format("float8_e5m2"); }),
             Contains("float8_e5m2") && Contains("it takes float8_e4m3fn"));
  CHECK_THAT(with(dense, 8, [](Gemm& g) { g.b.format = &find_format("float16"); }),
             Contains("float16"));
  CHECK_THAT(with(dense, 8, [](Gemm& g) { g.scale_a = bytes; }), Contains("has no block scales"));
  CHECK_THAT(with(dense, 8, [](Gemm& g) { g.kept = bytes; }), Contains("is dense"));
  CHECK_THAT(with(scaled, 40, [](Gemm& g) { g.scale_b = nullptr; }),
             Contains("expected scales of A and B, one float8_e8m0fnu code per 32"));
  CHECK_THAT(with(sparse, 8, [](Gemm& g) { g.kept = nullptr; }),
             Contains("expected the metadata of its 2:4 A"));
  CHECK_THAT(with(sparse, 8, [](Gemm& g) { g.k = 10; }), Contains("K is 10, expected a multiple"));
}

TEST_CASE("described unit: empty products write nothing, K = 0 gives C", "[fast]") {
  const auto unit = make_unit(own());
  for (const auto& [m, n] : {std::pair{0, 3}, {3, 0}, {0, 0}}) {
    AnyProduct product(*unit, m, n, 4, Data::moderate, 1);
    CHECK_NOTHROW(product.fast());
    CHECK_NOTHROW(product.reference());
  }
  AnyProduct none(*unit, 2, 2, 0, Data::moderate, 3);
  CHECK(none.mismatches() == 0);
  const auto d = none.fast();
  CHECK(std::memcmp(d.data(), none.gemm().c, d.size()) == 0);
}

TEST_CASE("described unit: the reference does not depend on tiles", "[fast]") {
  const Unit& unit = find_unit("nvidia.a100.mma.f16.f32");
  AnyProduct whole(unit, 9, 40, 20, Data::finite, 12);
  const auto all = whole.reference();
  std::vector<std::uint8_t> part(40 * 4);
  for (std::int64_t row = 0; row < 9; ++row) {
    Gemm g = whole.gemm();
    Gather one = *g.a.gather;
    one.row = {g.a.gather->row[static_cast<std::size_t>(row)]};
    g.a.gather = &one;
    g.m = 1;
    g.c = static_cast<const std::uint8_t*>(g.c) + row * 160;
    g.d = part.data();
    multiply_by_reference(*unit.description(), g);
    CHECK(std::memcmp(part.data(), &all[static_cast<std::size_t>(row * 160)], 160) == 0);
  }
}

}  // namespace described_unit_test
