// ONNX operators that change shapes: views, turns, repetition, casts.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/fixed_quantizer.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// A Folded in words of four bytes.
constexpr auto kFoldedWords = static_cast<std::int64_t>(sizeof(Folded) / 4);

OnnxValues same(const NodeImport& node) { return {node.input(0)}; }

OnnxValues shape(const NodeImport& node) {
  std::vector<Extent> extents = node.input(0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto at = [&](std::int64_t i) {
    return std::clamp(i < 0 ? i + rank : i, std::int64_t{0}, rank);
  };
  const std::int64_t from = at(std::max(node->integer_or("start", 0), -rank));
  const std::int64_t to = at(std::max(node->integer_or("end", rank), -rank));
  return {value_of(constant_of(
      std::vector<Extent>(extents.begin() + from, extents.begin() + std::max(from, to))))};
}

/// Whole numbers travel as floats; float64 is float32 here. Floats of 8 and 16 bits are rounded to;
/// what reads them computes in float32.
OnnxValue cast_to(const NodeImport& node, OnnxType to) {
  OnnxValue x = node.value();
  if (to == OnnxType::boolean) {
    x = node.add<Where>({x, node.number(1), node.number(0)}, x.image);
  } else if (is_integer(to) && !x.integer) {
    x = node.add<Pointwise>({x}, x.image, "truncate");
  } else if (const std::optional<Conversion> rounds = cast_conversion(node.record(), to)) {
    const auto largest = static_cast<float>(largest_value(*rounds->format));
    const FixedQuantizerOptions options{.dequantizes = false,
                                        .low = -largest,
                                        .high = largest,
                                        .format = rounds->format,
                                        .overflow = rounds->overflow,
                                        .cast = true};
    x = node.add<FixedQuantizer>({x}, x.image, options, Tensor({1}, 1), Tensor({1}));
  }
  x.integer = is_integer(to);
  x.type = to;
  return x;
}

OnnxValues cast(const NodeImport& node) {
  if (node.opset() < 6) throw Error("Cast is read from operator set 6 on");
  return {cast_to(node, number_type(node->integer_or("to", 1)))};
}

OnnxValues cast_like(const NodeImport& node) {
  const OnnxValue& like = node.input(1);
  const std::optional<OnnxType> type = like.is_constant() ? like.constant->type : like.type;
  if (!type) throw Error("expected the type of input 1 from an input, a constant or a Cast");
  return {cast_to(node, *type)};
}

/// Nothing is dropped in inference, also of networks exported in training; the mask is true
/// everywhere. Arrays that are one sample are what ONNX computes, whose training draws at random.
OnnxValues dropout(const NodeImport& node) {
  const auto number = [&](std::size_t index, float otherwise) {
    if (!node.has_input(index)) return otherwise;
    const Tensor given = node.constant(index).tensor();
    if (given.size() != 1)
      throw Error(
          fmt::format("expected one number as input {}, found {}", index, to_string(given.shape)));
    return given.data[0];
  };
  if (node.one_sample() && number(2, 0) != 0 && number(1, 0.5f) != 0)
    throw Error("a Dropout in training draws at random");
  OnnxValues out{node.input(0)};
  if (!node.is_read(1)) return out;
  const OnnxValue x = node.value(), one = node.number(1);
  out.push_back(as_whole(node.add<Where>({x, one, one}, x.image)));
  return out;
}

/// Ones on a diagonal of a matrix as large as the input.
OnnxValues eye_like(const NodeImport& node) {
  const std::vector<Extent> extents = node.input(0).extents();
  if (extents.size() != 2 || extents[0].per_batch || extents[1].per_batch)
    throw Error("expected two axes without the batch");
  const std::int64_t rows = extents[0].value, columns = extents[1].value,
                     shift = node->integer_or("k", 0);
  node.hold(kFoldedWords * rows * columns);
  OnnxConstant eye = whole_numbers({rows, columns}, [&](std::int64_t i) {
    return std::int64_t{i % columns - i / columns == shift};
  });
  eye.integer = is_integer(number_type(node->integer_or("dtype", 1)));
  for (Folded& element : eye.elements) element.real = static_cast<float>(element.whole.value);
  return {value_of(std::move(eye))};
}

/// The product of extents, of which one may have the batch as a factor.
Extent product(const std::vector<Extent>& extents) {
  Extent out{1};
  for (const Extent& extent : extents) {
    if ((out.per_batch && extent.per_batch) ||
        __builtin_mul_overflow(out.value, extent.value, &out.value))
      throw Error("expected sizes of at least 1, one of them with the batch");
    out.per_batch = out.per_batch || extent.per_batch;
  }
  return out;
}

/// A shape whose sizes the file wrote for its own batch: which of them has the batch as a factor.
/// Where the batch is the first axis, that is the first, too, because elements keep their order.
void free_batch(std::vector<Extent>& target, const std::vector<Extent>& own, std::int64_t batch) {
  const auto per_batch = [](const Extent& extent) { return extent.per_batch; };
  if (batch < 1 || target.empty() || std::ranges::any_of(target, per_batch)) return;
  const auto from = std::ranges::find_if(own, per_batch) - own.begin();
  if (from == std::ssize(own)) return;
  const auto at = static_cast<std::size_t>(from);
  if (at > 0 && (at >= target.size() || target[at].value != own[at].value * batch ||
                 !std::equal(own.begin(), own.begin() + from, target.begin()))) {
    throw Error(fmt::format(
        "the file has a fixed batch, and its axis in this shape is ambiguous; {}", kDynamicBatch));
  }
  Extent& extent = target[at];
  if (extent.value == -1) return;
  if (extent.value < 1 || extent.value % batch != 0)
    throw Error(fmt::format("expected a multiple of the batch, {}, on axis {}, found {}", batch, at,
                            extent.value));
  extent = {extent.value / batch, true};
}

OnnxValues reshape(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const OnnxConstant& asked = node.constant(1);
  const std::vector<Extent> own = x.extents();
  if (!asked.integer) throw Error("expected whole numbers as the shape");
  if (asked.elements.size() > kMostAxes)
    throw Error(
        fmt::format("expected at most {} axes, found {}", kMostAxes, asked.elements.size()));
  std::vector<Extent> target;
  const bool keeps_zero = node->integer_or("allowzero", 0) != 0;
  for (std::size_t i = 0; i < asked.elements.size(); ++i) {
    const Extent extent = asked.elements[i].whole;
    target.push_back(extent.value == 0 && !keeps_zero && i < own.size() ? own[i] : extent);
  }
  free_batch(target, own, node.fixed_batch());
  Extent* open = nullptr;
  for (Extent& extent : target) {
    if (extent == Extent{-1} && open == nullptr) {
      open = &extent;
    } else if (extent.value < 1) {
      throw Error("expected sizes of at least 1 and at most one -1");
    }
  }
  if (open != nullptr) *open = {1};
  const Extent known = product(target), count = product(own);
  if (open != nullptr && count.value % known.value == 0 && (count.per_batch || !known.per_batch)) {
    *open = {count.value / known.value, count.per_batch && !known.per_batch};
  } else if (known != count) {
    throw Error("the elements do not fit the shape");
  }
  return {node.reshape_to(x, target)};
}

OnnxValues flatten(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const std::vector<Extent> own = x.extents();
  const auto rank = static_cast<std::int64_t>(own.size());
  std::int64_t axis = node->integer_or("axis", 1);
  if (axis < 0 && axis >= -rank) axis += rank;
  const bool has_batch = x.has_batch();
  if (const int least = has_batch ? 1 : 0; axis < least || axis > rank)
    throw Error(fmt::format("expected an axis from {} to {}, found {}", least, rank, axis));
  return {node.reshape_to(
      x, {product({own.begin(), own.begin() + axis}), product({own.begin() + axis, own.end()})})};
}

OnnxValues squeeze(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const auto axes = node.input_or_attribute(1, "axes");
  const std::vector<Extent> own = x.extents();
  std::vector<bool> drop(own.size(), false);
  for (std::size_t i = 0; i < own.size(); ++i) drop[i] = !axes && own[i] == Extent{1};
  if (!axes && node.fixed_batch() == 1)
    throw Error(fmt::format(
        "expected axes: without them the batch, fixed to 1 in the file, would be removed too; {}",
        kDynamicBatch));
  for (const std::int64_t axis : axes.value_or(Ints{}))
    drop[static_cast<std::size_t>(axis_in(axis, own.size()))] = true;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (drop[i] && own[i] != Extent{1}) throw Error("expected axes of one element");
  return {node.reshape_to(x, without_axes(own, drop))};
}

OnnxValues unsqueeze(const NodeImport& node) {
  const OnnxValue x = node.plain();
  return {node.reshape_to(x, with_axes(x.extents(), node.input_or_attribute(1, "axes")))};
}

OnnxValues transpose(const NodeImport& node) {
  OnnxValue x = node.value();
  Ints order = node->integers_or("perm", {});
  if (order.empty()) {
    order = ascending(x.rank());
    std::ranges::reverse(order);
  }
  // For images a transposition only changes the layout flag.
  Ints last = ascending(std::max<std::size_t>(x.rank(), 2));
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());  // channels last
  if (x.image && order == last) {
    x.image = false;
    return {x};
  }
  if (!x.image && x.rank() == 4 && order == Ints{0, 3, 1, 2}) {
    x.image = true;
    return {x};
  }
  x = node.to_plain(x);
  return {node.add<Transpose>({x}, false, order)};
}

