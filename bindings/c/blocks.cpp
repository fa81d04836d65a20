// Block formats: numbers that share scales, and back.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "api/formats.hpp"
#include "bindings/c/call.hpp"
#include "formats/blocks/block_convert.hpp"
#include "formats/scaling/scale_rule.hpp"

struct numemu_block {
  const numemu::BlockFormat* format;
};

using namespace numemu;
using c::guarded, c::required;

namespace {

int axis_of(const numemu_quantize_options& options) { return options.has_axis ? options.axis : -1; }

ArrayType zero_point_type(const BlockFormat& f) {
  return f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element);
}

/// The parts of `given`, to be written or read.
struct Parts {
  Parts(const BlockFormat& f, const BlockLayout& layout, const ArrayShape& shape,
        const numemu_quantized& given)
      : codes(given.codes, "codes", container_type(*f.element), shape),
        scales(given.scales, "scales", container_type(*f.scale), layout.scale_shape),
        zero_points(given.zero_points, "zero_points", zero_point_type(f), layout.scale_shape) {
    if (given.zero_points != nullptr && f.affine == Affine::sym)
      throw usage_error("zero_points: " + f.name + " has none");
  }
  void finish() const {
    codes.finish();
    scales.finish();
    zero_points.finish();
  }

  c::Result codes, scales, zero_points;
};

}  // namespace

numemu_status numemu_block_open(const char* name, numemu_block** out) {
  return guarded([&] {
    required(out, "block") = nullptr;
    *out = new numemu_block{&find_block_format(&required(name, "name"))};
  });
}
void numemu_block_close(numemu_block* block) { delete block; }

numemu_status numemu_block_describe(const numemu_block* handle, numemu_block_facts* out) {
  return guarded([&] {
    const BlockFormat& f = *required(handle, "block").format;
    c::give({.size = 0,
             .name = f.name.c_str(),
             .element = f.element->name.c_str(),
             .scale = f.scale->name.c_str(),
             .code_type = static_cast<numemu_type>(container_type(*f.element)),
             .scale_type = static_cast<numemu_type>(container_type(*f.scale)),
             .zero_point_type = static_cast<numemu_type>(zero_point_type(f)),
             .block = f.size,
             .has_tensor_scale = f.tensor_scale,
             .has_zero_points = f.affine != Affine::sym,
             .bits = f.bits_per_element()},
            out, "facts");
  });
}

numemu_status numemu_block_scale_shape(const numemu_block* handle, int32_t axes,
                                       const int64_t* shape, int32_t axis, int32_t* scale_axes,
                                       int64_t* scale_shape) {
  return guarded([&] {
    if (axes < 0 || axes > NUMEMU_MOST_AXES)
      throw usage_error(fmt::format("axes: expected 0 to {}, found {}", NUMEMU_MOST_AXES, axes));
    if (axes > 0) required(shape, "shape");
    const BlockLayout layout =
        block_layout(*required(handle, "block").format, {shape, shape + axes}, axis);
    required(scale_axes, "scale_axes") = static_cast<int32_t>(layout.scale_shape.size());
    if (!layout.scale_shape.empty()) required(scale_shape, "scale_shape");
    std::copy(layout.scale_shape.begin(), layout.scale_shape.end(), scale_shape);
  });
}

numemu_status numemu_quantize(const numemu_block* handle, const numemu_rounding* rounding,
                              const numemu_random* random, const numemu_quantize_options* given,
                              const numemu_array* in, const numemu_quantized* out,
                              numemu_counts* counts) {
  return guarded([&] {
    const BlockFormat& f = *required(handle, "block").format;
    const auto options = c::members_or_zero(given, "options");
    const auto text = [](const char* word) { return word == nullptr ? std::string() : word; };
    const BlockQuantization how =
        api::quantization_of({.block = f.name,
                              .rule = text(options.scale_rule),
                              .scale_round = text(options.scale_round),
                              .ignore_nonfinite = options.ignore_nonfinite != 0,
                              .full_range = options.full_range != 0,
                              .no_tensor_scale = options.no_tensor_scale != 0},
                             f, c::conversion_to(*f.element, rounding, random));
    const c::Given x(in, "x");
    x.require_type(ArrayType::float32);
    const BlockLayout layout = block_layout(f, x.shape(), axis_of(options));
    const auto wanted = c::members_of(out, "out");
    Parts parts(f, layout, x.shape(), wanted);
    c::Result values(wanted.values, "values", ArrayType::float32, x.shape());
    const Array numbers = x.read();
    float tensor_scale = 1;
    const BlockCounts made = quantize_blocks(
        how, layout, numbers.as<float>(),
        {parts.codes.data(), parts.scales.data(), parts.zero_points.data(), &tensor_scale},
        values.as<float>());
    parts.finish();
    values.finish();
    if (wanted.tensor_scale != nullptr) *wanted.tensor_scale = tensor_scale;
    if (counts != nullptr) c::give(c::counts_of(made.elements), counts, "counts");
  });
}

numemu_status numemu_dequantize(const numemu_block* handle, const numemu_quantize_options* given,
                                const numemu_quantized* in) {
  return guarded([&] {
    const BlockFormat& f = *required(handle, "block").format;
    const auto options = c::members_or_zero(given, "options");
    const auto parts = c::members_of(in, "in");
    const c::Given codes(parts.codes, "codes"), scales(parts.scales, "scales");
    codes.require_type(container_type(*f.element));
    const BlockLayout layout = block_layout(f, codes.shape(), axis_of(options));
    scales.require_type(container_type(*f.scale));
    scales.require_shape(layout.scale_shape);
    Array zeros;
    if (f.affine != Affine::sym) {
      const c::Given zero_points(parts.zero_points, "zero_points");
      zero_points.require_type(zero_point_type(f));
      zero_points.require_shape(layout.scale_shape);
      zeros = zero_points.read();
    }
    required(parts.values, "values");
    c::Result values(parts.values, "values", ArrayType::float32, codes.shape());
    const Array own_codes = codes.read(), own_scales = scales.read();
    const bool scaled = f.tensor_scale && !options.no_tensor_scale;
    dequantize_blocks(f, layout,
                      {own_codes.data.data(), own_scales.data.data(), zeros.data.data(),
                       scaled ? required(parts.tensor_scale, "tensor_scale") : 1.0f},
                      values.as<float>());
    values.finish();
  });
}
