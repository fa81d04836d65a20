// Folding of every operator that exporters write to compute shapes and constants.
#include <limits>

#include "emu/net/model/onnx/constant.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::fold_test {
namespace {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

ConstantRef wholes(Shape dims, const std::vector<Extent>& values) {
  OnnxConstant out = constant_of(values);
  out.dims = std::move(dims);
  return std::make_shared<OnnxConstant>(out);
}
ConstantRef wholes(const Ints& values) {
  std::vector<Extent> extents;
  for (const std::int64_t v : values) extents.push_back({v});
  return std::make_shared<OnnxConstant>(constant_of(extents));
}
ConstantRef whole(std::int64_t value) { return wholes(Shape{}, {{value}}); }
ConstantRef batch(std::int64_t value = 1) { return wholes(Shape{}, {{value, true}}); }
ConstantRef reals(Shape dims, const Floats& values) {
  OnnxConstant out{std::move(dims), false, {}};
  for (const float v : values) out.elements.push_back({v, {}});
  return std::make_shared<OnnxConstant>(out);
}
ConstantRef real(float value) { return reals({}, {value}); }
/// 0, 1, 2 ... of that shape.
ConstantRef counted(const Shape& dims) {
  std::vector<Extent> values(static_cast<std::size_t>(element_count(dims)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i].value = static_cast<std::int64_t>(i);
  return wholes(dims, values);
}

OnnxAttribute attribute(std::string_view name, std::int64_t value) {
  OnnxAttribute out;
  out.name = name;
  out.type = OnnxAttributeType::integer;
  out.integer = value;
  return out;
}
OnnxAttribute attribute(std::string_view name, Ints values) {
  OnnxAttribute out;
  out.name = name;
  out.type = OnnxAttributeType::integers;
  out.integers = std::move(values);
  return out;
}

OnnxNode node_of(std::string_view op) {
  OnnxNode node;
  node.op_type = op;
  return node;
}
template <class... Attributes>
OnnxNode node_of(std::string_view op, Attributes... attributes) {
  OnnxNode node = node_of(op);
  (node.attributes.push_back(std::move(attributes)), ...);
  return node;
}

OnnxConstant fold(const OnnxNode& node, const std::vector<ConstantRef>& inputs,
                  std::int64_t most = 1000) {
  const std::optional<OnnxConstant> out = OnnxFolder(most).fold(node, inputs);
  REQUIRE(out);
  CHECK(element_count(out->dims) == static_cast<std::int64_t>(out->elements.size()));
  return *out;
}
OnnxConstant fold(std::string_view op, const std::vector<ConstantRef>& inputs) {
  return fold(node_of(op), inputs);
}
std::string refusal(const OnnxNode& node, const std::vector<ConstantRef>& inputs,
                    std::int64_t most = 1000) {
  return numemu::test::message_of([&] { OnnxFolder(most).fold(node, inputs); });
}
std::string refusal(std::string_view op, const std::vector<ConstantRef>& inputs) {
  return refusal(node_of(op), inputs);
}
/// Of a result that is one whole number.
Extent extent(std::string_view op, const std::vector<ConstantRef>& inputs) {
  const OnnxConstant out = fold(op, inputs);
  REQUIRE(out.integer);
  REQUIRE(out.elements.size() == 1);
  return out.elements[0].whole;
}

TEST_CASE("Constant is a tensor or a number or a list of them", "[fast]") {
  const std::string data = test::words(1.5f, 2.5f);
  OnnxAttribute value;
  value.name = "value";
  value.type = OnnxAttributeType::tensor;
  value.tensor = std::make_unique<OnnxTensor>();
  value.tensor->dims = {2};
  value.tensor->elements = 2;
  value.tensor->raw = true;
  value.tensor->data = data;
  CHECK(fold(node_of("Constant", std::move(value)), {}).tensor().data == Floats{1.5f, 2.5f});

  OnnxAttribute number;
  number.name = "value_float";
  number.type = OnnxAttributeType::number;
  number.number = 0.75f;
  const OnnxConstant single = fold(node_of("Constant", std::move(number)), {});
  CHECK(single.dims.empty());
  CHECK(single.tensor().data == Floats{0.75f});

  CHECK(fold(node_of("Constant", attribute("value_int", 7)), {}).integers() == Ints{7});
  const OnnxConstant list = fold(node_of("Constant", attribute("value_ints", Ints{3, -1})), {});
  CHECK(list.dims == Shape{2});
  CHECK(list.integers() == Ints{3, -1});

  OnnxAttribute numbers;
  numbers.name = "value_floats";
  numbers.type = OnnxAttributeType::numbers;
  numbers.numbers = {1, 0.5f};
  CHECK(fold(node_of("Constant", std::move(numbers)), {}).tensor().data == Floats{1, 0.5f});
  CHECK(refusal("Constant", {}) == "expected a Constant with a dense value of numbers");
}

TEST_CASE("ConstantOfShape repeats its value, 0 by default", "[fast]") {
  const OnnxConstant zeros = fold("ConstantOfShape", {wholes({2, 3})});
  CHECK(zeros.dims == Shape{2, 3});
  CHECK(zeros.tensor().data == Floats(6, 0));
  const auto with = [](std::int64_t count, const std::string& data) {
    OnnxAttribute value;
    value.name = "value";
    value.type = OnnxAttributeType::tensor;
    value.tensor = std::make_unique<OnnxTensor>();
    value.tensor->dims = {count};
    value.tensor->elements = count;
    value.tensor->type = OnnxType::int64;
    value.tensor->raw = true;
    value.tensor->data = data;
    return node_of("ConstantOfShape", std::move(value));
  };
  const std::string two = test::words(std::int64_t{-1}, std::int64_t{2});
  CHECK(fold(with(1, two.substr(0, 8)), {wholes({3})}).integers() == Ints{-1, -1, -1});
  CHECK(refusal(with(2, two), {wholes({3})}) == "expected a value of one element");
  CHECK(fold("ConstantOfShape", {wholes(Ints{})}).dims.empty());
  CHECK(fold("ConstantOfShape", {wholes({0, 5})}).elements.empty());
  CHECK(refusal("ConstantOfShape", {wholes({-2})}).find("no negative extent") != std::string::npos);
  CHECK(refusal("ConstantOfShape", {wholes({kMost, kMost})}).find("2^63") != std::string::npos);
  CHECK(refusal("ConstantOfShape", {wholes({1001})}).find("exceed the memory") !=
        std::string::npos);
  CHECK(refusal("ConstantOfShape", {batch()}).find("depends on the batch") != std::string::npos);
}

TEST_CASE("Range goes up and down and stops at the end of its type", "[fast]") {
  const auto range = [](std::int64_t from, std::int64_t to, std::int64_t step) {
    return fold("Range", {whole(from), whole(to), whole(step)}).integers();
  };
  CHECK(range(0, 5, 2) == Ints{0, 2, 4});
  CHECK(range(3, -3, -2) == Ints{3, 1, -1});
  CHECK(range(3, 3, 1).empty());
  CHECK(range(0, 3, -1).empty());
  CHECK(range(kMost - 1, kMost, 2) == Ints{kMost - 1});
  CHECK(refusal("Range", {whole(0), whole(5), whole(0)}) == "expected a step that is not zero");
  CHECK(refusal("Range", {whole(0), whole(kMost), whole(1)}).find("exceed the memory") !=
        std::string::npos);
  CHECK(refusal("Range", {wholes({0, 1}), whole(5), whole(1)}) == "expected one number, found 2");
  CHECK(refusal("Range", {whole(0), batch(), whole(1)}).find("batch") != std::string::npos);
}

TEST_CASE("arithmetic of whole numbers broadcasts and does not overflow", "[fast]") {
  const OnnxConstant sum = fold("Add", {counted({2, 1}), wholes({10, 20, 30})});
  CHECK(sum.dims == Shape{2, 3});
  CHECK(sum.integers() == Ints{10, 20, 30, 11, 21, 31});
  CHECK(fold("Sub", {whole(3), wholes({1, 5})}).integers() == Ints{2, -2});
  CHECK(fold("Mul", {counted({3}), whole(-2)}).integers() == Ints{0, -2, -4});
  CHECK(fold("Div", {wholes({7, -7}), whole(2)}).integers() == Ints{3, -3});  // towards zero
  CHECK(fold("Min", {wholes({1, 5}), whole(3)}).integers() == Ints{1, 3});
  CHECK(fold("Max", {wholes({1, 5}), whole(3)}).integers() == Ints{3, 5});
  CHECK(fold("Equal", {wholes({1, 5}), whole(5)}).integers() == Ints{0, 1});
  CHECK(fold("Less", {wholes({1, 5}), whole(5)}).integers() == Ints{1, 0});
  CHECK(fold("Greater", {wholes({5, 6}), whole(5)}).integers() == Ints{0, 1});

  for (const char* op : {"Add", "Mul"})
    CHECK(refusal(op, {whole(kMost), whole(2)}) == "whole numbers overflow");
  CHECK(refusal("Sub", {whole(kLeast), whole(1)}) == "whole numbers overflow");
  CHECK(refusal("Div", {whole(kLeast), whole(-1)}) == "whole numbers overflow");
  CHECK(refusal("Neg", {whole(kLeast)}) == "whole numbers overflow");
  CHECK(refusal("Div", {whole(1), whole(0)}) == "division by zero");
}

TEST_CASE("real numbers are left to the operators of the graph", "[fast]") {
  const auto left = [](std::string_view op, const std::vector<ConstantRef>& inputs) {
    return !OnnxFolder(1000).fold(node_of(op), inputs);
  };
  for (const char* op : {"Add", "Div", "Min", "Equal", "Less", "Mod"})
    CHECK(left(op, {real(1), reals({2}, {1, 2})}));
  for (const char* op : {"Sqrt", "Neg", "Not", "Floor"}) CHECK(left(op, {real(2)}));
  CHECK(left("Min", {whole(1), whole(2), whole(3)}));
  CHECK(left("Sqrt", {whole(4)}));
  CHECK(refusal("Add", {real(1), whole(1)}) == "expected two tensors of the same type");
  CHECK(refusal("Add", {real(1)}) == "expected an input number 1");
  CHECK(refusal("Add", {nullptr, real(1)}) == "expected an input number 0");
}

TEST_CASE("remainders have the sign of the divisor", "[fast]") {
  CHECK(fold("Mod", {wholes({7, -7, 6}), whole(3)}).integers() == Ints{1, 2, 0});
  CHECK(fold("Mod", {wholes({7, -7, 6}), whole(-3)}).integers() == Ints{-2, -1, 0});
  CHECK(fold("Mod", {whole(kLeast), whole(-1)}).integers() == Ints{0});
  CHECK(extent("Mod", {batch(6), whole(3)}) == Extent{0, false});
  CHECK(refusal("Mod", {whole(1), whole(0)}) == "division by zero");
  CHECK(refusal("Mod", {batch(), whole(2)}) == "a part of the batch cannot be folded");
}

TEST_CASE("the size of a shape with the batch", "[fast]") {
  const OnnxConstant size = fold(node_of("ReduceProd", attribute("keepdims", std::int64_t{0})),
                                 {wholes(Shape{3}, {{2, true}, {3}, {4}})});
  CHECK(size.dims.empty());
  CHECK(size.elements[0].whole == Extent{24, true});
}

TEST_CASE("Range of real numbers", "[fast]") {
  CHECK(fold("Range", {real(1), real(2), real(0.25f)}).tensor().data ==
        Floats{1, 1.25f, 1.5f, 1.75f});
  CHECK(fold("Range", {real(1), real(0), real(1)}).elements.empty());
  CHECK(refusal("Range", {real(0), real(1), real(0)}) == "expected a finite range");
}

TEST_CASE("multiples of the batch stay multiples or are refused", "[fast]") {
  CHECK(extent("Mul", {batch(3), whole(4)}) == Extent{12, true});
  CHECK(extent("Mul", {whole(4), batch(3)}) == Extent{12, true});
  CHECK(extent("Add", {batch(3), batch(4)}) == Extent{7, true});
  CHECK(extent("Add", {batch(3), whole(0)}) == Extent{3, true});
  CHECK(extent("Sub", {batch(3), batch(1)}) == Extent{2, true});
  CHECK(extent("Div", {batch(12), whole(4)}) == Extent{3, true});
  CHECK(extent("Div", {batch(12), batch(5)}) == Extent{2, false});
  CHECK(extent("Neg", {batch(3)}) == Extent{-3, true});
  CHECK(extent("Not", {batch(3)}) == Extent{0, false});
  CHECK(extent("Identity", {batch(3)}) == Extent{3, true});

  CHECK(refusal("Add", {batch(), whole(1)}) == "Add of the batch and a number cannot be folded");
  CHECK(refusal("Sub", {whole(1), batch()}) == "Sub of the batch and a number cannot be folded");
  CHECK(refusal("Mul", {batch(), batch()}) == "the square of the batch cannot be folded");
  CHECK(refusal("Div", {batch(3), whole(2)}) == "a part of the batch cannot be folded");
  CHECK(refusal("Div", {whole(8), batch()}) == "division by the batch cannot be folded");
  for (const char* op : {"Less", "Greater", "Min", "Max"})
    CHECK(refusal(op, {batch(), whole(2)}) == std::string(op) + " of the batch cannot be folded");
}

TEST_CASE("the batch equals no number below 1; whether it is another one is open", "[fast]") {
  CHECK(extent("Equal", {batch(2), batch(2)}) == Extent{1, false});
  CHECK(extent("Equal", {batch(2), batch(3)}) == Extent{0, false});
  CHECK(extent("Equal", {batch(), whole(-1)}) == Extent{0, false});
  CHECK(extent("Equal", {whole(0), batch()}) == Extent{0, false});
  CHECK(extent("Equal", {batch(2), whole(3)}) == Extent{0, false});
  CHECK(extent("Equal", {batch(0), whole(0)}) == Extent{1, false});
  CHECK(extent("Equal", {batch(0), whole(1)}) == Extent{0, false});
  for (const std::int64_t number : {1, 7})
    CHECK(refusal("Equal", {whole(number), batch()}) ==
          "whether the batch equals a number cannot be folded");
}

TEST_CASE("Gather picks along any axis with indices of any rank", "[fast]") {
  const auto axis = [](std::int64_t a) { return node_of("Gather", attribute("axis", a)); };
  const OnnxConstant rows = fold("Gather", {counted({3, 2}), wholes({2, 1}, {{2}, {-3}})});
  CHECK(rows.dims == Shape{2, 1, 2});
  CHECK(rows.integers() == Ints{4, 5, 0, 1});
  const OnnxConstant columns = fold(axis(1), {counted({2, 3}), wholes({2, 0, 2})});
  CHECK(columns.dims == Shape{2, 3});
  CHECK(columns.integers() == Ints{2, 0, 2, 5, 3, 5});
  const OnnxConstant middle = fold(axis(-2), {counted({2, 3, 2}), whole(1)});
  CHECK(middle.dims == Shape{2, 2});
  CHECK(middle.integers() == Ints{2, 3, 8, 9});
  CHECK(extent("Gather", {wholes(Shape{2}, {{1, true}, {8}}), whole(0)}) == Extent{1, true});
  CHECK(refusal("Gather", {counted({3}), whole(3)}) == "expected an index in -3 to 2, found 3");
  CHECK(refusal("Gather", {counted({0}), whole(0)}).find("expected an index") != std::string::npos);
  CHECK(refusal(axis(1), {counted({3}), whole(0)}) == "expected an axis in -1 to 0, found 1");
  CHECK(refusal("Gather", {counted({3}), batch()}).find("batch") != std::string::npos);
}

TEST_CASE("Gather counts what it makes and no more", "[fast]") {
  // 20 rows of 20 each: 400 elements; the data times the indices would be 8000.
  CHECK(fold("Gather", {counted({20, 20}), counted({20})}).elements.size() == 400);
  CHECK(refusal(node_of("Gather"), {counted({20, 20}), counted({20})}, 399)
            .find("exceed the memory") != std::string::npos);
}

TEST_CASE("Concat joins along any axis", "[fast]") {
  const auto along = [](std::int64_t a) { return node_of("Concat", attribute("axis", a)); };
  const OnnxConstant shape =
      fold(along(0), {wholes(Shape{1}, {{1, true}}), wholes({-1}), wholes({4, 5})});
  REQUIRE(shape.dims == Shape{4});
  CHECK(shape.elements[0].whole == Extent{1, true});
  CHECK(shape.elements[3].whole == Extent{5, false});
  const OnnxConstant columns = fold(along(-1), {counted({2, 2}), wholes({2, 1}, {{8}, {9}})});
  CHECK(columns.dims == Shape{2, 3});
  CHECK(columns.integers() == Ints{0, 1, 8, 2, 3, 9});
  CHECK(fold(along(0), {counted({0}), counted({2})}).integers() == Ints{0, 1});
  CHECK(refusal(along(0), {counted({2}), counted({2, 1})}) ==
        "expected parts of the same type and shape");
  CHECK(refusal(along(0), {counted({1, 2}), counted({1, 3})}) ==
        "expected parts of the same type and shape");
  CHECK(refusal(along(0), {counted({1}), real(1)}) == "expected parts of the same type and shape");
  CHECK(refusal(along(0), {whole(1), whole(2)}).find("axis") != std::string::npos);
  CHECK(refusal(along(0), {counted({1}), nullptr}) == "expected an input number 1");
}

TEST_CASE("Slice goes both ways and clamps", "[fast]") {
  const auto slice = [](const Ints& start, const Ints& end, const Ints& axes, const Ints& steps) {
    return fold("Slice", {counted({5}), wholes(start), wholes(end), wholes(axes), wholes(steps)})
        .integers();
  };
  CHECK(slice({1}, {4}, {0}, {1}) == Ints{1, 2, 3});
  CHECK(slice({-2}, {kMost}, {0}, {1}) == Ints{3, 4});
  CHECK(slice({0}, {-1}, {-1}, {2}) == Ints{0, 2});
  CHECK(slice({-1}, {kLeast}, {0}, {-1}) == Ints{4, 3, 2, 1, 0});
  CHECK(slice({9}, {0}, {0}, {-2}) == Ints{4, 2});
  CHECK(slice({3}, {-9}, {0}, {-3}) == Ints{3, 0});
  CHECK(slice({0}, {5}, {0}, {100}) == Ints{0});
  CHECK(slice({4}, {kLeast}, {0}, {kLeast}) == Ints{4});
  CHECK(slice({3}, {1}, {0}, {1}).empty());
  CHECK(slice({1}, {3}, {0}, {-1}).empty());

  // Axes and steps may be left out; older operator sets have attributes.
  const OnnxConstant corner = fold("Slice", {counted({3, 3}), wholes({1, 1}), wholes({3, 2})});
  CHECK(corner.dims == Shape{2, 1});
  CHECK(corner.integers() == Ints{4, 7});
  CHECK(fold(node_of("Slice", attribute("starts", Ints{1}), attribute("ends", Ints{2}),
                     attribute("axes", Ints{1})),
             {counted({2, 3})})
            .integers() == Ints{1, 4});
  CHECK(fold("Slice", {counted({0}), wholes({0}), wholes({kLeast}), wholes({0}), wholes({-1})})
            .elements.empty());

  CHECK(refusal("Slice", {counted({5}), wholes({1}), wholes({1, 2})}) ==
        "expected as many starts as ends");
  CHECK(refusal("Slice", {counted({5}), wholes({1}), wholes({2}), wholes({0, 1})}) ==
        "expected as many axes and steps as starts");
  CHECK(refusal("Slice", {counted({5}), wholes({1}), wholes({2}), wholes({0}), wholes({0})}) ==
        "expected a step that is not zero");
  CHECK(refusal("Slice", {counted({5}), wholes({1}), wholes({2}), wholes({1})}) ==
        "expected an axis in -1 to 0, found 1");
}

TEST_CASE("Transpose reverses or permutes", "[fast]") {
  const OnnxConstant turned = fold("Transpose", {counted({2, 3})});
  CHECK(turned.dims == Shape{3, 2});
  CHECK(turned.integers() == Ints{0, 3, 1, 4, 2, 5});
  const OnnxConstant moved =
      fold(node_of("Transpose", attribute("perm", Ints{1, 2, 0})), {counted({2, 1, 3})});
  CHECK(moved.dims == Shape{1, 3, 2});
  CHECK(moved.integers() == Ints{0, 3, 1, 4, 2, 5});
  for (const Ints& perm : {Ints{0, 0}, Ints{0, 2}, Ints{0}, Ints{-1, 0}})
    CHECK(refusal(node_of("Transpose", attribute("perm", perm)), {counted({2, 3})}) ==
          "expected perm to be a permutation of the axes");
}

TEST_CASE("Reshape copies and infers extents", "[fast]") {
  const auto shape = [](const Shape& from, const Ints& to) {
    return fold("Reshape", {counted(from), wholes(to)}).dims;
  };
  CHECK(shape({2, 6}, {0, -1, 3}) == Shape{2, 2, 3});
  CHECK(shape({2, 6}, {12}) == Shape{12});
  CHECK(shape({1}, {}) == Shape{});
  CHECK(shape({0, 3}, {0, 5}) == Shape{0, 5});
  CHECK(
      fold(node_of("Reshape", attribute("allowzero", 1)), {counted({2, 0}), wholes({0, 3})}).dims ==
      Shape{0, 3});
  CHECK(refusal("Reshape", {counted({6}), wholes({4})}) == "6 elements do not fit shape [4]");
  CHECK(refusal("Reshape", {counted({6}), wholes({-1, 4})}) ==
        "6 elements do not fit shape [1, 4]");
  CHECK(refusal("Reshape", {counted({6}), wholes({-1, -1})}).find("one -1 at most") !=
        std::string::npos);
  CHECK(refusal("Reshape", {counted({6}), wholes({-2, -3})}).find("at least -1") !=
        std::string::npos);
  CHECK_FALSE(refusal("Reshape", {counted({6}), wholes({kMost, kMost})}).empty());
  CHECK(refusal("Reshape", {counted({0}), wholes({0, -1})}) ==
        "expected no -1 with an extent of 0");
}

TEST_CASE("Squeeze and Unsqueeze drop and add extents of 1", "[fast]") {
  CHECK(fold("Squeeze", {counted({1, 2, 1})}).dims == Shape{2});
  CHECK(fold("Squeeze", {counted({1, 2, 1}), wholes({-1})}).dims == Shape{1, 2});
  CHECK(fold(node_of("Squeeze", attribute("axes", Ints{0})), {counted({1, 2, 1})}).dims ==
        Shape{2, 1});
  CHECK(fold("Squeeze", {counted({1, 0}), wholes({0})}).dims == Shape{0});
  CHECK(refusal("Squeeze", {counted({1, 2}), wholes({1})}) == "2 elements do not fit shape [1]");

  CHECK(fold("Unsqueeze", {whole(4), wholes({0})}).dims == Shape{1});
  CHECK(fold("Unsqueeze", {counted({2, 3}), wholes({0, -1})}).dims == Shape{1, 2, 3, 1});
  CHECK(fold("Unsqueeze", {counted({0, 2}), wholes({0})}).dims == Shape{1, 0, 2});
  CHECK(fold(node_of("Unsqueeze", attribute("axes", Ints{1})), {counted({2})}).dims == Shape{2, 1});
  CHECK(refusal("Unsqueeze", {counted({2})}) == "expected axes");
  CHECK(refusal("Unsqueeze", {counted({2}), wholes({0, 0})}) == "expected different axes");
  CHECK(refusal("Unsqueeze", {counted({2}), wholes({3})}) ==
        "expected an axis in -2 to 1, found 3");
}

TEST_CASE("Cast truncates to whole numbers and tells zero from the rest", "[fast]") {
  const auto to = [](OnnxType type) {
    return node_of("Cast", attribute("to", static_cast<std::int64_t>(type)));
  };
  CHECK(fold(to(OnnxType::int64), {reals({4}, {1.75f, -1.75f, 0.5f, 0x1p40f})}).integers() ==
        Ints{1, -1, 0, std::int64_t{1} << 40});
  CHECK(fold(to(OnnxType::float32), {wholes({3, -1})}).tensor().data == Floats{3, -1});
  CHECK(fold(to(OnnxType::boolean), {reals({3}, {0.5f, 0, HUGE_VALF})}).integers() ==
        Ints{1, 0, 1});
  CHECK(fold(to(OnnxType::boolean), {wholes({5, 0})}).integers() == Ints{1, 0});
  const OnnxConstant still = fold(to(OnnxType::int32), {batch(3)});
  CHECK(still.elements[0].whole == Extent{3, true});
  CHECK(fold(to(OnnxType::boolean), {batch(3)}).integers() == Ints{1});
  CHECK(refusal(to(OnnxType::float32), {batch()}) == "the batch cannot become a real number");
  for (const float beyond : {HUGE_VALF, std::nanf(""), 0x1p63f})
    CHECK(refusal(to(OnnxType::int64), {real(beyond)}) == "expected a real number within int64");
}

TEST_CASE("Cast to floats of 8 and 16 bits rounds to nearest even", "[fast]") {
  const auto cast = [](OnnxType type, const Floats& values, bool saturates = true) {
    auto node = node_of("Cast", attribute("to", static_cast<std::int64_t>(type)));
    if (!saturates) {
      node = node_of("Cast", attribute("to", static_cast<std::int64_t>(type)),
                     attribute("saturate", std::int64_t{0}));
    }
    return fold(node, {reals({std::ssize(values)}, values)}).tensor().data;
  };
  // Ties, the least subnormal and its half, the largest value, what rounds beyond it.
  CHECK(cast(OnnxType::float16, {1 + 0x1p-11f, 1 + 0x3p-11f, 0x1p-24f, 0x1p-25f, 65504, 65519,
                                 65520, -1e6f, HUGE_VALF}) ==
        Floats{1, 1 + 0x1p-9f, 0x1p-24f, 0, 65504, 65504, HUGE_VALF, -HUGE_VALF, HUGE_VALF});
  CHECK(cast(OnnxType::bfloat16, {1 + 0x1p-8f, 1 + 0x3p-8f, 0x1.fep127f, 0x1.ffp127f}) ==
        Floats{1, 1 + 0x1p-6f, 0x1.fep127f, HUGE_VALF});
  CHECK(cast(OnnxType::float8_e4m3fn, {1.0625f, 1.1875f, 500, HUGE_VALF}) ==
        Floats{1, 1.25f, 448, 448});
  CHECK(cast(OnnxType::float8_e5m2, {1.125f, 1e6f}, false) == Floats{1, HUGE_VALF});
  CHECK(std::isnan(cast(OnnxType::float8_e4m3fn, {500}, false)[0]));
  for (const OnnxType type : {OnnxType::float16, OnnxType::bfloat16, OnnxType::float8_e4m3fnuz})
    CHECK(std::isnan(cast(type, {std::nanf("")})[0]));
  CHECK(fold(node_of("Cast", attribute("to", std::int64_t{10})), {wholes({2049})}).tensor().data ==
        Floats{2048});
}

TEST_CASE("Where chooses and Not negates under broadcasts", "[fast]") {
  CHECK(fold("Not", {wholes({0, 1})}).integers() == Ints{1, 0});
  const OnnxConstant out = fold("Where", {wholes({2, 1}, {{1}, {0}}), wholes({7, 8}), whole(-1)});
  CHECK(out.dims == Shape{2, 2});
  CHECK(out.integers() == Ints{7, 8, -1, -1});
  CHECK(fold("Where", {whole(0), real(1), real(2)}).tensor().data == Floats{2});
  CHECK(fold("Where", {whole(1), batch(3), whole(2)}).elements[0].whole == Extent{3, true});
  CHECK(refusal("Where", {whole(1), real(1), whole(2)}) == "expected two tensors of the same type");
  CHECK(refusal("Where", {real(1), real(1), real(2)}) ==
        "expected a condition of truth values, found real numbers");
  // Three vectors along three axes: each pair is small, the result is not.
  CHECK(refusal("Where", {counted({20, 1, 1}), counted({1, 20, 1}), counted({20})})
            .find("exceed the memory") != std::string::npos);
}

TEST_CASE("Expand repeats, Identity copies", "[fast]") {
  const OnnxConstant out = fold("Expand", {counted({2, 1}), wholes({3, 1, 2})});
  CHECK(out.dims == Shape{3, 2, 2});
  CHECK(out.integers() == Ints{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(fold("Expand", {counted({2, 3}), wholes({1})}).dims == Shape{2, 3});
  CHECK(refusal("Expand", {counted({2}), wholes({3})}).find("broadcast") != std::string::npos);
  CHECK(refusal("Expand", {whole(1), wholes({-1})}).find("negative") != std::string::npos);
  CHECK(refusal("Expand", {whole(1), wholes({1001})}).find("exceed the memory") !=
        std::string::npos);
  CHECK(fold("Identity", {counted({3})}).integers() == Ints{0, 1, 2});
  CHECK(refusal("Identity", {}) == "expected an input number 0");
}

TEST_CASE("other operators are left to the graph", "[fast]") {
  for (const char* op : {"Conv", "MatMul", "Pow", "Exp", "Shape"})
    CHECK_FALSE(OnnxFolder(1000).fold(node_of(op), {real(1), real(2)}));
}

TEST_CASE("one folder counts all that it makes", "[fast]") {
  OnnxFolder folder(10);
  const OnnxNode node = node_of("ConstantOfShape");
  CHECK(folder.fold(node, {wholes({6})}));
  CHECK_NOTHROW(folder.count(4));
  CHECK_THROWS_WITH(folder.count(1), Catch::Contains("exceed the memory"));
}

}  // namespace
}  // namespace numemu::net::fold_test
