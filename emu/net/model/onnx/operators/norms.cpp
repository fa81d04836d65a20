// ONNX's normalisations beside that of batches: over rows, images, groups of channels, neighbours.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/sampling.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Weight and bias, inputs 1 and 2 of the node, each for `size` elements in order; the bias may be
/// missing. A vector of `groups` numbers is repeated for all elements of a group.
void set_affine(const NodeImport& node, Op& op, std::int64_t size, std::int64_t groups) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (!node.has_input(i + 1) && i == 1) continue;
    const Tensor given = node.constant(i + 1).tensor();
    const std::int64_t count = given.size(), repeats = count == size ? 1 : size / groups;
    if (count != size && count != groups)
      throw Error(
          fmt::format("expected input {} to have {} numbers, found {}", i + 1, size, count));
    Elements& values = op.parameters()[i].value.data;
    for (std::size_t c = 0; c < values.size(); ++c)
      values[c] = given.data[c / static_cast<std::size_t>(repeats)];
  }
}

/// Over the axes from `axis` on, as one.
OnnxValues layer_norm(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const std::int64_t axis = axis_in(node->integer_or("axis", -1), x.rank());
  const std::vector<Extent> own = x.extents();
  Ints axes = ascending(own.size());
  axes.erase(axes.begin(), axes.begin() + axis);
  for (const std::int64_t i : axes) refuse_batch(x, i, "a normalisation over");
  const std::vector<Extent> rows = joined_from(own, axis);
  const std::int64_t size = rows.back().value;
  node.hold(2 * size);
  auto op = std::make_unique<LayerNorm>(size, node->number_or("epsilon", 1e-5f));
  set_affine(node, *op, size, size);
  const OnnxValue y =
      node.add(node.layer_name(1), std::move(op), {node.reshape_to(x, rows)}, false);
  OnnxValues out{node.reshape_to(y, own)};
  if (!node.is_read(1) && !node.is_read(2)) return out;
  // The mean and what the centred rows are multiplied by.
  out.push_back(node.reduce("reduce_mean", x, axes));
  const OnnxValue centred = node.binary("subtract", x, out[1]);
  const OnnxValue variance =
      node.reduce("reduce_mean", node.binary("multiply", centred, centred), axes);
  const float epsilon = node->number_or("epsilon", 1e-5f);
  out.push_back(
      node.unary("reciprocal", node.unary("sqrt", node.binary("add", variance, epsilon))));
  return out;
}

OnnxValue group_norm_of(const NodeImport& node, std::int64_t groups) {
  const OnnxValue x = node.plain();
  if (x.rank() < 2) throw Error("expected [n, channels, ...]");
  refuse_batch(x, 1, "a normalisation over");
  const std::int64_t channels = x.shapes[0][1];
  if (groups == 0) groups = channels;
  node.hold(2 * channels);
  auto op = std::make_unique<GroupNorm>(channels, groups, node->number_or("epsilon", 1e-5f));
  set_affine(node, *op, channels, groups);
  return node.add(node.layer_name(1), std::move(op), {x}, false);
}

OnnxValues instance_norm(const NodeImport& node) { return {group_norm_of(node, 0)}; }

/// Operator set 18 has a weight and a bias for each group, 21 for each channel.
OnnxValues group_norm(const NodeImport& node) {
  const std::int64_t groups = node->integer_or("num_groups", 0);
  if (groups < 1) throw Error("expected num_groups of at least 1");
  return {group_norm_of(node, groups)};
}

/// x / (bias + alpha / size times the sum of the squares of `size` neighbouring channels)^beta.
OnnxValues local_response(const NodeImport& node) {
  const OnnxValue x = node.value();
  if (x.rank() < 2) throw Error("expected [n, channels, ...]");
  const std::int64_t size = node->integer_or("size", 0), axis = stored_axis(x, 1),
                     channels = x.extent(axis);
  if (size < 1 || size > (1 << 20)) throw Error("expected a size from 1 to 2^20");
  refuse_batch(x, axis, "a normalisation over");
  Resampling window{.axis = axis, .taps = std::min(size, 2 * channels)};
  node.hold(4 * window.taps * channels);
  const double share = double{node->number_or("alpha", 1e-4f)} / static_cast<double>(size);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t t = 0; t < window.taps; ++t) {
      const std::int64_t place = c - (window.taps - 1) / 2 + t;
      const bool inside = place >= 0 && place < channels;
      window.places.push_back(inside ? place : 0);
      window.weights.push_back(inside ? share : 0);
    }
  }
  const OnnxValue mean = node.add<Resample>({node.binary("multiply", x, x)}, x.image,
                                            std::vector<Resampling>{std::move(window)});
  const OnnxValue base = node.binary("add", mean, node->number_or("bias", 1));
  return {node.binary("divide", x, node.binary("power", base, node->number_or("beta", 0.75f)))};
}

/// x over its norm along one axis.
OnnxValues lp_norm(const NodeImport& node) {
  const OnnxValue x = node.value();
  const std::int64_t axis = stored_axis(x, node->integer_or("axis", -1)),
                     p = node->integer_or("p", 2);
  if (p != 1 && p != 2) throw Error("expected p of 1 or 2");
  refuse_batch(x, axis, "a norm over");
  const OnnxValue norm = node.reduce(p == 1 ? "reduce_l1" : "reduce_l2", x, {axis});
  return {node.binary("divide", x, norm)};
}

}  // namespace

const OnnxHandlers& onnx_norms_handlers() {
  static const OnnxHandlers kHandlers = {
      {"GroupNormalization", group_norm},
      {"InstanceNormalization", instance_norm},
      {"LRN", local_response},
      {"LayerNormalization", layer_norm},
      {"LpNormalization", lp_norm},
  };
  return kHandlers;
}

}  // namespace numemu::net
