// Operators whose inputs are constants: shapes and elements moved, arithmetic of whole numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "emu/net/model/onnx/constant.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"

namespace numemu::net {
namespace {

using Inputs = std::vector<ConstantRef>;

std::int64_t single(const OnnxConstant& constant) {
  const Ints values = constant.integers();
  if (values.size() != 1) throw Error(fmt::format("expected one number, found {}", values.size()));
  return values[0];
}

double real(const OnnxConstant& constant) {
  const Tensor value = constant.tensor();
  if (value.size() != 1) throw Error(fmt::format("expected one number, found {}", value.size()));
  return value.data[0];
}

using Limit = std::function<void(const Shape& dims)>;

OnnxConstant gather(const OnnxNode& node, const Inputs& inputs, const Limit& limit) {
  const OnnxConstant& data = required(inputs, 0);
  const OnnxConstant& indices = required(inputs, 1);
  const auto axis = static_cast<std::size_t>(axis_in(node.integer_or("axis", 0), data.dims.size()));
  Ints index = indices.integers();
  const std::int64_t rows = data.dims[axis];
  for (std::int64_t& i : index) {
    if (i < -rows || i >= rows)
      throw Error(fmt::format("expected an index in {} to {}, found {}", -rows, rows - 1, i));
    if (i < 0) i += rows;
  }
  Shape dims(data.dims.begin(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              data.dims.end());
  limit(dims);
  const Shape strides = strides_of(data.dims), inner = strides_of(indices.dims);
  const std::size_t rank = indices.dims.size();
  return picked(data, dims, [&](const Shape& position) {
    std::int64_t at = 0, chosen = 0;
    for (std::size_t i = 0; i < axis; ++i) at += position[i] * strides[i];
    for (std::size_t i = 0; i < rank; ++i) chosen += position[axis + i] * inner[i];
    at += index[static_cast<std::size_t>(chosen)] * strides[axis];
    for (std::size_t i = axis + 1; i < data.dims.size(); ++i)
      at += position[i + rank - 1] * strides[i];
    return at;
  });
}

OnnxConstant concat(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& first = required(inputs, 0);
  const auto axis =
      static_cast<std::size_t>(axis_in(node.integer_or("axis", 0), first.dims.size()));
  OnnxConstant out{first.dims, first.integer, {}};
  out.dims[axis] = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OnnxConstant& part = required(inputs, i);
    Shape dims = part.dims;
    if (dims.size() == out.dims.size()) dims[axis] = out.dims[axis];
    if (dims != out.dims || part.integer != out.integer)
      throw Error("expected parts of the same type and shape");
    out.dims[axis] += part.dims[axis];
  }
  std::size_t lines = 1;  // of each part, along the axis and all behind it
  for (std::size_t i = 0; i < axis; ++i) lines *= static_cast<std::size_t>(out.dims[i]);
  for (std::size_t line = 0; line < lines; ++line) {
    for (const ConstantRef& part : inputs) {
      const std::size_t each = part->elements.size() / lines;
      const auto from = part->elements.begin() + static_cast<std::ptrdiff_t>(line * each);
      out.elements.insert(out.elements.end(), from, from + static_cast<std::ptrdiff_t>(each));
    }
  }
  return out;
}

OnnxConstant slice(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& data = required(inputs, 0);
  const auto [starts, ends, axes, steps] = cuts_of(node, inputs);
  if (!starts || !ends || starts->size() != ends->size())
    throw Error("expected as many starts as ends");
  if (axes.size() != starts->size() || steps.size() != starts->size())
    throw Error("expected as many axes and steps as starts");
  Shape dims = data.dims, first(dims.size(), 0), step(dims.size(), 1);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const auto axis = static_cast<std::size_t>(axis_in(axes[i], dims.size()));
    const std::int64_t n = data.dims[axis];
    if (steps[i] == 0) throw Error("expected a step that is not zero");
    if (n == 0) continue;
    const std::int64_t by = std::clamp(steps[i], -n, n);  // longer ones reach no second element
    const auto clamped = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? std::max(at, -n - 1) + n : at, low, high);
    };
    const std::int64_t from =
        by > 0 ? clamped((*starts)[i], 0, n) : clamped((*starts)[i], 0, n - 1);
    const std::int64_t to = by > 0 ? clamped((*ends)[i], 0, n) : clamped((*ends)[i], -1, n - 1);
    first[axis] = from;
    step[axis] = by;
    dims[axis] =
        std::max<std::int64_t>(0, by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by);
  }
  const Shape strides = strides_of(data.dims);
  std::int64_t from = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    from += first[i] * strides[i];
    step[i] *= strides[i];
  }
  return picked(data, dims, step, from);
}

