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

using Values = std::vector<OnnxValue>;
/// A Folded in words of four bytes.
constexpr auto kFoldedWords = static_cast<std::int64_t>(sizeof(Folded) / 4);

Values same(OnnxImporter& importer, const OnnxNode& node) { return {importer.input(node, 0)}; }

Values shape(OnnxImporter& importer, const OnnxNode& node) {
  std::vector<Extent> extents = importer.input(node, 0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto at = [&](std::int64_t i) {
    return std::clamp(i < 0 ? i + rank : i, std::int64_t{0}, rank);
  };
  const std::int64_t from = at(std::max(integer_or(node, "start", 0), -rank));
  const std::int64_t to = at(std::max(integer_or(node, "end", rank), -rank));
  OnnxValue value;
  value.constant = std::make_shared<OnnxConstant>(constant_of(
      std::vector<Extent>(extents.begin() + from, extents.begin() + std::max(from, to))));
  return {value};
}

/// Whole numbers travel as floats; float64 is float32 here. Floats of 8 and 16 bits are rounded to;
/// what reads them computes in float32.
OnnxValue cast_to(OnnxImporter& importer, const OnnxNode& node, OnnxType to) {
  OnnxValue x = importer.value(node);
  if (to == OnnxType::boolean) {
    x = importer.add<Where>(node, {x, importer.number(1), importer.number(0)}, x.image);
  } else if (is_integer(to) && !x.integer) {
    x = importer.add<Pointwise>(node, {x}, x.image, "truncate");
  } else if (const std::optional<Conversion> rounds = cast_conversion(node, to)) {
    const auto largest = static_cast<float>(largest_value(*rounds->format));
    const FixedQuantizerOptions options{.dequantizes = false,
                                        .low = -largest,
                                        .high = largest,
                                        .format = rounds->format,
                                        .overflow = rounds->overflow,
                                        .cast = true};
    x = importer.add<FixedQuantizer>(node, {x}, x.image, options, Tensor({1}, 1), Tensor({1}));
  }
  x.integer = is_integer(to);
  x.type = to;
  return x;
}

Values cast(OnnxImporter& importer, const OnnxNode& node) {
  if (importer.opset() < 6) throw Error("Cast is read from operator set 6 on");
  return {cast_to(importer, node, number_type(integer_or(node, "to", 1)))};
}

Values cast_like(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue& like = importer.input(node, 1);
  const std::optional<OnnxType> type = like.is_constant() ? like.constant->type : like.type;
  if (!type) throw Error("expected the type of input 1 from an input, a constant or a Cast");
  return {cast_to(importer, node, *type)};
}

/// Nothing is dropped in inference, also of networks exported in training; the mask is true
/// everywhere. Arrays that are one sample are what ONNX computes, whose training draws at random.
Values dropout(OnnxImporter& importer, const OnnxNode& node) {
  const auto number = [&](std::size_t index, float otherwise) {
    if (!importer.has_input(node, index)) return otherwise;
    const Tensor given = importer.constant(node, index).tensor();
    if (given.size() != 1)
      throw Error(
          fmt::format("expected one number as input {}, found {}", index, to_string(given.shape)));
    return given.data[0];
  };
  if (importer.one_sample() && number(2, 0) != 0 && number(1, 0.5f) != 0)
    throw Error("a Dropout in training draws at random");
  Values out{importer.input(node, 0)};
  if (!importer.is_read(node, 1)) return out;
  const OnnxValue x = importer.value(node), one = importer.number(1);
  out.push_back(importer.add<Where>(node, {x, one, one}, x.image));
  out.back().integer = true;
  return out;
}

/// Ones on a diagonal of a matrix as large as the input.
Values eye_like(OnnxImporter& importer, const OnnxNode& node) {
  const std::vector<Extent> extents = importer.input(node, 0).extents();
  if (extents.size() != 2 || extents[0].per_batch || extents[1].per_batch)
    throw Error("expected two axes without the batch");
  const std::int64_t rows = extents[0].value, columns = extents[1].value,
                     shift = integer_or(node, "k", 0);
  importer.hold(kFoldedWords * rows * columns);
  OnnxConstant eye{{rows, columns}, true, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i)
    eye.elements.push_back({0, {i % columns - i / columns == shift ? 1 : 0}});
  eye.integer = is_integer(number_type(integer_or(node, "dtype", 1)));
  for (Folded& element : eye.elements) element.real = static_cast<float>(element.whole.value);
  OnnxValue out;
  out.constant = std::make_shared<OnnxConstant>(std::move(eye));
  return {out};
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

Values reshape(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const OnnxConstant& asked = importer.constant(node, 1);
  const std::vector<Extent> own = x.extents();
  if (!asked.integer) throw Error("expected whole numbers as the shape");
  if (asked.elements.size() > kMostAxes)
    throw Error(
        fmt::format("expected at most {} axes, found {}", kMostAxes, asked.elements.size()));
  std::vector<Extent> target;
  const bool keeps_zero = integer_or(node, "allowzero", 0) != 0;
  for (std::size_t i = 0; i < asked.elements.size(); ++i) {
    const Extent extent = asked.elements[i].whole;
    target.push_back(extent.value == 0 && !keeps_zero && i < own.size() ? own[i] : extent);
  }
  free_batch(target, own, importer.fixed_batch());
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
  return {importer.reshape_to(node, x, target)};
}

Values flatten(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const std::vector<Extent> own = x.extents();
  const auto rank = static_cast<std::int64_t>(own.size());
  std::int64_t axis = integer_or(node, "axis", 1);
  if (axis < 0 && axis >= -rank) axis += rank;
  const bool has_batch = x.has_batch();
  if (const int least = has_batch ? 1 : 0; axis < least || axis > rank)
    throw Error(fmt::format("expected an axis from {} to {}, found {}", least, rank, axis));
  return {importer.reshape_to(
      node, x,
      {product({own.begin(), own.begin() + axis}), product({own.begin() + axis, own.end()})})};
}

Values squeeze(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const auto axes = input_or_attribute(node, importer.constants(node), 1, "axes");
  const std::vector<Extent> own = x.extents();
  std::vector<bool> drop(own.size(), false);
  for (std::size_t i = 0; i < own.size(); ++i) drop[i] = !axes && own[i] == Extent{1};
  if (!axes && importer.fixed_batch() == 1)
    throw Error(fmt::format(
        "expected axes: without them the batch, fixed to 1 in the file, would be removed too; {}",
        kDynamicBatch));
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>{}))
    drop[static_cast<std::size_t>(axis_in(axis, own.size()))] = true;
  std::vector<Extent> target;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!drop[i]) target.push_back(own[i]);
    if (drop[i] && own[i] != Extent{1}) throw Error("expected axes of one element");
  }
  return {importer.reshape_to(node, x, target)};
}

