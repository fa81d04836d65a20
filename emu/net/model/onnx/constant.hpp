// Tensors that an ONNX graph computes from constants and shapes, worked out while it is imported.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/model/onnx/file.hpp"
#include "emu/net/tensor.hpp"
#include "formats/conversion.hpp"

namespace numemu::net {

/// A number of elements: `value`, or `value` times the batch, which is not known at import.
struct Extent {
  std::int64_t value = 0;
  bool per_batch = false;
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// One element of a folded tensor: a real number, or a whole one that may depend on the batch.
struct Folded {
  float real = 0;
  Extent whole = {};
};

struct OnnxConstant {
  Shape dims;
  bool integer = false;  ///< elements are `whole`, else `real`
  std::vector<Folded> elements;
  /// In the file or cast to; what is computed has the default.
  OnnxType type = OnnxType::float32;
  /// A large initializer of reals, until an operator of the importer asks for `elements` (held()):
  /// then they are empty, and tensor() copies the file's. A Folded takes six times their memory.
  const OnnxTensor* stored = nullptr;

  std::int64_t size() const;  ///< number of elements
  Tensor tensor() const;      ///< as float32; throws Error for elements that depend on the batch
  std::vector<std::int64_t> integers() const;  ///< throws Error likewise, and for reals
};

using ConstantRef = std::shared_ptr<const OnnxConstant>;

OnnxConstant constant_of(const OnnxTensor&);
/// The constant with its elements: itself where it has them.
ConstantRef held(const ConstantRef&);
/// A vector of whole numbers.
OnnxConstant constant_of(const std::vector<Extent>&);
/// One of at most `rank` axes in ONNX order, as [n, .., c] of that rank.
OnnxConstant channels_last(const OnnxConstant&, std::size_t rank);
/// The shape that numpy's broadcasting gives; throws Error where there is none.
Shape broadcast(const Shape&, const Shape&);
/// `from` broadcast to `dims`.
OnnxConstant expanded(const OnnxConstant& from, const Shape& dims);
/// Elements of a result of shape `dims`, each from a source index computed per position.
OnnxConstant picked(const OnnxConstant& from, Shape dims,
                    const std::function<std::int64_t(const Shape& position)>& source);
/// The first sample along an axis of the batch that the file fixes; throws Error where samples
/// differ.
OnnxConstant one_sample(const OnnxConstant&, std::int64_t axis);
/// Steps between neighbours along each axis, in row-major order.
Shape strides_of(const Shape& dims);
/// Input `index`, or an Error.
const OnnxConstant& required(const std::vector<ConstantRef>& inputs, std::size_t index);

/// The results of operators whose inputs are all constants. Elements made are counted: a small file
/// must not request much memory by invented shapes.
class OnnxFolder {
 public:
  explicit OnnxFolder(std::int64_t most_elements) : left_(most_elements) {}

  /// The value of the node's only output; nullopt where the operator is not folded. A missing
  /// optional input is null. Throws Error without file and node, which the caller adds.
  std::optional<OnnxConstant> fold(const OnnxNode&, const std::vector<ConstantRef>& inputs);
  /// Counts elements of a constant that is about to be made elsewhere, and of which there will be
  /// so many copies at a time.
  void count(std::int64_t elements, std::int64_t copies = 1);
  /// How many elements the next results may have each.
  void allow(std::int64_t elements) { at_once_ = elements; }

 private:
  std::int64_t left_, at_once_ = std::numeric_limits<std::int64_t>::max();
};

/// What a Cast to a float of 8 or 16 bits does to real numbers; nullopt for other types. Beyond the
/// largest value 16 bits become infinite; floats of 8 bits saturate unless the node says otherwise.
std::optional<Conversion> cast_conversion(const OnnxNode&, OnnxType to);

/// Arithmetic and comparisons of whole numbers and choices, element by element; nullopt for other
/// operators.
std::optional<OnnxConstant> fold_elements(const OnnxNode&, const std::vector<ConstantRef>& inputs,
                                          OnnxFolder&);

/// Axis in [0, rank), negative ones counted from the end; throws Error for others.
std::int64_t axis_in(std::int64_t axis, std::size_t rank);
/// The node's integer attribute, or `otherwise`.
std::int64_t integer_or(const OnnxNode&, std::string_view name, std::int64_t otherwise);
float number_or(const OnnxNode&, std::string_view name, float otherwise);
std::string_view text_or(const OnnxNode&, std::string_view name, std::string_view otherwise);
std::vector<std::int64_t> integers_or(const OnnxNode&, std::string_view name,
                                      std::vector<std::int64_t> otherwise);
/// Input `index` as whole numbers (null: not there), or else the attribute of that name (older
/// operator sets); nullopt where there is neither.
std::optional<std::vector<std::int64_t>> input_or_attribute(const OnnxNode&,
                                                            const std::vector<ConstantRef>& inputs,
                                                            std::size_t index,
                                                            std::string_view attribute);

}  // namespace numemu::net
