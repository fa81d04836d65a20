// Tensors that an ONNX graph computes from constants and shapes, worked out while it is imported.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/file.hpp"
#include "emu/net/tensor.hpp"
#include "formats/conversion.hpp"
#include "formats/error.hpp"

namespace numemu::net {

using Ints = std::vector<std::int64_t>;

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
  Ints integers() const;      ///< throws Error likewise, and for reals
};

using ConstantRef = std::shared_ptr<const OnnxConstant>;

OnnxConstant constant_of(const OnnxTensor&);
/// The constant with its elements: itself where it has them.
ConstantRef held(const ConstantRef&);
/// A vector of whole numbers.
OnnxConstant constant_of(const std::vector<Extent>&);
/// Whole numbers f(0), f(1), .. of that shape.
template <class F>
OnnxConstant whole_numbers(Shape dims, const F& f) {
  OnnxConstant out{std::move(dims), true, {}};
  const std::int64_t count = element_count(out.dims);
  out.elements.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out.elements.push_back({0, {f(i)}});
  return out;
}
/// Real ones likewise.
template <class F>
OnnxConstant real_numbers(Shape dims, const F& f) {
  OnnxConstant out{std::move(dims), false, {}};
  const std::int64_t count = element_count(out.dims);
  out.elements.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out.elements.push_back({f(i), {}});
  return out;
}
/// One of at most `rank` axes in ONNX order, as [n, .., c] of that rank.
OnnxConstant channels_last(const OnnxConstant&, std::size_t rank);
/// The shape that numpy's broadcasting gives; throws Error where there is none.
Shape broadcast(const Shape&, const Shape&);
/// `from` broadcast to `dims`.
OnnxConstant expanded(const OnnxConstant& from, const Shape& dims);
/// Elements of a result of shape `dims`, each from a source index computed per position.
OnnxConstant picked(const OnnxConstant& from, Shape dims,
                    const std::function<std::int64_t(const Shape& position)>& source);
/// Likewise, from `first` on with that step along each axis.
OnnxConstant picked(const OnnxConstant& from, Shape dims, const Shape& steps,
                    std::int64_t first = 0);
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

/// The results of NonMaxSuppression, NonZero and Unique, which have as many elements as the values
/// decide, one for each output; nullopt for other operators. Throws Error as the folder does.
std::optional<std::vector<OnnxConstant>> fold_selection(const OnnxNode&,
                                                        const std::vector<ConstantRef>& inputs,
                                                        OnnxFolder&);
/// Whether fold_selection() has the operator.
bool is_selection(std::string_view op);

/// Axis in [0, rank), negative ones counted from the end; throws Error for others.
std::int64_t axis_in(std::int64_t axis, std::size_t rank);
/// The axes without those that a Squeeze drops, by a mark for each.
template <class T>
std::vector<T> without_axes(const std::vector<T>& dims, const std::vector<bool>& dropped) {
  std::vector<T> out;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!dropped[i]) out.push_back(dims[i]);
  return out;
}
/// With an axis of one element at each of `axes` of the result, as Unsqueeze has them.
template <class T>
std::vector<T> with_axes(const std::vector<T>& dims, const std::optional<Ints>& axes) {
  if (!axes) throw Error("expected axes");
  std::vector<bool> added(dims.size() + axes->size(), false);
  for (const std::int64_t axis : *axes)
    added[static_cast<std::size_t>(axis_in(axis, added.size()))] = true;
  std::vector<T> out;
  std::size_t next = 0;
  for (const bool here : added) {
    if (!here && next >= dims.size()) throw Error("expected different axes");
    out.push_back(here ? T{1} : dims[next++]);
  }
  return out;
}

/// 0, 1, .. count - 1: all axes.
Ints ascending(std::size_t count);
/// Input `index` as whole numbers (null: not there), or else the attribute of that name (older
/// operator sets); nullopt where there is neither.
std::optional<Ints> input_or_attribute(const OnnxNode&, const std::vector<ConstantRef>& inputs,
                                       std::size_t index, std::string_view attribute);
/// Inputs 1 to 4 of a Slice, or its attributes; axes and steps have the defaults of the starts.
struct OnnxCuts {
  std::optional<Ints> starts, ends;
  Ints axes = {}, steps = {};
};
OnnxCuts cuts_of(const OnnxNode&, const std::vector<ConstantRef>& inputs);

}  // namespace numemu::net
