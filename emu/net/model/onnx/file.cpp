// Each list is counted in a pass of its own and reserved once: growing it would take three times
// its size.
#include "emu/net/model/onnx/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <map>
#include <set>

#include "emu/net/memory.hpp"
#include "emu/net/model/onnx/proto.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kLargestFile = std::int64_t{1} << 31;  // protobuf's own limit
/// Nodes, attributes, initializers and values need a name or an operator: tag, length, a letter.
/// Shorter ones are refused while counting, so that no record exceeds 64 times its bytes.
constexpr std::size_t kShortest = 3;
constexpr std::uint32_t kCounted = 32;
using Counts = std::array<std::int64_t, kCounted>;

/// How often each field number occurs in the message; `named` have at least kShortest bytes.
Counts count_fields(WireReader message, std::initializer_list<std::uint32_t> named) {
  Counts counts{};
  for (WireField field; message.next(field);) {
    if (field.number >= kCounted) continue;
    ++counts[field.number];
    for (const std::uint32_t number : named) {
      if (field.number == number && field.bytes.size() < kShortest) {
        message.fail(field.offset,
                     fmt::format("expected a message with a name in field {}, found {}", number,
                                 counted(static_cast<std::int64_t>(field.bytes.size()), "byte")));
      }
    }
  }
  return counts;
}

template <class T>
void reserve(std::vector<T>& list, std::int64_t count) {
  list.reserve(static_cast<std::size_t>(count));
}

void require_name(const WireReader& message, std::string_view name, std::string_view what) {
  if (name.empty()) message.fail(message.offset(), fmt::format("expected {}, found none", what));
}

/// ONNX's own domain has two names.
std::string_view domain_of(std::string_view text) { return text == "ai.onnx" ? "" : text; }

OnnxDimension read_dimension(WireReader message) {
  OnnxDimension dimension;
  for (WireField field; message.next(field);) {
    if (field.number == value_field::kExtent) {  // some exporters write -1 for an unknown extent
      dimension = {std::max<std::int64_t>(message.integer(field, "dim_value"), -1), ""};
    } else if (field.number == value_field::kSymbol) {
      dimension = {-1, message.text(field, "dim_param")};
    }
  }
  return dimension;
}

void read_shape(WireReader message, OnnxValueInfo& value) {
  if (value.has_shape) message.fail(message.offset(), "expected one shape, found two");
  value.has_shape = true;
  reserve(value.dims, count_fields(message, {})[value_field::kDimension]);
  for (WireField field; message.next(field);) {
    if (field.number == value_field::kDimension)
      value.dims.push_back(read_dimension(message.message(field, "a dimension")));
  }
}

OnnxValueInfo read_value_info(WireReader message) {
  OnnxValueInfo value;
  for (WireField field; message.next(field);) {
    if (field.number == value_field::kName) value.name = message.text(field, "the name of a value");
    if (field.number != value_field::kType) continue;
    WireReader type = message.message(field, "the type of a value");
    for (WireField kind; type.next(kind);) {
      if (kind.number != value_field::kTensorType) continue;
      WireReader tensor = type.message(kind, "tensor_type");
      for (WireField part; tensor.next(part);) {
        if (part.number == value_field::kElement) value.type = tensor.integer(part, "elem_type");
        if (part.number == value_field::kShape) read_shape(tensor.message(part, "a shape"), value);
      }
    }
  }
  require_name(message, value.name, "the name of a value");
  return value;
}

/// The kind of an attribute by the field that holds it, for files that leave the kind out (IR 1).
OnnxAttributeType kind_of_field(std::uint32_t number) {
  const bool holds = number >= attribute_field::kNumber && number <= attribute_field::kGraphs;
  return holds ? static_cast<OnnxAttributeType>(number - attribute_field::kNumber + 1)
               : OnnxAttributeType::undefined;
}

/// Reserves the lists of an attribute and finds its kind by the fields that are there.
OnnxAttributeType count_attribute(WireReader message, OnnxAttribute& attribute) {
  std::int64_t numbers = 0, integers = 0, texts = 0;
  OnnxAttributeType kind = OnnxAttributeType::undefined;
  for (WireField field; message.next(field);) {
    if (kind_of_field(field.number) != OnnxAttributeType::undefined)
      kind = kind_of_field(field.number);
    if (field.number == attribute_field::kNumbers)
      numbers += message.count(field, Wire::fixed32, "floats");
    if (field.number == attribute_field::kIntegers)
      integers += message.count(field, Wire::varint, "ints");
    if (field.number == attribute_field::kTexts) ++texts;
  }
  reserve(attribute.numbers, numbers);
  reserve(attribute.integers, integers);
  reserve(attribute.texts, texts);
  return kind;
}

