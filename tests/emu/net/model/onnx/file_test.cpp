#include "emu/net/model/onnx/file.hpp"

#include <filesystem>
#include <map>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::file_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::bytes;
using test::fixed;
using test::integer;
using test::model;
using test::raw;
using test::tensor;
using test::varint;
using test::words;

OnnxModel read(const std::string& file) {
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", file);
  return read_onnx(folder / "m.onnx");
}

/// What is wrong with a file, after its name.
std::string message(const std::string& file) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.onnx";
  write_file(path, file);
  const std::string text = message_of([&] { read_onnx(path); });
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

std::string node(const std::string& op, const std::string& rest = "") {
  return bytes(1, bytes(4, op) + rest);
}

std::string value(int field, const std::string& name, const std::string& shape) {
  return bytes(field, bytes(1, name) + bytes(2, bytes(1, integer(1, 1) + bytes(2, shape))));
}

TEST_CASE("a model of two nodes", "[fast]") {
  const std::string graph =
      node("Gemm", bytes(1, "x") + bytes(1, "w") + bytes(1, "") + bytes(2, "h") + bytes(3, "fc") +
                       bytes(5, bytes(1, "alpha") + fixed(2, 0.5f) + integer(20, 1)) +
                       bytes(5, bytes(1, "transB") + integer(3, -1) + integer(20, 2))) +
      node("Relu", bytes(1, "h") + bytes(2, "y") + bytes(7, "ai.onnx")) + bytes(2, "net") +
      bytes(5, tensor("w", {2, 1}, 1, raw(words(1.0f, 2.0f)))) +
      value(11, "x", bytes(1, bytes(2, "batch")) + bytes(1, integer(1, 1)) + bytes(1, "")) +
      value(12, "y", bytes(1, integer(1, -1))) +
      bytes(13, bytes(1, "sequence") + bytes(2, bytes(4, "")));
  const OnnxModel m = read(integer(1, 8) + bytes(2, "hand") + bytes(3, "1.2") + bytes(7, graph) +
                           bytes(8, bytes(1, "ai.onnx.ml") + integer(2, 3)) +
                           bytes(8, bytes(1, "ai.onnx") + integer(2, 17)) + bytes(14, "\x0a\x01k") +
                           fixed(1000, 1.0));
  CHECK(m.ir_version == 8);
  CHECK(m.opset == 17);
  CHECK(m.producer == "hand");
  CHECK(m.producer_version == "1.2");
  CHECK(m.graph.name == "net");
  REQUIRE(m.graph.nodes.size() == 2);
  const OnnxNode& gemm = m.graph.nodes[0];
  CHECK(gemm.op_type == "Gemm");
  CHECK(gemm.name == "fc");
  CHECK(gemm.inputs == std::vector<std::string_view>{"x", "w", ""});
  CHECK(gemm.outputs == std::vector<std::string_view>{"h"});
  REQUIRE(gemm.find("alpha") != nullptr);
  CHECK(gemm.find("alpha")->type == OnnxAttributeType::number);
  CHECK(gemm.find("alpha")->number == 0.5f);
  REQUIRE(gemm.find("transB") != nullptr);
  CHECK(gemm.find("transB")->integer == -1);
  CHECK(gemm.find("beta") == nullptr);
  CHECK(m.graph.nodes[1].domain.empty());
  REQUIRE(m.graph.initializers.size() == 1);
  CHECK(to_floats(m.graph.initializers[0]) == std::vector<float>{1, 2});
  REQUIRE(m.graph.inputs.size() == 1);
  const OnnxValueInfo& x = m.graph.inputs[0];
  CHECK(x.type == 1);
  CHECK(x.has_shape);
  REQUIRE(x.dims.size() == 3);
  CHECK(x.dims[0].symbol == "batch");
  CHECK(x.dims[0].extent == -1);
  CHECK(x.dims[1].extent == 1);
  CHECK(x.dims[2].extent == -1);
  CHECK(x.dims[2].symbol.empty());
  CHECK(m.graph.outputs.at(0).dims.at(0).extent == -1);
  CHECK(m.graph.value_info.at(0).type == 0);
  CHECK(!m.graph.value_info[0].has_shape);
}

TEST_CASE("views survive moving a model", "[fast]") {
  OnnxModel first = read(model(node("Relu")));
  const OnnxModel second = std::move(first);
  CHECK(second.graph.nodes.at(0).op_type == "Relu");
}

TEST_CASE("weights as codes are sought only in files that name their operator", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.onnx";
  const auto found = [&](const std::string& file) {
    write_file(path, file);
    return weights_as_codes(path);
  };
  const std::string dequantize =
      node("DequantizeLinear", bytes(1, "w") + bytes(1, "s") + bytes(2, "y")) +
      bytes(5, tensor("w", {1}, 3, raw("\x01"))) + bytes(5, tensor("s", {}, 1, raw(words(1.0f))));
  CHECK(found(model(dequantize)) == 1);
  CHECK(found("no model, and not read as one") == 0);
  CHECK_THAT(message_of([&] { found("DequantizeLinear"); }), Catch::Contains("m.onnx: byte "));
  // The name may lie across two of the pieces that are searched.
  const int piece = 1 << 18;
  for (const int before : {piece - 40, piece - 30, piece - 20, piece, 2 * piece - 30}) {
    INFO(before);
    const std::string text = bytes(6, std::string(static_cast<std::size_t>(before), 'd'));
    CHECK(found(text + model(dequantize)) == 1);
  }
}

