// Transpose: every permutation of three axes and some of four.
#include "emu/net/ops/transpose.hpp"

#include <algorithm>
#include <numeric>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("transpose moves every element for every permutation", "[fast]") {
  for (const Shape& x : {Shape{4}, Shape{2, 3}, Shape{2, 3, 4}, Shape{2, 3, 1, 4}}) {
    std::vector<std::int64_t> permutation(x.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    do {
      Transpose op(permutation);
      Shape y;
      for (const std::int64_t axis : permutation) y.push_back(x[axis]);
      test::check_mover(op, {x}, y, [&](const Shape& place) {
        Shape from(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) from[permutation[i]] = place[i];
        return test::Moved{0, from};
      });
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

TEST_CASE("transpose has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({4, 33, 7, 20}, 1);
  test::check_threads(Transpose({2, 0, 3, 1}), {x});
}

TEST_CASE("transpose refuses what is not a permutation", "[fast]") {
  CHECK_THROWS_WITH(Transpose({0, 0}), Catch::Contains("[0, 0] is not a permutation"));
  CHECK_THROWS_WITH(Transpose({0, 2}), Catch::Contains("not a permutation"));
  CHECK_THROWS_WITH(Transpose({-1, 0}), Catch::Contains("not a permutation"));
  const Transpose op({1, 0});
  const std::vector<Shape> cube{{2, 2, 2}};
  CHECK_THROWS_WITH(op.output_shape(cube),
                    Catch::Contains("2 axes") && Catch::Contains("[2, 2, 2]"));
}

}  // namespace
}  // namespace numemu::net
