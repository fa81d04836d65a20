// ONNX files as plain records: what the file says, before any operator is understood.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx/tensor.hpp"
#include "formats/storage/array.hpp"

namespace numemu::net {

/// Versions of the default operator set that are read.
inline constexpr std::int64_t kLeastOpset = 1, kMostOpset = 24;

/// AttributeProto.AttributeType, as numbered there. Of lists of graphs, sparse tensors and the
/// kinds that follow only the kind is kept.
enum class OnnxAttributeType : std::uint8_t {
  undefined = 0,
  number = 1,
  integer = 2,
  text = 3,
  tensor = 4,
  graph = 5,
  numbers = 6,
  integers = 7,
  texts = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type = 13,
  types = 14
};

/// The member of that type holds the value; the others are empty.
struct OnnxAttribute {
  std::string_view name;
  OnnxAttributeType type = OnnxAttributeType::undefined;
  float number = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<std::int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string_view> texts;
  std::shared_ptr<OnnxTensor> tensor;  ///< there if and only if the type is tensor; of all copies
  std::string_view graph;              ///< the bytes of a GraphProto: read_subgraph()
};

struct OnnxNode {
  std::string_view name;  ///< may be ""
  std::string_view op_type;
  std::string_view domain;                        ///< "" is ONNX's own, however the file wrote it
  std::vector<std::string_view> inputs, outputs;  ///< "" where an optional one is left out
  std::vector<OnnxAttribute> attributes;
  std::int64_t offset = 0;  ///< in the file, for errors

  /// nullptr where the node has none of that name.
  const OnnxAttribute* find(std::string_view attribute) const;
  /// Its value, or `otherwise` where it has none or another type.
  std::int64_t integer_or(std::string_view attribute, std::int64_t otherwise) const;
  float number_or(std::string_view attribute, float otherwise) const;
  std::string_view text_or(std::string_view attribute, std::string_view otherwise) const;
  std::vector<std::int64_t> integers_or(std::string_view attribute,
                                        std::vector<std::int64_t> otherwise) const;
};

/// An axis of an input or output: a number of elements, a symbol ("batch"), or unknown.
struct OnnxDimension {
  std::int64_t extent = -1;  ///< -1 where it is not a number
  std::string_view symbol;   ///< "" where it is none
};

struct OnnxValueInfo {
  std::string_view name;
  std::int64_t type = 0;   ///< number of an OnnxType or of a type that is not read; 0: no tensor
  bool has_shape = false;  ///< the file gives the axes
  std::vector<OnnxDimension> dims;
};

struct OnnxGraph {
  std::string_view name;
  std::vector<OnnxNode> nodes;  ///< in file order, which ONNX requires to be topological
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs, value_info;  ///< inputs may repeat initializers
};

/// Owns the bytes of the files, into which every view points; it can be moved.
struct OnnxModel {
  std::string path;
  Bytes bytes;
  std::vector<Bytes> external;  ///< files beside the model that hold data of tensors
  std::int64_t ir_version = 0;
  std::int64_t opset = 0;  ///< of ONNX's own operators
  std::string_view producer, producer_version;
  OnnxGraph graph;

  std::int64_t size() const;      ///< of all files, in bytes
  std::string_view text() const;  ///< the bytes
};

/// Reads the files that tensors name, each once and whole, and gives the tensors their data. Throws
/// Error naming file and tensor for a path that leaves the model's folder, by ".." or by a link
/// too, and for data beyond the end of a file or of another size than the elements take.
void read_external_data(OnnxModel&);

/// The attributes that hold the graphs of a Loop or Scan, or of an If; none for other operators.
std::span<const std::string_view> inner_graphs(const OnnxNode&);
/// How deep graphs may stand in nodes of each other.
inline constexpr int kDeepestGraph = 8;
/// The graph of an attribute of that name (a branch of If), whose tensors have their data in the
/// file itself. Throws Error where the node has none.
OnnxGraph read_subgraph(const OnnxModel&, const OnnxNode&, std::string_view attribute);

/// Reads a ModelProto of at most 2 GiB. Takes at most 64 bytes of memory for one of the file
/// (tests/fuzz/worst_cases.cpp: 27): lists are counted before they are made, tensors stay where
/// they are. Files with data of tensors beside it are read, too. Functions, training information
/// and metadata are passed over. Throws Error("FILE: byte OFFSET: expected ..., found
/// ...").
OnnxModel read_onnx(const std::string& path);
/// Weights that the file has as codes: constants that a DequantizeLinear reads, or that pass a
/// QuantizeLinear. Only a file that names the operator is held in memory; 0 where the budget has no
/// room for that. Files with data of tensors beside it are not read. Throws Error as read_onnx
/// does where the file cannot be read, and where one that names the operator is damaged.
std::int64_t weights_as_codes(const std::string& path);
/// read_onnx() of bytes that `path` describes in messages; with `weights_may_be_absent`
/// initializers of reals need not have data.
OnnxModel parse_onnx(std::string path, Bytes, bool weights_may_be_absent = false);
/// The same of a copy of bytes.
OnnxModel parse_onnx(std::string path, std::string_view, bool weights_may_be_absent = false);

}  // namespace numemu::net
