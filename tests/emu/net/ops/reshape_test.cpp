// Reshape: the order of elements stays, the target's 0 and -1.
#include "emu/net/ops/reshape.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("reshape keeps the elements in order both ways", "[fast]") {
  const Shape x{2, 3, 4};
  struct Case {
    Shape target, result;
  };
  for (const Case& c :
       {Case{{0, -1}, {2, 12}}, Case{{-1, 0, 2}, {4, 3, 2}}, Case{{0, 0, 0}, {2, 3, 4}},
        Case{{-1}, {24}}, Case{{6, 1, 4}, {6, 1, 4}}, Case{{0, 3, 2, -1, 2}, {2, 3, 2, 1, 2}}}) {
    Reshape op(c.target);
    test::check_mover(op, {x}, c.result, [&](const Shape& place) {
      return test::Moved{0, test::places(x, test::flat_index(c.result, place))};
    });
  }
}

TEST_CASE("reshape refuses shapes of other sizes", "[fast]") {
  const std::vector<Shape> shapes{{2, 3, 4}};
  for (const Shape& wrong :
       {Shape{5, -1}, Shape{2, 3}, Shape{0, 0, 0, 0}, Shape{25}, Shape{std::int64_t{1} << 62, 8}}) {
    CHECK_THROWS_WITH(Reshape(wrong).output_shape(shapes),
                      Catch::Contains("[2, 3, 4] has no shape"));
  }
  CHECK_THROWS_WITH(Reshape({-1, -1}), Catch::Contains("at most one -1"));
  CHECK_THROWS_WITH(Reshape({-2}), Catch::Contains("[-2]"));
}

}  // namespace
}  // namespace numemu::net