OnnxConstant transpose(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& data = required(inputs, 0);
  const Ints axes = ascending(data.dims.size());
  Ints order = node.integers_or("perm", {});
  if (order.empty()) order.assign(axes.rbegin(), axes.rend());
  Ints sorted = order;
  std::ranges::sort(sorted);
  if (sorted != axes) throw Error("expected perm to be a permutation of the axes");
  const Shape strides = strides_of(data.dims);
  Shape dims, steps;
  for (const std::int64_t axis : order) {
    dims.push_back(data.dims[static_cast<std::size_t>(axis)]);
    steps.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return picked(data, dims, steps);
}

OnnxConstant with_shape(OnnxConstant data, const Shape& dims) {
  const auto count = static_cast<std::int64_t>(data.elements.size());
  if (element_count(dims) != count)
    throw Error(fmt::format("{} elements do not fit shape {}", count, to_string(dims)));
  data.dims = dims;
  return data;
}

OnnxConstant reshaped(const OnnxNode& node, const OnnxConstant& data, Ints target) {
  const bool copies = node.integer_or("allowzero", 0) == 0;
  std::int64_t known = 1;
  std::ptrdiff_t open = -1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && copies && i < data.dims.size()) target[i] = data.dims[i];
    if (target[i] == -1 && open < 0) {
      open = static_cast<std::ptrdiff_t>(i);
    } else if (target[i] < 0 || __builtin_mul_overflow(known, target[i], &known)) {
      throw Error("expected sizes of at least -1 with one -1 at most");
    }
  }
  if (open >= 0) {
    if (known == 0) throw Error("expected no -1 with an extent of 0");
    target[static_cast<std::size_t>(open)] =
        static_cast<std::int64_t>(data.elements.size()) / known;
  }
  return with_shape(data, target);
}

OnnxConstant squeezed(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& data = required(inputs, 0);
  const auto axes = input_or_attribute(node, inputs, 1, "axes");
  std::vector<bool> drop(data.dims.size(), false);
  for (std::size_t i = 0; i < drop.size(); ++i) drop[i] = !axes && data.dims[i] == 1;
  if (axes) {
    for (const std::int64_t axis : *axes)
      drop[static_cast<std::size_t>(axis_in(axis, drop.size()))] = true;
  }
  return with_shape(data, without_axes(data.dims, drop));
}

OnnxConstant unsqueezed(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& data = required(inputs, 0);
  return with_shape(data, with_axes(data.dims, input_or_attribute(node, inputs, 1, "axes")));
}

OnnxConstant cast(const OnnxNode& node, OnnxConstant data, OnnxType to) {
  const bool integer = is_integer(to);
  for (Folded& element : data.elements) {
    if (integer && !data.integer && to != OnnxType::boolean) {
      const double whole = std::trunc(static_cast<double>(element.real));
      if (!(std::fabs(whole) < 0x1p62)) throw Error("expected a real number within int64");
      element.whole = {static_cast<std::int64_t>(whole)};
    }
    if (!integer && data.integer) {
      if (element.whole.per_batch) throw Error("the batch cannot become a real number");
      element.real = static_cast<float>(element.whole.value);
    }
    if (to == OnnxType::boolean)
      element.whole = {data.integer ? element.whole.value != 0 : element.real != 0};
  }
  if (const std::optional<Conversion> rounds = cast_conversion(node, to)) {
    std::vector<float> values;
    values.reserve(data.elements.size());
    for (const Folded& element : data.elements) values.push_back(element.real);
    quantize_values(*rounds, values.data(), std::ssize(values), 1, values.data());
    for (std::size_t i = 0; i < values.size(); ++i) data.elements[i].real = values[i];
  }
  data.integer = integer;
  data.type = to;
  return data;
}

