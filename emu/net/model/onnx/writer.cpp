#include "emu/net/model/onnx/writer.hpp"

#include <cstring>

#include "emu/net/model/onnx/wire.hpp"

namespace numemu::net {
namespace {

// Fields of ModelProto, GraphProto, NodeProto, AttributeProto, ValueInfoProto, TypeProto and
// TensorShapeProto.
constexpr std::uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kSetDomain = 1,
                        kVersion = 2;
constexpr std::uint32_t kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
constexpr std::uint32_t kReads = 1, kResults = 2, kNodeName = 3, kOperator = 4, kAttribute = 5,
                        kDomain = 7;
constexpr std::uint32_t kAttributeName = 1, kFloat = 2, kInt = 3, kText = 4, kInts = 8,
                        kAttributeType = 20;
constexpr std::uint32_t kValueName = 1, kValueType = 2, kTensorType = 1, kElement = 1, kShape = 2,
                        kDim = 1, kDimValue = 1, kDimName = 2;
constexpr std::uint64_t kTypeFloat = 1, kTypeInt = 2, kTypeText = 3,
                        kTypeInts = 7;  // of attributes

std::string value_info(std::string_view name, const Shape& shape, OnnxType element) {
  std::string dims, dim;
  put_bytes(dim, kDimName, "n");
  put_bytes(dims, kDim, dim);
  for (const std::int64_t extent : shape) {
    dim.clear();
    put_number(dim, kDimValue, static_cast<std::uint64_t>(extent));
    put_bytes(dims, kDim, dim);
  }
  std::string tensor, type, out;
  put_number(tensor, kElement, static_cast<std::uint64_t>(element));
  put_bytes(tensor, kShape, dims);
  put_bytes(type, kTensorType, tensor);
  put_bytes(out, kValueName, name);
  put_bytes(out, kValueType, type);
  return out;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

void OnnxWriter::input(std::string_view name, const Shape& shape, OnnxType type) {
  put_bytes(inputs_, kInput, value_info(name, shape, type));
}

void OnnxWriter::output(std::string_view name, const Shape& shape) {
  put_bytes(outputs_, kOutput, value_info(name, shape, OnnxType::float32));
}

void OnnxWriter::node(std::string_view op, std::string_view name,
                      const std::vector<std::string>& inputs, const std::string& result,
                      const std::vector<OnnxNodeAttribute>& attributes) {
  std::string out;
  for (const std::string& input : inputs) put_bytes(out, kReads, input);
  put_bytes(out, kResults, result);
  put_bytes(out, kNodeName, name);
  const std::size_t dot = op.rfind('.');
  put_bytes(out, kOperator, dot == op.npos ? op : op.substr(dot + 1));
  if (dot != op.npos) put_bytes(out, kDomain, op.substr(0, dot));
  for (const OnnxNodeAttribute& attribute : attributes)
    put_bytes(out, kAttribute, OnnxWriter::attribute(attribute));
  put_bytes(nodes_, kNode, out);
}

void OnnxWriter::constant(std::string_view name, OnnxType type, const Shape& dims,
                          std::string_view raw) {
  std::string out;
  for (const std::int64_t extent : dims)
    put_number(out, tensor_field::kDims, static_cast<std::uint64_t>(extent));
  put_number(out, tensor_field::kDataType, static_cast<std::uint64_t>(type));
  put_bytes(out, tensor_field::kName, name);
  put_bytes(out, tensor_field::kRawData, raw);
  put_bytes(initializers_, kInitializer, out);
}

void OnnxWriter::constant(std::string_view name, const Shape& dims,
                          const std::vector<float>& values) {
  constant(name, OnnxType::float32, dims, bytes_of(values));
}

void OnnxWriter::constant(std::string_view name, const std::vector<std::int64_t>& values) {
  constant(name, OnnxType::int64, {static_cast<std::int64_t>(values.size())}, bytes_of(values));
}

std::string OnnxWriter::attribute(const OnnxNodeAttribute& attribute) {
  std::string out;
  put_bytes(out, kAttributeName, attribute.first);
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.second)) {
    put_number(out, kInt, static_cast<std::uint64_t>(*whole));
    put_number(out, kAttributeType, kTypeInt);
  } else if (const auto* real = std::get_if<float>(&attribute.second)) {
    put_float(out, kFloat, *real);
    put_number(out, kAttributeType, kTypeFloat);
  } else if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    put_bytes(out, kText, *text);
    put_number(out, kAttributeType, kTypeText);
  } else {
    for (const std::int64_t element : std::get<std::vector<std::int64_t>>(attribute.second))
      put_number(out, kInts, static_cast<std::uint64_t>(element));
    put_number(out, kAttributeType, kTypeInts);
  }
  return out;
}

void OnnxWriter::append(const OnnxWriter& other) {
  nodes_ += other.nodes_;
  initializers_ += other.initializers_;
  inputs_ += other.inputs_;
  outputs_ += other.outputs_;
}

void OnnxWriter::node(std::string_view bytes) { put_bytes(nodes_, kNode, bytes); }

void OnnxWriter::initializer(std::string_view bytes) {
  put_bytes(initializers_, kInitializer, bytes);
}

std::uint64_t OnnxWriter::ir_version(std::int64_t opset) {
  return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

std::string OnnxWriter::operator_set(std::string_view domain, std::int64_t version) {
  std::string out;
  if (!domain.empty()) put_bytes(out, kSetDomain, domain);
  put_number(out, kVersion, static_cast<std::uint64_t>(version));
  return out;
}

std::string OnnxWriter::model(std::string_view graph, std::int64_t opset,
                              const std::set<std::string>& domains) const {
  std::string body = nodes_, out;
  put_bytes(body, kGraphName, graph);
  body += initializers_ + inputs_ + outputs_;
  put_number(out, kIrVersion, ir_version(opset));
  put_bytes(out, kProducer, "numemu");
  put_bytes(out, kGraph, body);
  put_bytes(out, kOpset, operator_set("", opset));
  for (const std::string& domain : domains) put_bytes(out, kOpset, operator_set(domain, 1));
  return out;
}

std::string with_graph_fields(const std::string& path, std::string_view model,
                              const WriteGraphField& write) {
  std::string out;
  WireReader fields(path, model);
  for (WireField field; fields.next(field);) {
    if (field.number != kGraph) {
      put_field(out, field);
      continue;
    }
    std::string graph;
    WireReader parts = fields.message(field, "the graph");
    for (WireField part; parts.next(part);) write(parts, part, graph);
    put_bytes(out, kGraph, graph);
  }
  return out;
}

}  // namespace numemu::net
