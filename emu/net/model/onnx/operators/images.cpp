// ONNX operators that change the size of images: Resize and Upsample, depth to space and back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/sampling.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;
using Ints = std::vector<std::int64_t>;

/// How an axis of n elements gets `out`.
struct Resizing {
  std::int64_t n = 1, out = 1;
  double scale = 1;
  std::string_view coordinates, nearest;  ///< the attributes
  double cubic = -0.75;
  bool exclude_outside = false;

  /// Where result element i lies between the elements of the axis.
  double coordinate(std::int64_t i) const {
    const auto at = static_cast<double>(i), length = static_cast<double>(n);
    if (coordinates == "asymmetric") return at / scale;
    if (coordinates == "align_corners")
      return out == 1 ? 0 : at * (length - 1) / static_cast<double>(out - 1);
    if (coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
    if (coordinates == "pytorch_half_pixel" && out == 1) return 0;
    double offset = 0;
    if (coordinates == "half_pixel_symmetric")
      offset = length / 2 * (1 - static_cast<double>(out) / (scale * length));
    return offset + (at + 0.5) / scale - 0.5;
  }
};

/// Scales are stored in float32: a quotient that is a whole number but for their rounding is that
/// number in float32, as engines compute it.
std::int64_t nearest_place(const Resizing& r, std::int64_t i) {
  const double x = static_cast<float>(r.coordinate(i));
  const double place = r.nearest == "floor"               ? std::floor(x)
                       : r.nearest == "ceil"              ? std::ceil(x)
                       : r.nearest == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                          : std::ceil(x - 0.5);
  return static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(r.n - 1)));
}

/// The weight of an element at distance t of cubic convolution (Keys 1981).
double cubic_weight(double a, double t) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

Resampling interpolated(const Resizing& r, std::int64_t axis, bool cubic) {
  Resampling out{.axis = axis, .taps = cubic ? 4 : 2};
  for (std::int64_t i = 0; i < r.out; ++i) {
    const double x = r.coordinate(i), first = std::floor(x) - (cubic ? 1 : 0);
    double weights[4], total = 0;
    for (std::int64_t t = 0; t < out.taps; ++t) {
      const double place = first + static_cast<double>(t), distance = x - place;
      const bool outside = place < 0 || place > static_cast<double>(r.n - 1);
      const double weight =
          cubic ? cubic_weight(r.cubic, distance) : std::max(0.0, 1 - std::fabs(distance));
      weights[t] = r.exclude_outside && outside ? 0 : weight;
      total += weights[t];
      out.places.push_back(
          static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(r.n - 1))));
    }
    for (std::int64_t t = 0; t < out.taps; ++t)
      out.weights.push_back(r.exclude_outside ? weights[t] / total : weights[t]);
  }
  return out;
}

/// What the node asks for each axis of ONNX: a scale, a size, or neither.
struct Asked {
  std::vector<float> scales;
  std::vector<Extent> sizes;
};

Asked asked_of(OnnxImporter& importer, const OnnxNode& node) {
  Asked asked;
  const bool newer = node.op_type == "Resize" && importer.opset() >= 11;
  const std::size_t scales = newer ? 2 : 1;
  if (const OnnxAttribute* given = node.find("scales")) asked.scales = given->numbers;  // set 7
  if (importer.has_input(node, scales))
    asked.scales = importer.constant(node, scales).tensor().data;
  if (newer && importer.has_input(node, 3)) {
    const OnnxConstant& sizes = importer.constant(node, 3);
    if (!sizes.integer) throw Error("expected whole numbers as sizes");
    for (const Folded& element : sizes.elements) asked.sizes.push_back(element.whole);
  }
  if (asked.scales.empty() == asked.sizes.empty()) throw Error("expected either scales or sizes");
  return asked;
}

