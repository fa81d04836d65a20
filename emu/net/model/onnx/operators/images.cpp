// ONNX operators that change the size of images: Resize and Upsample, depth to space and back,
// regions of interest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/sampling.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

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

Asked asked_of(const NodeImport& node) {
  Asked asked;
  const bool newer = node->op_type == "Resize" && node.opset() >= 11;
  const std::size_t scales = newer ? 2 : 1;
  if (const OnnxAttribute* given = node->find("scales")) asked.scales = given->numbers;  // set 7
  if (node.has_input(scales)) asked.scales = node.constant(scales).tensor().data;
  if (newer && node.has_input(3)) {
    const OnnxConstant& sizes = node.constant(3);
    if (!sizes.integer) throw Error("expected whole numbers as sizes");
    for (const Folded& element : sizes.elements) asked.sizes.push_back(element.whole);
  }
  if (asked.scales.empty() == asked.sizes.empty()) throw Error("expected either scales or sizes");
  return asked;
}

OnnxValues resize(const NodeImport& node) {
  OnnxValue x = node.value();
  const bool newer = node->op_type == "Resize" && node.opset() >= 11;
  const std::string_view mode = node->text_or("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    throw Error("expected mode 'nearest', 'linear' or 'cubic'");
  Resizing plan;
  plan.coordinates =
      node->text_or("coordinate_transformation_mode", newer ? "half_pixel" : "asymmetric");
  plan.nearest = node->text_or("nearest_mode", newer ? "round_prefer_floor" : "floor");
  plan.cubic = node->number_or("cubic_coeff_a", -0.75f);
  plan.exclude_outside = node->integer_or("exclude_outside", 0) != 0;
  if (plan.coordinates == "tf_crop_and_resize") throw Error("tf_crop_and_resize is not supported");
  if (node->integer_or("antialias", 0) != 0) throw Error("antialias is not supported");
  if (node->text_or("keep_aspect_ratio_policy", "stretch") != "stretch")
    throw Error("expected keep_aspect_ratio_policy 'stretch'");
  const Asked asked = asked_of(node);
  const std::size_t count = std::max(asked.scales.size(), asked.sizes.size());
  const Ints axes =
      node->find("axes") == nullptr ? ascending(x.rank()) : node->integers_or("axes", {});
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
      if (size == extent || (extent.per_batch && size.value == extent.value * node.fixed_batch()))
        continue;
      if (size.per_batch || size.value < 1 || size.value > (1 << 24))
        throw Error("expected sizes of 1 to 2^24");
      plan.out = size.value;
      plan.scale = static_cast<double>(plan.out) / static_cast<double>(plan.n);
    }
    refuse_batch(x, axis, "resizing");
    node.hold(16 * plan.out);
    if (mode != "nearest") {
      passes.push_back(interpolated(plan, axis, mode == "cubic"));
      continue;
    }
    Ints places;
    for (std::int64_t k = 0; k < plan.out; ++k) places.push_back(nearest_place(plan, k));
    x = node.add<Gather>({x}, x.image, axis, std::move(places));
  }
  if (passes.empty()) return {x};
  return {node.add<Resample>({x}, x.image, std::move(passes))};
}

/// A view of six axes, turned, and a view of four.
OnnxValue turned(const NodeImport& node, const OnnxValue& x, Shape six, const Ints& order,
                 Shape four) {
  const OnnxValue apart = node.add<Reshape>({x}, false, std::move(six));
  const OnnxValue moved = node.add<Transpose>({apart}, false, order);
  return node.add<Reshape>({moved}, x.image, std::move(four));
}

struct Blocks {
  OnnxValue x;
  std::int64_t block, channels, height, width;
};

Blocks blocks_of(const NodeImport& node) {
  Blocks b{node.value(), node->integer_or("blocksize", 0), 0, 0, 0};
  if (b.x.rank() != 4 || b.block < 1 || b.block > (1 << 10))
    throw Error("expected [n, c, h, w] and a blocksize from 1 to 2^10");
  const auto extent = [&](std::int64_t axis) {
    refuse_batch(b.x, stored_axis(b.x, axis), "blocks of");
    return b.x.extent(stored_axis(b.x, axis));
  };
  b.channels = extent(1);
  b.height = extent(2);
  b.width = extent(3);
  return b;
}

/// Channels are (block row, block column, channel), or with CRD (channel, block row, block column).
OnnxValues depth_to_space(const NodeImport& node) {
  const auto [x, b, channels, h, w] = blocks_of(node);
  const bool first = node->text_or("mode", "DCR") == "CRD";
  if (channels % (b * b) != 0) throw Error("expected channels in equal blocks");
  const std::int64_t c = channels / (b * b);
  if (x.image) {
    return {first ? turned(node, x, {0, h, w, c, b, b}, {0, 1, 4, 2, 5, 3}, {0, h * b, w * b, c})
                  : turned(node, x, {0, h, w, b, b, c}, {0, 1, 3, 2, 4, 5}, {0, h * b, w * b, c})};
  }
  return {first ? turned(node, x, {0, c, b, b, h, w}, {0, 1, 4, 2, 5, 3}, {0, c, h * b, w * b})
                : turned(node, x, {0, b, b, c, h, w}, {0, 3, 4, 1, 5, 2}, {0, c, h * b, w * b})};
}

