// The plan of exact products: bounds are tight, and pieces add up to the value.
#include <cmath>

#include "emu/unit/exact/exact.hpp"
#include "tests/catch.hpp"

namespace exact_plan_test {

using namespace numemu;
using namespace numemu::unit;
using Way = ExactPlan::Way;

TEST_CASE("exact plan: float32 up to 24 bits, float64 up to 53, then pieces", "[fast]") {
  const Exponents bits12{0, 12}, none;
  CHECK(plan_exact(bits12, bits12, none, 1).way == Way::float32);
  CHECK(plan_exact(bits12, bits12, none, 2).way == Way::float64);
  const Exponents int8{0, 7};
  CHECK(plan_exact(int8, int8, none, 1024).way == Way::float32);
  CHECK(plan_exact(int8, int8, none, 1025).way == Way::float64);
  const Exponents e4m3{-9, 9};
  CHECK(plan_exact(e4m3, e4m3, none, 1 << 17).way == Way::float64);
  CHECK(plan_exact(e4m3, e4m3, none, (1 << 17) + 1).way == Way::split);
  const Exponents e5m2{-16, 16};
  const ExactPlan plan = plan_exact(e5m2, e5m2, none, 512);
  CHECK(plan.way == Way::split);
  CHECK(plan.a.size() * plan.b.size() == 3);
  CHECK(plan_exact(e5m2, e5m2, none, 1 << 14).a.size() == 2);
  CHECK(plan_exact(e5m2, e4m3, none, 512).a.size() + plan_exact(e5m2, e4m3, none, 512).b.size() ==
        3);
  const Exponents float32{-149, 128};
  CHECK(plan_exact(float32, float32, none, 1).way == Way::kulisch);
}

TEST_CASE("exact plan: C counts, and empty operands leave C as it is", "[fast]") {
  const Exponents small{0, 4}, none, wide{-100, 100};
  CHECK(plan_exact(small, small, {0, 22}, 4).way == Way::float32);
  CHECK(plan_exact(small, small, {0, 24}, 4).way == Way::float64);
  CHECK(plan_exact(small, small, {-60, 10}, 4).way == Way::split);
  CHECK(plan_exact(small, small, {-149, 100}, 4).way == Way::kulisch);
  CHECK(plan_exact(none, small, wide, 4).way == Way::float32);
  CHECK(plan_exact(small, small, wide, 0).way == Way::float32);
  CHECK(plan_exact(none, {-2000, -1990}, none, 4).way == Way::kulisch);
}

TEST_CASE("exact plan: the pieces of a value add up to it and keep its sign", "[fast]") {
  for (const double x : {1.0, -1.75, 57344.0, -0x1p-16, 0x1.8p-15, 448.0, -3.5}) {
    const Value value = value_of(x);
    const ExactPlan plan = plan_exact({-16, 16}, {-16, 16}, {}, 4096);
    double sum = 0;
    for (const Exponents& piece : plan.a) {
      const double part = piece_of(value, piece);
      CHECK(std::signbit(part) == std::signbit(x));
      sum += part;
    }
    CHECK(sum == x);
  }
  CHECK(piece_of({.kind = Class::nan}, {0, 4}) == 0);
  CHECK(std::signbit(piece_of({.kind = Class::zero, .negative = true}, {0, 4})));
}

}  // namespace exact_plan_test
