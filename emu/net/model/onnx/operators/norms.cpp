// ONNX's normalisations beside that of batches: over rows, images, groups of channels, neighbours.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/sampling.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

/// Weight and bias, inputs 1 and 2 of the node, each for `size` elements in order; the bias may be
/// missing. A vector of `groups` numbers is repeated for all elements of a group.
void set_affine(OnnxImporter& importer, const OnnxNode& node, Op& op, std::int64_t size,
                std::int64_t groups) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (!importer.has_input(node, i + 1) && i == 1) continue;
    const Tensor given = importer.constant(node, i + 1).tensor();
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
Values layer_norm(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const std::int64_t axis = axis_in(integer_or(node, "axis", -1), x.rank());
  const std::vector<Extent> own = x.extents();
  std::vector<Extent> rows(own.begin(), own.begin() + axis);
  Extent last{1};
  for (auto i = static_cast<std::size_t>(axis); i < own.size(); ++i) {
    refuse_batch(x, static_cast<std::int64_t>(i), "a normalisation over");
    last.value *= own[i].value;
  }
  rows.push_back(last);
  importer.hold(2 * last.value);
  auto op = std::make_unique<LayerNorm>(last.value, number_or(node, "epsilon", 1e-5f));
  set_affine(importer, node, *op, last.value, last.value);
  const OnnxValue y = importer.add(importer.layer_name(node, 1), std::move(op),
                                   {importer.reshape_to(node, x, rows)}, false);
  Values out{importer.reshape_to(node, y, own)};
  if (!importer.is_read(node, 1) && !importer.is_read(node, 2)) return out;
  // The mean and what the centred rows are multiplied by.
  std::vector<std::int64_t> axes;
  for (auto i = axis; i < std::ssize(own); ++i) axes.push_back(i);
  const OnnxArithmetic make(importer, node);
  out.push_back(make.reduce("reduce_mean", x, axes));
  const OnnxValue centred = make.binary("subtract", x, out[1]);
  const OnnxValue variance =
      make.reduce("reduce_mean", make.binary("multiply", centred, centred), axes);
  const float epsilon = number_or(node, "epsilon", 1e-5f);
  out.push_back(
      make.unary("reciprocal", make.unary("sqrt", make.binary("add", variance, epsilon))));
  return out;
}

OnnxValue group_norm_of(OnnxImporter& importer, const OnnxNode& node, std::int64_t groups) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  if (x.rank() < 2) throw Error("expected [n, channels, ...]");
  refuse_batch(x, 1, "a normalisation over");
  const std::int64_t channels = x.shapes[0][1];
  if (groups == 0) groups = channels;
  importer.hold(2 * channels);
  auto op = std::make_unique<GroupNorm>(channels, groups, number_or(node, "epsilon", 1e-5f));
  set_affine(importer, node, *op, channels, groups);
  return importer.add(importer.layer_name(node, 1), std::move(op), {x}, false);
}

Values instance_norm(OnnxImporter& importer, const OnnxNode& node) {
  return {group_norm_of(importer, node, 0)};
}

/// Operator set 18 has a weight and a bias for each group, 21 for each channel.
Values group_norm(OnnxImporter& importer, const OnnxNode& node) {
  const std::int64_t groups = integer_or(node, "num_groups", 0);
  if (groups < 1) throw Error("expected num_groups of at least 1");
  return {group_norm_of(importer, node, groups)};
}

/// x / (bias + alpha / size times the sum of the squares of `size` neighbouring channels)^beta.
Values local_response(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  if (x.rank() < 2) throw Error("expected [n, channels, ...]");
  const std::int64_t size = integer_or(node, "size", 0), axis = stored_axis(x, 1),
                     channels = x.shapes[0][static_cast<std::size_t>(axis)];
  if (size < 1 || size > (1 << 20)) throw Error("expected a size from 1 to 2^20");
  refuse_batch(x, axis, "a normalisation over");
  Resampling window{.axis = axis, .taps = std::min(size, 2 * channels)};
  importer.hold(4 * window.taps * channels);
  const double share = double{number_or(node, "alpha", 1e-4f)} / static_cast<double>(size);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t t = 0; t < window.taps; ++t) {
      const std::int64_t place = c - (window.taps - 1) / 2 + t;
      const bool inside = place >= 0 && place < channels;
      window.places.push_back(inside ? place : 0);
      window.weights.push_back(inside ? share : 0);
    }
  }
  const auto binary = [&](const char* kind, const OnnxValue& a, const OnnxValue& b) {
    return importer.add<Binary>(node, {a, b}, x.image, kind);
  };
  const OnnxValue mean = importer.add<Resample>(node, {binary("multiply", x, x)}, x.image,
                                                std::vector<Resampling>{std::move(window)});
  const OnnxValue base = binary("add", mean, importer.number(number_or(node, "bias", 1)));
  return {
      binary("divide", x, binary("power", base, importer.number(number_or(node, "beta", 0.75f))))};
}

/// x over its norm along one axis.
Values lp_norm(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  const std::int64_t axis = stored_axis(x, integer_or(node, "axis", -1)),
                     p = integer_or(node, "p", 2);
  if (p != 1 && p != 2) throw Error("expected p of 1 or 2");
  refuse_batch(x, axis, "a norm over");
  const OnnxValue norm = importer.add<Reduce>(
      node, {x}, x.image, p == 1 ? "reduce_l1" : "reduce_l2", std::vector{axis});
  return {importer.add<Binary>(node, {x, norm}, x.image, "divide")};
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