OnnxValues space_to_depth(const NodeImport& node) {
  const auto [x, b, c, height, width] = blocks_of(node);
  if (height % b != 0 || width % b != 0) throw Error("expected rows and columns in equal blocks");
  const std::int64_t h = height / b, w = width / b;
  if (x.image) {
    return {turned(node, x, {0, h, b, w, b, c}, {0, 1, 3, 2, 4, 5}, {0, h, w, b * b * c})};
  }
  return {turned(node, x, {0, c, h, b, w, b}, {0, 3, 5, 1, 2, 4}, {0, b * b * c, h, w})};
}

constexpr std::int64_t kMostSamples = 1 << 16;

/// The sampling of regions along one axis of the maps.
struct Sampling {
  OnnxValue places;  ///< [regions, samples], from -1 to 1 as grid_sample has them
  OnnxValue inside;  ///< 1 where the sample lies on the map or within a pixel of it
};

/// Columns `low` and `high` of the regions are the ends along the axis, which has `extent` pixels
/// and gets `samples`.
Sampling sampled(const NodeImport& node, const OnnxValue& regions, std::int64_t low,
                 std::int64_t high, std::int64_t extent, std::int64_t samples) {
  const bool half = node.opset() >= 16 &&
                    node->text_or("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const float scale = node->number_or("spatial_scale", 1), offset = half ? 0.5f : 0;
  const auto end = [&](std::int64_t column) {
    const OnnxValue x =
        node.add<Slice>({regions}, false, std::vector<SliceRange>{{1, column, column + 1, 1}});
    return node.binary("subtract", node.binary("multiply", x, scale), offset);
  };
  const OnnxValue start = end(low);
  OnnxValue length = node.binary("subtract", end(high), start);
  if (!half) length = node.binary("maximum", length, 1);
  node.hold(7 * samples);
  const OnnxValue shares = node.numbers(real_numbers({samples}, [&](std::int64_t i) {
    return (static_cast<float>(i) + 0.5f) / static_cast<float>(samples);
  }));
  const OnnxValue at = node.binary("add", start, node.binary("multiply", length, shares));
  const auto last = static_cast<float>(extent - 1);
  Sampling out;
  out.inside =
      node.binary("multiply", node.binary("greater_or_equal", at, -1),
                  node.binary("greater_or_equal", node.number(static_cast<float>(extent)), at));
  out.places = node.binary(
      "subtract", node.binary("multiply", node.clip(at, 0, last), 2 / std::max(last, 1.0f)), 1);
  return out;
}

/// Means of bilinear samples over the bins of each region of the map that its number names.
OnnxValues roi_align(const NodeImport& node) {
  if (node->text_or("mode", "avg") != "avg") throw Error("expected mode 'avg'");
  const std::int64_t height = node->integer_or("output_height", 1),
                     width = node->integer_or("output_width", 1),
                     rate = node->integer_or("sampling_ratio", 0);
  if (rate < 1) throw Error("expected a sampling_ratio of at least 1");
  for (const std::int64_t n : {height, width, rate}) {
    if (n < 1 || n > kMostSamples / rate) throw Error("expected sizes of 1 to 2^16 samples");
  }
  const OnnxValue x = node.image();
  const OnnxValue regions = node.plain(1), maps = node.plain(2);
  if (x.rank() != 4 || regions.rank() != 2 || regions.shapes[0][1] != 4 || maps.rank() != 1)
    throw Error("expected maps [n, c, h, w], regions [count, 4] and a number of a map for each");
  refuse_batch(x, 0, "regions of");
  const std::int64_t count = regions.shapes[0][0], h = height * rate, w = width * rate;
  const Sampling rows = sampled(node, regions, 1, 3, x.shapes[0][1], h),
                 columns = sampled(node, regions, 0, 2, x.shapes[0][2], w);
  const auto shaped = [&](const OnnxValue& value, Shape shape) {
    return node.add<Reshape>({value}, false, std::move(shape));
  };
  // The grid has x before y.
  const OnnxValue across = shaped(columns.places, {count, 1, w, 1}),
                  down = shaped(rows.places, {count, h, 1, 1});
  const OnnxValue zeros_down = node.binary("multiply", down, 0),
                  zeros_across = node.binary("multiply", across, 0);
  const OnnxValue grid = node.add<Concat>(
      {node.binary("add", across, zeros_down), node.binary("add", down, zeros_across)}, false, 3);
  OnnxValue own = node.add<IndexedGather>({x, maps}, true,
                                          IndexedOptions{.indexing = Indexing::rows, .axis = 0});
  OnnxValue y = node.add<GridSample>(
      {own, grid}, true,
      GridSampleOptions{.border = GridSampleOptions::Border::border, .align_corners = true});
  const OnnxValue inside = node.binary("multiply", shaped(rows.inside, {count, h, 1, 1}),
                                       shaped(columns.inside, {count, 1, w, 1}));
  y = node.binary("multiply", y, inside);
  return {
      node.add<AveragePool>({y}, true, PoolOptions{.kernel_height = rate, .kernel_width = rate})};
}

}  // namespace

const OnnxHandlers& onnx_images_handlers() {
  static const OnnxHandlers kHandlers = {
      {"DepthToSpace", depth_to_space}, {"Resize", resize},   {"RoiAlign", roi_align},
      {"SpaceToDepth", space_to_depth}, {"Upsample", resize},
  };
  return kHandlers;
}

}  // namespace numemu::net
