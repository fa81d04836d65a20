// Block formats: quantize arrays by blocks that share scales, and back.
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "api/formats.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

/// A quantized array whose elements are those of NumPy's arrays.
struct Quantized {
  api::QuantizedArray arrays;
  py::object x, values, codes, scales, zero_points;
};

/// Room for `array`, which takes the elements of it.
py::object make_room(Array& array, ArrayType type, const ArrayShape& shape,
                     const py::object& out = py::none()) {
  Room one = room(out, type, shape);
  array = std::move(one.array);
  return std::move(one.object);
}

ArrayType shift_type(const BlockFormat& f) {
  return f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element);
}

Quantized quantize(const BlockFormat& f, const py::object& x, int axis, const std::string& rule,
                   const std::string& rounding, const std::string& overflow, std::uint64_t seed,
                   const std::string& scale_round, bool ignore_nonfinite, bool full_range,
                   bool tensor_scale, const py::object& out) {
  const Given in = float32_of(x, "x");
  const api::RoundingWords words{.rounding = rounding, .overflow = overflow, .seed = seed};
  const api::QuantizeOptions options{.block = f.name,
                                     .axis = axis,
                                     .rule = rule,
                                     .words = words,
                                     .scale_round = scale_round,
                                     .ignore_nonfinite = ignore_nonfinite,
                                     .full_range = full_range,
                                     .no_tensor_scale = !tensor_scale};
  Quantized q;
  q.arrays.how = api::quantization_of(options, f, api::conversion_of(*f.element, words));
  q.arrays.layout = block_layout(f, in.array.shape, axis);
  q.x = in.owner ? in.owner : x;
  q.values = make_room(q.arrays.values, ArrayType::float32, in.array.shape, out);
  q.codes = make_room(q.arrays.codes, container_type(*f.element), in.array.shape);
  q.scales = make_room(q.arrays.scales, container_type(*f.scale), q.arrays.layout.scale_shape);
  q.zero_points = py::none();
  if (f.affine != Affine::sym)
    q.zero_points = make_room(q.arrays.zero_points, shift_type(f), q.arrays.layout.scale_shape);
  const py::gil_scoped_release released;
  api::quantize_into(in.array, q.arrays);
  return q;
}

py::object dequantize(const BlockFormat& f, const py::object& codes, const py::object& scales,
                      const py::object& zero_points, float tensor_scale, int axis,
                      const py::object& out) {
  api::QuantizedArray q;
  q.how.format = &f;
  Given given_codes = python::codes(codes, f.element, "codes");
  q.codes = std::move(given_codes.array);
  q.layout = block_layout(f, q.codes.shape, axis);
  const auto of_blocks = [&](const py::object& x, const char* name) {
    Given one = given(x, name);
    if (one.array.shape != q.layout.scale_shape)
      throw Error(fmt::format("{}: shape: expected {}, found {}", name,
                              shape_text(q.layout.scale_shape), shape_text(one.array.shape)));
    return one;
  };
  Given given_scales = of_blocks(scales, "scales");
  q.scales = checked_codes("scales", *f.scale, std::move(given_scales.array)).array;
  Given shifts;
  if ((f.affine != Affine::sym) == zero_points.is_none())
    throw usage_error(f.affine == Affine::sym
                          ? fmt::format("zero_points: {} has none", f.name)
                          : fmt::format("zero_points: expected those of {}", f.name));
  if (f.affine != Affine::sym) {
    shifts = of_blocks(zero_points, "zero_points");
    require_type("zero_points", shifts.array.type, {shift_type(f)}, "zero points");
    q.zero_points = std::move(shifts.array);
  }
  q.counts.tensor_scale = tensor_scale;
  Room to = room(out, ArrayType::float32, q.codes.shape);
  const py::gil_scoped_release released;
  api::dequantize_into(q, to.array);
  return to.object;
}

