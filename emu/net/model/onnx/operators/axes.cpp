// ONNX operators along axes: joining, cutting, padding, reductions, softmax.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
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

Values concat(OnnxImporter& importer, const OnnxNode& node) {
  if (node.inputs.empty()) throw Error("expected an input");
  Values parts;
  bool any_image = false, any_batch = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    parts.push_back(importer.as_graph(importer.input(node, i), node.inputs[i]));
    any_image = any_image || parts.back().image;
    any_batch = any_batch || parts.back().has_batch();
  }
  for (OnnxValue& part : parts) {
    // A class token: one sample in the file, whose batch is fixed.
    if (any_batch && !part.has_batch() && part.rank() > 1 && part.shapes[0][0] == 1)
      part = importer.repeated(node, part);
    part = any_image ? importer.to_image(part) : importer.to_plain(part);
  }
  const std::int64_t axis = stored_axis(parts[0], integer_or(node, "axis", 1));
  refuse_batch(parts[0], axis, "joining along");
  return {importer.add<Concat>(node, parts, any_image, axis)};
}

Values slice(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
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
  return {importer.add<Slice>(node, {x}, x.image, ranges)};
}

Values split(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
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
    out.push_back(importer.add<Slice>(node, {x}, x.image,
                                      std::vector<SliceRange>{{axis, start, start + size, 1}}));
    start += size;
  }
  if (start != length) throw Error("expected sizes that add up to the axis");
  return out;
}

/// The element of an axis of n that fills a place outside it.
std::int64_t filled_from(std::string_view mode, std::int64_t place, std::int64_t n) {
  if (mode == "edge") return std::clamp<std::int64_t>(place, 0, n - 1);
  const std::int64_t period = mode == "wrap" || n == 1 ? n : 2 * n - 2;
  const std::int64_t at = (place % period + period) % period;
  return at < n ? at : period - at;
}

/// Constants around the tensor, or elements of it; negative pads cut.
Values pad(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  const std::string_view mode = text_or(node, "mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    throw Error("expected mode 'constant', 'reflect', 'edge' or 'wrap'");
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
  std::vector<SliceRange> cuts;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t stored = stored_axis(x, axes[i]), front = (*pads)[i],
                       back = (*pads)[i + axes.size()];
    if (front == 0 && back == 0) continue;
    refuse_batch(x, stored, "padding");
    constexpr std::int64_t kMost = 1 << 20;
    if (front > kMost || front < -kMost || back > kMost || back < -kMost)
      throw Error("expected pads of at most 2^20");
    const std::int64_t n = extent_of(x, stored);
    if (mode == "constant") {
      const auto axis = static_cast<std::size_t>(stored);
      before[axis] = std::max<std::int64_t>(0, front);
      after[axis] = std::max<std::int64_t>(0, back);
      if (front < 0 || back < 0) {
        if (n + std::min<std::int64_t>(0, front) + std::min<std::int64_t>(0, back) < 1)
          throw Error("expected pads that leave an element");
        cuts.push_back(
            {stored, std::max<std::int64_t>(0, -front), n - std::max<std::int64_t>(0, -back), 1});
      }
      continue;
    }
    if (n + front + back < 1) throw Error("expected pads that leave an element");
    Ints places;
    for (std::int64_t place = -front; place < n + back; ++place)
      places.push_back(filled_from(mode, place, n));
    importer.hold(2 * std::ssize(places));  // eight bytes each
    x = importer.add<Gather>(node, {x}, x.image, stored, std::move(places));
  }
  if (!cuts.empty()) x = importer.add<Slice>(node, {x}, x.image, cuts);
  if (mode != "constant") return {x};
  return {importer.add<Pad>(node, {x}, x.image, before, after, value)};
}

/// The tensor as often as asked along each axis, or as often for each sample.
Values tile(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  const OnnxConstant& given = importer.constant(node, 1);
  if (given.elements.size() != x.rank() || !given.integer)
    throw Error("expected one whole number of repeats for every axis");
  std::vector<Extent> repeats;
  for (const Folded& element : given.elements) repeats.push_back(element.whole);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == Extent{1}) continue;
    const std::int64_t stored = stored_axis(x, static_cast<std::int64_t>(i)),
                       n = extent_of(x, stored);
    refuse_batch(x, stored, "repeating");
    if (repeats[i].value < 1 || repeats[i].value > kMostElements / n)
      throw Error("expected repeats of at least 1");
    if (repeats[i].value > 1) {
      importer.hold(2 * repeats[i].value * n);  // eight bytes each
      Ints places;
      for (std::int64_t k = 0; k < repeats[i].value * n; ++k) places.push_back(k % n);
      x = importer.add<Gather>(node, {x}, x.image, stored, std::move(places));
    }
    if (repeats[i].per_batch) x = importer.repeated(node, importer.to_plain(x), i);
  }
  return {x};
}

