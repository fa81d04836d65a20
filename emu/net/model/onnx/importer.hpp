// The importer's state: what each ONNX value has become, and adding nodes to the graph.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/constant.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/ops/views.hpp"

namespace numemu::net {

/// Shapes are followed with two batches; an extent that differs is proportional to the batch.
inline constexpr std::array<std::int64_t, 2> kProbeBatches = {2, 3};

inline constexpr std::size_t kMostAxes = 8;
inline constexpr std::size_t kMostNodes = 20'000;  // names are compared pairwise
/// Elements of a value for the larger probe batch: far beyond memory, far below overflow.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

/// A name of the file for messages and nodes: at most 100 characters, none of them control.
std::string printable(std::string_view);

/// Gives the whole pages among these bytes, which nobody reads again, back to the system.
void discard_pages(std::string_view bytes);

struct OnnxQuantizer;

/// What a name refers to: a value of the graph, or a constant.
struct OnnxValue {
  int number = -1;              ///< -1: a constant
  bool image = false;           ///< stored [n, .., c] instead of ONNX's [n, c, ..], 3 to 5 axes
  bool integer = false;         ///< of the graph: whole numbers in the file, floats here
  std::array<Shape, 2> shapes;  ///< as stored, for the probe batches
  ConstantRef constant;
  bool counted = false;  ///< the constant's memory counts: it is not an initializer
  /// The name refers to the integers that this makes of the value. They become a node only if
  /// something other than a DequantizeLinear reads them.
  std::shared_ptr<const OnnxQuantizer> quantizer;
  /// Of the graph, as inputs and casts have it; nothing where it follows from others.
  std::optional<OnnxType> type = std::nullopt;
  /// Of a constant: the tensor of the file that it is or, where `folded`, is computed from; "" for
  /// others.
  std::string_view tensor = {};
  bool folded = false;

  bool is_constant() const { return number < 0; }
  /// Whether an axis differs between the probe batches.
  bool has_batch() const { return shapes[0] != shapes[1]; }
  std::size_t rank() const { return is_constant() ? constant->dims.size() : shapes[0].size(); }
  /// In ONNX axis order. Throws Error for one that depends on the batch but not in proportion.
  std::vector<Extent> extents() const;
};

class OnnxImporter {
 public:
  /// `consumed` is null, or the same model: then its initializers' memory goes back to the system
  /// as they are used.
  OnnxImporter(const OnnxModel&, const ImportOptions&, OnnxModel* consumed = nullptr);
  ImportedModel run();

  std::int64_t opset() const { return model_.opset; }
  /// The value of the node's input; throws Error where it is left out.
  const OnnxValue& input(const OnnxNode&, std::size_t index) const;
  bool has_input(const OnnxNode& node, std::size_t index) const {
    return index < node.inputs.size() && !node.inputs[index].empty();
  }
  /// A constant input that an operator will hold, or an Error.
  const OnnxConstant& constant(const OnnxNode&, std::size_t index);
  /// A constant input as float32, for weights: of a large one nothing but this copy is made.
  Tensor tensor(const OnnxNode&, std::size_t index);
  /// Every input as a constant, null where it is none. Few whole numbers behind the first input
  /// may be those that the arrays of the run decide.
  std::vector<ConstantRef> constants(const OnnxNode&);

  /// Appends an operator; `image` is the layout of the result.
  OnnxValue add(const std::string& name, std::unique_ptr<Op> op,
                const std::vector<OnnxValue>& reads, bool image);
  /// Appends that operator under a name from the node.
  template <class Operator, class... Arguments>
  OnnxValue add(const OnnxNode& node, const std::vector<OnnxValue>& reads, bool image,
                Arguments&&... arguments) {
    return add(node_name(node), std::make_unique<Operator>(std::forward<Arguments>(arguments)...),
               reads, image);
  }
  /// Names for nodes: free ones, from the weight or the node.
  std::string layer_name(const OnnxNode&, std::size_t weight_input);
  std::string node_name(const OnnxNode&);