/// The lower or upper triangle of the last two axes; zeros elsewhere.
OnnxConstant trilu(const OnnxNode& node, const Inputs& inputs) {
  OnnxConstant out = required(inputs, 0);
  if (out.dims.size() < 2) throw Error("expected at least two axes");
  const std::int64_t columns = out.dims.back(), rows = out.dims[out.dims.size() - 2];
  std::int64_t shift = 0;
  if (inputs.size() > 1 && inputs[1])
    shift = std::clamp(single(*inputs[1]), -rows - columns, rows + columns);
  const bool upper = node.integer_or("upper", 1) != 0;
  for (std::size_t i = 0; i < out.elements.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t right = at % columns - at / columns % rows - shift;
    if (upper ? right < 0 : right > 0) out.elements[i] = {};
  }
  return out;
}

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
  return {node.integer_or("keepdims", 1) != 0 ? Shape{1} : Shape{}, true, {{0, total}}};
}

/// Arithmetic and comparisons of whole numbers and choices, element by element; nullopt for other
/// operators.
std::optional<OnnxConstant> fold_elements(const OnnxNode& node, const Inputs& inputs,
                                          OnnxFolder& folder) {
  constexpr std::int64_t kCopies = 4;  // the result and the operands, all in the result's shape
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
    if (!a.integer || node.integer_or("fmod", 0) != 0) return std::nullopt;
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

}  // namespace

std::optional<Conversion> cast_conversion(const OnnxNode& node, OnnxType to) {
  const std::string_view small = float8_format(to);
  if (small.empty() && to != OnnxType::float16 && to != OnnxType::bfloat16) return std::nullopt;
  const bool saturates = !small.empty() && node.integer_or("saturate", 1) != 0;
  return Conversion{.format = &find_format(small.empty() ? to_string(to) : std::string(small)),
                    .overflow = saturates ? Overflow::saturate : Overflow::ieee};
}

void OnnxFolder::count(std::int64_t elements, std::int64_t copies) {
  // Counted even where it is refused: what follows is, too.
  left_ -= std::min(left_ + 1, elements);
  if (left_ < 0 || elements > at_once_ / copies) {
    throw memory_error(
        fmt::format("computed constants exceed the memory allowed for this file size or left by "
                    "--memory, by {} elements",
                    elements));
  }
}