void read_attribute_type(const WireReader& message, const WireField& field,
                         OnnxAttribute& attribute) {
  const std::int64_t type = message.integer(field, "the type of an attribute");
  if (type < 0 || type > static_cast<std::int64_t>(OnnxAttributeType::types))
    message.fail(field.offset, fmt::format("expected an attribute type of 0..14, found {}", type));
  attribute.type = static_cast<OnnxAttributeType>(type);
}

OnnxAttribute read_attribute(WireReader message) {
  OnnxAttribute attribute;
  const OnnxAttributeType kind = count_attribute(message, attribute);
  const std::int64_t offset = message.offset();
  for (WireField field; message.next(field);) {
    const std::uint32_t number = field.number;
    if (number == attribute_field::kName)
      attribute.name = message.text(field, "the name of an attribute");
    if (number == attribute_field::kNumber) attribute.number = message.float32(field, "f");
    if (number == attribute_field::kInteger) attribute.integer = message.integer(field, "i");
    if (number == attribute_field::kText) attribute.text = message.text(field, "s");
    if (number == attribute_field::kTensor) {
      if (attribute.tensor) message.fail(field.offset, "expected one tensor, found two");
      attribute.tensor =
          std::make_unique<OnnxTensor>(read_onnx_tensor(message.message(field, "t")));
    }
    if (number == attribute_field::kGraph) attribute.graph = message.text(field, "g");
    if (number == attribute_field::kNumbers)
      WireReader::for_each(field, Wire::fixed32, [&](std::uint64_t word) {
        attribute.numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
      });
    if (number == attribute_field::kIntegers)
      WireReader::for_each(field, Wire::varint, [&](std::uint64_t word) {
        attribute.integers.push_back(static_cast<std::int64_t>(word));
      });
    if (number == attribute_field::kTexts)
      attribute.texts.push_back(message.text(field, "strings"));
    if (number == attribute_field::kType) read_attribute_type(message, field, attribute);
  }
  require_name(message, attribute.name, "the name of an attribute");
  if (attribute.type == OnnxAttributeType::undefined) attribute.type = kind;
  if ((attribute.type == OnnxAttributeType::tensor) != (attribute.tensor != nullptr)) {
    message.fail(offset,
                 fmt::format("attribute {}: expected a tensor if and only if its type is 5,"
                             " found {}",
                             quote_name(attribute.name), attribute.tensor ? "one" : "none"));
  }
  return attribute;
}

OnnxNode read_node(WireReader message) {
  OnnxNode node;
  node.offset = message.offset();
  const Counts counts = count_fields(message, {node_field::kAttribute});
  reserve(node.inputs, counts[node_field::kInput]);
  reserve(node.outputs, counts[node_field::kOutput]);
  reserve(node.attributes, counts[node_field::kAttribute]);
  for (WireField field; message.next(field);) {
    const std::uint32_t number = field.number;
    if (number == node_field::kInput) node.inputs.push_back(message.text(field, "an input"));
    if (number == node_field::kOutput) node.outputs.push_back(message.text(field, "an output"));
    if (number == node_field::kName) node.name = message.text(field, "the name of a node");
    if (number == node_field::kOperator) node.op_type = message.text(field, "op_type");
    if (number == node_field::kAttribute)
      node.attributes.push_back(read_attribute(message.message(field, "an attribute")));
    if (number == node_field::kDomain)
      node.domain = domain_of(message.text(field, "the domain of a node"));
  }
  require_name(message, node.op_type, "the op_type of a node");
  return node;
}