  /// The value as a graph value: constants become nodes, once; those that meet images of
  /// `image_rank` axes with channels last.
  OnnxValue as_graph(const OnnxValue&, std::string_view name, std::size_t image_rank = 0);
  /// The node's input as a graph value.
  OnnxValue value(const OnnxNode& node, std::size_t index = 0) {
    return as_graph(input(node, index), "");
  }
  /// A node of one number.
  OnnxValue number(float);
  /// A node of a tensor that training changes, with channels last where it meets
  /// images of `image_rank` axes.
  OnnxValue trained(const OnnxNode&, std::size_t input, std::size_t image_rank);
  /// Three to five axes with channels last, or in ONNX order; a turn that was made before is used
  /// again.
  OnnxValue to_image(const OnnxValue&);
  OnnxValue to_plain(const OnnxValue&);
  /// A view under another shape, given in ONNX order.
  OnnxValue reshape_to(const OnnxNode&, const OnnxValue& plain, const std::vector<Extent>& target);

  /// What an operator of ONNX's own domain makes of values, with the node's attributes and name; an
  /// empty one is an input that is left out.
  std::vector<OnnxValue> as_operator(const OnnxNode& like, std::string_view op,
                                     const std::vector<OnnxValue>& inputs);

  /// The batch that the file gives its inputs as a number, 0 for a symbol.
  std::int64_t fixed_batch() const { return fixed_batch_; }
  /// A graph value of one sample, repeated for every sample of the batch along that axis: n
  /// elements there become n for each sample, sample after sample.
  OnnxValue repeated(const OnnxNode&, const OnnxValue&, std::size_t axis = 0);
  /// Tells the user, once.
  void note(std::string text) { notes_.insert(std::move(text)); }
  /// That product has input 1 of the file's node on its left.
  void note_swapped(const std::string& product) { swapped_.insert(product); }
  bool one_sample() const { return options_.one_sample; }
  /// Whether a node reads that output, or the model has it.
  bool is_read(const OnnxNode&, std::size_t output) const;
  const Graph& graph() const { return graph_; }
  /// Throws Error for more elements than the graph may yet hold as constants.
  void hold(std::int64_t elements) { hold_bytes(elements * 4); }

 private:
  void require_operators() const;
  void add_inputs();
  void add_whole_input(const OnnxValueInfo&);
  std::pair<OnnxValue, int> batch_first(const OnnxValue&, const std::string& name);
  void note_outputs(const OnnxNode&);
  void import_node(const OnnxNode&);
  void note_origin(const OnnxNode&, OnnxValue& result) const;
  void note_roles(const OnnxNode&, const OnnxValue& result);
  bool is_scaled_input(int value) const;
  void set_origins();
  void import_branch(const OnnxNode&);
  std::vector<OnnxValue> import_body(const OnnxGraph&, const std::vector<OnnxValue>& given);
  std::vector<OnnxValue> branch_results(const OnnxNode&);
  std::vector<OnnxValue> loop_results(const OnnxNode&, const OnnxGraph& body);
  std::vector<OnnxValue> scan_results(const OnnxNode&, const OnnxGraph& body);
  OnnxValue stacked(const OnnxNode&, const std::vector<OnnxValue>& rounds, std::int64_t axis);
  std::int64_t single(const OnnxValue&, std::string_view what);
  std::vector<OnnxValue> results_of(const OnnxNode&);
  std::vector<OnnxValue> results_in_run(const OnnxNode&);
  OnnxValue decided(const OnnxValue&);
  const Tensor& evaluated(int value);
  void forget_nodes(std::size_t first);
  std::vector<OnnxValue> computed(const OnnxNode&,
                                  std::vector<OnnxValue> (*)(OnnxImporter&, const OnnxNode&));
  std::vector<OnnxValue> computed_apart(const OnnxNode&,
                                        std::vector<OnnxValue> (*)(OnnxImporter&, const OnnxNode&));
  void settle(std::string_view name);
  void count_reads(const OnnxGraph&, int depth, std::int64_t rounds);
  void add_initializers(const OnnxGraph&);
  void load(std::string_view name);
  void release(std::string_view name);
  void hold_bytes(std::int64_t bytes);
  ImportedModel finish();
  OnnxValue output_value(const OnnxValueInfo&, int& batch);
  std::string free_name(std::string wanted);
  bool has_convolutions() const;

  /// A constant input, or one that the arrays of the run decide, or an Error; its memory is
  /// counted.
  OnnxValue& constant_input(const OnnxNode&, std::size_t index);
  ConstantRef stored(const OnnxTensor&) const;

