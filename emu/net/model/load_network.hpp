// A network by what a user calls it: a reference network, or a file.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "emu/net/graph.hpp"
#include "emu/net/model/onnx/quantized_file.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/tied.hpp"

namespace numemu::net {

class Dataset;

struct LoadedNetwork {
  Graph graph;
  bool has_weights = false;  ///< the file gave them; a reference network awaits initialize()
  /// The graph as ONNX (onnx/checkpoint.hpp); empty for a reference network.
  std::string onnx = {};
  /// The network before tuning, or before training under a recipe, where a checkpoint has it: what
  /// accuracy is compared with.
  std::optional<Graph> before = {};
  bool folded = false;  ///< batch normalisation is in the weights
};

/// "NAME=FILE", or "FILE" with the name "".
std::pair<std::string, std::string> name_and_file(const std::string& text);
/// Whether `name` is taken for an ONNX file: it ends in ".onnx".
bool names_onnx_file(const std::string& name);

/// Whether it is taken for a file of weights: it ends in ".safetensors", ".gguf" or ".npz".
bool names_weights_file(const std::string& name);

/// A network, of an ONNX file or a reference network, and the file that has its weights, of
/// "NAME=FILE"; nothing for other texts.
std::optional<std::pair<std::string, std::string>> network_with_weights(const std::string& text);

/// A reference network built for the data set, either with the weights of a file (NAME=FILE), or
/// the network of an ONNX file or of a checkpoint that `train` wrote, which must fit it. Throws
/// Error with the nearest known name, or naming the file.
LoadedNetwork load_network(const std::string& name, const Dataset&);
/// The network of a checkpoint, which is `path` in messages: of the graph that it has, else the
/// reference network that it names. Checkpoints of earlier versions kept no network before training
/// under a recipe; it is that of their graph where this has all weights.
LoadedNetwork network_of(const Checkpoint&, const std::string& path, const Dataset&);
/// Whether `train` wrote it under a recipe.
bool is_trained_under_recipe(const Checkpoint&);
/// "net" of the checkpoint's metadata, which names its network; "" without.
std::string network_name(const Checkpoint&);

/// The prints of initializers and constants of an ONNX file that are read several times, in loops
/// too, directly or through operators that give their elements in another shape or order; each with
/// the number of tensors of the file that have it.
TensorPrints shared_tensors(const OnnxModel&);

/// The ONNX file that a network was made from: the file itself, or the graph of a checkpoint, which
/// may lack large weights. Nothing for a reference network.
std::optional<OnnxModel> source_model(const std::string& name);
/// The ONNX file that a network was made from, imported with its own weights.
std::optional<ImportedFile> source_file(const std::string& name, const Dataset&);

}  // namespace numemu::net
