// Views against their definition, element by element; there and back again.
#include "emu/net/ops/views.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net::views_test {
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

TEST_CASE("flatten keeps the elements in order, both ways", "[fast]") {
  Flatten op;
  const auto reference = [](const std::vector<test::Doubles>& arguments) { return arguments[0]; };
  constexpr double kTolerance = 60 * 0x1p-53 * 0x1p12;  // roundings of the difference quotient
  test::check_op(op, {test::random_tensor({2, 3, 5, 2}, 1)}, reference, kTolerance);
  const std::vector<Shape> shapes{{2, 3, 5, 2}}, scalar{Shape{}};
  CHECK(op.output_shape(shapes) == Shape{2, 30});
  CHECK_THROWS_AS(op.output_shape(scalar), Error);
}

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

TEST_CASE("transpose refuses what is not a permutation", "[fast]") {
  CHECK_THROWS_WITH(Transpose({0, 0}), Catch::Contains("[0, 0] is not a permutation"));
  CHECK_THROWS_WITH(Transpose({0, 2}), Catch::Contains("not a permutation"));
  CHECK_THROWS_WITH(Transpose({-1, 0}), Catch::Contains("not a permutation"));
  const Transpose op({1, 0});
  const std::vector<Shape> cube{{2, 2, 2}};
  CHECK_THROWS_WITH(op.output_shape(cube),
                    Catch::Contains("2 axes") && Catch::Contains("[2, 2, 2]"));
}

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

TEST_CASE("concat refuses shapes that do not fit", "[fast]") {
  const std::vector<Shape> sizes{{2, 3}, {3, 3}}, ranks{{2, 3}, {2, 3, 1}};
  CHECK_THROWS_WITH(Concat(1).output_shape(sizes),
                    Catch::Contains("input 1") && Catch::Contains("[3, 3]"));
  CHECK_THROWS_WITH(Concat(1).output_shape(ranks), Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(Concat(2).output_shape(sizes), Catch::Contains("axis 2"));
  CHECK_THROWS_WITH(Concat(0).output_shape({}), Catch::Contains("at least one"));
}

constexpr std::int64_t kSize = 4;

// Python's rule by walking: negative bounds count from the end, elements outside are left out.
Shape walked(std::int64_t start, std::int64_t end, std::int64_t step) {
  if (start < 0) start += kSize;
  if (end < 0) end += kSize;
  if (step > 0 && start < 0) start = 0;
  if (step < 0 && start >= kSize) start = kSize - 1;
  Shape elements;
  for (std::int64_t i = start; i >= 0 && i < kSize && (step > 0 ? i < end : i > end); i += step)
    elements.push_back(i);
  return elements;
}

TEST_CASE("slice takes what Python takes for every start and end and step", "[fast]") {
  for (std::int64_t start = -kSize - 2; start <= kSize + 2; ++start)
    for (std::int64_t end = -kSize - 2; end <= kSize + 2; ++end)
      for (const std::int64_t step : {1, 2, 3, 7, -1, -2, -3, -7}) {
        INFO("start " << start << " end " << end << " step " << step);
        const Shape elements = walked(start, end, step);
        Slice op({{.axis = 1, .start = start, .end = end, .step = step}});
        const std::int64_t count = static_cast<std::int64_t>(elements.size());
        const std::vector<Shape> shapes{{2, kSize, 3}};
        if (count == 0) {
          CHECK_THROWS_WITH(op.output_shape(shapes), Catch::Contains("is empty"));
          continue;
        }
        test::check_mover(op, shapes, {2, count, 3}, [&](const Shape& place) {
          return test::Moved{0, {place[0], elements[place[1]], place[2]}};
        });
      }
}

TEST_CASE("slice reaches both ends of several axes", "[fast]") {
  constexpr std::int64_t kEnd = SliceRange::kToTheEnd, kStart = SliceRange::kToTheStart;
  Slice op({{.axis = -1, .start = kEnd, .end = kStart, .step = -1},
            {.axis = 0, .start = -1, .end = kEnd, .step = kEnd},
            {.axis = 1, .start = kEnd, .end = kStart, .step = kStart}});
  test::check_mover(op, {{3, 5, 4}}, {1, 1, 4}, [](const Shape& place) {
    return test::Moved{0, {2, 4, 3 - place[2]}};
  });
}

TEST_CASE("slice refuses what it cannot cut", "[fast]") {
  CHECK_THROWS_WITH(Slice(std::vector<SliceRange>{{.axis = 1, .step = 0}}),
                    Catch::Contains("step of 0"));
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(Slice(std::vector<SliceRange>{{.axis = 2}}).output_shape(shapes),
                    Catch::Contains("axis 2"));
  CHECK_THROWS_WITH(Slice(std::vector<SliceRange>{{.axis = 1}, {.axis = -1}}).output_shape(shapes),
                    Catch::Contains("axis 1 is cut twice"));
}

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

TEST_CASE("pad refuses negative numbers and other ranks", "[fast]") {
  CHECK_THROWS_WITH(Pad({0, -1}, {0, 0}), Catch::Contains("without negative"));
  CHECK_THROWS_WITH(Pad({0, 0}, {0, -3}), Catch::Contains("[0, -3]"));
  CHECK_THROWS_WITH(Pad({0}, {0, 0}), Catch::Contains("same length"));
  const std::vector<Shape> flat{{4}};
  CHECK_THROWS_WITH(Pad({0, 1}, {0, 1}).output_shape(flat), Catch::Contains("2 axes"));
}

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("a constant gives its value and is never trained", "[fast]") {
  Constant op(test::random_tensor({2, 3}, 1));
  REQUIRE(op.parameters().size() == 1);
  CHECK(op.parameters()[0].name == "value");
  CHECK_FALSE(op.parameters()[0].trained);
  CHECK(op.result() == ResultKind::view);
  Numerics numerics;
  const test::OpResult result = test::run_op(op, {}, numerics);
  CHECK(result.output.shape == Shape{2, 3});
  CHECK(result.output.data == test::random_tensor({2, 3}, 1).data);
  CHECK(result.grad_parameters[0].empty());
  CHECK(Constant(Tensor({1}, kAnyNan)).kind() == "constant");
  CHECK(Constant(Tensor({1}, kInfinity)).parameters()[0].fan_in < 0);
  const std::vector<Shape> one{{2}};
  CHECK_THROWS_WITH(op.output_shape(one), Catch::Contains("no inputs"));
}

}  // namespace

}  // namespace numemu::net::views_test
