// Concat: parts in order along every axis, gradients cut apart again.
#include "emu/net/ops/concat.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("concat puts its inputs side by side along every axis", "[fast]") {
  for (const std::int64_t axis : {-3, -2, -1, 0, 1, 2})
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{3}, {1, 4}, {2, 3, 1}}) {
      const std::int64_t front = axis < 0 ? axis + 3 : axis;
      std::vector<Shape> shapes;
      Shape y{2, 3, 4};
      y[front] = 0;
      for (const std::int64_t size : sizes) {
        shapes.push_back({2, 3, 4});
        shapes.back()[front] = size;
        y[front] += size;
      }
      Concat op(axis);
      test::check_mover(op, shapes, y, [&](Shape place) {
        int input = 0;
        while (place[front] >= sizes[input]) place[front] -= sizes[input++];
        return test::Moved{input, place};
      });
    }
}

TEST_CASE("concat has the same bits on every number of threads", "[fast]") {
  const Tensor a = test::random_tensor({8, 30, 64}, 1), b = test::random_tensor({8, 30, 40}, 2);
  test::check_threads(Concat(2), {a, b});
}

TEST_CASE("concat refuses shapes that do not fit", "[fast]") {
  const std::vector<Shape> sizes{{2, 3}, {3, 3}}, ranks{{2, 3}, {2, 3, 1}};
  CHECK_THROWS_WITH(Concat(1).output_shape(sizes),
                    Catch::Contains("input 1") && Catch::Contains("[3, 3]"));
  CHECK_THROWS_WITH(Concat(1).output_shape(ranks), Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(Concat(2).output_shape(sizes), Catch::Contains("axis 2"));
  CHECK_THROWS_WITH(Concat(0).output_shape({}), Catch::Contains("at least one"));
}

}  // namespace
}  // namespace numemu::net