OnnxGraph read_graph(WireReader message, bool weights_may_be_absent) {
  OnnxGraph graph;
  const Counts counts =
      count_fields(message, {graph_field::kNode, graph_field::kInitializer, graph_field::kInput,
                             graph_field::kOutput, graph_field::kValueInfo});
  reserve(graph.nodes, counts[graph_field::kNode]);
  reserve(graph.initializers, counts[graph_field::kInitializer]);
  reserve(graph.inputs, counts[graph_field::kInput]);
  reserve(graph.outputs, counts[graph_field::kOutput]);
  reserve(graph.value_info, counts[graph_field::kValueInfo]);
  for (WireField field; message.next(field);) {
    const std::uint32_t number = field.number;
    if (number == graph_field::kNode)
      graph.nodes.push_back(read_node(message.message(field, "a node")));
    if (number == graph_field::kName) graph.name = message.text(field, "the name of the graph");
    if (number == graph_field::kInitializer) {
      graph.initializers.push_back(
          read_onnx_tensor(message.message(field, "an initializer"), weights_may_be_absent));
      if (graph.initializers.back().name.empty())
        message.fail(field.offset, "expected the name of an initializer, found none");
    }
    if (number == graph_field::kInput)
      graph.inputs.push_back(read_value_info(message.message(field, "an input")));
    if (number == graph_field::kOutput)
      graph.outputs.push_back(read_value_info(message.message(field, "an output")));
    if (number == graph_field::kValueInfo)
      graph.value_info.push_back(read_value_info(message.message(field, "a value_info")));
    if (number == graph_field::kSparseInitializer)
      message.fail(field.offset, "expected dense initializers, found a sparse one");
  }
  return graph;
}

void read_opset(WireReader message, OnnxModel& model) {
  std::string_view domain;
  std::int64_t version = 0;
  for (WireField field; message.next(field);) {
    if (field.number == opset_field::kDomain)
      domain = domain_of(message.text(field, "the domain of an opset"));
    if (field.number == opset_field::kVersion)
      version = message.integer(field, "the version of an opset");
  }
  if (!domain.empty()) return;  // reported at the node of that domain
  if (version < kLeastOpset || version > kMostOpset) {
    message.fail(message.offset(), fmt::format("expected an opset of {}..{}, found {}", kLeastOpset,
                                               kMostOpset, version));
  }
  model.opset = version;
}

void read_model(WireReader message, OnnxModel& model, bool weights_may_be_absent) {
  bool graph = false;
  for (WireField field; message.next(field);) {
    const std::uint32_t number = field.number;
    if (number == model_field::kIrVersion) model.ir_version = message.integer(field, "ir_version");
    if (number == model_field::kProducer) model.producer = message.text(field, "producer_name");
    if (number == model_field::kProducerVersion)
      model.producer_version = message.text(field, "producer_version");
    if (number == model_field::kGraph) {
      if (graph) message.fail(field.offset, "expected one graph, found two");
      graph = true;
      model.graph = read_graph(message.message(field, "the graph"), weights_may_be_absent);
    }
    if (number == model_field::kOpset) read_opset(message.message(field, "opset_import"), model);
  }
  const std::int64_t end = model.bytes.size();
  if (!graph) message.fail(end, "expected an ONNX model with a graph, found none");
  if (model.opset == 0) {
    message.fail(end, fmt::format("expected an opset_import of {}..{} for ONNX's own domain, found"
                                  " none",
                                  kLeastOpset, kMostOpset));
  }
}

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

