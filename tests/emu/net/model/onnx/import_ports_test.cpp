// The batch on another axis than the first: by its name, in inputs and outputs.
#include "emu/net/forward.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::net::import_ports_test {
namespace {

using test::ModelWriter;

OnnxValueInfo input(const std::vector<std::string_view>& symbols) {
  OnnxValueInfo info{.name = "x", .type = 1, .has_shape = true, .dims = {}};
  for (const std::string_view symbol : symbols) info.dims.push_back({-1, symbol});
  return info;
}

ImportedModel imported(const std::string& file) {
  Bytes bytes(static_cast<std::int64_t>(file.size()));
  std::memcpy(bytes.data(), file.data(), file.size());
  return import_onnx(parse_onnx("m.onnx", std::move(bytes)), {});
}

TEST_CASE("the batch is the axis of that name, else the first", "[fast]") {
  CHECK(batch_axis(input({})) == 0);
  CHECK(batch_axis(input({"time", "features"})) == 0);
  CHECK(batch_axis(input({"batch", "batch_of_words"})) == 0);
  CHECK(batch_axis(input({"time", "Batch_size"})) == 1);
  CHECK(batch_axis(input({"", "", "minibatch"})) == 2);
}

TEST_CASE("a batch on a later axis comes first in the graph, and axes are told", "[fast]") {
  ModelWriter writer;
  writer.input("x", {4, -1, 3}, 1, "batch").floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  writer.node("MatMul", {"x", "w"}, {"y"}).output("y");
  const ImportedModel model = imported(writer.file());
  REQUIRE(model.inputs.size() == 1);
  CHECK(model.inputs[0].batch_axis == 1);
  CHECK(model.graph.inputs[0].shape == Shape{4, 3});
  REQUIRE(model.outputs.size() == 1);
  CHECK(model.outputs[0].batch_axis == 1);
  CHECK(model.outputs[0].value == static_cast<int>(model.graph.value_count()) - 1);
  Tensor x({5, 4, 3});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[static_cast<std::size_t>(i)] = static_cast<float>(i);
  Numerics numerics;
  const Tensor y = forward(model.graph, x, numerics);
  REQUIRE(y.shape == Shape{5, 4, 2});
  for (std::size_t row = 0; row < 20; ++row) {
    const float* const a = &x.data[row * 3];
    CHECK(y.data[row * 2] == a[0] * 1 + a[1] * 3 + a[2] * 5);
    CHECK(y.data[row * 2 + 1] == a[0] * 2 + a[1] * 4 + a[2] * 6);
  }
}

TEST_CASE("steps before the batch are read where the file names it", "[fast]") {
  const auto model = [](const std::string& symbol) {
    ModelWriter writer;
    writer.input("x", {4, -1, 3}, 1, symbol)
        .floats("w", {1, 8, 3}, std::vector<float>(24, 0.25f))
        .floats("r", {1, 8, 2}, std::vector<float>(16, 0.5f));
    writer.node("LSTM", {"x", "w", "r"}, {"y", "h"},
                {test::attribute("hidden_size", std::int64_t{2})});
    return writer.output("y").output("h").file();
  };
  const ImportedModel named = imported(model("batch"));
  CHECK(named.graph.inputs[0].shape == Shape{4, 3});
  REQUIRE(named.outputs.size() == 2);
  CHECK(named.outputs[0].batch_axis == 2);  // [time, directions, batch, hidden]
  CHECK(named.outputs[1].batch_axis == 1);  // [directions, batch, hidden]
  CHECK_THROWS_WITH(imported(model("symbol")), Catch::Contains("axis 1 (symbol) has no extent"));
}

TEST_CASE("an array without elements along an open axis is named", "[fast]") {
  test::ModelWriter writer;
  writer.input("x", {-1, -1}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options;
  options.input_shapes["x"] = {2, 0};
  CHECK_THROWS_WITH(
      writer.import(13, options),
      Catch::Contains("input x: axis 1 (symbol): expected at least 1 element, found 0"));
}

}  // namespace
}  // namespace numemu::net::import_ports_test
