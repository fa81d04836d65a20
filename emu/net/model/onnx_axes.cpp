// ONNX operators along axes: joining, cutting, padding, means, softmax.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/concat.hpp"
#include "emu/net/ops/global_average_pool.hpp"
#include "emu/net/ops/log_softmax.hpp"
#include "emu/net/ops/pad.hpp"
#include "emu/net/ops/reduce_mean.hpp"
#include "emu/net/ops/slice.hpp"
#include "emu/net/ops/softmax.hpp"
#include "formats/error.hpp"

namespace numemu::net {

std::int64_t stored_axis(const OnnxValue& value, std::int64_t axis) {
  axis = axis_in(axis, value.rank());
  if (!value.image || axis == 0) return axis;
  return axis == 1 ? static_cast<std::int64_t>(value.rank()) - 1 : axis - 1;
}

void refuse_batch(const OnnxValue& value, std::int64_t axis, std::string_view what) {
  const auto at = static_cast<std::size_t>(axis);
  if (value.shapes[0][at] != value.shapes[1][at])
    throw Error(fmt::format("{} the batch is not supported", what));
}

namespace {

using Values = std::vector<OnnxValue>;
using Ints = std::vector<std::int64_t>;

std::int64_t extent_of(const OnnxValue& value, std::int64_t stored) {
  return value.shapes[0][static_cast<std::size_t>(stored)];
}

/// Whether an axis differs between the probe batches.
bool has_batch(const OnnxValue& value) { return value.shapes[0] != value.shapes[1]; }

Values concat(OnnxImporter& importer, const OnnxNode& node) {
  if (node.inputs.empty()) throw Error("expected an input");
  Values parts;
  bool any_image = false, any_batch = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    parts.push_back(importer.as_graph(importer.input(node, i), node.inputs[i]));
    any_image = any_image || parts.back().image;
    any_batch = any_batch || has_batch(parts.back());
  }
  for (OnnxValue& part : parts) {
    // A class token: one sample in the file, whose batch is fixed.
    if (any_batch && !has_batch(part) && part.rank() > 1 && part.shapes[0][0] == 1)
      part = importer.repeated(node, part);
    part = any_image ? importer.to_image(part) : importer.to_plain(part);
  }
  const std::int64_t axis = stored_axis(parts[0], integer_or(node, "axis", 1));
  refuse_batch(parts[0], axis, "joining along");
  return {importer.add(importer.node_name(node), std::make_unique<Concat>(axis), parts, any_image)};
}

Values slice(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
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
  if (!steps) steps = Ints(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size() || starts->size() > x.rank())
    throw Error("expected as many starts, ends, axes and steps, at most one for an axis");
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::int64_t axis = stored_axis(x, (*axes)[i]);
    const bool whole = (*starts)[i] == 0 && (*steps)[i] == 1 &&
                       (*ends)[i] >= std::numeric_limits<std::int32_t>::max();
    if (whole) continue;
    refuse_batch(x, axis, "cutting");
    ranges.push_back({axis, (*starts)[i], (*ends)[i], (*steps)[i]});
  }
  if (ranges.empty()) return {x};
  return {importer.add(importer.node_name(node), std::make_unique<Slice>(ranges), {x}, x.image)};
}

Values split(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const std::int64_t axis = stored_axis(x, integer_or(node, "axis", 0));
  refuse_batch(x, axis, "cutting");
  const std::int64_t length = extent_of(x, axis);
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  if (parts < 1) throw Error("expected an output");
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
  if (start != length) throw Error("expected sizes that add up to the axis");
  return out;
}