Values resize(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  const bool newer = node.op_type == "Resize" && importer.opset() >= 11;
  const std::string_view mode = text_or(node, "mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    throw Error("expected mode 'nearest', 'linear' or 'cubic'");
  Resizing plan;
  plan.coordinates =
      text_or(node, "coordinate_transformation_mode", newer ? "half_pixel" : "asymmetric");
  plan.nearest = text_or(node, "nearest_mode", newer ? "round_prefer_floor" : "floor");
  plan.cubic = number_or(node, "cubic_coeff_a", -0.75f);
  plan.exclude_outside = integer_or(node, "exclude_outside", 0) != 0;
  if (plan.coordinates == "tf_crop_and_resize") throw Error("tf_crop_and_resize is not supported");
  if (integer_or(node, "antialias", 0) != 0) throw Error("antialias is not supported");
  if (text_or(node, "keep_aspect_ratio_policy", "stretch") != "stretch")
    throw Error("expected keep_aspect_ratio_policy 'stretch'");
  const Asked asked = asked_of(importer, node);
  const std::size_t count = std::max(asked.scales.size(), asked.sizes.size());
  Ints axes = integers_or(node, "axes", {});
  for (std::size_t i = 0; node.find("axes") == nullptr && i < x.rank(); ++i)
    axes.push_back(static_cast<std::int64_t>(i));
  if (axes.size() != count) throw Error("expected a scale or a size for every axis");
  const std::vector<Extent> own = x.extents();
  std::vector<Resampling> passes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t onnx_axis = axis_in(axes[i], x.rank()), axis = stored_axis(x, onnx_axis);
    const Extent extent = own[static_cast<std::size_t>(onnx_axis)];
    plan.n = extent.value;
    if (asked.sizes.empty()) {
      plan.scale = asked.scales[i];
      const double out = std::floor(static_cast<double>(plan.n) * plan.scale);
      if (!(out >= 1 && out <= 0x1p24)) throw Error("expected results of 1 to 2^24 elements");
      plan.out = static_cast<std::int64_t>(out);
      if (plan.scale == 1) continue;
    } else {
      const Extent size = asked.sizes[i];
      if (size == extent ||
          (extent.per_batch && size.value == extent.value * importer.fixed_batch()))
        continue;
      if (size.per_batch || size.value < 1 || size.value > (1 << 24))
        throw Error("expected sizes of 1 to 2^24");
      plan.out = size.value;
      plan.scale = static_cast<double>(plan.out) / static_cast<double>(plan.n);
    }
    refuse_batch(x, axis, "resizing");
    importer.hold(16 * plan.out);
    if (mode != "nearest") {
      passes.push_back(interpolated(plan, axis, mode == "cubic"));
      continue;
    }
    Ints places;
    for (std::int64_t k = 0; k < plan.out; ++k) places.push_back(nearest_place(plan, k));
    x = importer.add<Gather>(node, {x}, x.image, axis, std::move(places));
  }
  if (passes.empty()) return {x};
  return {importer.add<Resample>(node, {x}, x.image, std::move(passes))};
}

/// A view of six axes, turned, and a view of four.
OnnxValue turned(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x, Shape six,
                 const Ints& order, Shape four) {
  const OnnxValue apart = importer.add<Reshape>(node, {x}, false, std::move(six));
  const OnnxValue moved = importer.add<Transpose>(node, {apart}, false, order);
  return importer.add<Reshape>(node, {moved}, x.image, std::move(four));
}

struct Blocks {
  OnnxValue x;
  std::int64_t block, channels, height, width;
};

Blocks blocks_of(OnnxImporter& importer, const OnnxNode& node) {
  Blocks b{importer.value(node), integer_or(node, "blocksize", 0), 0, 0, 0};
  if (b.x.rank() != 4 || b.block < 1 || b.block > (1 << 10))
    throw Error("expected [n, c, h, w] and a blocksize from 1 to 2^10");
  const auto extent = [&](std::int64_t axis) {
    refuse_batch(b.x, stored_axis(b.x, axis), "blocks of");
    return b.x.shapes[0][static_cast<std::size_t>(stored_axis(b.x, axis))];
  };
  b.channels = extent(1);
  b.height = extent(2);
  b.width = extent(3);
  return b;
}

/// Channels are (block row, block column, channel), or with CRD (channel, block row, block column).
Values depth_to_space(OnnxImporter& importer, const OnnxNode& node) {
  const auto [x, b, channels, h, w] = blocks_of(importer, node);
  const bool first = text_or(node, "mode", "DCR") == "CRD";
  if (channels % (b * b) != 0) throw Error("expected channels in equal blocks");
  const std::int64_t c = channels / (b * b);
  if (x.image) {
    return {first ? turned(importer, node, x, {0, h, w, c, b, b}, {0, 1, 4, 2, 5, 3},
                           {0, h * b, w * b, c})
                  : turned(importer, node, x, {0, h, w, b, b, c}, {0, 1, 3, 2, 4, 5},
                           {0, h * b, w * b, c})};
  }
  return {first ? turned(importer, node, x, {0, c, b, b, h, w}, {0, 1, 4, 2, 5, 3},
                         {0, c, h * b, w * b})
                : turned(importer, node, x, {0, b, b, c, h, w}, {0, 3, 4, 1, 5, 2},
                         {0, c, h * b, w * b})};
}

Values space_to_depth(OnnxImporter& importer, const OnnxNode& node) {
  const auto [x, b, c, height, width] = blocks_of(importer, node);
  if (height % b != 0 || width % b != 0) throw Error("expected rows and columns in equal blocks");
  const std::int64_t h = height / b, w = width / b;
  if (x.image) {
    return {
        turned(importer, node, x, {0, h, b, w, b, c}, {0, 1, 3, 2, 4, 5}, {0, h, w, b * b * c})};
  }
  return {turned(importer, node, x, {0, c, h, b, w, b}, {0, 3, 5, 1, 2, 4}, {0, b * b * c, h, w})};
}

}  // namespace

const OnnxHandlers& onnx_images_handlers() {
  static const OnnxHandlers kHandlers = {
      {"DepthToSpace", depth_to_space},
      {"Resize", resize},
      {"SpaceToDepth", space_to_depth},
      {"Upsample", resize},
  };
  return kHandlers;
}

}  // namespace numemu::net
