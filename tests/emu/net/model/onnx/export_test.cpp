#include "emu/net/model/onnx/export.hpp"

#include <cstdlib>
#include <cstring>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net::export_test {
namespace {

using Catch::Contains;
using numemu::test::message_of;

/// What the importer makes of the bytes.
ImportedModel read_back(const std::string& file) {
  Bytes bytes(static_cast<std::int64_t>(file.size()));
  std::memcpy(bytes.data(), file.data(), file.size());
  return import_onnx(parse_onnx("m.onnx", std::move(bytes)), {});
}

Tensor some_images(const Shape& shape) {
  Tensor x(shape);
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>((i * 7919) % 513) / 256 - 1;
  return x;
}

Graph network(const char* name, const Shape& shape) {
  Graph graph = build_net(name, shape, 10);
  initialize(graph, 3);
  return graph;
}

TEST_CASE("float32 networks are the same after export and import", "[fast]") {
  for (const char* name : {"lenet", "resnet20", "mobilenet-small", "vgg-small"}) {
    INFO(name);
    const Graph graph = network(name, {16, 16, 3});
    const ImportedModel back = read_back(export_onnx(graph, {}));
    const Tensor x = some_images({2, 16, 16, 3});
    Numerics numerics;
    CHECK(forward(back.graph, x, numerics).data == forward(graph, x, numerics).data);
  }
}

TEST_CASE("codes in the bytes of the type that holds them", "[fast]") {
  const auto type = [](const char* format) { return storage_type(find_format(format)); };
  CHECK(type("int4") == OnnxType::int4);
  CHECK(type("int3") == OnnxType::int4);
  CHECK(type("uint4") == OnnxType::uint4);
  CHECK(type("int6") == OnnxType::int8);
  CHECK(type("uint8") == OnnxType::uint8);
  CHECK(type("int12") == OnnxType::int16);
  CHECK(type("float8_e5m2") == OnnxType::float8_e5m2);
  CHECK(type("float4_e2m1fn") == OnnxType::float8_e4m3fn);
  CHECK(type("float6_e3m2fn") == OnnxType::float8_e4m3fn);
  CHECK(!type("float16"));
  const auto bytes = [&](const char* format, const std::vector<std::uint16_t>& codes) {
    return stored_codes(find_format(format), *type(format), codes);
  };
  CHECK(bytes("int4", {15, 7, 8}) == "\x7f\x08");  // -1, 7, -8
  CHECK(bytes("int3", {7, 3}) == "\x3f");          // -1, 3
  CHECK(bytes("int6", {63, 31, 33}) == "\xff\x1f\xe1");
  CHECK(bytes("uint6", {63}) == "\x3f");
  CHECK(bytes("int12", {0xfff, 0x7ff}) == "\xff\xff\xff\x07");
  CHECK(bytes("float8_e5m2", {0x7b, 0x80}) == "\x7b\x80");
  CHECK(bytes("float4_e2m1fn", {7, 9}) == "\x4c\xb0");  // 6 and -.5 in e4m3
}

/// The layer that reads the network's input, with one scale for each of the six channels.
OnnxLayers first_layer(const Graph& graph, const char* weights, const char* activations) {
  const Parameter& weight = std::as_const(*graph.nodes[0].op).parameters()[0];
  OnnxOperand w{.format = &find_format(weights), .scales = {1, .5f, .25f, 2, 1, .125f}};
  for (std::int64_t i = 0; i < weight.value.size(); ++i)
    w.codes.push_back(static_cast<std::uint16_t>(i % 16));
  return {{graph.nodes[0].name,
           {.weight = w,
            .activation = OnnxOperand{.format = &find_format(activations), .scales = {.0625f}}}}};
}

TEST_CASE("what the file computes: codes times scales, activations on their grid", "[fast]") {
  const Graph graph = network("lenet", {16, 16, 1});
  const Tensor x = some_images({1, 16, 16, 1});
  for (const char* activations : {"int8", "int4", "int6", "uint8"}) {
    INFO(activations);
    const OnnxLayers layers = first_layer(graph, "int4", activations);
    const ImportedModel back = read_back(export_onnx(graph, layers));
    // The same network with these weights, on the input that was rounded here.
    Graph expected = network("lenet", {16, 16, 1});
    Tensor& weight = expected.nodes[0].op->parameters()[0].value;
    const OnnxOperand& w = *layers.begin()->second.weight;
    for (std::int64_t i = 0; i < weight.size(); ++i) {
      const int code = w.codes[static_cast<std::size_t>(i)];
      weight.data[static_cast<std::size_t>(i)] = static_cast<float>(code < 8 ? code : code - 16) *
                                                 w.scales[static_cast<std::size_t>(i / 25)];
    }
    Tensor rounded = x;
    const Format& format = find_format(activations);
    const std::vector<double> values = finite_values(format);
    for (float& value : rounded.data) {
      double best = 0;
      for (const double v : values) {
        // Symmetric integers; on a tie the even one.
        if (format.is_signed && format.kind == Kind::integer && v == values.front()) continue;
        const double now = std::abs(value / .0625 - v), then = std::abs(value / .0625 - best);
        const bool even = std::fmod(v, 2) == 0 || format.kind != Kind::integer;
        if (now < then || (now == then && even)) best = v;
      }
      value = static_cast<float>(best * .0625);
    }
    Numerics numerics;
    CHECK(forward(back.graph, x, numerics).data == forward(expected, rounded, numerics).data);
  }
}

/// The element type of the file's first input (7: int64) and how often an operator is in it.
int input_type(const std::string& file) {
  Bytes bytes(static_cast<std::int64_t>(file.size()));
  std::memcpy(bytes.data(), file.data(), file.size());
  return static_cast<int>(parse_onnx("m.onnx", std::move(bytes)).graph.inputs.at(0).type);
}
bool casts(const std::string& file) { return file.find("Cast") != std::string::npos; }

TEST_CASE("inputs that tables alone read are int64, through views too; others are cast", "[fast]") {
  const auto rows = [](Graph& graph, const char* name, int value) {
    graph.add(name, std::make_unique<Embedding>(9, 4), {value});
  };
  net::Tensor x({2, 2, 3});
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<float>(i * 5 % 9);
  const auto check = [&](Graph& graph, int type, bool cast) {
    initialize(graph, 3);
    const std::string file = export_onnx(graph, {});
    CHECK(input_type(file) == type);
    CHECK(casts(file) == cast);
    const ImportedModel back = read_back(file);
    Numerics numerics;
    CHECK(forward(back.graph, x, numerics).data == forward(graph, x, numerics).data);
  };
  const auto empty = [] {
    Graph graph;
    graph.name = "rows";
    graph.inputs = {{"ids", {2, 3}}};
    return graph;
  };
  {
    Graph graph = empty();
    rows(graph, "table", 0);
    check(graph, 7, false);
  }
  {
    Graph graph = empty();
    graph.add("turned", std::make_unique<Transpose>(Shape{0, 2, 1}), {0});
    graph.add("line", std::make_unique<Reshape>(Shape{0, 6}));
    rows(graph, "table", 2);
    check(graph, 7, false);
  }
  // The table and an addition read the input; then the addition reads a view of it.
  for (const bool view : {false, true}) {
    Graph graph = empty();
    int ids = 0;
    if (view) ids = graph.add("line", std::make_unique<Reshape>(Shape{0, 2, 3}), {0});
    const int looked_up = graph.add("table", std::make_unique<Embedding>(9, 4), {0});
    const int sum = graph.add("sum", std::make_unique<Binary>("add"), {ids, ids});
    const int numbers = graph.add("numbers", std::make_unique<Reshape>(Shape{0, 2, 3, 1}), {sum});
    graph.add("both", std::make_unique<Binary>("add"), {looked_up, numbers});
    check(graph, 1, true);
  }
}

TEST_CASE("what no file can say is refused by name", "[fast]") {
  const Graph text = build_net("lstm-char", {8}, 20);
  CHECK_THAT(message_of([&] { export_onnx(text, {}); }),
             Contains("operators that are not exported: lstm (1: 'lstm')"));
  const Graph graph = network("lenet", {16, 16, 1});
  CHECK_THAT(message_of([&] { export_onnx(graph, first_layer(graph, "int4", "float16")); }),
             Contains("conv1: activation: no ONNX type stores float16"));
  CHECK_THAT(message_of([&] { export_onnx(graph, first_layer(graph, "int4", "float4_e2m1fn")); }),
             Contains("QuantizeLinear rounds to no float4_e2m1fn"));
}

constexpr std::int64_t kLength = 8, kWords = 20;

Tensor numbers(const Shape& shape, bool whole) {
  Tensor x(shape);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    x.data[i] = whole ? static_cast<float>((i * 7) % static_cast<std::size_t>(kWords))
                      : static_cast<float>((i * 7919) % 513) / 256 - 1;
  }
  return x;
}

void check_same(const Graph& graph, const Tensor& x) {
  const ImportedModel back = read_back(export_onnx(graph, {}));
  Numerics numerics;
  CHECK(forward(back.graph, x, numerics).data == forward(graph, x, numerics).data);
}

}  // namespace

TEST_CASE("a transformer is the same after export and import", "[fast]") {
  Graph graph = build_net("char-transformer", {kLength}, kWords);
  initialize(graph, 3);
  check_same(graph, numbers({3, kLength}, true));
}

TEST_CASE("plain matrices, with a factor and turned, are the same after export", "[fast]") {
  for (const bool turned : {false, true}) {
    for (const float alpha : {1.0f, 0.3f}) {
      Builder net("m", {6, 6}, 10);
      const int x = net.value();
      net.node("product",
               std::make_unique<MatMul>(MatMulOptions{.transpose_b = turned, .alpha = alpha}),
               {x, x});
      const Graph graph = net.take();
      check_same(graph, numbers({2, 6, 6}, false));
    }
  }
}

}  // namespace numemu::net::export_test
