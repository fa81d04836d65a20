// An ONNX model put together node by node, as bytes (onnx/onnx.proto).
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "emu/net/model/onnx/proto.hpp"
#include "emu/net/model/onnx/tensor.hpp"
#include "emu/net/model/onnx/wire.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// A name and a whole number, a float, a list of whole numbers, or a text.
using OnnxNodeAttribute =
    std::pair<std::string,
              std::variant<std::int64_t, float, std::vector<std::int64_t>, std::string>>;

class OnnxWriter {
 public:
  /// A tensor [n, shape...], n free.
  void input(std::string_view name, const Shape& shape, OnnxType type = OnnxType::float32);
  /// Of float32.
  void output(std::string_view name, const Shape& shape);
  /// `op`: an operator of ONNX's own, or of the domain before its last dot.
  void node(std::string_view op, std::string_view name, const std::vector<std::string>& inputs,
            const std::string& result, const std::vector<OnnxNodeAttribute>& attributes = {});
  /// A node that is called as its result, whose name is given back.
  std::string value(std::string_view op, const std::string& name,
                    const std::vector<std::string>& inputs,
                    const std::vector<OnnxNodeAttribute>& attributes = {});
  /// An initializer of raw bytes, of floats, of one float, of 64-bit integers: its name.
  std::string constant(std::string_view name, OnnxType, const Shape& dims, std::string_view raw);
  std::string constant(std::string_view name, const Shape& dims, const std::vector<float>& values);
  std::string constant(std::string_view name, float value);
  std::string constant(std::string_view name, const std::vector<std::int64_t>& values);

  /// A NodeProto as it is.
  void node(std::string_view bytes);

  /// All that another writer has, after what is here.
  void append(const OnnxWriter&);
  /// A TensorProto without data.
  static std::string tensor(std::string_view name, OnnxType, const Shape& dims);
  /// An AttributeProto.
  static std::string attribute(const OnnxNodeAttribute&);

  /// Nodes, initializers, inputs and outputs so far: fields of a GraphProto.
  std::string body() const { return nodes_ + initializers_ + inputs_ + outputs_; }
  /// The first version of the file format that may hold the operator set.
  static std::uint64_t ir_version(std::int64_t opset);
  /// The ModelProto, of that operator set, and of `domains`, the first set of each.
  std::string model(std::string_view graph, std::int64_t opset,
                    const std::set<std::string>& domains = {}) const;
  /// An OperatorSetIdProto.
  static std::string operator_set(std::string_view domain, std::int64_t version);

 private:
  std::string nodes_, initializers_, inputs_, outputs_;
};

/// A model with write(field, out) in place of each field `number` of its graph: graph_field.
template <class Write>
std::string with_graph_fields(const WireReader& model, std::uint32_t number, Write write) {
  return with_fields(model, model_field::kGraph, [&](const WireField& field, std::string& out) {
    put_bytes(out, field.number, with_fields(model.message(field, "the graph"), number, write));
  });
}

}  // namespace numemu::net
