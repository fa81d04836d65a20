// The importer's state: what each ONNX value has become, and adding nodes to the graph; and a node
// as the handlers of operators/ have it.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
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
  /// Whether an axis, or that stored axis, differs between the probe batches.
  bool has_batch() const { return shapes[0] != shapes[1]; }
  bool has_batch(std::int64_t axis) const { return extent(axis) != extent(axis, 1); }
  /// Of a stored axis.
  std::int64_t extent(std::int64_t axis, std::size_t probe = 0) const {
    return shapes[probe][static_cast<std::size_t>(axis)];
  }
  std::size_t rank() const { return is_constant() ? constant->dims.size() : shapes[0].size(); }
  /// In ONNX axis order. Throws Error for one that depends on the batch but not in proportion.
  std::vector<Extent> extents() const;
};

using OnnxValues = std::vector<OnnxValue>;
class NodeImport;
/// Imports one node: its results, one per output.
using OnnxHandler = OnnxValues (*)(const NodeImport&);

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
  OnnxValue add(const std::string& name, std::unique_ptr<Op> op, const OnnxValues& reads,
                bool image);
  /// Names for nodes: free ones, from the weight or the node.
  std::string layer_name(const OnnxNode&, std::size_t weight_input);
  std::string node_name(const OnnxNode&);

  /// The value as a graph value: constants become nodes, once; those that meet images of
  /// `image_rank` axes with channels last.
  OnnxValue as_graph(const OnnxValue&, std::string_view name, std::size_t image_rank = 0);
  /// A node of one number.
  OnnxValue number(float);
  /// Three to five axes with channels last, or in ONNX order; a turn that was made before is used
  /// again.
  OnnxValue to_image(const OnnxValue&);
  OnnxValue to_plain(const OnnxValue&);
  /// A view under another shape, given in ONNX order.
  OnnxValue reshape_to(const OnnxNode&, const OnnxValue& plain, const std::vector<Extent>& target);

  /// What an operator of ONNX's own domain makes of values, with the node's attributes and name; an
  /// empty one is an input that is left out.
  OnnxValues as_operator(const OnnxNode& like, std::string_view op, const OnnxValues& inputs);

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
  void add_input(const OnnxValueInfo&, OnnxValue, const Shape& sample, int batch_axis);
  std::pair<OnnxValue, int> batch_first(const OnnxValue&, const std::string& name);
  void note_outputs(const OnnxNode&);
  void import_node(const OnnxNode&);
  void note_origin(const OnnxNode&, OnnxValue& result) const;
  void note_roles(const OnnxNode&, const OnnxValue& result);
  bool is_scaled_input(int value) const;
  void set_origins();
  void import_branch(const OnnxNode&);
  OnnxValues import_body(const OnnxGraph&, const OnnxValues& given);
  OnnxValues branch_results(const OnnxNode&);
  OnnxValues loop_results(const OnnxNode&, const OnnxGraph& body);
  OnnxValues scan_results(const OnnxNode&, const OnnxGraph& body);
  OnnxValue stacked(const OnnxNode&, const OnnxValues& rounds, std::int64_t axis);
  std::int64_t single(const OnnxValue&, std::string_view what);
  OnnxValues results_of(const OnnxNode&);
  OnnxValues results_in_run(const OnnxNode&);
  OnnxValue decided(const OnnxValue&);
  const Tensor& evaluated(int value);
  void forget_nodes(std::size_t first);
  OnnxValues computed(const OnnxNode&, OnnxHandler);
  OnnxValues computed_apart(const OnnxNode&, OnnxHandler);
  void settle(std::string_view name);
  const OnnxValue* settled(std::string_view name);
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

/// A value that is a constant.
OnnxValue value_of(OnnxConstant);
/// The value as whole numbers, or as reals.
inline OnnxValue as_whole(OnnxValue value, bool whole = true) {
  value.integer = whole;
  return value;
}
/// The row of a table of operators that has ONNX's name; one has.
template <class Rule>
const Rule& rule_named(std::span<const Rule> rules, std::string_view onnx) {
  return *std::ranges::find(rules, onnx, &Rule::onnx);
}

/// A node of the file while it is imported: its inputs and attributes, and what it adds to the
/// graph. Every handler has one.
class NodeImport {
 public:
  NodeImport(OnnxImporter& importer, const OnnxNode& node) : importer_(importer), node_(node) {}

  OnnxImporter& importer() const { return importer_; }
  /// What the file says of it.
  const OnnxNode& record() const { return node_; }
  const OnnxNode* operator->() const { return &node_; }

  /// Inputs as they are, as values of the graph, and these in ONNX order or with channels last.
  bool has_input(std::size_t index) const { return importer_.has_input(node_, index); }
  const OnnxValue& input(std::size_t index) const { return importer_.input(node_, index); }
  OnnxValue value(std::size_t index = 0) const { return as_graph(input(index)); }
  OnnxValue plain(std::size_t index = 0) const { return to_plain(input(index)); }
  OnnxValue image(std::size_t index = 0) const { return to_image(input(index)); }
  /// Constant inputs, or an Error: importer_.constant(), tensor() and constants().
  const OnnxConstant& constant(std::size_t index) const { return importer_.constant(node_, index); }
  Tensor tensor(std::size_t index) const { return importer_.tensor(node_, index); }
  std::vector<ConstantRef> constants() const { return importer_.constants(node_); }
  /// One of that rank, with elements.
  Tensor weights(std::size_t index, std::size_t rank) const;
  /// One of one number; throws Error(`otherwise`) for others.
  std::int64_t one_integer(std::size_t index, const std::string& otherwise) const;
  float one_number(std::size_t index, const std::string& otherwise) const;

