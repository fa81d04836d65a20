// From an ONNX file to a graph: constants folded, images turned to NHWC, layers named after their
// weights.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/model/onnx/file.hpp"

namespace numemu::net {

/// An input or output of the file.
struct OnnxPort {
  std::string name;
  int value = 0;       ///< its number in the graph
  bool image = false;  ///< ONNX has [n, c, h, w], the graph [n, h, w, c]
  /// Of the samples in ONNX; the graph has them first and the other axes behind, in their order.
  /// kNoBatch: the whole array is one sample, in ONNX's order.
  int batch_axis = 0;
  bool whole = false;  ///< the file declares integers or truth values
};
inline constexpr int kNoBatch = -1;

struct ImportedModel {
  Graph graph;  ///< its last value is outputs[0]
  std::vector<OnnxPort> inputs, outputs;
  /// Of each node of the graph: the number of the file's node that it was made for, -1 for views of
  /// inputs and outputs and for what a branch of an If holds.
  std::vector<int> sources;
  /// Products whose left operand is input 1 of the file's node, the right one input 0.
  std::set<std::string, std::less<>> swapped = {};
  std::vector<std::string> notes = {};  ///< what of the import the user should know
};

struct ImportOptions {
  /// Shapes with the batch, in ONNX axis order, of inputs whose extents the file leaves open.
  std::map<std::string, Shape, std::less<>> input_shapes;
  /// Whether samples of an input of four axes come as images [h, w, c]; of others all do where the
  /// file has convolutions or pooling, else none.
  std::map<std::string, bool, std::less<>> images = {};
  /// All arrays of a run are one sample: no axis is the batch, every shape is a number, and the
  /// graph runs with a batch of 1.
  bool one_sample = false;
  /// With it: the arrays of the run. Those that an operator needs as constants (shapes, axes,
  /// weights of a convolution) are taken from here. They must outlive the import.
  std::map<std::string, const Tensor*, std::less<>> arrays = {};
};

/// The axis that has the samples: one whose name contains "batch" where the first axis has no such
/// name, else the first.
std::size_t batch_axis(const OnnxValueInfo&);

/// Whether the file and these shapes give every input all extents, and none against the other: what
/// an import of one sample needs.
bool has_all_extents(const OnnxModel&, const ImportOptions&);

/// batch_axis() of every input is the batch, whatever number the file gives it; where that number
/// leaves open which axis of a later shape has the batch, the file is refused. Layers are named
/// after their weight ("layer1.0.conv1" for "layer1.0.conv1.weight"), or else after their node.
/// BatchNormalization stays; see fold_batch_norm.hpp. Takes at most 64 bytes of memory for one of
/// the file and 16 MiB, and no more than the memory budget leaves. Throws Error("FILE: ...") that
/// lists the operators of the file that are not supported, and Error("FILE: byte OFFSET: node ...")
/// for a node that cannot be imported.
ImportedModel import_onnx(const OnnxModel&, const ImportOptions& = {});
/// Also gives the memory of each large initializer back as soon as the graph has it.
ImportedModel import_onnx(OnnxModel&&, const ImportOptions& = {});

}  // namespace numemu::net