TEST_CASE("attributes of every type", "[fast]") {
  const std::string attributes =
      bytes(5, bytes(1, "s") + bytes(4, "text") + integer(20, 3)) +
      bytes(5, bytes(1, "t") + bytes(5, tensor("", {1}, 7, integer(7, 9))) + integer(20, 4)) +
      bytes(5, bytes(1, "fs") + fixed(7, 1.0f) + bytes(7, words(2.0f)) + integer(20, 6)) +
      bytes(5,
            bytes(1, "is") + integer(8, -1) + bytes(8, varint(300) + varint(2)) + integer(20, 7)) +
      bytes(5, bytes(1, "ss") + bytes(9, "p") + bytes(9, "") + integer(20, 8)) +
      bytes(5, bytes(1, "body") + bytes(6, node("If")) + integer(20, 5)) +
      bytes(5, bytes(1, "none") + integer(20, 7)) + bytes(5, bytes(1, "old") + fixed(2, 3.0f));
  const OnnxModel m = read(model(node("Any", attributes)));
  const OnnxNode& any = m.graph.nodes.at(0);
  CHECK(any.attributes.size() == 8);
  CHECK(any.find("s")->text == "text");
  REQUIRE(any.find("t")->tensor != nullptr);
  CHECK(to_integers(*any.find("t")->tensor) == std::vector<std::int64_t>{9});
  CHECK(any.find("fs")->numbers == std::vector<float>{1, 2});
  CHECK(any.find("is")->integers == std::vector<std::int64_t>{-1, 300, 2});
  CHECK(any.find("ss")->texts == std::vector<std::string_view>{"p", ""});
  CHECK(any.find("body")->type == OnnxAttributeType::graph);
  CHECK(any.find("none")->integers.empty());
  CHECK(any.find("old")->type == OnnxAttributeType::number);
}

TEST_CASE("versions that are read and that are not", "[fast]") {
  for (const int opset : {7, 13, 21}) CHECK(read(model("", opset)).opset == opset);
  CHECK(message(model("", 0)) == "byte 6: expected an opset of 1..24, found 0");
  CHECK(message(model("", 25)) == "byte 6: expected an opset of 1..24, found 25");
  CHECK(message(bytes(7, "")) ==
        "byte 2: expected an opset_import of 1..24 for ONNX's own domain, found none");
  CHECK(message(bytes(8, integer(2, 13))) ==
        "byte 4: expected an ONNX model with a graph, found none");
  CHECK(message("") == "byte 0: expected an ONNX model with a graph, found none");
  CHECK(message(bytes(7, "") + bytes(7, "")) == "byte 2: expected one graph, found two");
}

TEST_CASE("records without what they need", "[fast]") {
  CHECK(message(model(bytes(1, ""))) ==
        "byte 4: expected a message with a name in field 1, found 0 bytes");
  CHECK(message(model(integer(1, 7))) ==
        "byte 4: expected a message with a name in field 1, found 0 bytes");
  CHECK(message(model(bytes(1, bytes(1, "abc")))) ==
        "byte 6: expected the op_type of a node, found none");
  CHECK(message(model(node("A", bytes(5, integer(3, 300))))) ==
        "byte 11: expected the name of an attribute, found none");
  CHECK(message(model(node("A", bytes(5, bytes(1, "a") + integer(20, 15))))) ==
        "byte 14: expected an attribute type of 0..14, found 15");
  CHECK(message(model(node("A", bytes(5, bytes(1, "a") + integer(20, 4))))) ==
        "byte 11: attribute 'a': expected a tensor if and only if its type is 5, found none");
  CHECK(message(model(bytes(11, bytes(2, "") + bytes(2, "")))) ==
        "byte 6: expected the name of a value, found none");
  CHECK(message(model(bytes(5, integer(1, 0) + integer(2, 1)))) ==
        "byte 4: expected the name of an initializer, found none");
  CHECK(message(model(bytes(15, "abc"))) ==
        "byte 4: expected dense initializers, found a sparse one");
}

TEST_CASE("every truncation of a model is refused or complete", "[fast]") {
  const std::string whole =
      model(node("Gemm", bytes(1, "x") + bytes(5, bytes(1, "a") + fixed(2, 1.0f))) +
            bytes(5, tensor("w", {2}, 1, raw(words(1.0f, 2.0f)))));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK(message(whole.substr(0, size)).starts_with("byte "));
  }
  CHECK(message(whole).empty());
}

