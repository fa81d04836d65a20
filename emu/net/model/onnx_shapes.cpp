// ONNX operators that move, cut, join and reduce along axes.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/add.hpp"
#include "emu/net/ops/concat.hpp"
#include "emu/net/ops/constant.hpp"
#include "emu/net/ops/global_average_pool.hpp"
#include "emu/net/ops/log_softmax.hpp"
#include "emu/net/ops/pad.hpp"
#include "emu/net/ops/reduce_mean.hpp"
#include "emu/net/ops/slice.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/transpose.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

/// Where ONNX's axis of a value lies as it is stored.
std::int64_t stored_axis(const OnnxValue& value, std::int64_t axis) {
  constexpr std::int64_t kImage[] = {0, 3, 1, 2};
  axis = axis_in(axis, value.rank());
  return value.image ? kImage[axis] : axis;
}

Values same(OnnxImporter& importer, const OnnxNode& node) { return {importer.input(node, 0)}; }

Values shape(OnnxImporter& importer, const OnnxNode& node) {
  std::vector<Extent> extents = importer.input(node, 0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto at = [&](std::int64_t i) { return std::clamp(i < 0 ? i + rank : i, std::int64_t{0}, rank); };
  const std::int64_t from = at(std::max(integer_or(node, "start", 0), -rank));
  const std::int64_t to = at(std::max(integer_or(node, "end", rank), -rank));
  OnnxValue value;
  value.constant = std::make_shared<OnnxConstant>(constant_of(std::vector<Extent>(
      extents.begin() + from, extents.begin() + std::max(from, to))));
  return {value};
}

Values cast(OnnxImporter& importer, const OnnxNode& node) {
  const auto to = static_cast<OnnxType>(integer_or(node, "to", 1));
  if (to != OnnxType::float32 && !is_integer(to))
    throw Error("expected a cast to float32 or whole numbers, found " + to_string(to));
  // Whole numbers travel as floats.
  return {importer.input(node, 0)};
}

Values reshape(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const OnnxConstant& asked = importer.constant(node, 1);
  const std::vector<Extent> own = x.extents();
  if (!asked.integer) throw Error("expected whole numbers as the shape");
  std::vector<Extent> target;
  std::ptrdiff_t open = -1;
  Extent known{1};  // the product of all but the -1
  const bool keeps_zero = integer_or(node, "allowzero", 0) != 0;
  for (std::size_t i = 0; i < asked.elements.size(); ++i) {
    Extent extent = asked.elements[i].whole;
    if (extent.value == 0 && !keeps_zero && i < own.size()) extent = own[i];
    // A batch that the file fixed is any batch here.
    if (i == 0 && !own.empty() && own[0].per_batch && !extent.per_batch && extent.value > 0 &&
        extent.value == importer.fixed_batch() * own[0].value)
      extent = own[0];
    if (extent.value == -1 && !extent.per_batch) {
      if (open >= 0) throw Error("expected at most one -1");
      open = static_cast<std::ptrdiff_t>(i);
    } else if (extent.value < 1 || (known.per_batch && extent.per_batch) ||
               __builtin_mul_overflow(known.value, extent.value, &known.value)) {
      throw Error("expected sizes of at least 1, one of them with the batch");
    } else {
      known.per_batch = known.per_batch || extent.per_batch;
    }
    target.push_back(extent);
  }
  Extent count{1};
  for (const Extent& extent : own) {
    if (__builtin_mul_overflow(count.value, extent.value, &count.value)) throw Error("too large");
    count.per_batch = count.per_batch || extent.per_batch;
  }
  if (open >= 0) {
    if (count.value % known.value != 0 || (known.per_batch && !count.per_batch))
      throw Error("the elements do not fit the shape");
    target[static_cast<std::size_t>(open)] = {count.value / known.value,
                                              count.per_batch && !known.per_batch};
  } else if (known != count) {
    throw Error("the elements do not fit the shape");
  }
  return {importer.reshape_to(node, x, target)};
}

Values flatten(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const std::vector<Extent> own = x.extents();
  std::int64_t axis = integer_or(node, "axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(own.size());
  if (axis < 1 || axis > static_cast<std::int64_t>(own.size()))
    throw Error(fmt::format("expected an axis from 1 on, found {}", axis));
  std::vector<Extent> target(2, Extent{1});
  for (std::size_t i = 0; i < own.size(); ++i) {
    Extent& side = target[static_cast<std::int64_t>(i) < axis ? 0 : 1];
    if (__builtin_mul_overflow(side.value, own[i].value, &side.value)) throw Error("too large");
    side.per_batch = side.per_batch || own[i].per_batch;
  }
  return {importer.reshape_to(node, x, target)};
}

Values squeeze(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const auto axes = input_or_attribute(node, importer.constants(node), 1, "axes");
  if (!axes) throw Error("expected axes");
  const std::vector<Extent> own = x.extents();
  std::vector<bool> drop(own.size(), false);
  for (const std::int64_t axis : *axes)
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
  OnnxValue x = importer.input(node, 0);
  std::vector<std::int64_t> order = integers_or(node, "perm", {});
  if (order.empty()) {
    for (std::size_t i = x.rank(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  }
  // Turning images is a change of name here.
  if (x.image && order == std::vector<std::int64_t>{0, 2, 3, 1}) {
    x.image = false;
    return {x};
  }
  if (!x.image && order == std::vector<std::int64_t>{0, 3, 1, 2}) {
    x.image = true;
    return {x};
  }
  x = importer.to_plain(x);
  if (order.empty() || order[0] != 0) throw Error("moving the batch axis is not supported");
  return {importer.add(importer.node_name(node), std::make_unique<Transpose>(order), {x}, false)};
}

Values concat(OnnxImporter& importer, const OnnxNode& node) {
  Values parts;
  bool any_image = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    parts.push_back(importer.as_graph(importer.input(node, i), node.inputs[i]));
    any_image = any_image || parts.back().image;
  }
  for (OnnxValue& part : parts) part = any_image ? importer.to_image(part) : importer.to_plain(part);
  const std::int64_t axis = stored_axis(parts.at(0), integer_or(node, "axis", 1));
  if (axis == 0) throw Error("joining along the batch is not supported");
  return {importer.add(importer.node_name(node), std::make_unique<Concat>(axis), parts, any_image)};
}

Values slice(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.input(node, 0);
  const std::vector<ConstantRef> inputs = importer.constants(node);
  const auto starts = input_or_attribute(node, inputs, 1, "starts");
  const auto ends = input_or_attribute(node, inputs, 2, "ends");
  auto axes = input_or_attribute(node, inputs, 3, "axes");
  auto steps = input_or_attribute(node, inputs, 4, "steps");
  if (!starts || !ends) throw Error("expected starts and ends");
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!steps) steps = std::vector<std::int64_t>(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size())
    throw Error("expected as many starts, ends, axes and steps");
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::int64_t axis = stored_axis(x, (*axes)[i]);
    const bool whole = (*starts)[i] == 0 && (*steps)[i] == 1 &&
                       (*ends)[i] >= std::numeric_limits<std::int32_t>::max();
    if (axis == 0 && !whole) throw Error("cutting the batch is not supported");
    if (!whole) ranges.push_back({axis, (*starts)[i], (*ends)[i], (*steps)[i]});
  }
  if (ranges.empty()) return {x};
  return {importer.add(importer.node_name(node), std::make_unique<Slice>(ranges), {x}, x.image)};
}

Values split(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const std::int64_t axis = stored_axis(x, integer_or(node, "axis", 0));
  if (axis == 0) throw Error("cutting the batch is not supported");
  const std::int64_t length = x.shapes[0][static_cast<std::size_t>(axis)];
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  auto sizes = input_or_attribute(node, importer.constants(node), 1, "split");
  if (!sizes) {
    const std::int64_t size = (length + parts - 1) / parts;
    sizes.emplace();
    for (std::int64_t i = 0; i < parts; ++i)
      sizes->push_back(std::min(size, length - std::min(length, i * size)));
  }
  if (static_cast<std::int64_t>(sizes->size()) != parts)
    throw Error("expected as many sizes as outputs");
  Values out;
  std::int64_t start = 0;
  for (const std::int64_t size : *sizes) {
    if (size < 1 || size > length - start) throw Error("expected sizes that add up to the axis");
    out.push_back(importer.add(
        importer.node_name(node),
        std::make_unique<Slice>(std::vector<SliceRange>{{axis, start, start + size, 1}}), {x},
        x.image));
    start += size;
  }
  return out;
}

Values pad(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  if (text_or(node, "mode", "constant") != "constant")
    throw Error("expected mode 'constant'");
  const auto pads = input_or_attribute(node, importer.constants(node), 1, "pads");
  if (!pads) throw Error("expected pads");
  float value = number_or(node, "value", 0);
  if (importer.has_input(node, 2)) {
    const Tensor given = importer.constant(node, 2).tensor();
    if (given.size() != 1) throw Error("expected one number to pad with");
    value = given.data[0];
  }
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (importer.has_input(node, 3)) axes = importer.constant(node, 3).integers();
  if (pads->size() != 2 * axes.size()) throw Error("expected two pads for every axis");
  std::vector<std::int64_t> before(x.rank(), 0), after(x.rank(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(stored_axis(x, axes[i]));
    before[axis] = (*pads)[i];
    after[axis] = (*pads)[i + axes.size()];
    if (axis == 0 && (before[0] != 0 || after[0] != 0))
      throw Error("padding the batch is not supported");
    if (before[axis] > (1 << 20) || after[axis] > (1 << 20)) throw Error("expected pads to 2^20");
  }
  return {importer.add(importer.node_name(node), std::make_unique<Pad>(before, after, value), {x},
                       x.image)};
}

Values reduce_mean(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const auto asked = input_or_attribute(node, importer.constants(node), 1, "axes");
  if (!asked) throw Error("expected axes");
  const bool keep = integer_or(node, "keepdims", 1) != 0;
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : *asked) axes.push_back(stored_axis(x, axis));
  std::sort(axes.begin(), axes.end());
  if (!axes.empty() && axes[0] == 0) throw Error("a mean over the batch is not supported");
  const bool space = x.image && axes == std::vector<std::int64_t>{1, 2};
  if (space && keep) {
    return {importer.add(importer.node_name(node), std::make_unique<GlobalAveragePool>(), {x}, true)};
  }
  // Without the axes of space only channels are left, in either order.
  const OnnxValue from = space || (x.image && keep) ? x : importer.to_plain(x);
  if (from.number != x.number) {
    axes.clear();
    for (const std::int64_t axis : *asked) axes.push_back(axis_in(axis, from.rank()));
    std::sort(axes.begin(), axes.end());
  }
  return {importer.add(importer.node_name(node), std::make_unique<ReduceMean>(axes, keep), {from},
                       from.image && keep)};
}

/// Before operator set 13 the axis and all behind it were flattened; the last axis means the same.
template <class Function>
Values softmax(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const bool flattens = importer.opset() < 13;
  const std::int64_t axis = axis_in(integer_or(node, "axis", flattens ? 1 : -1), x.rank());
  if (flattens && axis + 1 != static_cast<std::int64_t>(x.rank()))
    throw Error("expected the last axis before operator set 13");
  return {importer.add(importer.node_name(node), std::make_unique<Function>(stored_axis(x, axis)),
                       {x}, x.image)};
}

/// Broadcasting to a larger shape: the sum with zeros of that shape.
Values expand(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const OnnxConstant& asked = importer.constant(node, 1);
  const std::vector<Extent> own = x.extents();
  Shape dims;
  const std::size_t rank = std::max(own.size(), asked.elements.size());
  bool larger = false;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t back = rank - i;
    const Extent mine = back <= own.size() ? own[own.size() - back] : Extent{1};
    const Extent wanted = back <= asked.elements.size()
                              ? asked.elements[asked.elements.size() - back].whole
                              : Extent{1};
    const bool grows = mine == Extent{1} && wanted != Extent{1};
    if (grows && wanted.per_batch) throw Error("expanding to the batch is not supported");
    dims.push_back(grows ? wanted.value : 1);
    larger = larger || grows;
  }
  if (!larger) return {x};
  auto zeros = std::make_shared<OnnxConstant>(OnnxConstant{dims, false, {}});
  if (element_count(dims) > (1 << 20)) throw Error("expanding to so many elements is not supported");
  zeros->elements.resize(static_cast<std::size_t>(element_count(dims)));
  OnnxValue constant;
  constant.constant = std::move(zeros);
  return {importer.add(importer.node_name(node), std::make_unique<Add>(),
                       {x, importer.as_graph(constant, "expand")}, false)};
}

}  // namespace

const OnnxHandlers& onnx_shape_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Cast", cast},
      {"Concat", concat},
      {"Dropout", same},
      {"Expand", expand},
      {"Flatten", flatten},
      {"Identity", same},
      {"LogSoftmax", softmax<LogSoftmax>},
      {"Pad", pad},
      {"ReduceMean", reduce_mean},
      {"Reshape", reshape},
      {"Shape", shape},
      {"Slice", slice},
      {"Softmax", softmax<Softmax>},
      {"Split", split},
      {"Squeeze", squeeze},
      {"Transpose", transpose},
      {"Unsqueeze", unsqueeze},
  };
  return kHandlers;
}

}  // namespace numemu::net