double sqnr_of(const Quantized& q) {
  const Given x = float32_of(q.x, "x");
  const py::gil_scoped_release released;
  const api::Sqnr sqnr = api::sqnr_of(x.array, q.arrays.values);
  switch (sqnr.kind) {
    case api::Sqnr::Kind::measured:
      return sqnr.db;
    case api::Sqnr::Kind::infinite:
      return std::numeric_limits<double>::infinity();
    case api::Sqnr::Kind::undefined:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

py::dict counts_of(const BlockCounts& counts) {
  py::dict all = counts_dict(counts.elements);
  all["blocks"] = counts.blocks;
  all["zero_blocks"] = counts.zero_blocks;
  all["nan_blocks"] = counts.nan_blocks;
  return all;
}

}  // namespace

void add_blocks(py::module_& m) {
  constexpr auto kLives = py::return_value_policy::reference;  // as long as the program
  py::class_<Quantized>(m, "Quantized", "An array quantized by blocks; see BlockFormat.quantize().")
      .def_readonly("values", &Quantized::values, "float32 of the shape of x: what the codes mean.")
      .def_readonly("codes", &Quantized::codes, "Codes of the element format, of the shape of x.")
      .def_readonly(
          "scales", &Quantized::scales,
          "Codes of the scale format (float32 scales are numbers), one for each block: of "
          "the shape of x with the axis cut into blocks.")
      .def_readonly("zero_points", &Quantized::zero_points,
                    "One for each block: codes of the element, or float32 minima; None of a "
                    "symmetric format.")
      .def_property_readonly(
          "tensor_scale", [](const Quantized& q) { return q.arrays.counts.tensor_scale; },
          "The scale of the whole array; 1 where the format has none.")
      .def_property_readonly(
          "format", [](const Quantized& q) { return q.arrays.how.format; }, kLives)
      .def_property_readonly(
          "counts", [](const Quantized& q) { return counts_of(q.arrays.counts); },
          "A dict: elements with each flag, blocks, zero_blocks, nan_blocks.")
      .def_property_readonly(
          "sqnr", &sqnr_of,
          "10 log10 of signal over noise in dB, over the elements that are finite before and "
          "after: "
          "inf without noise, nan of zeros. It reads x, which must not have changed.")
      .def_property_readonly(
          "bits_per_element",
          [](const Quantized& q) { return stored_bits(*q.arrays.how.format, q.arrays.layout); },
          "Stored bits: element, scale, zero point, tensor scale.")
      .def(
          "dequantize",
          [](const Quantized& q, const py::object& out) {
            Room to = room(out, ArrayType::float32, q.arrays.codes.shape);
            const py::gil_scoped_release released;
            api::dequantize_into(q.arrays, to.array);
            return to.object;
          },
          py::kw_only(), "out"_a = py::none(),
          "The numbers that the codes and their scales mean, float32; the same as `values`.");
  py::class_<BlockFormat, std::unique_ptr<BlockFormat, py::nodelete>>(
      m, "BlockFormat",
      "A format whose elements share scales: mxfp4, nvfp4, group(int4,128,float16). See "
      "numemu.format().")
      .def_readonly("name", &BlockFormat::name, "The canonical name.")
      .def_property_readonly(
          "element", [](const BlockFormat& f) { return f.element; }, kLives)
      .def_property_readonly(
          "scale", [](const BlockFormat& f) { return f.scale; }, kLives)
      .def_readonly("size", &BlockFormat::size,
                    "Elements of a block; 0 where it is no piece of an axis.")
      .def_property_readonly(
          "granularity", [](const BlockFormat& f) { return to_string(f.span); },
          "block, tensor, channel or row.")
      .def_property_readonly(
          "rules", [](const BlockFormat& f) { return api::scale_rules_of(f); },
          "Names of the scale rules that serve it.")
      .def_property_readonly("bits_per_element", &BlockFormat::bits_per_element,
                             "Of full blocks, without the tensor scale.")
      .def(
          "describe", [](const BlockFormat& f) { return python_of(api::block_json(f)); },
          "A dict of all that is known of it, as `numemu formats NAME --json` prints it.")
      .def("quantize", &quantize, "x"_a, py::kw_only(), "axis"_a = -1, "rule"_a = "",
           "rounding"_a = "rne", "overflow"_a = "saturate", "seed"_a = 0, "scale_round"_a = "",
           "ignore_nonfinite"_a = false, "full_range"_a = false, "tensor_scale"_a = true,
           "out"_a = py::none(),
           "The array x (numbers, taken as float32) by blocks: a numemu.Quantized.\n\n"
           "axis: of the blocks or channels. rule: of the scales, else the format's own. "
           "scale_round: of real scales, rup (never clips) or rne. ignore_nonfinite: else a block "
           "with NaN or Inf is NaN. full_range: use the most negative code of symmetric integers. "
           "tensor_scale: False: it is 1. out: a float32 array that takes the values.")
      .def("dequantize", &dequantize, "codes"_a, "scales"_a, "zero_points"_a = py::none(),
           "tensor_scale"_a = 1.0F, py::kw_only(), "axis"_a = -1, "out"_a = py::none(),
           "The float32 numbers that codes and their scales mean, of the shape of the codes.")
      .def("__repr__", [](const BlockFormat& f) { return "numemu.format('" + f.name + "')"; })
      .def("__eq__", [](const BlockFormat& f, const BlockFormat& g) { return f.name == g.name; })
      .def("__hash__", [](const BlockFormat& f) { return py::hash(py::str(f.name)); })
      .def("__reduce__", [](const BlockFormat& f) {
        return py::make_tuple(py::module_::import("numemu._records").attr("format_named"),
                              py::make_tuple(f.name));
      });
  m.def(
      "format",
      [](const std::string& name) -> py::object {
        if (api::is_block_name(name)) return py::cast(&find_block_format(name), kLives);
        return py::cast(&api::find_scalar_format(name), kLives);
      },
      "name"_a,
      "The number format of that name, alias or descriptor: 'e4m3fn', 'e3m2+finite', "
      "'codebook(FILE.npy)', a numemu.Format; or a numemu.BlockFormat: 'mxfp4', 'nvfp4', "
      "'group(int4,128,float16)'.");
  m.def(
      "block_formats", [] { return named_block_formats(); }, kLives,
      "Every named block format, in the order of docs/formats.md.");
}

}  // namespace numemu::python
