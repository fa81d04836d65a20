// Folding: arithmetic, comparisons and choices of whole numbers, element by element.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx_constant.hpp"
#include "formats/error.hpp"

namespace numemu::net {

const OnnxConstant& required(const std::vector<ConstantRef>& inputs, std::size_t index) {
  if (index >= inputs.size() || !inputs[index])
    throw Error(fmt::format("expected an input number {}", index));
  return *inputs[index];
}

OnnxConstant picked(const OnnxConstant& from, Shape dims,
                    const std::function<std::int64_t(const Shape& position)>& source) {
  OnnxConstant out{std::move(dims), from.integer, {}};
  const std::int64_t count = element_count(out.dims);
  out.elements.reserve(static_cast<std::size_t>(count));
  Shape position(out.dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    out.elements.push_back(from.elements.at(static_cast<std::size_t>(source(position))));
    for (std::size_t axis = position.size(); axis-- > 0;) {
      if (++position[axis] < out.dims[axis]) break;
      position[axis] = 0;
    }
  }
  return out;
}

Shape strides_of(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error("expected shapes that broadcast, found " + to_string(a) + " and " + to_string(b));
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

OnnxConstant expanded(const OnnxConstant& from, const Shape& dims) {
  const Shape strides = strides_of(from.dims);
  return picked(from, dims, [&](const Shape& position) {
    std::int64_t index = 0;
    const std::size_t missing = position.size() - from.dims.size();
    for (std::size_t i = 0; i < from.dims.size(); ++i)
      index += from.dims[i] == 1 ? 0 : position[i + missing] * strides[i];
    return index;
  });
}

namespace {

using Inputs = std::vector<ConstantRef>;
/// The result and the operands, all in the result's shape.
constexpr std::int64_t kCopies = 4;

using Limit = std::function<void(const Shape& dims)>;

/// Whole-number arithmetic; one side may be proportional to the batch where the result is too.
Extent whole_result(std::string_view op, const Extent& a, const Extent& b) {
  std::int64_t value = 0;
  bool overflow = false;
  if (op == "Add" || op == "Sub") {
    overflow = op == "Add" ? __builtin_add_overflow(a.value, b.value, &value)
                           : __builtin_sub_overflow(a.value, b.value, &value);
    const bool proportional =
        a.per_batch == b.per_batch || (a.per_batch ? b.value == 0 : a.value == 0);
    if (!proportional)
      throw Error(fmt::format("{} of the batch and a number cannot be folded", op));
    return overflow ? throw Error("whole numbers overflow")
                    : Extent{value, a.per_batch || b.per_batch};
  }
  if (op == "Mul") {
    if (a.per_batch && b.per_batch) throw Error("the square of the batch cannot be folded");
    if (__builtin_mul_overflow(a.value, b.value, &value)) throw Error("whole numbers overflow");
    return {value, a.per_batch || b.per_batch};
  }
  if (op == "Div") {
    if (b.value == 0) throw Error("division by zero");
    if (b.value == -1 && a.value == std::numeric_limits<std::int64_t>::min())
      throw Error("whole numbers overflow");
    if (b.per_batch && !a.per_batch) throw Error("division by the batch cannot be folded");
    if (a.per_batch != b.per_batch && a.value % b.value != 0)
      throw Error("a part of the batch cannot be folded");
    return {a.value / b.value, a.per_batch && !b.per_batch};
  }
  if (op == "Mod") {
    if (b.value == 0) throw Error("division by zero");
    if (b.per_batch || (a.per_batch && a.value % b.value != 0))
      throw Error("a part of the batch cannot be folded");
    if (b.value == -1) return {0};
    const std::int64_t rest = a.value % b.value;
    return {rest != 0 && (rest < 0) != (b.value < 0) ? rest + b.value : rest};
  }
  if (op == "Equal") {
    if (a.per_batch == b.per_batch) return {a.value == b.value ? 1 : 0};
    const Extent &times = a.per_batch ? a : b, &number = a.per_batch ? b : a;
    if (times.value == 0) return {number.value == 0 ? 1 : 0};
    // Batches of 1 and more: only some number of them may be equal.
    if (number.value % times.value == 0 && number.value / times.value >= 1)
      throw Error("whether the batch equals a number cannot be folded");
    return {0};
  }
  if (a.per_batch || b.per_batch) throw Error(fmt::format("{} of the batch cannot be folded", op));
  if (op == "Less") return {a.value < b.value ? 1 : 0};
  if (op == "LessOrEqual") return {a.value <= b.value ? 1 : 0};
  if (op == "Greater") return {a.value > b.value ? 1 : 0};
  if (op == "GreaterOrEqual") return {a.value >= b.value ? 1 : 0};
  if (op == "And") return {a.value != 0 && b.value != 0 ? 1 : 0};
  if (op == "Or") return {a.value != 0 || b.value != 0 ? 1 : 0};
  if (op == "Min") return {std::min(a.value, b.value)};
  if (op == "Max") return {std::max(a.value, b.value)};
  throw Error(fmt::format("{} of whole numbers is not folded", op));
}

OnnxConstant binary(std::string_view op, const OnnxConstant& a, const OnnxConstant& b) {
  const Shape dims = broadcast(a.dims, b.dims);
  OnnxConstant out = expanded(a, dims);
  const OnnxConstant right = expanded(b, dims);
  for (std::size_t i = 0; i < out.elements.size(); ++i)
    out.elements[i].whole = whole_result(op, out.elements[i].whole, right.elements[i].whole);
  return out;
}

OnnxConstant where(const Inputs& inputs, const Limit& limit) {
  const OnnxConstant &condition = required(inputs, 0), &a = required(inputs, 1),
                     &b = required(inputs, 2);
  const Shape dims = broadcast(broadcast(condition.dims, a.dims), b.dims);
  limit(dims);
  if (a.integer != b.integer) throw Error("expected two tensors of the same type");
  if (!condition.integer) throw Error("expected a condition of truth values, found real numbers");
  const OnnxConstant choose = expanded(condition, dims), right = expanded(b, dims);
  OnnxConstant out = expanded(a, dims);
  for (std::size_t i = 0; i < out.elements.size(); ++i) {
    if (choose.elements[i].whole.value == 0) out.elements[i] = right.elements[i];
  }
  return out;
}

OnnxConstant unary(std::string_view op, OnnxConstant data) {
  for (Folded& element : data.elements) {
    if (op == "Neg") {
      element.whole = whole_result("Sub", {0, element.whole.per_batch}, element.whole);
    } else {
      element.whole = {element.whole.value == 0};
    }
  }
  return data;
}

/// The product of all elements: the size of a shape.
OnnxConstant product(const OnnxNode& node, const OnnxConstant& data) {
  Extent total{1};
  for (const Folded& element : data.elements) total = whole_result("Mul", total, element.whole);
  return {integer_or(node, "keepdims", 1) != 0 ? Shape{1} : Shape{}, true, {{0, total}}};
}

}  // namespace

std::optional<OnnxConstant> fold_elements(const OnnxNode& node, const Inputs& inputs,
                                          OnnxFolder& folder) {
  const std::string_view op = node.op_type;
  const auto limit = [&](const Shape& dims) { folder.count(element_count(dims), kCopies); };
  // Whole numbers stay exact and may depend on the batch; real ones go through the graph's own
  // operators.
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Mod", "And", "Or", "Equal", "Less",
                           "LessOrEqual", "Greater", "GreaterOrEqual", "Min", "Max"}) {
    if (op != name) continue;
    if (inputs.size() != 2 && (op == "Min" || op == "Max")) return std::nullopt;
    const OnnxConstant &a = required(inputs, 0), &b = required(inputs, 1);
    if (a.integer != b.integer) throw Error("expected two tensors of the same type");
    if (!a.integer || integer_or(node, "fmod", 0) != 0) return std::nullopt;
    limit(broadcast(a.dims, b.dims));
    return binary(op, a, b);
  }
  if (op == "Where") return where(inputs, limit);
  const bool whole = !inputs.empty() && inputs[0] && inputs[0]->integer;
  if ((op == "Neg" || op == "Not") && whole) {
    limit(inputs[0]->dims);
    return unary(op, *inputs[0]);
  }
  if (op == "ReduceProd" && whole && inputs[0]->dims.size() == 1) return product(node, *inputs[0]);
  return std::nullopt;
}

}  // namespace numemu::net
