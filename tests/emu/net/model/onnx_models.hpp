// Small ONNX models written node by node, for the tests of the import.
#pragma once
#include <string>
#include <vector>

#include "emu/net/model/onnx/import.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::test {

/// AttributeProto: an integer, a real number, integers, a text.
std::string attribute(const std::string& name, std::int64_t value);
std::string attribute(const std::string& name, float value);
std::string attribute(const std::string& name, const std::vector<std::int64_t>& values);
std::string text_attribute(const std::string& name, const std::string& value);
/// A graph inside a node: the bytes of its GraphProto.
std::string graph_attribute(const std::string& name, const std::string& graph);
/// One that holds a tensor: float32 (type 1), int64 (7), bool (9).
std::string tensor_attribute(const std::string& name, const std::vector<std::int64_t>& dims,
                             int type, const std::string& data);

/// Builds a GraphProto and imports it from a file.
class ModelWriter {
 public:
  /// An input of float32 (or another ONNX type: 7 is int64); -1 is the symbol.
  ModelWriter& input(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1,
                     const std::string& symbol = "symbol");
  ModelWriter& output(const std::string& name);
  ModelWriter& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<float>& values);
  ModelWriter& integers(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::vector<std::int64_t>& values);
  ModelWriter& bools(const std::string& name, const std::vector<std::int64_t>& dims,
                     const std::vector<int>& values);
  /// A node of one output, whose name is returned.
  std::string op(const std::string& type, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& attributes = {}, const std::string& name = "");
  /// Constant nodes.
  std::string number(float value);
  std::string wholes(const std::vector<std::int64_t>& values);
  std::string whole(std::int64_t value);
  ModelWriter& node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<std::string>& attributes = {}, const std::string& name = "",
                    const std::string& domain = "");
  const std::string& graph() const { return graph_; }
  std::string file(std::int64_t opset = 13) const;
  ImportedModel import(std::int64_t opset = 13, const ImportOptions& options = {}) const;

 private:
  ModelWriter& initializer(const std::string& name, const std::vector<std::int64_t>& dims, int type,
                           const std::string& data);

  std::string graph_;
  int made_ = 0;
};

}  // namespace numemu::net::test
