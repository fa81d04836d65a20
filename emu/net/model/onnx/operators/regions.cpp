// ONNX operators on parts of maps: regions of interest, and maxima put back where they were.
#include <fmt/format.h>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/sampling.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMostSamples = 1 << 16, kLargestMap = 1 << 20;

/// The sampling of regions along one axis of the maps.
struct Sampling {
  OnnxValue places;  ///< [regions, samples], from -1 to 1 as grid_sample has them
  OnnxValue inside;  ///< 1 where the sample lies on the map or within a pixel of it
};

/// Columns `low` and `high` of the regions are the ends along the axis, which has `extent` pixels
/// and gets `samples`.
Sampling sampled(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& regions,
                 std::int64_t low, std::int64_t high, std::int64_t extent, std::int64_t samples) {
  const OnnxArithmetic make(importer, node);
  const bool half = importer.opset() >= 16 &&
                    text_or(node, "coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const float scale = number_or(node, "spatial_scale", 1), offset = half ? 0.5f : 0;
  const auto end = [&](std::int64_t column) {
    const OnnxValue x = importer.add<Slice>(node, {regions}, false,
                                            std::vector<SliceRange>{{1, column, column + 1, 1}});
    return make.binary("subtract", make.binary("multiply", x, scale), offset);
  };
  const OnnxValue start = end(low);
  OnnxValue length = make.binary("subtract", end(high), start);
  if (!half) length = make.binary("maximum", length, 1);
  OnnxValue shares;
  OnnxConstant constant{{samples}, false, {}};
  for (std::int64_t i = 0; i < samples; ++i)
    constant.elements.push_back({(static_cast<float>(i) + 0.5f) / static_cast<float>(samples), {}});
  importer.hold(7 * samples);
  shares.constant = std::make_shared<OnnxConstant>(std::move(constant));
  const OnnxValue at =
      make.binary("add", start, make.binary("multiply", length, importer.as_graph(shares, "")));
  const auto last = static_cast<float>(extent - 1);
  Sampling out;
  out.inside =
      make.binary("multiply", make.binary("greater_or_equal", at, -1),
                  make.binary("greater_or_equal", importer.number(static_cast<float>(extent)), at));
  out.places = make.binary(
      "subtract", make.binary("multiply", make.clip(at, 0, last), 2 / std::max(last, 1.0f)), 1);
  return out;
}

/// Means of bilinear samples over the bins of each region of the map that its number names.
Values roi_align(OnnxImporter& importer, const OnnxNode& node) {
  if (text_or(node, "mode", "avg") != "avg") throw Error("expected mode 'avg'");
  const std::int64_t height = integer_or(node, "output_height", 1),
                     width = integer_or(node, "output_width", 1),
                     rate = integer_or(node, "sampling_ratio", 0);
  if (rate < 1) throw Error("expected a sampling_ratio of at least 1");
  for (const std::int64_t n : {height, width, rate}) {
    if (n < 1 || n > kMostSamples / rate) throw Error("expected sizes of 1 to 2^16 samples");
  }
  const OnnxValue x = importer.to_image(importer.value(node));
  const OnnxValue regions = importer.to_plain(importer.value(node, 1)),
                  maps = importer.to_plain(importer.value(node, 2));
  if (x.rank() != 4 || regions.rank() != 2 || regions.shapes[0][1] != 4 || maps.rank() != 1)
    throw Error("expected maps [n, c, h, w], regions [count, 4] and a number of a map for each");
  refuse_batch(x, 0, "regions of");
  const std::int64_t count = regions.shapes[0][0], h = height * rate, w = width * rate;
  const Sampling rows = sampled(importer, node, regions, 1, 3, x.shapes[0][1], h),
                 columns = sampled(importer, node, regions, 0, 2, x.shapes[0][2], w);
  const OnnxArithmetic make(importer, node);
  const auto shaped = [&](const OnnxValue& value, Shape shape) {
    return importer.add<Reshape>(node, {value}, false, std::move(shape));
  };
  // The grid has x before y.
  const OnnxValue across = shaped(columns.places, {count, 1, w, 1}),
                  down = shaped(rows.places, {count, h, 1, 1});
  const OnnxValue zeros_down = make.binary("multiply", down, 0),
                  zeros_across = make.binary("multiply", across, 0);
  const OnnxValue grid = importer.add<Concat>(
      node, {make.binary("add", across, zeros_down), make.binary("add", down, zeros_across)}, false,
      3);
  OnnxValue own = importer.add<IndexedGather>(
      node, {x, maps}, true, IndexedOptions{.indexing = Indexing::rows, .axis = 0});
  OnnxValue y = importer.add<GridSample>(
      node, {own, grid}, true,
      GridSampleOptions{.border = GridSampleOptions::Border::border, .align_corners = true});
  const OnnxValue inside = make.binary("multiply", shaped(rows.inside, {count, h, 1, 1}),
                                       shaped(columns.inside, {count, 1, w, 1}));
  y = OnnxArithmetic(importer, node, true).binary("multiply", y, inside);
  return {importer.add<AveragePool>(node, {y}, true,
                                    PoolOptions{.kernel_height = rate, .kernel_width = rate})};
}

/// Zeros, with the elements at the places that MaxPool gave.
Values max_unpool(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.value(node)),
                  places = importer.to_plain(importer.value(node, 1));
  every_axis(x, "the places of maxima in");
  Shape shape = x.shapes[0];
  const Ints kernel = integers_or(node, "kernel_shape", {});
  const std::size_t axes = kernel.size();
  const Ints stride = integers_or(node, "strides", Ints(axes, 1)),
             pads = integers_or(node, "pads", Ints(2 * axes, 0));
  if (shape.size() < 3 || axes + 2 != shape.size() || stride.size() != axes ||
      pads.size() != 2 * axes)
    throw Error("expected a kernel, strides and pads for each axis of the maps");
  const auto out_of_range = [](std::int64_t n) { return n < 0 || n > kLargestMap; };
  for (const Ints& sizes : {shape, kernel, stride, pads})
    if (std::ranges::any_of(sizes, out_of_range))
      throw Error("expected sizes, strides and pads from 0 to 2^20");
  Shape own = shape;  // in which the places count
  for (std::size_t i = 0; i < axes; ++i)
    own[i + 2] = (shape[i + 2] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + axes];
  Shape target = own;
  if (importer.has_input(node, 2)) target = importer.constant(node, 2).integers();
  for (const Shape& maps : {own, target}) {
    if (maps.size() != shape.size() ||
        std::ranges::any_of(maps, [](std::int64_t n) { return n < 1 || n > kLargestMap; }) ||
        element_count(maps) > (std::int64_t{1} << 24))
      throw Error("expected maps of 1 to 2^24 elements, whose places float32 holds");
  }
  const std::int64_t count = element_count(shape), total = element_count(own);
  importer.hold(7 * total);
  OnnxValue zeros;
  zeros.constant = std::make_shared<OnnxConstant>(
      OnnxConstant{{total}, false, std::vector<Folded>(static_cast<std::size_t>(total))});
  const auto flat = [&](const OnnxValue& value) {
    return importer.add<Reshape>(node, {value}, false, Shape{count});
  };
  OnnxValue y =
      importer.add<IndexedScatter>(node, {importer.as_graph(zeros, ""), flat(places), flat(x)},
                                   false, IndexedOptions{.axis = 0}, false);
  y = importer.add<Reshape>(node, {y}, false, own);
  if (own == target) return {y};
  // A larger map has zeros behind.
  Ints behind;
  for (std::size_t i = 0; i < own.size(); ++i) behind.push_back(target[i] - own[i]);
  return {importer.add<Pad>(node, {y}, false, Ints(own.size(), 0), behind)};
}

}  // namespace

const OnnxHandlers& onnx_regions_handlers() {
  static const OnnxHandlers kHandlers = {{"MaxUnpool", max_unpool}, {"RoiAlign", roi_align}};
  return kHandlers;
}

}  // namespace numemu::net