/// Broadcasting to a larger shape: the sum with zeros of one sample's shape; for the batch, or a
/// multiple of it, repetition.
OnnxValue expanded_to(const NodeImport& node, OnnxValue x, const OnnxConstant& asked) {
  if (!asked.integer || asked.elements.size() > kMostAxes)
    throw Error(fmt::format("expected whole numbers, {} at most, as the shape", kMostAxes));
  const std::vector<Extent> own = x.extents();
  const std::size_t rank = std::max(own.size(), asked.elements.size());
  Shape dims;
  bool larger = own.size() < rank;
  std::optional<std::size_t> batch;  // its axis
  for (std::size_t back = rank; back > 0; --back) {
    const Extent mine = back <= own.size() ? own[own.size() - back] : Extent{1};
    const Extent wanted = back <= asked.elements.size()
                              ? asked.elements[asked.elements.size() - back].whole
                              : Extent{1};
    if (mine != wanted && mine != Extent{1} && wanted != Extent{1} &&
        !(mine.per_batch && wanted == Extent{mine.value * node.fixed_batch()})) {
      const Extent &times = mine.per_batch ? mine : wanted,
                   &number = mine.per_batch ? wanted : mine;
      if (number.per_batch || !times.per_batch || times.value < 1 ||
          number.value % times.value != 0)
        throw Error("expected a shape that the input is broadcast to");
      throw Error(fmt::format(
          "axis {} has the batch, and the file fixes it at {} there, as its example had it; "
          "export the model with an example of one sample",
          rank - back, number.value / times.value));
    }
    const bool grows = mine == Extent{1} && wanted != Extent{1};
    if (grows && wanted.per_batch) {
      if (batch) throw Error("expected the batch, or a multiple of it, on one axis");
      batch = rank - back;
    }
    const bool here = grows && wanted.value != 1;
    dims.push_back(here ? wanted.value : 1);
    larger = larger || here;
  }
  if (larger) {
    const std::int64_t count = element_count(dims);
    if (count > kMostElements) throw Error("expected at most 2^40 elements");
    node.hold(2 * kFoldedWords * count);
    const std::vector<Folded> zeros(static_cast<std::size_t>(count));
    x = node.add<Binary>({x, node.numbers({dims, x.integer, zeros}, "expand")}, false, "add");
  }
  return batch ? node.repeated(x, *batch) : x;
}

