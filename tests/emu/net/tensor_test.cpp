// Shapes and their sizes.
#include "emu/net/tensor.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::tensor_test {
namespace {

TEST_CASE("sizes of shapes, also of hostile ones", "[fast]") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({128, 28, 28, 1}) == 100'352);
  CHECK(element_count({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}) == 0);
  CHECK(numemu::test::message_of([] {
          element_count({std::int64_t{1} << 40, std::int64_t{1} << 40});
        }) == "shape [1099511627776, 1099511627776]: expected fewer than 2^63 elements");
  CHECK(numemu::test::message_of([] {
          element_count({2, -1});
        }) == "shape [2, -1]: expected no negative extent");
}

TEST_CASE("text of shapes and fresh tensors", "[fast]") {
  CHECK(to_string(Shape{}) == "[]");
  CHECK(to_string(Shape{128, 28}) == "[128, 28]");
  const Tensor t({2, 3}, 1.5f);
  CHECK(t.data == std::vector<float>(6, 1.5f));
  CHECK(t.dim(-1) == 3);
  CHECK(Tensor().empty());
}

TEST_CASE("a released tensor keeps shape and size", "[fast]") {
  Tensor t({2, 3}, 1.5f);
  t.release();
  t.release();
  CHECK(t.empty());
  CHECK(t.data.data() == nullptr);
  CHECK(t.size() == 6);
  CHECK(t.shape == Shape{2, 3});
  t.data = Elements(6, 2.0f);
  CHECK(t.size() == 6);
  CHECK_FALSE(t.empty());
  CHECK(Tensor().size() == 0);
}

TEST_CASE("a packed batch is cut into its parts, sample by sample", "[fast]") {
  Tensor packed({2, 5});
  for (std::size_t i = 0; i < packed.data.size(); ++i) packed.data[i] = static_cast<float>(i);
  const NamedShape parts[] = {{"a", {2}}, {"b", {}}, {"c", {1, 2}}};
  const std::vector<Tensor> out = unpacked(packed, parts);
  REQUIRE(out.size() == 3);
  CHECK(out[0].shape == Shape{2, 2});
  CHECK(out[0].data == std::vector<float>{0, 1, 5, 6});
  CHECK(out[1].shape == Shape{2});
  CHECK(out[1].data == std::vector<float>{2, 7});
  CHECK(out[2].shape == Shape{2, 1, 2});
  CHECK(out[2].data == std::vector<float>{3, 4, 8, 9});
  CHECK(unpacked(packed, std::span(parts, 1)).front().data == packed.data);
  for (const std::size_t n : {std::size_t{2}, std::size_t{4}}) {
    std::vector<NamedShape> other(parts, parts + 2);
    if (n == 4) other.push_back({"c", {3}});
    CHECK(numemu::test::message_of([&] { unpacked(packed, other); }) ==
          "batch [2, 5]: expected the elements of " + std::to_string(other.size()) +
              " inputs in each sample");
  }
}

}  // namespace
}  // namespace numemu::net::tensor_test