/// The lower or upper triangle of the last two axes, zeros elsewhere: a choice by a constant.
Values trilu(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.value(node));
  if (x.rank() < 2) throw Error("expected at least two axes");
  const auto rank = static_cast<std::int64_t>(x.rank());
  refuse_batch(x, rank - 2, "the triangle of");
  refuse_batch(x, rank - 1, "the triangle of");
  const std::int64_t rows = extent_of(x, rank - 2), columns = extent_of(x, rank - 1);
  std::int64_t shift = 0;
  if (importer.has_input(node, 1)) {
    const Ints given = importer.constant(node, 1).integers();
    if (given.size() != 1) throw Error("expected one number of the diagonal");
    shift = std::clamp(given[0], -rows - columns, rows + columns);
  }
  const bool upper = integer_or(node, "upper", 1) != 0;
  importer.hold(7 * rows * columns);
  OnnxValue mask;
  OnnxConstant inside{{rows, columns}, true, {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      inside.elements.push_back({0, {(upper ? c - r >= shift : c - r <= shift) ? 1 : 0}});
  }
  mask.constant = std::make_shared<OnnxConstant>(std::move(inside));
  return {importer.add<Where>(node, {importer.as_graph(mask, "triangle"), x, importer.number(0)},
                              false)};
}

/// The axes of a reduction, in ONNX order and sorted: all where none are given.
Ints reduced_axes(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x) {
  Ints axes = input_or_attribute(node, importer.constants(node), 1, "axes").value_or(Ints());
  const bool all = axes.empty();
  for (std::size_t i = 0; all && i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  for (std::int64_t& axis : axes) {
    refuse_batch(x, stored_axis(x, axis), "a reduction over");
    axis = axis_in(axis, x.rank());
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Error("expected different axes");
  return axes;
}

Values reduce(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  const auto given = input_or_attribute(node, importer.constants(node), 1, "axes");
  if ((!given || given->empty()) && integer_or(node, "noop_with_empty_axes", 0) != 0) return {x};
  const auto rules = reduce_rules();
  const ReduceRule& rule = *std::find_if(rules.begin(), rules.end(),
                                         [&](const auto& r) { return r.onnx == node.op_type; });
  Ints axes = reduced_axes(importer, node, x);
  Ints spatial(std::max<std::size_t>(x.rank(), 2) - 2);
  std::iota(spatial.begin(), spatial.end(), 2);
  const bool keep = integer_or(node, "keepdims", 1) != 0, space = x.image && axes == spatial;
  if (space && keep && rule.over == ReduceRule::Over::mean)
    return {importer.add<GlobalAveragePool>(node, {x}, true)};
  // Without the axes of space only channels are left, in either order.
  if (!space && !keep) x = importer.to_plain(x);
  for (std::int64_t& axis : axes) axis = stored_axis(x, axis);
  std::ranges::sort(axes);
  return {importer.add<Reduce>(node, {x}, x.image && keep, rule.kind, axes, keep)};
}

/// Before operator set 13 the axis and all behind it are one.
template <class Function>
Values softmax(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  const bool flattens = importer.opset() < 13;
  const std::int64_t axis = axis_in(integer_or(node, "axis", flattens ? 1 : -1), x.rank());
  refuse_batch(x, stored_axis(x, axis), "a softmax over");
  std::int64_t behind = 1;
  for (auto i = axis + 1; i < static_cast<std::int64_t>(x.rank()); ++i)
    behind *= extent_of(x, stored_axis(x, i));
  if (!flattens || behind == 1) {
    return {importer.add<Function>(node, {x}, x.image, stored_axis(x, axis))};
  }
  const OnnxValue plain = importer.to_plain(x);
  const std::vector<Extent> own = plain.extents();
  std::vector<Extent> flat(own.begin(), own.begin() + axis);
  flat.push_back({behind * own[static_cast<std::size_t>(axis)].value});
  const OnnxValue y =
      importer.add<Function>(node, {importer.reshape_to(node, plain, flat)}, false, axis);
  return {importer.reshape_to(node, y, own)};
}

}  // namespace

const OnnxHandlers& onnx_axes_handlers() {
  static const OnnxHandlers kHandlers = [] {
    OnnxHandlers handlers = {
        {"Concat", concat}, {"LogSoftmax", softmax<LogSoftmax>}, {"Pad", pad},   {"Slice", slice},
        {"Split", split},   {"Softmax", softmax<Softmax>},       {"Tile", tile}, {"Trilu", trilu},
    };
    for (const ReduceRule& rule : reduce_rules()) handlers.emplace_back(rule.onnx, reduce);
    return handlers;
  }();
  return kHandlers;
}

}  // namespace numemu::net
