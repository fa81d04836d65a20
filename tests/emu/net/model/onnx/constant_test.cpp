// Constants of an ONNX graph: to tensors and numbers, and the attributes of nodes.
#include "emu/net/model/onnx/constant.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::constant_test {
namespace {

using numemu::test::message_of;
using Ints = std::vector<std::int64_t>;

OnnxTensor stored(OnnxType type, Ints dims, const std::string& data) {
  OnnxTensor tensor;
  tensor.dims = std::move(dims);
  tensor.elements = element_count(tensor.dims);
  tensor.type = type;
  tensor.raw = true;
  tensor.data = data;
  return tensor;
}

TEST_CASE("tensors of the file become constants of whole or real numbers", "[fast]") {
  const std::string wholes = test::words(std::int64_t{-5}, std::int64_t{1} << 40);
  const OnnxConstant whole = constant_of(stored(OnnxType::int64, {2, 1}, wholes));
  CHECK(whole.integer);
  CHECK(whole.dims == Shape{2, 1});
  CHECK(whole.integers() == Ints{-5, std::int64_t{1} << 40});
  CHECK(whole.tensor().shape == Shape{2, 1});
  CHECK(whole.tensor().data == std::vector<float>{-5, 0x1p40f});

  const std::string reals = test::words(0.5f, -3.0f);
  const OnnxConstant real = constant_of(stored(OnnxType::float32, {2}, reals));
  CHECK_FALSE(real.integer);
  CHECK(real.tensor().data == std::vector<float>{0.5f, -3});
  CHECK(message_of([&] { real.integers(); }) ==
        "expected a constant of whole numbers, found one of reals");

  const std::string truth("\1\0\1", 3);
  const OnnxConstant boolean = constant_of(stored(OnnxType::boolean, {3}, truth));
  CHECK(boolean.integers() == Ints{1, 0, 1});
}

TEST_CASE("what depends on the batch is no tensor and no numbers", "[fast]") {
  const OnnxConstant shape = constant_of(std::vector<Extent>{{1, true}, {3}});
  CHECK(shape.dims == Shape{2});
  CHECK(message_of([&] { shape.tensor(); }) ==
        "expected a constant tensor, found one that depends on the batch");
  CHECK(message_of([&] { shape.integers(); }) ==
        "expected constant whole numbers, found one that depends on the batch");
  CHECK(constant_of(std::vector<Extent>{}).dims == Shape{0});
}

TEST_CASE("axes count from both ends", "[fast]") {
  CHECK(axis_in(0, 3) == 0);
  CHECK(axis_in(2, 3) == 2);
  CHECK(axis_in(-1, 3) == 2);
  CHECK(axis_in(-3, 3) == 0);
  CHECK(message_of([] { axis_in(3, 3); }) == "expected an axis in -3 to 2, found 3");
  CHECK_THROWS_AS(axis_in(-4, 3), Error);
  CHECK_THROWS_AS(axis_in(0, 0), Error);
}

OnnxNode node_of_all_kinds() {
  OnnxNode node;
  OnnxAttribute attribute;
  attribute.name = "axis";
  attribute.type = OnnxAttributeType::integer;
  attribute.integer = -2;
  node.attributes.push_back(std::move(attribute));
  attribute = {};
  attribute.name = "alpha";
  attribute.type = OnnxAttributeType::number;
  attribute.number = 0.25f;
  node.attributes.push_back(std::move(attribute));
  attribute = {};
  attribute.name = "mode";
  attribute.type = OnnxAttributeType::text;
  attribute.text = "linear";
  node.attributes.push_back(std::move(attribute));
  attribute = {};
  attribute.name = "axes";
  attribute.type = OnnxAttributeType::integers;
  attribute.integers = {1, -1};
  node.attributes.push_back(std::move(attribute));
  return node;
}

TEST_CASE("attributes are read by name and type, else the default", "[fast]") {
  const OnnxNode node = node_of_all_kinds();
  CHECK(node.integer_or("axis", 7) == -2);
  CHECK(node.integer_or("other", 7) == 7);
  CHECK(node.integer_or("alpha", 7) == 7);
  CHECK(node.number_or("alpha", 7) == 0.25f);
  CHECK(node.number_or("axis", 7) == 7);
  CHECK(node.text_or("mode", "none") == "linear");
  CHECK(node.text_or("axes", "none") == "none");
  CHECK(node.integers_or("axes", {9}) == Ints{1, -1});
  CHECK(node.integers_or("mode", {9}) == Ints{9});
}

TEST_CASE("numbers come from an input or in older operator sets from an attribute", "[fast]") {
  OnnxNode node = node_of_all_kinds();
  node.inputs = {"x", "axes"};
  const auto x = std::make_shared<OnnxConstant>(constant_of(std::vector<Extent>{{4}}));
  const auto axes = std::make_shared<OnnxConstant>(constant_of(std::vector<Extent>{{0}}));
  CHECK(input_or_attribute(node, {x, axes}, 1, "axes") == Ints{0});
  CHECK(message_of([&] {
          input_or_attribute(node, {x, nullptr}, 1, "axes");
        }) == "expected input 1 (axes) to be constant");
  node.inputs = {"x", ""};
  CHECK(input_or_attribute(node, {x, nullptr}, 1, "axes") == Ints{1, -1});
  node.inputs = {"x"};
  CHECK(input_or_attribute(node, {x}, 1, "axes") == Ints{1, -1});
  CHECK(input_or_attribute(node, {x}, 1, "steps") == std::nullopt);
  CHECK(input_or_attribute(node, {x}, 1, "axis") == std::nullopt);  // of another type
}

}  // namespace
}  // namespace numemu::net::constant_test
