// Gathers and scatters by computed indices: which element goes where, gradients, refusals.
#include "emu/net/ops/indexed.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

using test::Doubles;

Tensor tensor(Shape shape, std::vector<float> data) {
  Tensor out(std::move(shape));
  REQUIRE(out.data.size() == data.size());
  out.data = std::move(data);
  return out;
}

/// Values and gradients for indices that are not differentiated: the reference reads them as given.
void check(Op& op, const std::vector<Tensor>& inputs, const std::vector<float>& expected,
           const std::vector<std::pair<std::size_t, std::vector<float>>>& gradients) {
  Numerics numerics;
  const test::OpResult result = test::run_op(op, inputs, numerics);
  CHECK(result.output.data == expected);
  for (const auto& [input, counts] : gradients) {
    // Each element's gradient is the sum of those of the results that read it, by their numbers
    // from 1 on in base 16, the first one in the lowest digit.
    std::vector<float> wanted;
    for (const float count : counts) {
      float sum = 0;
      for (auto left = static_cast<int>(count); left > 0; left /= 16)
        sum += result.grad_output.data[static_cast<std::size_t>(left % 16 - 1)];
      wanted.push_back(sum);
    }
    CHECK(result.grad_inputs[input].data == wanted);
  }
}

TEST_CASE("elements are gathered along an axis by an index for each", "[fast]") {
  IndexedGather op({.indexing = Indexing::elements, .axis = 1});
  check(op, {tensor({2, 3}, {1, 2, 3, 4, 5, 6}), tensor({2, 2}, {2, 0, -1, -1})}, {3, 1, 6, 6},
        {{0, {2, 0, 1, 0, 0, 0x43}}});
}

TEST_CASE("rows are gathered by computed numbers", "[fast]") {
  IndexedGather op({.indexing = Indexing::rows, .axis = 0});
  const Tensor table = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
  check(op, {table, tensor({1, 2}, {2, 0})}, {5, 6, 1, 2}, {{0, {3, 4, 0, 0, 1, 2}}});
  const std::vector<Shape> shapes{{3, 2}, {4, 5}};
  CHECK(op.output_shape(shapes) == Shape{4, 5, 2});
}

TEST_CASE("tuples name elements or rows, with and without axes in common", "[fast]") {
  const Tensor data = tensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  IndexedGather whole({.indexing = Indexing::tuples});
  check(whole, {data, tensor({2, 2}, {0, 1, 1, 0})}, {3, 4, 5, 6}, {{0, {0, 0, 1, 2, 3, 4, 0, 0}}});
  IndexedGather shared({.indexing = Indexing::tuples, .batch_axes = 1});
  check(shared, {data, tensor({2, 1}, {1, 0})}, {3, 4, 5, 6}, {{0, {0, 0, 1, 2, 3, 4, 0, 0}}});
}

TEST_CASE("updates are written, the last one of equal indices stays", "[fast]") {
  IndexedScatter op({.indexing = Indexing::elements, .axis = 1}, false);
  check(op, {tensor({1, 3}, {1, 2, 3}), tensor({1, 3}, {0, 2, 0}), tensor({1, 3}, {7, 8, 9})},
        {9, 2, 8}, {{0, {0, 2, 0}}, {2, {0, 3, 1}}});
}

TEST_CASE("updates are added where asked", "[fast]") {
  IndexedScatter op({.indexing = Indexing::tuples}, true);
  check(op, {tensor({3}, {1, 2, 3}), tensor({2, 1}, {2, 2}), tensor({2}, {10, 20})}, {1, 2, 33},
        {{0, {1, 2, 3}}, {2, {3, 3}}});
}

TEST_CASE("indices outside the data or between its elements are refused", "[fast]") {
  IndexedGather op({.indexing = Indexing::rows, .axis = 0});
  Numerics numerics;
  const Tensor data = tensor({2}, {1, 2});
  for (const float bad : {2.0f, -3.0f, 0.5f})
    CHECK_THROWS_WITH(test::run_op(op, {data, Tensor({1}, bad)}, numerics),
                      Catch::Contains("expected a whole number from -2 to 1"));
  const std::vector<Shape> wrong{{2, 3}, {3, 3}};
  IndexedGather elements({.indexing = Indexing::elements, .axis = 1});
  CHECK_THROWS_WITH(elements.output_shape(wrong), Catch::Contains("[3, 3] do not fit"));
}

}  // namespace
}  // namespace numemu::net
