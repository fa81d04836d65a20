// Rows and elements chosen by number, against their definition; gradients of rows that are read
// twice.
#include "emu/net/ops/lookup.hpp"

#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"
#include "tests/emu/net/ops/mover_check.hpp"

namespace numemu::net::lookup_test {
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

TEST_CASE("gather refuses indices outside its axis", "[fast]") {
  const std::vector<Shape> shapes{{2, 3}};
  CHECK_THROWS_WITH(Gather(1, {3}).output_shape(shapes),
                    Catch::Contains("index 3 of axis 1 of [2, 3]"));
  CHECK_THROWS_WITH(Gather(1, {-4}).output_shape(shapes), Catch::Contains("index -4"));
  CHECK_THROWS_WITH(Gather(-3, {0}).output_shape(shapes), Catch::Contains("axis -3"));
  CHECK_THROWS_WITH(Gather(0, {0, 1}, {3}), Catch::Contains("got 2"));
  CHECK_THROWS_AS(Gather(0, {}), Error);
}

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

TEST_CASE("a sample's rows are its own", "[fast]") {
  IndexedGather op({.indexing = Indexing::rows, .axis = 0, .sample_rows = 2, .sample_axis = 1});
  Numerics numerics;
  const Tensor one = tensor({2, 1}, {1, 2}), two = tensor({4, 1}, {1, 2, 3, 4});
  CHECK(test::run_op(op, {one, tensor({2, 1}, {-1, 0})}, numerics).output.data ==
        std::vector<float>{2, 1});
  CHECK(test::run_op(op, {two, tensor({2, 2}, {0, -1, 1, 2})}, numerics).output.data ==
        std::vector<float>{1, 4, 2, 3});
  CHECK_THROWS_WITH(test::run_op(op, {two, tensor({1, 2}, {-1, 2})}, numerics),
                    Catch::Contains("index -1 of sample 0 of the batch names row 3, of sample 1"));
  CHECK_THROWS_WITH(test::run_op(op, {two, tensor({1, 2}, {0, 1})}, numerics),
                    Catch::Contains("index 1 of sample 1 of the batch names row 1, of sample 0"));
}

TEST_CASE("embedding and its gradient are those of loops in float64", "[fast]") {
  constexpr std::int64_t kCount = 6, kWidth = 3;
  Embedding op(kCount, kWidth);
  Tensor x({2, 2, 2});
  x.data = {0, 5, 2, 2, 3, 0, 2, 5};
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (const double number : arguments[0])
      for (std::int64_t c = 0; c < kWidth; ++c)
        y.push_back(arguments[1][std::lround(number) * kWidth + c]);
    return y;
  };
  test::check_op(op, {x}, reference, test::dot_tolerance(3));  // a row is read three times at most
  const std::vector<Shape> shapes{x.shape};
  CHECK(op.output_shape(shapes) == Shape{2, 2, 2, 3});
}

TEST_CASE("embedding sums the readers of a row pairwise in float64", "[fast]") {
  // One large gradient, then small ones that float32 would lose one by one.
  constexpr std::int64_t kReaders = 4096;
  const Embedding op(2, 1);
  Tensor x({kReaders}, 1), g({kReaders, 1}, 1);
  g.data[0] = 0x1p25f;
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)}, gradients{Tensor({2, 1})};
  op.backward({"embed", numerics}, {inputs, nullptr, g, grad_inputs, gradients, true});
  CHECK(gradients[0].data == std::vector<float>{0, 0x1p25f + kReaders});
  // 2^25 + 4095 is not a float32; the nearest is 2^25 + 4096.
}

TEST_CASE("embedding names the number that is no row", "[fast]") {
  const Embedding op(4, 2);
  Numerics numerics;
  for (const float wrong : {4.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    Tensor x({3}), y({3, 2});
    x.data[1] = wrong;
    const std::vector<const Tensor*> inputs{&x};
    CHECK_THROWS_WITH(
        op.forward({"tokens", numerics}, inputs, y),
        Catch::Contains("tokens") && Catch::Contains("element 1") && Catch::Contains("0 to 3"));
  }
  const std::vector<Shape> scalar{Shape{}};
  CHECK_THROWS_WITH(op.output_shape(scalar), Catch::Contains("row numbers"));
  CHECK_THROWS_WITH(Embedding(0, 2), Catch::Contains("got 0 of 2"));
  CHECK_THROWS_WITH(Embedding((1 << 24) + 1, 2), Catch::Contains("2^24"));
}

TEST_CASE("position_embedding adds a row per position", "[fast]") {
  constexpr std::int64_t kBatch = 3, kLength = 4, kWidth = 5;
  PositionEmbedding op(kLength, kWidth);
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y = arguments[0];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += arguments[1][i % (kLength * kWidth)];
    return y;
  };
  // One rounding forward, and one of the sum over the batch.
  test::check_op(op, {test::random_tensor({kBatch, kLength, kWidth}, 1)}, reference,
                 test::dot_tolerance(kBatch));
}

TEST_CASE("position_embedding refuses other lengths", "[fast]") {
  PositionEmbedding op(4, 5);
  const auto shape = [&](Shape input) { return op.output_shape(std::span(&input, 1)); };
  CHECK(shape({7, 4, 5}) == Shape{7, 4, 5});
  CHECK_THROWS_WITH(shape({7, 3, 5}), Catch::Contains("[batch, 4, 5], got [7, 3, 5]"));
  CHECK_THROWS_AS(shape({7, 4, 6}), Error);
  CHECK_THROWS_AS(shape({4, 5}), Error);
  CHECK_THROWS_AS(PositionEmbedding(0, 5), Error);
  CHECK(op.parameters()[0].value.shape == Shape{4, 5});
  CHECK(op.parameters()[0].fan_in == 5);
}

}  // namespace

}  // namespace numemu::net::lookup_test
