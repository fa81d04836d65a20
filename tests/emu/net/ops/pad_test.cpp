// Pad: elements inside, the constant around, gradients from inside.
#include "emu/net/ops/pad.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("pad puts the constant around the elements", "[fast]") {
  constexpr float kValue = -2.5f;
  for (const Shape& before : {Shape{0, 0, 0}, Shape{0, 1, 2}, Shape{1, 0, 0}})
    for (const Shape& after : {Shape{0, 0, 0}, Shape{0, 3, 0}, Shape{2, 0, 1}}) {
      const Shape x{2, 3, 4};
      Shape y = x;
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += before[i] + after[i];
      Pad op(before, after, kValue);
      test::check_mover(op, {x}, y, [&](const Shape& place) {
        test::Moved moved{0, place, kValue};
        for (std::size_t i = 0; i < x.size(); ++i) {
          moved.place[i] -= before[i];
          if (moved.place[i] < 0 || moved.place[i] >= x[i]) moved.input = -1;
        }
        return moved;
      });
    }
}

TEST_CASE("pad has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({8, 30, 64}, 1);
  test::check_threads(Pad({0, 3, 1}, {0, 0, 2}, 1), {x});
}

TEST_CASE("pad refuses negative numbers and other ranks", "[fast]") {
  CHECK_THROWS_WITH(Pad({0, -1}, {0, 0}), Catch::Contains("without negative"));
  CHECK_THROWS_WITH(Pad({0, 0}, {0, -3}), Catch::Contains("[0, -3]"));
  CHECK_THROWS_WITH(Pad({0}, {0, 0}), Catch::Contains("same length"));
  const std::vector<Shape> flat{{4}};
  CHECK_THROWS_WITH(Pad({0, 1}, {0, 1}).output_shape(flat), Catch::Contains("2 axes"));
}

}  // namespace
}  // namespace numemu::net