/// Whether the text stands anywhere in the rest of the file, which is read a piece at a time.
bool contains(InputFile& file, std::string_view text) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 18;
  std::string piece;  // what may begin the text stays before the next one
  while (file.left() > 0) {
    const std::size_t kept = std::min(piece.size(), text.size() - 1);
    piece.erase(0, piece.size() - kept);
    const std::int64_t more = std::min(file.left(), kPiece);
    piece.resize(kept + static_cast<std::size_t>(more));
    file.read(piece.data() + kept, more);
    if (piece.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

const OnnxAttribute* OnnxNode::find(std::string_view attribute) const {
  for (const OnnxAttribute& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

namespace {

/// The member of the node's attribute that a value of that type is in; nullptr without.
template <class T>
const T* typed(const OnnxNode& node, std::string_view name, OnnxAttributeType type,
               T OnnxAttribute::*value) {
  const OnnxAttribute* const found = node.find(name);
  return found != nullptr && found->type == type ? &(found->*value) : nullptr;
}

}  // namespace

std::int64_t OnnxNode::integer_or(std::string_view attribute, std::int64_t otherwise) const {
  const auto* found = typed(*this, attribute, OnnxAttributeType::integer, &OnnxAttribute::integer);
  return found != nullptr ? *found : otherwise;
}

float OnnxNode::number_or(std::string_view attribute, float otherwise) const {
  const auto* found = typed(*this, attribute, OnnxAttributeType::number, &OnnxAttribute::number);
  return found != nullptr ? *found : otherwise;
}

std::string_view OnnxNode::text_or(std::string_view attribute, std::string_view otherwise) const {
  const auto* found = typed(*this, attribute, OnnxAttributeType::text, &OnnxAttribute::text);
  return found != nullptr ? *found : otherwise;
}

std::vector<std::int64_t> OnnxNode::integers_or(std::string_view attribute,
                                                std::vector<std::int64_t> otherwise) const {
  const auto* found =
      typed(*this, attribute, OnnxAttributeType::integers, &OnnxAttribute::integers);
  return found != nullptr ? *found : otherwise;
}

std::span<const std::string_view> inner_graphs(const OnnxNode& node) {
  static constexpr std::string_view kBranches[] = {"else_branch", "then_branch"},
                                    kBody[] = {"body"};
  if (!node.domain.empty()) return {};
  if (node.op_type == "Loop" || node.op_type == "Scan") return kBody;
  return node.op_type == "If" ? std::span<const std::string_view>(kBranches)
                              : std::span<const std::string_view>();
}

OnnxGraph read_subgraph(const OnnxModel& model, const OnnxNode& node, std::string_view name) {
  const OnnxAttribute* const attribute = node.find(name);
  if (attribute == nullptr || attribute->type != OnnxAttributeType::graph)
    throw Error(fmt::format("expected a graph as {}", name));
  OnnxGraph graph = read_graph(WireReader(model.path, model.text(), attribute->graph), false);
  const auto require_data = [](const OnnxTensor& tensor) {
    if (!tensor.external.file.empty())
      throw Error("expected the data of a subgraph's tensors in the model's file");
  };
  for (const OnnxTensor& tensor : graph.initializers) require_data(tensor);
  for (const OnnxNode& inner : graph.nodes) {
    for (const OnnxAttribute& each : inner.attributes) {
      if (each.tensor) require_data(*each.tensor);
    }
  }
  return graph;
}

std::int64_t weights_as_codes(const std::string& path) {
  InputFile file(path);
  bool any = false;
  for (const char* op : {"DequantizeLinear", "MatMulNBits"}) {
    any = any || contains(file, op);
    file.rewind();
  }
  if (!any) return 0;
  if (file.left() > std::min(kLargestFile, memory_left() / 2)) return 0;
  OnnxModel model;
  model.path = path;
  model.bytes = Bytes(file.left());
  file.read(model.bytes.data(), model.bytes.size());
  read_model(WireReader(model.path, model.text()), model, true);
  // Integers of 32 bits are biases.
  std::set<std::string_view> constants, decoded;
  for (const OnnxTensor& tensor : model.graph.initializers)
    if (tensor.type != OnnxType::int32) constants.insert(tensor.name);
  for (const OnnxNode& node : model.graph.nodes) {
    if (node.op_type == "Constant" && !node.outputs.empty()) constants.insert(node.outputs[0]);
    if (node.op_type == "MatMulNBits" && node.inputs.size() > 1 &&
        constants.contains(node.inputs[1]))
      decoded.insert(node.inputs[1]);
    const bool quantizer = node.op_type == "DequantizeLinear" || node.op_type == "QuantizeLinear";
    if (!quantizer || node.inputs.empty() || !constants.contains(node.inputs[0])) continue;
    if (node.op_type == "DequantizeLinear") decoded.insert(node.inputs[0]);
    if (node.op_type == "QuantizeLinear" && !node.outputs.empty())
      constants.insert(node.outputs[0]);
  }
  return std::ssize(decoded);
}

OnnxModel read_onnx(const std::string& path) {
  const Section section(SectionKind::data, "", "ONNX file");
  InputFile file(path);
  if (file.left() > kLargestFile) {
    file.fail(
        fmt::format("expected a model of at most {} bytes, found {}", kLargestFile, file.left()));
  }
  if (file.left() > memory_left()) {
    file.fail(fmt::format(
        "expected a model within the remaining memory budget of {} (--memory), found {}",
        bytes_text(memory_left()), bytes_text(file.left())));
  }
  Bytes bytes(file.left());
  file.read(bytes.data(), bytes.size());
  return parse_onnx(path, std::move(bytes));
}

OnnxModel parse_onnx(std::string path, std::string_view text, bool weights_may_be_absent) {
  Bytes bytes(std::ssize(text));
  std::ranges::copy(text, reinterpret_cast<char*>(bytes.data()));
  return parse_onnx(std::move(path), std::move(bytes), weights_may_be_absent);
}

OnnxModel parse_onnx(std::string path, Bytes bytes, bool weights_may_be_absent) {
  OnnxModel model;
  model.path = std::move(path);
  model.bytes = std::move(bytes);
  read_model(WireReader(model.path, model.text()), model, weights_may_be_absent);
  read_external_data(model);
  return model;
}

namespace {

namespace fs = std::filesystem;

class Files {
 public:
  explicit Files(OnnxModel& model) : model_(model) {}

  void attach(OnnxTensor& tensor) {
    const OnnxLocation& where = tensor.external;
    if (where.file.empty()) return;
    const std::string_view bytes = contents(tensor);
    const std::int64_t size = std::ssize(bytes), count = raw_bytes(tensor);
    if (where.offset > size || count > size - where.offset)
      fail(tensor, fmt::format("expected {} from byte {} on in a file of {}",
                               counted(count, "byte"), where.offset, counted(size, "byte")));
    if (where.bytes >= 0 && where.bytes != count)
      fail(tensor, fmt::format("expected a length of {} for its elements, found {}",
                               counted(count, "byte"), where.bytes));
    tensor.data =
        bytes.substr(static_cast<std::size_t>(where.offset), static_cast<std::size_t>(count));
  }

 private:
  [[noreturn]] void fail(const OnnxTensor& tensor, const std::string& text) const {
    throw Error(fmt::format("{}: byte {}: tensor {}: external data {}: {}", model_.path,
                            tensor.offset, quote_name(tensor.name),
                            quote_name(tensor.external.file), text));
  }

  /// The path of a file in the model's folder or below it.
  fs::path path_of(const OnnxTensor& tensor) const {
    const std::string_view name = tensor.external.file;
    const fs::path given(name);
    if (name.find('\0') != name.npos || given.is_absolute() ||
        std::ranges::find(given, fs::path("..")) != given.end())
      fail(tensor, "expected a path within the model's folder");
    std::error_code error;
    const fs::path parent = fs::path(model_.path).parent_path();
    const fs::path folder = fs::canonical(parent.empty() ? fs::path(".") : parent, error);
    if (error) fail(tensor, "the model's folder cannot be read");
    const fs::path file = fs::canonical(folder / given, error);
    if (error) fail(tensor, "no such file beside the model");
    const auto [rest, inside] = std::ranges::mismatch(folder, file);
    if (rest != folder.end()) fail(tensor, "expected a file within the model's folder, not a link");
    return file;
  }

  std::string_view contents(const OnnxTensor& tensor) {
    const auto known = files_.find(tensor.external.file);
    if (known != files_.end()) return known->second;
    InputFile file(path_of(tensor).string());
    if (file.left() > memory_left()) {
      file.fail(fmt::format("expected at most {}, the memory budget that is left (--memory)",
                            bytes_text(memory_left())));
    }
    Bytes& bytes = model_.external.emplace_back(file.left());
    file.read(bytes.data(), bytes.size());
    return files_[tensor.external.file] = text_of(bytes);
  }

  OnnxModel& model_;
  std::map<std::string_view, std::string_view> files_;
};

}  // namespace

std::string_view OnnxModel::text() const { return text_of(bytes); }

std::int64_t OnnxModel::size() const {
  std::int64_t size = bytes.size();
  for (const Bytes& file : external) size += file.size();
  return size;
}

void read_external_data(OnnxModel& model) {
  Files files(model);
  for (OnnxTensor& tensor : model.graph.initializers) files.attach(tensor);
  for (OnnxNode& node : model.graph.nodes) {
    for (OnnxAttribute& attribute : node.attributes) {
      if (attribute.tensor) files.attach(*attribute.tensor);
    }
  }
}

}  // namespace numemu::net
