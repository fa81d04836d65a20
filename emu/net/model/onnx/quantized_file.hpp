// A user's own ONNX file with the operands of its products quantized; all else stays as it is.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/model/onnx/export.hpp"
#include "emu/net/model/onnx/import.hpp"

namespace numemu::net {

/// An ONNX file and what it was imported to, with the file's own weights where it has them.
struct ImportedFile {
  OnnxModel model;
  ImportedModel imported;
};

/// The file's bytes: inputs, outputs, their names and layouts and every operator are the file's.
/// Before a node whose layer is quantized stand QuantizeLinear and DequantizeLinear; its weight is
/// an initializer of codes with a DequantizeLinear. Parameters of `graph` that training or tuning
/// changed replace the file's. The operator set is the file's, or the least that has the types
/// (export_onnx()); then nodes whose attributes became inputs are written anew.
///
/// `graph` has the nodes of the imported one, but for batch normalisations that were folded
/// (fold_batch_norm.hpp): they go, and the product before takes the name of their result. Throws
/// Error naming the layer or the node for what the file cannot say: a quantized operand in a
/// branch, and a changed parameter that no initializer of its node holds.
std::string quantized_file(const ImportedFile&, const Graph& graph, const OnnxLayers&);

/// Layers whose node of the file is quantized itself (QLinearConv, MatMulInteger, ...): it stays,
/// and the file differs from the recipe in them.
std::vector<std::string> quantized_already(const ImportedFile&, const OnnxLayers&);
/// Products of recurrent nodes that multiply a quantized state. A node of ONNX holds its state in
/// float32: the file differs from the recipe in them.
std::vector<std::string> states_in_float32(const Graph&, const OnnxLayers&);

}  // namespace numemu::net
