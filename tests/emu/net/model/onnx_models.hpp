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

/// Builds a GraphProto and imports it from a file.
class ModelWriter {
 public:
  /// A float32 input; -1 is a symbol.
  ModelWriter& input(const std::string& name, const std::vector<std::int64_t>& dims) {
    std::string shape;
    for (const std::int64_t extent : dims)
      shape += bytes(1, extent < 0 ? bytes(2, "symbol") : integer(1, extent));
    graph_ += bytes(11, bytes(1, name) + bytes(2, bytes(1, integer(1, 1) + bytes(2, shape))));
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
};

}  // namespace numemu::net::test
