// ONNX operators along axes: joining, cutting, padding, reductions, softmax.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {

namespace {

OnnxValues concat(const NodeImport& node) {
  if (node->inputs.empty()) throw Error("expected an input");
  OnnxValues parts;
  bool any_image = false, any_batch = false;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    parts.push_back(node.as_graph(node.input(i), node->inputs[i]));
    any_image = any_image || parts.back().image;
    any_batch = any_batch || parts.back().has_batch();
  }
  for (OnnxValue& part : parts) {
    // A class token: one sample in the file, whose batch is fixed.
    if (any_batch && !part.has_batch() && part.rank() > 1 && part.shapes[0][0] == 1)
      part = node.repeated(part);
    part = any_image ? node.to_image(part) : node.to_plain(part);
  }
  const std::int64_t axis = stored_axis(parts[0], node->integer_or("axis", 1));
  refuse_batch(parts[0], axis, "joining along");
  return {node.add<Concat>(parts, any_image, axis)};
}

OnnxValues slice(const NodeImport& node) {
  const OnnxValue x = node.value();
  const auto [starts, ends, axes, steps] = node.cuts();
  if (!starts || !ends) throw Error("expected starts and ends");
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size() || starts->size() > x.rank())
    throw Error("expected as many starts, ends, axes and steps, at most one for an axis");
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::int64_t axis = stored_axis(x, axes[i]);
    const bool whole = (*starts)[i] == 0 && steps[i] == 1 &&
                       (*ends)[i] >= std::numeric_limits<std::int32_t>::max();
    if (whole) continue;
    refuse_batch(x, axis, "cutting");
    ranges.push_back({axis, (*starts)[i], (*ends)[i], steps[i]});
  }
  if (ranges.empty()) return {x};
  return {node.add<Slice>({x}, x.image, ranges)};
}

OnnxValues split(const NodeImport& node) {
  const OnnxValue x = node.value();
  const std::int64_t axis = stored_axis(x, node->integer_or("axis", 0));
  refuse_batch(x, axis, "cutting");
  const std::int64_t length = x.extent(axis);
  const auto parts = static_cast<std::int64_t>(node->outputs.size());
  if (parts < 1) throw Error("expected an output");
  auto sizes = node.input_or_attribute(1, "split");
  if (!sizes) {
    const std::int64_t size = (length + parts - 1) / parts;
    sizes.emplace();
    for (std::int64_t i = 0; i < parts; ++i)
      sizes->push_back(std::min(size, length - std::min(length, i * size)));
  }
  if (static_cast<std::int64_t>(sizes->size()) != parts)
    throw Error("expected as many sizes as outputs");
  OnnxValues out;
  std::int64_t start = 0;
  for (const std::int64_t size : *sizes) {
    if (size < 1 || size > length - start) throw Error("expected sizes that add up to the axis");
    out.push_back(
        node.add<Slice>({x}, x.image, std::vector<SliceRange>{{axis, start, start + size, 1}}));
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
OnnxValues pad(const NodeImport& node) {
  OnnxValue x = node.value();
  const std::string_view mode = node->text_or("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    throw Error("expected mode 'constant', 'reflect', 'edge' or 'wrap'");
  const auto pads = node.input_or_attribute(1, "pads");
  if (!pads) throw Error("expected pads");
  float value = node->number_or("value", 0);
  if (node.has_input(2)) value = node.one_number(2, "expected one number to pad with");
  const Ints axes = node.has_input(3) ? node.constant(3).integers() : ascending(x.rank());
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
    const std::int64_t n = x.extent(stored);
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
    node.hold(2 * std::ssize(places));  // eight bytes each
    x = node.add<Gather>({x}, x.image, stored, std::move(places));
  }
  if (!cuts.empty()) x = node.add<Slice>({x}, x.image, cuts);
  if (mode != "constant") return {x};
  return {node.add<Pad>({x}, x.image, before, after, value)};
}

/// The tensor as often as asked along each axis, or as often for each sample.
OnnxValues tile(const NodeImport& node) {
  OnnxValue x = node.value();
  const OnnxConstant& given = node.constant(1);
  if (given.elements.size() != x.rank() || !given.integer)
    throw Error("expected one whole number of repeats for every axis");
  std::vector<Extent> repeats;
  for (const Folded& element : given.elements) repeats.push_back(element.whole);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == Extent{1}) continue;
    const std::int64_t stored = stored_axis(x, static_cast<std::int64_t>(i)), n = x.extent(stored);
    refuse_batch(x, stored, "repeating");
    if (repeats[i].value < 1 || repeats[i].value > kMostElements / n)
      throw Error("expected repeats of at least 1");
    if (repeats[i].value > 1) {
      node.hold(2 * repeats[i].value * n);  // eight bytes each
      Ints places;
      for (std::int64_t k = 0; k < repeats[i].value * n; ++k) places.push_back(k % n);
      x = node.add<Gather>({x}, x.image, stored, std::move(places));
    }
    if (repeats[i].per_batch) x = node.repeated(node.to_plain(x), i);
  }
  return {x};
}

