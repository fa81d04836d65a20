#include <algorithm>
#include <string>

#include "api/formats.hpp"
#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/scaling/quantize_blocks.hpp"

struct numemu_block {
  const numemu::BlockFormat* format;
};

namespace numemu::c {
namespace {

ArrayType zero_point_type(const BlockFormat& f) {
  return f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element);
}

int axis_of(const numemu_quantize_options& options) {
  return options.has_axis == 0 ? -1 : options.axis;
}

BlockLayout layout_of(const BlockFormat& f, const ArrayShape& shape,
                      const numemu_quantize_options& options) {
  return block_layout(f, shape, axis_of(options));
}

BlockQuantization quantization_of(const BlockFormat& f, const BlockLayout& layout,
                                  const numemu_quantize_options& options, const Array& x,
                                  const Array* scales, const Conversion& conversion) {
  api::QuantizeOptions words;
  words.rule = text_of(options.scale_rule);
  words.scale_round = text_of(options.scale_round);
  words.ignore_nonfinite = options.ignore_nonfinite != 0;
  words.full_range = options.full_range != 0;
  words.no_tensor_scale = options.no_tensor_scale != 0;
  words.scales = scales;
  if (scales != nullptr) {
    if (!words.rule.empty())
      throw usage_error("scales: expected NULL: the scale rule chooses them");
    api::check_given_scales("scales", f, layout, *scales, x);
  }
  if (options.tensor_scale != nullptr) {
    words.tensor_scale = *options.tensor_scale;
    api::check_given_tensor_scale("tensor scale", f, *words.tensor_scale);
  }
  return api::quantization_of(words, f, conversion);
}

/// The bytes of an array in that type and shape.
const void* elements_of(const char* name, const Array& array, ArrayType type,
                        const ArrayShape& shape) {
  require_type(name, array.type, {type}, "elements");
  if (array.shape == shape) return array.data.data();
  throw usage_error(std::string(name) + ": shape: expected " + shape_text(shape) + ", found " +
                    shape_text(array.shape));
}

}  // namespace
}  // namespace numemu::c

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_block_open(const char* name, numemu_block** block) {
  return call([&] {
    required(block, "block") = nullptr;
    *block = new numemu_block{&find_block_format(&required(name, "name"))};
  });
}

void numemu_block_close(numemu_block* block) { delete block; }

numemu_status numemu_block_describe(const numemu_block* block, numemu_block_facts* out) {
  return call([&] {
    const BlockFormat& f = *required(block, "block").format;
    numemu_block_facts facts = {};
    facts.name = f.name.c_str();
    facts.element = f.element->name.c_str();
    facts.scale = f.scale->name.c_str();
    facts.code_type = static_cast<numemu_type>(container_type(*f.element));
    facts.scale_type = static_cast<numemu_type>(container_type(*f.scale));
    facts.zero_point_type = static_cast<numemu_type>(zero_point_type(f));
    facts.block = f.size;
    facts.has_tensor_scale = f.tensor_scale;
    facts.has_zero_points = f.affine != Affine::sym;
    facts.bits = f.bits_per_element();
    give(facts, out, "facts");
  });
}

numemu_status numemu_block_scale_shape(const numemu_block* block, int32_t axes,
                                       const int64_t* shape, int32_t axis, int32_t* scale_axes,
                                       int64_t* scale_shape) {
  return call([&] {
    require_within("axes", axes, 0, NUMEMU_MOST_AXES);
    if (axes > 0) required(shape, "shape");
    const ArrayShape whole(shape, shape + axes);
    if (std::any_of(whole.begin(), whole.end(), [](std::int64_t extent) { return extent < 0; }))
      throw usage_error("shape: expected extents from 0 on, found " + shape_text(whole));
    const BlockLayout layout = block_layout(*required(block, "block").format, whole, axis);
    required(scale_axes, "scale_axes") = static_cast<std::int32_t>(layout.scale_shape.size());
    std::copy(layout.scale_shape.begin(), layout.scale_shape.end(),
              &required(scale_shape, "scale_shape"));
  });
}

numemu_status numemu_quantize(const numemu_block* block, const numemu_rounding* rounding,
                              const numemu_random* random, const numemu_quantize_options* given,
                              const numemu_array* x, const numemu_quantized* out,
                              numemu_counts* counts) {
  return call([&] {
    const BlockFormat& f = *required(block, "block").format;
    const Array numbers = in("x", required(x, "x"));
    require_type("x", numbers.type, {ArrayType::float32}, "numbers");
    const numemu_quantize_options options = taken(given, "options");
    const numemu_quantized parts = taken(&required(out, "out"), "out");
    const BlockLayout layout = layout_of(f, numbers.shape, options);
    if (parts.zero_points != nullptr && f.affine == Affine::sym)
      throw usage_error("zero points: expected NULL: " + f.name + " has none");
    Out values("values", parts.values, ArrayType::float32, numbers.shape);
    Out codes("codes", parts.codes, container_type(*f.element), numbers.shape);
    Out scales("scales", parts.scales, container_type(*f.scale), layout.scale_shape);
    Out zero_points("zero points", parts.zero_points, zero_point_type(f), layout.scale_shape);
    const Array given_scales = options.scales == nullptr ? Array() : in("scales", *options.scales);
    const BlockCounts counted = quantize_blocks(
        quantization_of(f, layout, options, numbers,
                        options.scales == nullptr ? nullptr : &given_scales,
                        conversion_of(*f.element, rounding, random)),
        layout, numbers.as<float>(),
        {codes.data(), scales.data(), zero_points.data(), parts.tensor_scale}, values.as<float>());
    for (Out* part : {&values, &codes, &scales, &zero_points}) part->finish();
    if (counts != nullptr) give(counts_of(counted.elements), counts, "counts");
  });
}

numemu_status numemu_dequantize(const numemu_block* block, const numemu_quantize_options* given,
                                const numemu_quantized* from) {
  return call([&] {
    const BlockFormat& f = *required(block, "block").format;
    const numemu_quantized parts = taken(&required(from, "in"), "in");
    const Codes codes = codes_in("codes", *f.element, required(parts.codes, "codes"));
    const BlockLayout layout = layout_of(f, codes.array.shape, taken(given, "options"));
    const Codes scales = codes_in("scales", *f.scale, required(parts.scales, "scales"));
    const bool shifted = f.affine != Affine::sym;
    const Array zero_points =
        shifted ? in("zero points", required(parts.zero_points, "zero points")) : Array();
    required(parts.values, "values");
    Out values("values", parts.values, ArrayType::float32, codes.array.shape);
    dequantize_blocks(
        f, layout,
        {codes.array.data.data(),
         elements_of("scales", scales.array, scales.array.type, layout.scale_shape),
         shifted ? elements_of("zero points", zero_points, zero_point_type(f), layout.scale_shape)
                 : nullptr,
         parts.tensor_scale == nullptr ? 1.0f : *parts.tensor_scale},
        values.as<float>());
    values.finish();
  });
}
