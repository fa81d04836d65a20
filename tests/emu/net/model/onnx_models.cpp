// Attributes and nodes in protobuf.
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::net::test {

std::string attribute(const std::string& name, std::int64_t value) {
  return bytes(1, name) + integer(3, value) + integer(20, 2);
}

std::string attribute(const std::string& name, float value) {
  return bytes(1, name) + fixed(2, value) + integer(20, 1);
}

std::string attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string out = bytes(1, name);
  for (const std::int64_t value : values) out += integer(8, value);
  return out + integer(20, 7);
}

std::string text_attribute(const std::string& name, const std::string& value) {
  return bytes(1, name) + bytes(4, value) + integer(20, 3);
}

std::string graph_attribute(const std::string& name, const std::string& graph) {
  return bytes(1, name) + bytes(6, graph) + integer(20, 5);
}

std::string tensor_attribute(const std::string& name, const std::vector<std::int64_t>& dims,
                             int type, const std::string& data) {
  std::string out;
  for (const std::int64_t extent : dims) out += integer(1, extent);
  return bytes(1, name) + bytes(5, out + integer(2, type) + raw(data)) + integer(20, 4);
}

ModelWriter& ModelWriter::input(const std::string& name, const std::vector<std::int64_t>& dims,
                                int type, const std::string& symbol) {
  std::string shape;
  for (const std::int64_t extent : dims)
    shape += bytes(1, extent < 0 ? bytes(2, symbol) : integer(1, extent));
  graph_ +=
      bytes(11, bytes(1, name) +
                    bytes(2, bytes(1, numemu::net::test::integer(1, type) + bytes(2, shape))));
  return *this;
}

ModelWriter& ModelWriter::output(const std::string& name) {
  graph_ += bytes(12, bytes(1, name));
  return *this;
}

ModelWriter& ModelWriter::floats(const std::string& name, const std::vector<std::int64_t>& dims,
                                 const std::vector<float>& values) {
  std::string data;
  for (const float value : values) data += words(value);
  return initializer(name, dims, 1, data);
}

ModelWriter& ModelWriter::integers(const std::string& name, const std::vector<std::int64_t>& dims,
                                   const std::vector<std::int64_t>& values) {
  std::string data;
  for (const std::int64_t value : values) data += words(value);
  return initializer(name, dims, 7, data);
}

ModelWriter& ModelWriter::bools(const std::string& name, const std::vector<std::int64_t>& dims,
                                const std::vector<int>& values) {
  std::string data;
  for (const int value : values) data += static_cast<char>(value);
  return initializer(name, dims, 9, data);
}

std::string ModelWriter::op(const std::string& type, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& attributes, const std::string& name) {
  std::string out = name.empty() ? "/" + type + "_" + std::to_string(++made_) : name;
  node(type, inputs, {out + "_output_0"}, attributes, out);
  return out + "_output_0";
}

std::string ModelWriter::number(float value) {
  return op("Constant", {}, {tensor_attribute("value", {}, 1, words(value))});
}

std::string ModelWriter::wholes(const std::vector<std::int64_t>& values) {
  std::string data;
  for (const std::int64_t value : values) data += words(value);
  return op("Constant", {},
            {tensor_attribute("value", {static_cast<std::int64_t>(values.size())}, 7, data)});
}

std::string ModelWriter::whole(std::int64_t value) {
  return op("Constant", {}, {tensor_attribute("value", {}, 7, words(value))});
}

ModelWriter& ModelWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::vector<std::string>& attributes, const std::string& name,
                               const std::string& domain) {
  std::string node;
  for (const std::string& in : inputs) node += bytes(1, in);
  for (const std::string& out : outputs) node += bytes(2, out);
  node += bytes(3, name) + bytes(4, op);
  for (const std::string& a : attributes) node += bytes(5, a);
  if (!domain.empty()) node += bytes(7, domain);
  graph_ += bytes(1, node);
  return *this;
}

std::string ModelWriter::file(std::int64_t opset) const { return model(graph_, opset); }

ImportedModel ModelWriter::import(std::int64_t opset, const ImportOptions& options) const {
  const numemu::test::TemporaryFolder folder;
  numemu::test::write_file(folder / "m.onnx", file(opset));
  return import_onnx(read_onnx(folder / "m.onnx"), options);
}

ModelWriter& ModelWriter::initializer(const std::string& name,
                                      const std::vector<std::int64_t>& dims, int type,
                                      const std::string& data) {
  std::string out;
  for (const std::int64_t extent : dims) out += numemu::net::test::integer(1, extent);
  graph_ += bytes(5, out + numemu::net::test::integer(2, type) + bytes(8, name) + raw(data));
  return *this;
}

}  // namespace numemu::net::test
