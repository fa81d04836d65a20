// Constants of an ONNX graph: from tensors, to tensors, and attributes.
#include "emu/net/model/onnx/constant.hpp"

#include <fmt/format.h>

#include <numeric>

#include "formats/error.hpp"

namespace numemu::net {

std::int64_t OnnxConstant::size() const {
  return stored != nullptr ? stored->elements : static_cast<std::int64_t>(elements.size());
}

Tensor OnnxConstant::tensor() const {
  if (stored != nullptr) {
    Tensor out;
    out.shape = dims;
    out.data = to_floats(*stored);
    return out;
  }
  Tensor out(dims);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (integer && elements[i].whole.per_batch)
      throw Error("expected a constant tensor, found one that depends on the batch");
    out.data[i] = integer ? static_cast<float>(elements[i].whole.value) : elements[i].real;
  }
  return out;
}

Ints OnnxConstant::integers() const {
  if (!integer) throw Error("expected a constant of whole numbers, found one of reals");
  Ints out;
  out.reserve(elements.size());
  for (const Folded& element : elements) {
    if (element.whole.per_batch)
      throw Error("expected constant whole numbers, found one that depends on the batch");
    out.push_back(element.whole.value);
  }
  return out;
}

OnnxConstant constant_of(const OnnxTensor& tensor) {
  OnnxConstant out{tensor.dims, is_integer(tensor.type), {}, tensor.type};
  out.elements.resize(static_cast<std::size_t>(tensor.elements));
  if (out.integer) {
    const Ints values = to_integers(tensor);
    for (std::size_t i = 0; i < values.size(); ++i) out.elements[i].whole.value = values[i];
  } else {
    const std::vector<float> values = to_floats(tensor);
    for (std::size_t i = 0; i < values.size(); ++i) out.elements[i].real = values[i];
  }
  return out;
}

ConstantRef held(const ConstantRef& constant) {
  if (constant == nullptr || constant->stored == nullptr) return constant;
  OnnxConstant out = constant_of(*constant->stored);
  out.dims = constant->dims;  // which an operator may have changed
  return std::make_shared<OnnxConstant>(std::move(out));
}

OnnxConstant constant_of(const std::vector<Extent>& values) {
  OnnxConstant out{{static_cast<std::int64_t>(values.size())}, true, {}};
  out.elements.reserve(values.size());
  for (const Extent& value : values) out.elements.push_back({0, value});
  return out;
}

OnnxConstant channels_last(const OnnxConstant& from, std::size_t rank) {
  Shape dims = from.dims;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  // From the first axis behind the channels on.
  Shape steps = strides_of(dims);
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  std::rotate(steps.begin() + 1, steps.begin() + 2, steps.end());
  return picked(from, dims, steps);
}

OnnxConstant one_sample(const OnnxConstant& all, std::int64_t axis) {
  const auto at_axis = static_cast<std::size_t>(axis);
  const Shape steps = strides_of(all.dims);
  Shape dims = all.dims;
  dims[at_axis] = 1;
  const auto sample = [&](std::int64_t n) { return picked(all, dims, steps, n * steps[at_axis]); };
  OnnxConstant first = sample(0);
  const Tensor expected = first.tensor();
  for (std::int64_t n = 1; n < all.dims[at_axis]; ++n) {
    if (sample(n).tensor().data != expected.data)
      throw Error(
          "the samples of a constant differ, and the file has a fixed batch; export the model with "
          "a dynamic batch");
  }
  return first;
}

Ints ascending(std::size_t count) {
  Ints out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::int64_t axis_in(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count)
    throw Error(fmt::format("expected an axis in {} to {}, found {}", -count, count - 1, axis));
  return axis < 0 ? axis + count : axis;
}

std::optional<Ints> input_or_attribute(const OnnxNode& node, const std::vector<ConstantRef>& inputs,
                                       std::size_t index, std::string_view attribute) {
  if (index < inputs.size() && inputs[index]) return inputs[index]->integers();
  if (index < node.inputs.size() && !node.inputs[index].empty())
    throw Error(fmt::format("expected input {} ({}) to be constant", index, attribute));
  const OnnxAttribute* found = node.find(attribute);
  if (found == nullptr || found->type != OnnxAttributeType::integers) return std::nullopt;
  return found->integers;
}

OnnxCuts cuts_of(const OnnxNode& node, const std::vector<ConstantRef>& inputs) {
  OnnxCuts out{input_or_attribute(node, inputs, 1, "starts"),
               input_or_attribute(node, inputs, 2, "ends")};
  const auto axes = input_or_attribute(node, inputs, 3, "axes"),
             steps = input_or_attribute(node, inputs, 4, "steps");
  const std::size_t count = out.starts ? out.starts->size() : 0;
  out.axes = axes.value_or(ascending(count));
  out.steps = steps.value_or(Ints(count, 1));
  return out;
}

}  // namespace numemu::net