Values unsqueeze(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const auto axes = input_or_attribute(node, importer.constants(node), 1, "axes");
  if (!axes) throw Error("expected axes");
  const std::vector<Extent> own = x.extents();
  const std::size_t rank = own.size() + axes->size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : *axes) added[static_cast<std::size_t>(axis_in(axis, rank))] = true;
  std::vector<Extent> target;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!added[i] && next >= own.size()) throw Error("expected different axes");
    target.push_back(added[i] ? Extent{1} : own[next++]);
  }
  return {importer.reshape_to(node, x, target)};
}

Values transpose(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  std::vector<std::int64_t> order = integers_or(node, "perm", {});
  if (order.empty()) {
    for (std::size_t i = x.rank(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  }
  // For images a transposition only changes the layout flag.
  std::vector<std::int64_t> last{0};  // channels last
  for (std::size_t i = 2; i < x.rank(); ++i) last.push_back(static_cast<std::int64_t>(i));
  last.push_back(1);
  if (x.image && order == last) {
    x.image = false;
    return {x};
  }
  if (!x.image && x.rank() == 4 && order == std::vector<std::int64_t>{0, 3, 1, 2}) {
    x.image = true;
    return {x};
  }
  x = importer.to_plain(x);
  return {importer.add<Transpose>(node, {x}, false, order)};
}

/// Broadcasting to a larger shape: the sum with zeros of one sample's shape; for the batch, or a
/// multiple of it, repetition.
OnnxValue expanded_to(OnnxImporter& importer, const OnnxNode& node, OnnxValue x,
                      const OnnxConstant& asked) {
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
        !(mine.per_batch && wanted == Extent{mine.value * importer.fixed_batch()})) {
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
    importer.hold(2 * kFoldedWords * count);
    OnnxValue zeros;
    zeros.constant = std::make_shared<OnnxConstant>(
        OnnxConstant{dims, x.integer, std::vector<Folded>(static_cast<std::size_t>(count))});
    x = importer.add<Binary>(node, {x, importer.as_graph(zeros, "expand")}, false, "add");
  }
  return batch ? importer.repeated(node, x, *batch) : x;
}

Values expand(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.input(node, 0);
  const OnnxConstant& asked = importer.constant(node, 1);
  // A constant of the file's batch: one sample is repeated.
  const std::int64_t batch = importer.fixed_batch();
  for (std::size_t i = 0; x.is_constant() && batch > 1 && i < x.rank(); ++i) {
    if (x.rank() == asked.elements.size() && asked.elements[i].whole == Extent{1, true} &&
        x.constant->dims[i] == batch)
      x.constant = std::make_shared<OnnxConstant>(
          one_sample(*held(x.constant), static_cast<std::int64_t>(i)));
  }
  x = importer.to_plain(importer.as_graph(x, node.inputs[0]));
  return {expanded_to(importer, node, x, asked)};
}

/// 0, 1, .. one for every sample; other ranges are folded.
Values range(OnnxImporter& importer, const OnnxNode& node) {
  const auto is = [&](std::size_t i, Extent wanted) {
    const OnnxValue& value = importer.input(node, i);
    return value.is_constant() && value.constant->integer && value.constant->elements.size() == 1 &&
           value.constant->elements[0].whole == wanted;
  };
  if (!is(0, {0}) || !is(1, {1, true}) || !is(2, {1}))
    throw Error("expected a constant range, or the numbers of the samples from 0 on");
  OnnxValue one;
  one.constant = std::make_shared<OnnxConstant>(OnnxConstant{{1}, true, {{0, {1}}}});
  OnnxValue numbers =
      importer.add<CumulativeSum>(node, {importer.repeated(node, importer.as_graph(one, ""))},
                                  false, CumulativeSumOptions{.axis = 0, .exclusive = true});
  numbers.integer = true;
  return {numbers};
}

/// The number of elements.
Values size(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue out;
  out.constant = std::make_shared<OnnxConstant>(
      OnnxConstant{{}, true, {{0, product(importer.input(node, 0).extents())}}});
  return {out};
}

/// Of a shape with the batch; others are folded.
Values constant_of_shape(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxConstant& shape = importer.constant(node, 0);
  OnnxConstant one{Shape(std::min(shape.elements.size(), kMostAxes), 1), false, {{}}};
  const OnnxAttribute* given = node.find("value");
  if (given != nullptr) {
    if (!given->tensor || given->tensor->elements != 1)
      throw Error("expected a value of one element");
    const OnnxConstant value = constant_of(*given->tensor);
    one.integer = value.integer;
    one.elements = value.elements;
  }
  OnnxValue x;
  x.constant = std::make_shared<OnnxConstant>(std::move(one));
  return {expanded_to(importer, node, importer.as_graph(x, ""), shape)};
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