std::optional<OnnxConstant> OnnxFolder::fold(const OnnxNode& node, const Inputs& inputs) {
  const std::string_view op = node.op_type;
  // What a result may hold is counted before it is made; most hold no more than their inputs.
  std::int64_t most = 1;
  for (const ConstantRef& input : inputs) {
    if (input) most += static_cast<std::int64_t>(input->elements.size());
  }
  const auto limit = [&](const Shape& dims) { count(element_count(dims)); };
  if (op == "Constant") {
    const OnnxAttribute* value = node.find("value");
    if (value != nullptr && value->tensor) {
      count(value->tensor->elements);
      return constant_of(*value->tensor);
    }
    if (const OnnxAttribute* real = node.find("value_float"))
      return OnnxConstant{{}, false, {{real->number, {}}}};
    if (const OnnxAttribute* whole = node.find("value_int"))
      return OnnxConstant{{}, true, {{0, {whole->integer}}}};
    if (const OnnxAttribute* wholes = node.find("value_ints")) {
      count(std::ssize(wholes->integers));
      return whole_numbers({std::ssize(wholes->integers)}, [&](std::int64_t i) {
        return wholes->integers[static_cast<std::size_t>(i)];
      });
    }
    if (const OnnxAttribute* reals = node.find("value_floats")) {
      count(std::ssize(reals->numbers));
      return real_numbers({std::ssize(reals->numbers)}, [&](std::int64_t i) {
        return reals->numbers[static_cast<std::size_t>(i)];
      });
    }
    throw Error("expected a Constant with a dense value of numbers");
  }
  if (op == "ConstantOfShape") {
    const Shape dims = required(inputs, 0).integers();
    limit(dims);
    Folded value;
    const OnnxAttribute* given = node.find("value");
    bool integer = false;
    if (given != nullptr) {
      if (!given->tensor || given->tensor->elements != 1)
        throw Error("expected a value of one element");
      const OnnxConstant one = constant_of(*given->tensor);
      value = one.elements[0];
      integer = one.integer;
    }
    return OnnxConstant{dims, integer,
                        std::vector<Folded>(static_cast<std::size_t>(element_count(dims)), value)};
  }
  if (op == "Range" && !required(inputs, 0).integer) {
    const double from = real(required(inputs, 0)), to = real(required(inputs, 1)),
                 step = real(required(inputs, 2)), steps = std::ceil((to - from) / step);
    if (!(std::fabs(steps) < 0x1p40)) throw Error("expected a finite range");
    const Shape dims{std::max<std::int64_t>(0, static_cast<std::int64_t>(steps))};
    limit(dims);
    return real_numbers(dims, [&](std::int64_t i) {
      return static_cast<float>(from + static_cast<double>(i) * step);
    });
  }
  if (op == "Range") {
    const std::int64_t from = single(required(inputs, 0)), to = single(required(inputs, 1)),
                       step = single(required(inputs, 2));
    if (step == 0) throw Error("expected a step that is not zero");
    if (step > 0 ? from >= to : from <= to) return OnnxConstant{{0}, true, {}};
    using Unsigned = std::uint64_t;
    const auto distance = step > 0 ? Unsigned(to) - Unsigned(from) : Unsigned(from) - Unsigned(to);
    const Unsigned more = (distance - 1) / (step > 0 ? Unsigned(step) : 0 - Unsigned(step));
    const std::int64_t size =
        static_cast<std::int64_t>(std::min<Unsigned>(more, INT64_MAX - 1)) + 1;
    count(size);
    return whole_numbers({size}, [&](std::int64_t i) {
      return static_cast<std::int64_t>(Unsigned(from) + Unsigned(i) * Unsigned(step));
    });
  }
  if (op == "Expand") {
    const Shape dims = broadcast(required(inputs, 0).dims, required(inputs, 1).integers());
    limit(dims);
    return expanded(required(inputs, 0), dims);
  }
  if (op == "Gather") return gather(node, inputs, limit);
  if (auto out = fold_elements(node, inputs, *this)) return out;
  count(most);
  if (op == "Identity") return required(inputs, 0);
  if (op == "Concat") return concat(node, inputs);
  if (op == "Slice") return slice(node, inputs);
  if (op == "Transpose") return transpose(node, inputs);
  if (op == "Reshape") return reshaped(node, required(inputs, 0), required(inputs, 1).integers());
  if (op == "Squeeze") return squeezed(node, inputs);
  if (op == "Unsqueeze") return unsqueezed(node, inputs);
  if (op == "Cast") return cast(node, required(inputs, 0), number_type(node.integer_or("to", 1)));
  if (op == "CastLike") return cast(node, required(inputs, 0), required(inputs, 1).type);
  if (op == "Trilu") return trilu(node, inputs);
  return std::nullopt;
}

const OnnxConstant& required(const std::vector<ConstantRef>& inputs, std::size_t index) {
  if (index >= inputs.size() || !inputs[index])
    throw Error(fmt::format("expected an input number {}", index));
  return *inputs[index];
}

namespace {

template <class Source>
OnnxConstant picked_from(const OnnxConstant& from, Shape dims, const Source& source) {
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

}  // namespace

OnnxConstant picked(const OnnxConstant& from, Shape dims,
                    const std::function<std::int64_t(const Shape& position)>& source) {
  return picked_from(from, std::move(dims), source);
}

OnnxConstant picked(const OnnxConstant& from, Shape dims, const Shape& steps, std::int64_t first) {
  return picked_from(from, std::move(dims), [&](const Shape& at) {
    return std::inner_product(at.begin(), at.end(), steps.begin(), first);
  });
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
  Shape steps = strides_of(from.dims);
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (from.dims[i] == 1) steps[i] = 0;
  steps.insert(steps.begin(), dims.size() - steps.size(), 0);
  return picked(from, dims, steps);
}

}  // namespace numemu::net
