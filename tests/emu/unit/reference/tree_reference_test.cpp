// Trees and exact steps by hand: what is rounded where, zeros, flushes, scales.
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace tree_reference_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

UnitDescription half_tree(int group, int leaf = 1) {
  UnitDescription u = unit_of(CoreKind::tree, "float16");
  u.group = group;
  u.tree.leaf = leaf;
  return u;
}

UnitDescription half_exact(int group) {
  UnitDescription u = unit_of(CoreKind::exact, "float16");
  u.group = group;
  return u;
}

}  // namespace

TEST_CASE("tree reference: neighbours are added pairwise, then C", "[fast]") {
  CHECK(products_of(half_tree(4), {2048, 1, 1, 1}).number() == 2050);     // 2048 + 2
  CHECK(products_of(half_tree(4), {1, 1, 2048, 1}, 1).number() == 2052);  // 2050 + 1: a tie
  CHECK(products_of(half_tree(2), {2048, 1, 1, 1}).number() == 2050);     // two steps: 2048, + 2
  CHECK(products_of(half_tree(0), {1, 1, 2048}).number() == 2050);        // the odd one out goes up
  CHECK(products_of(half_tree(4), {1, 1, 2048}).number() == 2050);        // padded with +0
}

TEST_CASE("tree reference: a leaf of two is exact before its rounding", "[fast]") {
  const auto cancelling = [](UnitDescription u) {
    return DotCase{u, codes_of(*u.a, {1 + 0x1p-10, -1}), codes_of(*u.a, {1 + 0x1p-10, 1 + 0x1p-9})};
  };
  CHECK(cancelling(half_tree(2, 1)).number() == 0);
  CHECK(cancelling(half_tree(2, 2)).number() == 0x1p-20);
  UnitDescription u = half_tree(2);
  u.tree.round_products = false;
  CHECK(cancelling(u).number() == 0x1p-20);
  u.group = 1;  // the product meets C unrounded
  DotCase dot{u, codes_of(*u.a, {1 + 0x1p-10}), codes_of(*u.a, {1 + 0x1p-10})};
  dot.c = code_of_number(*u.a, -(1 + 0x1p-9));
  CHECK(dot.number() == 0x1p-20);
  dot.unit.tree.round_products = true;
  CHECK(dot.number() == 0);
}

TEST_CASE("tree reference: products that are zero may all be +0", "[fast]") {
  UnitDescription u = half_tree(2);
  CHECK(products_of(u, {-0.0, -0.0}, -0.0).code() == 0x8000);
  u.tree.plus_zero_products = true;
  CHECK(products_of(u, {-0.0, -0.0}, -0.0).code() == 0);
  CHECK(products_of(u, {-1, 1}, -0.0).code() == 0);
}

TEST_CASE("tree reference: rounding to odd, and flushes after every sum", "[fast]") {
  UnitDescription u = half_tree(2);
  u.accumulator.rounding.mode = RoundingMode::rodd;
  CHECK(products_of(u, {2048, 1}).number() == 2050);     // odd last bit
  CHECK(products_of(u, {2050, 1}).number() == 2050);     // odd already
  CHECK(products_of(u, {2048, 1}, 1).number() == 2050);  // 2051, from 2050: stays odd
  u = half_tree(2);
  u.subnormals.flush_results = true;
  CHECK(products_of(u, {0x1.8p-14, -0x1p-14}).code() == 0);
  CHECK(products_of(u, {-0x1.8p-14, 0x1p-14}).code() == 0);  // -0 + C, which is +0
  CHECK(products_of(u, {-0x1.8p-14, 0x1p-14}, -0.0).code() == 0x8000);
  CHECK(products_of(u, {0x1p-15, 0x1p-15}).code() == 0);  // products are results, too
}

TEST_CASE("tree reference: infinities and NaN", "[fast]") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(products_of(half_tree(2), {infinity, -infinity}).code() == 0x7e00);
  CHECK(products_of(half_tree(2), {infinity, 1}, -1).code() == 0x7c00);
  CHECK(products_of(half_tree(2), {60000, 60000}, -60000).code() == 0x7c00);
  CHECK(products_of(half_exact(2), {60000, 60000}, -60000).number() == 60000);
}

TEST_CASE("exact reference: one rounding a step, of the products and C", "[fast]") {
  CHECK(products_of(half_exact(0), {2048, 1, 1}).number() == 2050);
  CHECK(products_of(half_exact(2), {1, 0.5, 0, 0.5}, 2048).number() == 2050);  // 2049.5, + 0.5
  CHECK(products_of(half_exact(1), {1, 1}, 2048).number() == 2048);
  UnitDescription u = half_exact(2);
  u.accumulator.rounding.mode = RoundingMode::rup;
  CHECK(products_of(u, {0x1p-20, 0}, 2048).number() == 2050);
  CHECK(products_of(half_exact(2), {-0.0, -0.0}, -0.0).code() == 0x8000);
  CHECK(products_of(half_exact(2), {-0.0, 0.0}, -0.0).code() == 0);
  CHECK(products_of(half_exact(2), {-0.0}, -0.0).code() == 0);  // padding is +0
}

TEST_CASE("exact reference: the sum of a step is shifted before C joins", "[fast]") {
  UnitDescription u = half_exact(2);
  u.scaling.point = Scaling::Point::after_sum;
  u.scaling.shift = 3;
  CHECK(products_of(u, {8, 16}, 1).number() == 4);
  CHECK(products_of(u, {60000, 60000}).number() == 15000);  // no overflow before the shift
  CHECK(products_of(u, {8, 0, 8, 0}, 1).number() == 3);     // C is not shifted again
}

TEST_CASE("exact reference: each product is multiplied by both scales", "[fast]") {
  UnitDescription u = half_exact(0);
  u.scaling = {
      .point = Scaling::Point::exponents, .format = &find_format("float8_e4m3fn"), .block = 2};
  DotCase dot = products_of(u, {1, 1, 1});
  dot.scale_a = {0x3c, 0x38};  // 1.5, 1
  dot.scale_b = {0x40, 0xb4};  // 2, and 0.75 whose sign is ignored
  CHECK(dot.number() == 6.75);
  dot.scale_b[1] = 0x7f;
  CHECK(dot.code() == 0x7e00);
}

}  // namespace tree_reference_test
