// Small ONNX models written node by node, for the tests of the import.
#pragma once
#include <string>
#include <vector>

#include "emu/net/model/onnx_import.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::test {

/// AttributeProto: an integer, a real number, integers, a text.
inline std::string attribute(const std::string& name, std::int64_t value) {
  return bytes(1, name) + integer(3, value) + integer(20, 2);
}
inline std::string attribute(const std::string& name, float value) {
  return bytes(1, name) + fixed(2, value) + integer(20, 1);
}
inline std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string out = bytes(1, name);
  for (const std::int64_t value : values) out += integer(8, value);
  return out + integer(20, 7);
}
inline std::string text_attribute(const std::string& name, const std::string& value) {
  return bytes(1, name) + bytes(4, value) + integer(20, 3);
}
/// One that holds a tensor: float32 (type 1), int64 (7), bool (9).
inline std::string tensor_attribute(const std::string& name, const std::vector<std::int64_t>& dims,
                                    int type, const std::string& data) {
  std::string out;
  for (const std::int64_t extent : dims) out += integer(1, extent);
  return bytes(1, name) + bytes(5, out + integer(2, type) + raw(data)) + integer(20, 4);
}

/// Builds a GraphProto and imports it from a file.
class ModelWriter {
 public:
  /// An input of float32 (or another ONNX type: 7 is int64); -1 is the symbol.
  ModelWriter& input(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1,
                     const std::string& symbol = "symbol") {
    std::string shape;
    for (const std::int64_t extent : dims)
      shape += bytes(1, extent < 0 ? bytes(2, symbol) : integer(1, extent));
    graph_ +=
        bytes(11, bytes(1, name) +
                      bytes(2, bytes(1, numemu::net::test::integer(1, type) + bytes(2, shape))));
    return *this;
  }
  ModelWriter& output(const std::string& name) {
    graph_ += bytes(12, bytes(1, name));
    return *this;
  }
  ModelWriter& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<float>& values) {
    std::string data;
    for (const float value : values) data += words(value);
    return initializer(name, dims, 1, data);
  }
  ModelWriter& integers(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::vector<std::int64_t>& values) {
    std::string data;
    for (const std::int64_t value : values) data += words(value);
    return initializer(name, dims, 7, data);
  }
  ModelWriter& bools(const std::string& name, const std::vector<std::int64_t>& dims,
                     const std::vector<int>& values) {
    std::string data;
    for (const int value : values) data += static_cast<char>(value);
    return initializer(name, dims, 9, data);
  }
  /// A node of one output, whose name is returned.
  std::string op(const std::string& type, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& attributes = {}, const std::string& name = "") {
    std::string out = name.empty() ? "/" + type + "_" + std::to_string(++made_) : name;
    node(type, inputs, {out + "_output_0"}, attributes, out);
    return out + "_output_0";
  }
  /// Constant nodes.
  std::string number(float value) {
    return op("Constant", {}, {tensor_attribute("value", {}, 1, words(value))});
  }
  std::string wholes(const std::vector<std::int64_t>& values) {
    std::string data;
    for (const std::int64_t value : values) data += words(value);
    return op("Constant", {},
              {tensor_attribute("value", {static_cast<std::int64_t>(values.size())}, 7, data)});
  }
  std::string whole(std::int64_t value) {
    return op("Constant", {}, {tensor_attribute("value", {}, 7, words(value))});
  }
  ModelWriter& node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<std::string>& attributes = {}, const std::string& name = "") {
    std::string node;
    for (const std::string& in : inputs) node += bytes(1, in);
    for (const std::string& out : outputs) node += bytes(2, out);
    node += bytes(3, name) + bytes(4, op);
    for (const std::string& a : attributes) node += bytes(5, a);
    graph_ += bytes(1, node);
    return *this;
  }
  std::string file(std::int64_t opset = 13) const { return model(graph_, opset); }
  ImportedModel import(std::int64_t opset = 13, const ImportOptions& options = {}) const {
    const numemu::test::TemporaryFolder folder;
    numemu::test::write_file(folder / "m.onnx", file(opset));
    return load_onnx(folder / "m.onnx", options);
  }

 private:
  ModelWriter& initializer(const std::string& name, const std::vector<std::int64_t>& dims, int type,
                           const std::string& data) {
    std::string out;
    for (const std::int64_t extent : dims) out += numemu::net::test::integer(1, extent);
    graph_ += bytes(5, out + numemu::net::test::integer(2, type) + bytes(8, name) + raw(data));
    return *this;
  }

  std::string graph_;
  int made_ = 0;
};

}  // namespace numemu::net::test
