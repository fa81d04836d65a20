// Checkpoints of networks from ONNX files: they carry the graph, as an ONNX model without weights.
#pragma once
#include <functional>
#include <string>

#include "emu/net/model/onnx/import.hpp"
#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// The model as ONNX bytes, without what a checkpoint has as parameters anyway: the data of large
/// weights that only products and tables read. All else, with the names, stays as it was.
std::string graph_bytes(const OnnxModel&);

/// Adds those bytes, which describe the graph of the parameters, to the checkpoint.
void add_graph(Checkpoint&, std::string graph_bytes);
/// The bytes that add_graph added; null without any. Throws Error naming the file for a version
/// that is not read.
const std::string* graph_of(const Checkpoint&, const std::string& path);

/// The network of a checkpoint that has a graph, with its parameters: the importer builds it as it
/// built that of the ONNX file, with the options for its model. Weights without data must not
/// exceed the checkpoint's tensors. Throws Error naming the file.
ImportedModel import_checkpoint(const Checkpoint&, const std::string& path,
                                const std::function<ImportOptions(const OnnxModel&)>& options);

}  // namespace numemu::net
