// Strided copies: steps forwards and backwards, scalars, and axes counted from either end.
#include "emu/net/ops/strided_copy.hpp"

#include <numeric>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

TEST_CASE("strided_copy: a box with one axis backwards", "[fast]") {
  std::vector<float> from(24), to(12, -1);
  std::iota(from.begin(), from.end(), 0.0f);
  // [2, 3, 4]: every second column, the middle axis backwards and outermost.
  strided_copy({3, 2, 2}, from.data(), {8, {-4, 12, 2}}, to.data(), row_major({3, 2, 2}));
  CHECK(to == std::vector<float>{8, 10, 20, 22, 4, 6, 16, 18, 0, 2, 12, 14});
  std::vector<float> back(24, -1);
  strided_copy({3, 2, 2}, to.data(), row_major({3, 2, 2}), back.data(), {8, {-4, 12, 2}});
  for (std::int64_t i = 0; i < 24; ++i) CHECK(back[i] == (i % 2 == 0 ? from[i] : -1));
}

TEST_CASE("strided_copy: scalars and empty boxes and steps of a tensor", "[fast]") {
  const std::vector<float> from{3, 4};
  std::vector<float> to{0, 0};
  strided_copy({}, from.data(), {1, {}}, to.data(), {0, {}});
  CHECK(to == std::vector<float>{4, 0});
  strided_copy({2, 0}, from.data(), {0, {1, 1}}, to.data(), {0, {1, 1}});
  CHECK(to == std::vector<float>{4, 0});
  CHECK(row_major({2, 3, 4}).steps == Shape{12, 4, 1});
  CHECK(row_major({}).steps.empty());
}

TEST_CASE("checked_axis counts from either end and names the operator", "[fast]") {
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    CHECK(checked_axis("concat", axis, 3) == axis);
    CHECK(checked_axis("concat", axis - 3, 3) == axis);
  }
  CHECK_THROWS_WITH(checked_axis("concat", 3, 3),
                    Catch::Contains("concat: axis 3 of a tensor of 3"));
  CHECK_THROWS_AS(checked_axis("concat", -4, 3), Error);
}

}  // namespace
}  // namespace numemu::net