/// The lower or upper triangle of the last two axes, zeros elsewhere: a choice by a constant.
OnnxValues trilu(const NodeImport& node) {
  const OnnxValue x = node.plain();
  if (x.rank() < 2) throw Error("expected at least two axes");
  const auto rank = static_cast<std::int64_t>(x.rank());
  refuse_batch(x, rank - 2, "the triangle of");
  refuse_batch(x, rank - 1, "the triangle of");
  const std::int64_t rows = x.extent(rank - 2), columns = x.extent(rank - 1);
  std::int64_t shift = 0;
  if (node.has_input(1))
    shift = std::clamp(node.one_integer(1, "expected one number of the diagonal"), -rows - columns,
                       rows + columns);
  const bool upper = node->integer_or("upper", 1) != 0;
  node.hold(7 * rows * columns);
  const OnnxValue inside =
      node.numbers(whole_numbers({rows, columns},
                                 [&](std::int64_t i) {
                                   const std::int64_t right = i % columns - i / columns - shift;
                                   return std::int64_t{upper ? right >= 0 : right <= 0};
                                 }),
                   "triangle");
  return {node.where(inside, x, node.number(0))};
}

/// The axes of a reduction, in ONNX order and sorted: all where none are given.
Ints reduced_axes(const NodeImport& node, const OnnxValue& x) {
  Ints axes = node.input_or_attribute(1, "axes").value_or(Ints());
  if (axes.empty()) axes = ascending(x.rank());
  for (std::int64_t& axis : axes) {
    refuse_batch(x, stored_axis(x, axis), "a reduction over");
    axis = axis_in(axis, x.rank());
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Error("expected different axes");
  return axes;
}

OnnxValues reduce(const NodeImport& node) {
  OnnxValue x = node.value();
  const auto given = node.input_or_attribute(1, "axes");
  if ((!given || given->empty()) && node->integer_or("noop_with_empty_axes", 0) != 0) return {x};
  const ReduceRule& rule = rule_named(reduce_rules(), node->op_type);
  Ints axes = reduced_axes(node, x);
  Ints spatial(std::max<std::size_t>(x.rank(), 2) - 2);
  std::iota(spatial.begin(), spatial.end(), 2);
  const bool keep = node->integer_or("keepdims", 1) != 0, space = x.image && axes == spatial;
  if (space && keep && rule.over == ReduceRule::Over::mean)
    return {node.add<GlobalAveragePool>({x}, true)};
  // Without the axes of space only channels are left, in either order.
  if (!space && !keep) x = node.to_plain(x);
  for (std::int64_t& axis : axes) axis = stored_axis(x, axis);
  std::ranges::sort(axes);
  return {node.reduce(rule.kind, x, axes, keep)};
}

/// Before operator set 13 the axis and all behind it are one.
template <class Function>
OnnxValues softmax(const NodeImport& node) {
  const OnnxValue x = node.value();
  const bool flattens = node.opset() < 13;
  const std::int64_t axis = axis_in(node->integer_or("axis", flattens ? 1 : -1), x.rank());
  refuse_batch(x, stored_axis(x, axis), "a softmax over");
  std::int64_t behind = 1;
  for (auto i = axis + 1; i < static_cast<std::int64_t>(x.rank()); ++i)
    behind *= x.extent(stored_axis(x, i));
  if (!flattens || behind == 1) return {node.add<Function>({x}, x.image, stored_axis(x, axis))};
  const OnnxValue plain = node.to_plain(x);
  const std::vector<Extent> own = plain.extents();
  const OnnxValue flat = node.reshape_to(plain, joined_from(own, axis));
  return {node.reshape_to(node.add<Function>({flat}, false, axis), own)};
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