Values pad(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  if (text_or(node, "mode", "constant") != "constant") throw Error("expected mode 'constant'");
  const auto pads = input_or_attribute(node, importer.constants(node), 1, "pads");
  if (!pads) throw Error("expected pads");
  float value = number_or(node, "value", 0);
  if (importer.has_input(node, 2)) {
    const Tensor given = importer.constant(node, 2).tensor();
    if (given.size() != 1) throw Error("expected one number to pad with");
    value = given.data[0];
  }
  Ints axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (importer.has_input(node, 3)) axes = importer.constant(node, 3).integers();
  if (axes.size() > x.rank() || pads->size() != 2 * axes.size())
    throw Error("expected two pads for every axis");
  Ints before(x.rank(), 0), after(x.rank(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t stored = stored_axis(x, axes[i]);
    const auto axis = static_cast<std::size_t>(stored);
    before[axis] = (*pads)[i];
    after[axis] = (*pads)[i + axes.size()];
    if (before[axis] != 0 || after[axis] != 0) refuse_batch(x, stored, "padding");
    if (before[axis] > (1 << 20) || after[axis] > (1 << 20)) throw Error("expected pads to 2^20");
  }
  return {importer.add(importer.node_name(node), std::make_unique<Pad>(before, after, value), {x},
                       x.image)};
}

/// The axes of a reduction, in ONNX order and sorted.
Ints reduced_axes(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x) {
  const auto asked = input_or_attribute(node, importer.constants(node), 1, "axes");
  if (!asked || asked->empty()) throw Error("expected axes: the batch cannot be one of them");
  Ints axes;
  for (const std::int64_t axis : *asked) {
    refuse_batch(x, stored_axis(x, axis), "a reduction over");
    axes.push_back(axis_in(axis, x.rank()));
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Error("expected different axes");
  return axes;
}

OnnxValue mean_over(OnnxImporter& importer, const OnnxNode& node, OnnxValue x, Ints axes) {
  const bool keep = integer_or(node, "keepdims", 1) != 0;
  const bool space = x.image && axes == Ints{2, 3};
  if (space && keep)
    return importer.add(importer.node_name(node), std::make_unique<GlobalAveragePool>(), {x}, true);
  // Without the axes of space only channels are left, in either order.
  if (!space && !keep) x = importer.to_plain(x);
  for (std::int64_t& axis : axes) axis = stored_axis(x, axis);
  std::ranges::sort(axes);
  return importer.add(importer.node_name(node), std::make_unique<ReduceMean>(axes, keep), {x},
                      x.image && keep);
}

Values reduce_mean(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  return {mean_over(importer, node, x, reduced_axes(importer, node, x))};
}

/// The mean times the number of elements: rounded twice.
Values reduce_sum(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const Ints axes = reduced_axes(importer, node, x);
  float count = 1;
  for (const std::int64_t axis : axes)
    count *= static_cast<float>(extent_of(x, stored_axis(x, axis)));
  const OnnxValue mean = mean_over(importer, node, x, axes);
  return {importer.add(importer.node_name(node), std::make_unique<Binary>("multiply"),
                       {mean, importer.number(count)}, mean.image)};
}

/// Before operator set 13 the axis and all behind it were flattened: the same where nothing but
/// extents of 1 is behind it.
template <class Function>
Values softmax(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  const bool flattens = importer.opset() < 13;
  const std::int64_t axis = axis_in(integer_or(node, "axis", flattens ? 1 : -1), x.rank());
  for (auto i = axis + 1; flattens && i < static_cast<std::int64_t>(x.rank()); ++i) {
    if (extent_of(x, stored_axis(x, i)) != 1)
      throw Error("expected the last axis before operator set 13");
  }
  refuse_batch(x, stored_axis(x, axis), "a softmax over");
  return {importer.add(importer.node_name(node), std::make_unique<Function>(stored_axis(x, axis)),
                       {x}, x.image)};
}

}  // namespace

const OnnxHandlers& onnx_axis_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Concat", concat},
      {"LogSoftmax", softmax<LogSoftmax>},
      {"Pad", pad},
      {"ReduceMean", reduce_mean},
      {"ReduceSum", reduce_sum},
      {"Slice", slice},
      {"Softmax", softmax<Softmax>},
      {"Split", split},
  };
  return kHandlers;
}

}  // namespace numemu::net