  std::optional<Ints> input_or_attribute(std::size_t index, std::string_view attribute) const {
    return net::input_or_attribute(node_, constants(), index, attribute);
  }

  OnnxCuts cuts() const { return cuts_of(node_, constants()); }

  /// Names for what it adds: free ones.
  std::string name() const { return importer_.node_name(node_); }
  std::string layer_name(std::size_t weight) const { return importer_.layer_name(node_, weight); }
  bool is_read(std::size_t output) const { return importer_.is_read(node_, output); }

  /// Appends that operator; `image` is the layout of the result.
  template <class Operator, class... Arguments>
  OnnxValue add(const OnnxValues& reads, bool image, Arguments&&... arguments) const {
    return add(name(), std::make_unique<Operator>(std::forward<Arguments>(arguments)...), reads,
               image);
  }
  OnnxValue add(const std::string& name, std::unique_ptr<Op> op, const OnnxValues& reads,
                bool image) const {
    return importer_.add(name, std::move(op), reads, image);
  }
  /// A row of the table of two inputs, whose images have one layout; whole numbers stay whole,
  /// comparisons are.
  OnnxValue binary(std::string_view kind, const OnnxValue& a, const OnnxValue& b) const;
  OnnxValue binary(std::string_view kind, const OnnxValue& a, float b) const {
    return binary(kind, a, number(b));
  }
  OnnxValue unary(std::string_view kind, const OnnxValue& a) const;
  OnnxValue clip(const OnnxValue& a, float low, float high) const;
  /// Of values in ONNX order.
  OnnxValue where(const OnnxValue& condition, const OnnxValue& a, const OnnxValue& b) const;
  OnnxValue where(const OnnxValue& condition, float a, const OnnxValue& b) const {
    return where(condition, number(a), b);
  }
  /// Over stored axes; without `keep` in ONNX order.
  OnnxValue reduce(std::string_view kind, const OnnxValue& a, Ints axes, bool keep = true) const;

  OnnxValue number(float value) const { return importer_.number(value); }
  /// A node of a constant.
  OnnxValue numbers(OnnxConstant constant, std::string_view called = "") const {
    return as_graph(value_of(std::move(constant)), called);
  }
  OnnxValue as_graph(const OnnxValue& value, std::string_view called = "",
                     std::size_t image_rank = 0) const {
    return importer_.as_graph(value, called, image_rank);
  }
  OnnxValue to_image(const OnnxValue& value) const { return importer_.to_image(value); }
  OnnxValue to_plain(const OnnxValue& value) const { return importer_.to_plain(value); }
  OnnxValue reshape_to(const OnnxValue& plain, const std::vector<Extent>& target) const {
    return importer_.reshape_to(node_, plain, target);
  }
  OnnxValue repeated(const OnnxValue& value, std::size_t axis = 0) const {
    return importer_.repeated(node_, value, axis);
  }
  OnnxValues as_operator(std::string_view op, const OnnxValues& inputs) const {
    return importer_.as_operator(node_, op, inputs);
  }

  std::int64_t opset() const { return importer_.opset(); }
  bool one_sample() const { return importer_.one_sample(); }
  std::int64_t fixed_batch() const { return importer_.fixed_batch(); }
  void hold(std::int64_t elements) const { importer_.hold(elements); }
  void note(std::string text) const { importer_.note(std::move(text)); }

 private:
  OnnxImporter& importer_;
  const OnnxNode& node_;
};

/// Of a file of operators/: NAME.cpp has `const OnnxHandlers& onnx_NAME_handlers()`, which the
/// build finds.
using OnnxHandlers = std::vector<std::pair<std::string_view, OnnxHandler>>;

/// Sets a parameter of an operator that has just been made; throws Error for another size.
void set_parameter(Op&, std::size_t index, Tensor value);

/// Operands in one layout: that of images where every graph value has as many axes as these
/// (constants at most), else ONNX's own. Returns whether they are images.
bool align(const NodeImport&, OnnxValues& operands);
/// A node for the integers of a value that has a quantizer.
OnnxValue quantized(OnnxImporter&, const OnnxValue&);
/// Input `index` of a product of integers less its zero point, which is input `zero`.
OnnxValue without_zero_point(const NodeImport&, std::size_t zero, std::size_t index = 0);
/// A convolution of integers less their zero points, inputs `zero` and `weight_zero`, with input
/// `weight`, multiplied in float32: exact up to 2^24.
OnnxValue integer_conv(const NodeImport&, std::size_t zero, std::size_t weight,
                       std::size_t weight_zero);
/// A product of matrices of integers less their zero points, likewise.
OnnxValue integer_matmul(const NodeImport&, std::size_t zero, std::size_t weight,
                         std::size_t weight_zero);
/// The zero points of the weight, as many as `channels`: input `zero`, which may have one for all.
std::vector<float> weight_zero_points(const NodeImport&, std::size_t zero, std::int64_t channels);

/// Where ONNX's axis of a value lies as it is stored; throws Error for one it lacks.
std::int64_t stored_axis(const OnnxValue&, std::int64_t axis);
/// How the user may export a file whose batch is a number.
inline constexpr std::string_view kDynamicBatch =
    "export the model with an open batch: torch.onnx.export(..., input_names=['x'], "
    "dynamic_axes={'x': {0: 'batch'}})";
/// Throws Error where that stored axis is the batch, or has it as a factor.
void refuse_batch(const OnnxValue&, std::int64_t axis, std::string_view what);

/// All axes of a value as stored; throws Error naming `what` where one is the batch.
Ints every_axis(const OnnxValue&, std::string_view what);
/// An axis and all behind it as one, which must not have the batch; the axes before.
std::vector<Extent> joined_from(const std::vector<Extent>&, std::int64_t axis);

}  // namespace numemu::net
