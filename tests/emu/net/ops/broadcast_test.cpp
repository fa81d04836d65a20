// Broadcasting: shapes, and runs that cover every element once with the right inputs.
#include "emu/net/ops/broadcast.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::broadcast_test {
namespace {

TEST_CASE("shapes broadcast as in numpy", "[fast]") {
  const auto shape = [](std::vector<Shape> inputs) { return Broadcast("op", inputs).shape(); };
  CHECK(shape({{2, 1, 3}, {4, 1}}) == Shape{2, 4, 3});
  CHECK(shape({{}, {5}}) == Shape{5});
  CHECK(shape({{}, {}}) == Shape{});
  CHECK(shape({{0, 3}, {1, 3}}) == Shape{0, 3});
  CHECK(shape({{1}, {0}, {1}}) == Shape{0});
  CHECK_THROWS_WITH(shape({{2, 3}, {3, 2}}), Catch::Contains("op") && Catch::Contains("[3, 2]"));
  CHECK_THROWS_WITH(shape({{0}, {2}}), Catch::Contains("[0], [2]"));
}

TEST_CASE("runs give each element its inputs", "[fast]") {
  const std::vector<std::vector<Shape>> cases{
      {{3000, 2}, {2}}, {{5000}, {1}}, {{3, 5000}, {3, 1}}, {{7, 1, 6}, {1, 5, 1}, {6}},
      {{}, {}},         {{0, 3}, {3}}};
  for (const std::vector<Shape>& shapes : cases) {
    std::vector<Tensor> tensors;
    std::vector<const float*> data;
    for (const Shape& shape : shapes) {
      tensors.emplace_back(shape);
      float next = 0;
      for (float& v : tensors.back().data) v = next++;  // its own index
    }
    for (const Tensor& tensor : tensors) data.push_back(tensor.data.data());
    const Broadcast broadcast("op", shapes);
    const Shape& y = broadcast.shape();
    std::vector<int> seen(static_cast<std::size_t>(element_count(y)));
    int wrong = 0;
    broadcast.for_each_run(
        data, [&](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
          for (std::int64_t i = 0; i < n; ++i) {
            ++seen[first + i];
            for (std::size_t k = 0; k < shapes.size(); ++k) {
              std::int64_t rest = first + i, index = 0, stride = 1;
              for (std::size_t back = 1; back <= y.size(); ++back) {
                const std::int64_t extent =
                    back > shapes[k].size() ? 1 : shapes[k][shapes[k].size() - back];
                if (extent != 1) index += rest % y[y.size() - back] * stride;
                stride *= extent;
                rest /= y[y.size() - back];
              }
              if (runs[k][i] != static_cast<float>(index)) {
#pragma omp atomic
                ++wrong;
              }
            }
          }
        });
    CHECK(wrong == 0);
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(seen.size()));
  }
}

}  // namespace
}  // namespace numemu::net::broadcast_test