  const OnnxModel& model_;
  OnnxModel* const consumed_;
  const ImportOptions& options_;
  Graph graph_;
  std::vector<OnnxPort> inputs_;
  std::map<std::string_view, OnnxValue> values_;
  std::set<std::string_view> made_;  // names that an input, an initializer or a node has given
  std::map<std::pair<int, bool>, OnnxValue> turned_;  // by value number and layout
  // Constants that are nodes already, by address and layout; the address may be another's by now.
  std::map<std::pair<const OnnxConstant*, std::size_t>,
           std::pair<std::weak_ptr<const OnnxConstant>, OnnxValue>>
      nodes_of_constants_;
  std::map<std::string_view, const OnnxTensor*> initializers_;
  std::set<std::string> notes_;
  std::set<std::string, std::less<>> swapped_;
  std::map<std::string_view, ConstantOrigin::Role> roles_;  // of initializers that are learned
  std::vector<std::string> by_values_;                      // nodes that have constants of the run
  std::map<int, Tensor> evaluated_;                         // by value number, of few elements
  Tensor last_evaluated_;                                   // of more
  std::map<int, OnnxValue> decided_;                        // by value number
  std::int64_t inner_nodes_ = 0;                    // of graphs inside nodes, in every round
  std::map<std::string_view, std::int64_t> reads_;  // that are still to come
  std::map<const OnnxNode*, std::vector<OnnxGraph>> branches_;  // of If: else, then; bodies
  std::map<std::string, int> names_;                            // how often a name was requested
  std::int64_t bytes_left_;                                     // that constants may take
  OnnxFolder folder_;
  std::int64_t fixed_batch_ = 0;
  bool computes_ = false;  // graph_ is that of computed()
  /// Multiply-adds, or elements read by windows, that folding may still take: a bound of time.
  double work_left_ = 0x1p28;
};

/// Imports one node: its results, one per output.
using OnnxHandler = std::vector<OnnxValue> (*)(OnnxImporter&, const OnnxNode&);
/// Of a file of operators/: NAME.cpp has `const OnnxHandlers& onnx_NAME_handlers()`, which the
/// build finds.
using OnnxHandlers = std::vector<std::pair<std::string_view, OnnxHandler>>;

/// A constant input of that rank, with elements, or an Error.
Tensor weights_of(OnnxImporter&, const OnnxNode&, std::size_t index, std::size_t rank);
/// Sets a parameter of an operator that has just been made; throws Error for another size.
void set_parameter(Op&, std::size_t index, Tensor value);

/// Operands in one layout: that of images where every graph value has as many axes as these
/// (constants at most), else ONNX's own. Returns whether they are images.
bool align(OnnxImporter&, const OnnxNode&, std::vector<OnnxValue>& operands);
/// A node for the integers of a value that has a quantizer.
OnnxValue quantized(OnnxImporter&, const OnnxValue&);
/// Input `index` of a product of integers less its zero point, which is input `zero`.
OnnxValue without_zero_point(OnnxImporter&, const OnnxNode&, std::size_t zero,
                             std::size_t index = 0);
/// A convolution of integers less their zero points, inputs `zero` and `weight_zero`, with input
/// `weight`, multiplied in float32: exact up to 2^24.
OnnxValue integer_conv(OnnxImporter&, const OnnxNode&, std::size_t zero, std::size_t weight,
                       std::size_t weight_zero);
/// A product of matrices of integers less their zero points, likewise.
OnnxValue integer_matmul(OnnxImporter&, const OnnxNode&, std::size_t zero, std::size_t weight,
                         std::size_t weight_zero);
/// The zero points of the weight, as many as `channels`: input `zero`, which may have one for all.
std::vector<float> weight_zero_points(OnnxImporter&, const OnnxNode&, std::size_t zero,
                                      std::int64_t channels);

/// Where ONNX's axis of a value lies as it is stored; throws Error for one it lacks.
std::int64_t stored_axis(const OnnxValue&, std::int64_t axis);
/// How the user may export a file whose batch is a number.
inline constexpr std::string_view kDynamicBatch =
    "export the model with an open batch: torch.onnx.export(..., input_names=['x'], "
    "dynamic_axes={'x': {0: 'batch'}})";
/// Throws Error where that stored axis is the batch, or has it as a factor.
void refuse_batch(const OnnxValue&, std::int64_t axis, std::string_view what);

}  // namespace numemu::net
