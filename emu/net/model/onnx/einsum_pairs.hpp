// Products of three and more operands in an ONNX file as chains of products of two.
#pragma once
#include <string>

#include "emu/net/model/onnx/file.hpp"

namespace numemu::net {

/// The file with every Einsum of more than two operands as a chain of such of two, as the importer
/// multiplies them: it gives the same nodes with the same names. The products of a chain have one
/// name, which with_own_names() changes. Other Einsums stay: those with an ellipsis or a label
/// twice, those whose first two operands are initializers; so does a file with data beside it.
OnnxModel with_einsum_pairs(OnnxModel);

/// The bytes of a model in which every node has a name of its own, as ONNX Runtime expects.
std::string with_own_names(const std::string& path, const std::string& model);

}  // namespace numemu::net