TEST_CASE("an exported ResNet-20", "[fast][shared]") {
  const std::string path = std::string(NUMEMU_SHARED) + "/models/resnet20-cifar10.onnx";
  if (!std::filesystem::exists(path)) {
    WARN("skipped: no " + path);
    return;
  }
  // Counts by protoc --decode=onnx.ModelProto of Debian's libonnx-dev 1.12.
  const OnnxModel m = read_onnx(path);
  CHECK(m.ir_version == 7);
  CHECK(m.opset == 13);
  CHECK(m.producer == "pytorch");
  CHECK(m.producer_version == "1.13.0");
  CHECK(m.graph.nodes.size() == 146);
  CHECK(m.graph.initializers.size() == 97);
  std::map<std::string_view, int> operators;
  for (const OnnxNode& n : m.graph.nodes) ++operators[n.op_type];
  CHECK(operators["Conv"] == 19);
  CHECK(operators["BatchNormalization"] == 19);
  CHECK(operators["Constant"] == 42);
  CHECK(operators["Pad"] == 2);
  std::int64_t elements = 0;
  for (const OnnxTensor& t : m.graph.initializers) elements += t.elements;
  CHECK(elements == 271098);
  CHECK(m.graph.inputs.at(0).name == "image");
  REQUIRE(m.graph.inputs[0].dims.size() == 4);
  CHECK(m.graph.inputs[0].dims[0].symbol == "batch");
  CHECK(m.graph.inputs[0].dims[3].extent == 32);
  CHECK(m.graph.outputs.at(0).name == "logits");
  const OnnxTensor& bias = m.graph.initializers.back();
  CHECK(bias.name == "linear.bias");
  const float first = to_floats(bias).at(0);
  CHECK(words(first) == "Y4F>");  // as protoc prints its bytes
}

using namespace test;

/// A model of one float32 initializer [2] with data at that place.
std::string model_of(const std::string& file, const std::string& offset,
                     const std::string& length) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  std::string tensor = integer(1, 2) + integer(2, 1) + bytes(8, "w") + integer(14, 1);
  tensor += entry("location", file);
  if (!offset.empty()) tensor += entry("offset", offset);
  if (!length.empty()) tensor += entry("length", length);
  return model(bytes(5, tensor), 13);
}

struct Folder {
  numemu::test::TemporaryFolder outer;
  std::string inner = outer / "model";
  Folder() {
    std::filesystem::create_directories(inner + "/data");
    numemu::test::write_file(inner + "/weights.bin", words(1.0f, 2.0f, 3.0f));
    numemu::test::write_file(inner + "/data/more.bin", words(4.0f, 5.0f));
    numemu::test::write_file(outer / "secret.bin", words(6.0f, 7.0f));
    std::filesystem::create_symlink("../secret.bin", inner + "/link.bin");
  }
  std::vector<float> read(const std::string& file, const std::string& offset = "",
                          const std::string& length = "") const {
    numemu::test::write_file(inner + "/m.onnx", model_of(file, offset, length));
    const OnnxModel read = read_onnx(inner + "/m.onnx");
    return to_floats(read.graph.initializers.at(0));
  }
  std::string refusal(const std::string& file, const std::string& offset = "",
                      const std::string& length = "") const {
    return numemu::test::message_of([&] { read(file, offset, length); });
  }
};

TEST_CASE("tensors have their data in files of the model's folder", "[fast]") {
  const Folder folder;
  CHECK(folder.read("weights.bin") == std::vector<float>{1, 2});
  CHECK(folder.read("weights.bin", "4", "8") == std::vector<float>{2, 3});
  CHECK(folder.read("data/more.bin", "0") == std::vector<float>{4, 5});
  CHECK(folder.read("./weights.bin") == std::vector<float>{1, 2});
}

TEST_CASE("paths that leave the model's folder are refused", "[fast]") {
  const Folder folder;
  const std::string inside = "expected a path within the model's folder";
  CHECK(folder.refusal("../secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal("data/../../secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal(folder.outer / "secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal("/etc/passwd").find(inside) != std::string::npos);
  CHECK(folder.refusal(std::string("weights.bin\0x", 13)).find(inside) != std::string::npos);
  CHECK(folder.refusal("link.bin").find("not a link") != std::string::npos);
  CHECK(folder.refusal("none.bin").find("tensor 'w': external data 'none.bin': no such file") !=
        std::string::npos);
  CHECK_FALSE(folder.refusal("data").empty());
}

TEST_CASE("data beyond the end of a file or of another size are refused", "[fast]") {
  const Folder folder;
  CHECK(
      folder.refusal("weights.bin", "8").find("expected 8 bytes from byte 8 on in a file of 12") !=
      std::string::npos);
  CHECK(
      folder.refusal("weights.bin", "9223372036854775807").find("from byte 9223372036854775807") !=
      std::string::npos);
  CHECK(folder.refusal("weights.bin", "0", "12").find("expected a length of 8 bytes") !=
        std::string::npos);
}

}  // namespace

}  // namespace numemu::net::file_test
