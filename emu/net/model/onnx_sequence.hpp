// Operators of sequences in exported models: tables, normalisation of rows, attention.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/model/onnx_writer.hpp"

namespace numemu::net {

/// Whether add_sequence_node() has a form for the operator.
bool is_sequence_operator(const Op&);

/// A value that a node reads.
struct OnnxOperandName {
  std::string name;
  Shape shape;         ///< of one sample
  bool whole = false;  ///< int64
};

/// The name of what a product reads instead of its left (0) or right operand: itself, or quantized.
using OnnxQuantized = std::function<std::string(std::size_t side, const std::string& name)>;

/// Adds the nodes that compute the operator, the last one with the node's name; returns the least
/// operator set that has them.
///   embedding           Gather of the table by the input, behind a Cast unless that is int64
///   position_embedding  Add of a constant
///   layer_norm          LayerNormalization (17)
///   matmul              MatMul of `quantized` operands; Reshape and Transpose of heads; Mul
///   causal_mask         Add of a constant of 0 and -inf
///   softmax             Softmax
///   gelu                Gelu (20)
std::int64_t add_sequence_node(OnnxWriter&, const Node&, const std::vector<OnnxOperandName>& inputs,
                               const OnnxQuantized& quantized);

}  // namespace numemu::net
