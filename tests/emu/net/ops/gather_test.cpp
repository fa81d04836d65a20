// Gather: chosen elements along every axis, sums where one is chosen twice.
#include "emu/net/ops/gather.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("gather chooses along every axis", "[fast]") {
  const Shape x{3, 4, 5};
  for (const std::int64_t axis : {-3, -1, 0, 1, 2})
    for (const Shape& index_shape : {Shape{}, Shape{1}, Shape{6}, Shape{2, 3}}) {
      std::vector<std::int64_t> indices{2, -1, 0, 2, -3, 2};
      indices.resize(static_cast<std::size_t>(element_count(index_shape)));
      const std::int64_t front = axis < 0 ? axis + 3 : axis, rank = index_shape.size();
      Shape y(x.begin(), x.begin() + front);
      y.insert(y.end(), index_shape.begin(), index_shape.end());
      y.insert(y.end(), x.begin() + front + 1, x.end());
      Gather op(axis, indices, index_shape);
      test::check_mover(
          op, {x}, y,
          [&](const Shape& place) {
            const Shape index(place.begin() + front, place.begin() + front + rank);
            const std::int64_t chosen = indices[test::flat_index(index_shape, index)];
            Shape from(place.begin(), place.begin() + front);
            from.push_back(chosen < 0 ? chosen + x[front] : chosen);
            from.insert(from.end(), place.begin() + front + rank, place.end());
            return test::Moved{0, from};
          },
          4);
    }
}

TEST_CASE("gather has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({40, 5, 64}, 1);
  test::check_threads(Gather(1, {4, 0, 0, 3, 0, -1}), {x});
}

TEST_CASE("gather refuses indices outside its axis", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(Gather(1, {3}).output_shape(shapes),
                    Catch::Contains("index 3 of axis 1 of [2, 3]"));
  CHECK_THROWS_WITH(Gather(1, {-4}).output_shape(shapes), Catch::Contains("index -4"));
  CHECK_THROWS_WITH(Gather(-3, {0}).output_shape(shapes), Catch::Contains("axis -3"));
  CHECK_THROWS_WITH(Gather(0, {0, 1}, {3}), Catch::Contains("got 2"));
  CHECK_THROWS_AS(Gather(0, {}), Error);
}

}  // namespace
}  // namespace numemu::net
