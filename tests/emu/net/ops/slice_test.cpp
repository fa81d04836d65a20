// Slice: every start, end and step of a short axis as Python counts, and several axes at once.
#include "emu/net/ops/slice.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net {
namespace {

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

TEST_CASE("slice has the same bits on every number of threads", "[fast]") {
  const Tensor x = test::random_tensor({8, 40, 64}, 1);
  test::check_threads(
      Slice(std::vector<SliceRange>{{.axis = 1, .start = 39, .end = 2, .step = -1}}), {x});
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

}  // namespace
}  // namespace numemu::net