OnnxValues expand(const NodeImport& node) {
  OnnxValue x = node.input(0);
  const OnnxConstant& asked = node.constant(1);
  // A constant of the file's batch: one sample is repeated.
  const std::int64_t batch = node.fixed_batch();
  for (std::size_t i = 0; x.is_constant() && batch > 1 && i < x.rank(); ++i) {
    if (x.rank() == asked.elements.size() && asked.elements[i].whole == Extent{1, true} &&
        x.constant->dims[i] == batch)
      x.constant = value_of(one_sample(*held(x.constant), static_cast<std::int64_t>(i))).constant;
  }
  x = node.to_plain(node.as_graph(x, node->inputs[0]));
  return {expanded_to(node, x, asked)};
}

/// 0, 1, .. one for every sample; other ranges are folded.
OnnxValues range(const NodeImport& node) {
  const auto is = [&](std::size_t i, Extent wanted) {
    const OnnxValue& value = node.input(i);
    return value.is_constant() && value.constant->integer && value.constant->elements.size() == 1 &&
           value.constant->elements[0].whole == wanted;
  };
  if (!is(0, {0}) || !is(1, {1, true}) || !is(2, {1}))
    throw Error("expected a constant range, or the numbers of the samples from 0 on");
  const OnnxValue one = node.numbers({{1}, true, {{0, {1}}}});
  return {as_whole(node.add<CumulativeSum>({node.repeated(one)}, false,
                                           CumulativeSumOptions{.axis = 0, .exclusive = true}))};
}

/// The number of elements.
OnnxValues size(const NodeImport& node) {
  return {value_of({{}, true, {{0, product(node.input(0).extents())}}})};
}

/// Of a shape with the batch; others are folded.
OnnxValues constant_of_shape(const NodeImport& node) {
  const OnnxConstant& shape = node.constant(0);
  OnnxConstant one{Shape(std::min(shape.elements.size(), kMostAxes), 1), false, {{}}};
  const OnnxAttribute* given = node->find("value");
  if (given != nullptr) {
    if (!given->tensor || given->tensor->elements != 1)
      throw Error("expected a value of one element");
    const OnnxConstant value = constant_of(*given->tensor);
    one.integer = value.integer;
    one.elements = value.elements;
  }
  return {expanded_to(node, node.numbers(std::move(one)), shape)};
}

}  // namespace

const OnnxHandlers& onnx_shapes_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Cast", cast},           {"ConstantOfShape", constant_of_shape},
      {"CastLike", cast_like},  {"EyeLike", eye_like},
      {"Dropout", dropout},     {"Expand", expand},
      {"Flatten", flatten},     {"Identity", same},
      {"Range", range},         {"Reshape", reshape},
      {"Shape", shape},         {"Size", size},
      {"Squeeze", squeeze},     {"Transpose", transpose},
      {"Unsqueeze", unsqueeze},
  };
  return kHandlers;
}

}  // namespace numemu::net
