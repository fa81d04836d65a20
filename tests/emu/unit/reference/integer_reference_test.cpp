// Integer registers by hand: wrapping, saturating once or each time, signs, tables, padding.
#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace integer_reference_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

UnitDescription integer_unit(int bits, IntegerOverflow overflow, int group = 0) {
  UnitDescription u;
  u.core = CoreKind::integer;
  u.a = u.b = &find_format("int8");
  u.accumulator.bits = bits;
  u.accumulator.integer = overflow;
  u.group = group;
  u.nan_code = 0;
  return u;
}

std::int64_t result(const UnitDescription& u, const std::vector<double>& products,
                    std::optional<std::int64_t> c = {}) {
  DotCase dot{u, codes_of(*u.a, products),
              codes_of(*u.b, std::vector<double>(products.size(), 1.0))};
  if (c) dot.c = static_cast<std::uint64_t>(*c) & ((std::uint64_t{1} << u.accumulator.bits) - 1);
  return dot.whole();
}

constexpr auto kWrap = IntegerOverflow::wrap;
constexpr auto kOnce = IntegerOverflow::saturate_once;
constexpr auto kEach = IntegerOverflow::saturate_each;

}  // namespace

TEST_CASE("integer reference: wrap, saturate once a step, saturate each time", "[fast]") {
  const std::vector<double> products = {100, 100, -100};
  CHECK(result(integer_unit(8, kWrap), products) == 100);
  CHECK(result(integer_unit(8, kOnce), products) == 100);
  CHECK(result(integer_unit(8, kEach), products) == 27);
  CHECK(result(integer_unit(8, kOnce, 2), products) == 27);  // 127, then -100
  CHECK(result(integer_unit(8, kOnce, 1), products) == 27);
  CHECK(result(integer_unit(8, kWrap, 2), products) == 100);
  CHECK(result(integer_unit(8, kWrap), {100, 100}) == -56);
  CHECK(result(integer_unit(8, kOnce), {-100, -100}, -1) == -128);
  CHECK(result(integer_unit(8, kOnce), {100}, 100) == 127);
  CHECK(result(integer_unit(8, kOnce), {100, -100}, 100) == 100);
}

TEST_CASE("integer reference: the ends of 32 bits", "[fast]") {
  const std::int64_t top = 0x7fffffff, bottom = -top - 1;
  CHECK(result(integer_unit(32, kWrap, 4), {1}, top) == bottom);
  CHECK(result(integer_unit(32, kOnce, 4), {1}, top) == top);
  CHECK(result(integer_unit(32, kOnce, 4), {1, -1}, top) == top);
  CHECK(result(integer_unit(32, kEach, 4), {1, -1}, top) == top - 1);
  CHECK(result(integer_unit(32, kOnce, 4), {-1}, bottom) == bottom);
  CHECK(result(integer_unit(32, kWrap, 4), {-1}, bottom) == top);
}

TEST_CASE("integer reference: signed and unsigned operands", "[fast]") {
  UnitDescription u = integer_unit(32, kWrap);
  u.a = &find_format("uint8");
  DotCase dot{u, {255, 255}, {0x80, 0x7f}};  // 255 (-128 + 127)
  CHECK(dot.whole() == -255);
  dot.unit.a = &find_format("int8");
  CHECK(dot.whole() == 1);
}

TEST_CASE("integer reference: 16-bit operands are what their name says", "[fast]") {
  UnitDescription u = integer_unit(32, kWrap, 2);
  u.a = u.b = &find_format("int16");
  CHECK(u.a->bits == 16);
  CHECK(DotCase{u, {300, 0xffff}, {300, 1}}.whole() == 89999);
}

TEST_CASE("integer reference: signs that agree count one, others minus one", "[fast]") {
  UnitDescription u = integer_unit(32, kWrap);
  u.core = CoreKind::xnor;
  u.a = u.b = &find_format("sign1");
  DotCase dot{u, {0, 1, 1, 0, 1}, {0, 1, 0, 1, 1}};
  CHECK(dot.whole() == 1);
  dot.c = 10;
  CHECK(dot.whole() == 11);
  dot.unit.group = 8;  // there is no sign that adds nothing: not padded
  CHECK(dot.whole() == 11);
}

TEST_CASE("integer reference: a table holds the product of every pair of codes", "[fast]") {
  UnitDescription u = integer_unit(32, kWrap);
  u.core = CoreKind::table;
  u.a = &find_format("uint2");
  u.b = &find_format("uint3");
  std::vector<std::int32_t> table(32);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 8; ++b) table[static_cast<std::size_t>(a << 3 | b)] = a * b + (a == 3);
  u.products = std::make_shared<const std::vector<std::int32_t>>(table);
  DotCase dot{u, {3, 2, 1}, {7, 5, 0}};
  CHECK(dot.whole() == 22 + 10);
  dot.unit.accumulator.bits = 8;
  dot.unit.accumulator.integer = kOnce;
  dot.c = 120;
  CHECK(dot.whole() == 127);
}

TEST_CASE("integer reference: without products the result is C", "[fast]") {
  for (const auto overflow : {kWrap, kOnce, kEach})
    CHECK(result(integer_unit(8, overflow, 4), {}, -5) == -5);
}

}  // namespace integer_reference_test
