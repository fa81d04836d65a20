#include "emu/net/model/onnx/writer.hpp"

#include "emu/net/model/onnx/file.hpp"

namespace numemu::net {
namespace {

std::string value_info(std::string_view name, const Shape& shape, OnnxType element) {
  std::string dims, dim;
  put_bytes(dim, value_field::kSymbol, "n");
  put_bytes(dims, value_field::kDimension, dim);
  for (const std::int64_t extent : shape) {
    dim.clear();
    put_number(dim, value_field::kExtent, static_cast<std::uint64_t>(extent));
    put_bytes(dims, value_field::kDimension, dim);
  }
  std::string tensor, type, out;
  put_number(tensor, value_field::kElement, static_cast<std::uint64_t>(element));
  put_bytes(tensor, value_field::kShape, dims);
  put_bytes(type, value_field::kTensorType, tensor);
  put_bytes(out, value_field::kName, name);
  put_bytes(out, value_field::kType, type);
  return out;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

void OnnxWriter::input(std::string_view name, const Shape& shape, OnnxType type) {
  put_bytes(inputs_, graph_field::kInput, value_info(name, shape, type));
}

void OnnxWriter::output(std::string_view name, const Shape& shape) {
  put_bytes(outputs_, graph_field::kOutput, value_info(name, shape, OnnxType::float32));
}

void OnnxWriter::node(std::string_view op, std::string_view name,
                      const std::vector<std::string>& inputs, const std::string& result,
                      const std::vector<OnnxNodeAttribute>& attributes) {
  std::string out;
  for (const std::string& input : inputs) put_bytes(out, node_field::kInput, input);
  put_bytes(out, node_field::kOutput, result);
  put_bytes(out, node_field::kName, name);
  const std::size_t dot = op.rfind('.');
  put_bytes(out, node_field::kOperator, dot == op.npos ? op : op.substr(dot + 1));
  if (dot != op.npos) put_bytes(out, node_field::kDomain, op.substr(0, dot));
  for (const OnnxNodeAttribute& attribute : attributes)
    put_bytes(out, node_field::kAttribute, OnnxWriter::attribute(attribute));
  put_bytes(nodes_, graph_field::kNode, out);
}

std::string OnnxWriter::tensor(std::string_view name, OnnxType type, const Shape& dims) {
  std::string out;
  for (const std::int64_t extent : dims)
    put_number(out, tensor_field::kDims, static_cast<std::uint64_t>(extent));
  put_number(out, tensor_field::kDataType, static_cast<std::uint64_t>(type));
  put_bytes(out, tensor_field::kName, name);
  return out;
}

std::string OnnxWriter::value(std::string_view op, const std::string& name,
                              const std::vector<std::string>& inputs,
                              const std::vector<OnnxNodeAttribute>& attributes) {
  node(op, name, inputs, name, attributes);
  return name;
}

std::string OnnxWriter::constant(std::string_view name, OnnxType type, const Shape& dims,
                                 std::string_view raw) {
  std::string out = tensor(name, type, dims);
  put_bytes(out, tensor_field::kRawData, raw);
  put_bytes(initializers_, graph_field::kInitializer, out);
  return std::string(name);
}

std::string OnnxWriter::constant(std::string_view name, const Shape& dims,
                                 const std::vector<float>& values) {
  return constant(name, OnnxType::float32, dims, bytes_of(values));
}

std::string OnnxWriter::constant(std::string_view name, float value) {
  return constant(name, Shape{}, std::vector<float>{value});
}

std::string OnnxWriter::constant(std::string_view name, const std::vector<std::int64_t>& values) {
  return constant(name, OnnxType::int64, {std::ssize(values)}, bytes_of(values));
}

std::string OnnxWriter::attribute(const OnnxNodeAttribute& attribute) {
  std::string out;
  put_bytes(out, attribute_field::kName, attribute.first);
  OnnxAttributeType type = OnnxAttributeType::integers;
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.second)) {
    type = OnnxAttributeType::integer;
    put_number(out, attribute_field::kInteger, static_cast<std::uint64_t>(*whole));
  } else if (const auto* real = std::get_if<float>(&attribute.second)) {
    type = OnnxAttributeType::number;
    put_float(out, attribute_field::kNumber, *real);
  } else if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    type = OnnxAttributeType::text;
    put_bytes(out, attribute_field::kText, *text);
  } else {
    for (const std::int64_t element : std::get<std::vector<std::int64_t>>(attribute.second))
      put_number(out, attribute_field::kIntegers, static_cast<std::uint64_t>(element));
  }
  put_number(out, attribute_field::kType, static_cast<std::uint64_t>(type));
  return out;
}

void OnnxWriter::append(const OnnxWriter& other) {
  nodes_ += other.nodes_;
  initializers_ += other.initializers_;
  inputs_ += other.inputs_;
  outputs_ += other.outputs_;
}

void OnnxWriter::node(std::string_view bytes) { put_bytes(nodes_, graph_field::kNode, bytes); }

std::uint64_t OnnxWriter::ir_version(std::int64_t opset) {
  return opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

std::string OnnxWriter::operator_set(std::string_view domain, std::int64_t version) {
  std::string out;
  if (!domain.empty()) put_bytes(out, opset_field::kDomain, domain);
  put_number(out, opset_field::kVersion, static_cast<std::uint64_t>(version));
  return out;
}

std::string OnnxWriter::model(std::string_view graph, std::int64_t opset,
                              const std::set<std::string>& domains) const {
  std::string body = nodes_, out;
  put_bytes(body, graph_field::kName, graph);
  body += initializers_ + inputs_ + outputs_;
  put_number(out, model_field::kIrVersion, ir_version(opset));
  put_bytes(out, model_field::kProducer, "numemu");
  put_bytes(out, model_field::kGraph, body);
  put_bytes(out, model_field::kOpset, operator_set("", opset));
  for (const std::string& domain : domains)
    put_bytes(out, model_field::kOpset, operator_set(domain, 1));
  return out;
}

}  // namespace numemu::net
