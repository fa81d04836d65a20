// Block formats: quantize arrays by blocks that share scales, and back.
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "api/formats.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
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
                     py::handle out = Py_None) {
  Room one = room(out, type, shape);
  array = std::move(one.array);
  return std::move(one.object);
}

ArrayType shift_type(const BlockFormat& f) {
  return f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element);
}

py::object quantize(const BlockFormat& f, const Arguments& a) {
  const Given in = float32_of(a[0], "x");
  const api::RoundingWords words{.rounding = a.get<std::string>(3),
                                 .overflow = a.get<std::string>(4),
                                 .seed = a.get<std::uint64_t>(5)};
  const auto axis = a.get<int>(1);
  api::QuantizeOptions options{.block = f.name,
                               .axis = axis,
                               .rule = a.get<std::string>(2),
                               .words = words,
                               .scale_round = a.get<std::string>(6),
                               .ignore_nonfinite = a.get<bool>(7),
                               .full_range = a.get<bool>(8)};
  Quantized q;
  q.arrays.layout = block_layout(f, in.array.shape, axis);
  Given scales;
  if (!a[11].is_none()) {
    if (!options.rule.empty())
      throw usage_error("scales: not allowed with a rule, which would choose them");
    scales = python::codes(a[11], f.scale, "scales");
    api::check_given_scales("scales", f, q.arrays.layout, scales.array, in.array);
    options.scales = &scales.array;
  }
  if (PyBool_Check(a[9].ptr()) != 0) {
    options.no_tensor_scale = !a.get<bool>(9);
  } else {
    options.tensor_scale = a.get<float>(9);
    api::check_given_tensor_scale("tensor_scale", f, *options.tensor_scale);
  }
  q.arrays.how = api::quantization_of(options, f, api::conversion_of(*f.element, words));
  q.x = in.owner ? in.owner : py::reinterpret_borrow<py::object>(a[0]);
  q.values = make_room(q.arrays.values, ArrayType::float32, in.array.shape, a[10]);
  q.codes = make_room(q.arrays.codes, container_type(*f.element), in.array.shape);
  q.scales = make_room(q.arrays.scales, container_type(*f.scale), q.arrays.layout.scale_shape);
  q.zero_points = py::none();
  if (f.affine != Affine::sym)
    q.zero_points = make_room(q.arrays.zero_points, shift_type(f), q.arrays.layout.scale_shape);
  {
    const py::gil_scoped_release released;
    api::quantize_into(in.array, q.arrays);
  }
  q.arrays.how.scales = nullptr;  // they end here
  return py::cast(std::move(q));
}

py::object dequantize(const BlockFormat& f, const Arguments& a) {
  const py::handle zero_points = a[2];
  api::QuantizedArray q;
  q.how.format = &f;
  Given given_codes = python::codes(a[0], f.element, "codes");
  q.codes = std::move(given_codes.array);
  q.layout = block_layout(f, q.codes.shape, a.get<int>(4));
  const auto of_blocks = [&](py::handle x, const char* name) {
    Given one = given(x, name);
    if (one.array.shape != q.layout.scale_shape)
      throw Error(fmt::format("{}: shape: expected {}, found {}", name,
                              shape_text(q.layout.scale_shape), shape_text(one.array.shape)));
    return one;
  };
  Given given_scales = of_blocks(a[1], "scales");
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
  q.counts.tensor_scale = a.get<float>(3);
  Room to = room(a[5], ArrayType::float32, q.codes.shape);
  {
    const py::gil_scoped_release released;
    api::dequantize_into(q, to.array);
  }
  return to.object;
}

py::object dequantize_again(const Quantized& q, const Arguments& a) {
  Room to = room(a[0], ArrayType::float32, q.arrays.codes.shape);
  {
    const py::gil_scoped_release released;
    api::dequantize_into(q.arrays, to.array);
  }
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

py::object describe_block(const BlockFormat& format, const Arguments&) {
  return python_of(api::block_json(format));
}

py::object all_block_formats(const Arguments&) {
  return py::cast(named_block_formats(), py::return_value_policy::reference);
}

py::object format_named(const Arguments& a) {
  constexpr auto kLives = py::return_value_policy::reference;  // as long as the program
  if (py::isinstance<Format>(a[0]) || py::isinstance<BlockFormat>(a[0]))
    return a.get<py::object>(0);
  const auto name = a.get<std::string>(0);
  if (api::is_block_name(name)) return py::cast(&find_block_format(name), kLives);
  return py::cast(&api::find_scalar_format(name), kLives);
}

Signature quantize_blocks_signature(
    "quantize",
    "x, *, axis=-1, rule='', rounding='rne', overflow='saturate', seed=0, scale_round='', "
    "ignore_nonfinite=False, full_range=False, tensor_scale=True, out=None, scales=None",
    "The array x (numbers, taken as float32) by blocks: a numemu.Quantized.\n\n"
    "axis: of the blocks or channels. rule: of the scales, else the format's own. scale_round: of "
    "real scales, rup (never clips) or rne. ignore_nonfinite: else a block with NaN or Inf is NaN. "
    "full_range: use the most negative code of symmetric integers. tensor_scale: False: it is 1; a "
    "number: it is that. out: a float32 array that takes the values. scales: codes of the scale "
    "format (float32 scales are numbers), as `Quantized.scales` has them, in place of a rule's.");
Signature dequantize_blocks_signature(
    "dequantize", "codes, scales, zero_points=None, tensor_scale=1.0, *, axis=-1, out=None",
    "The float32 numbers that codes and their scales mean, of the shape of the codes.");
Signature dequantize_again_signature(
    "dequantize", "*, out=None",
    "The numbers that the codes and their scales mean, float32; the same as `values`.");
Signature describe_block_signature(
    "describe", "",
    "A dict of all that is known of it, as `numemu formats NAME --json` prints it.");
Signature block_formats_signature("block_formats", "",
                                  "Every named block format, in the order of docs/formats.md.");
Signature format_signature(
    "format", "name",
    "The number format of that name, alias or descriptor: 'e4m3fn', 'e3m2+finite', "
    "'codebook(FILE.npy)', a numemu.Format; or a numemu.BlockFormat: 'mxfp4', 'nvfp4', "
    "'group(int4,128,float16)'. A format is itself.");

}  // namespace

void add_blocks(py::module_& m) {
  constexpr auto kLives = py::return_value_policy::reference;  // as long as the program
  py::class_<Quantized> quantized(m, "Quantized",
                                  "An array quantized by blocks; see BlockFormat.quantize().");
  quantized
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
          "after: inf without noise, nan of zeros. It reads x, which must not have changed.")
      .def_property_readonly(
          "bits_per_element",
          [](const Quantized& q) { return stored_bits(*q.arrays.how.format, q.arrays.layout); },
          "Stored bits: element, scale, zero point, tensor scale.")
      .def("__repr__", [](const Quantized& q) {
        return fmt::format("<numemu.Quantized {} of {}>", q.arrays.how.format->name,
                           shape_text(q.arrays.codes.shape));
      });
  add_method<dequantize_again_signature, Quantized, &dequantize_again>(quantized);
  py::class_<BlockFormat, std::unique_ptr<BlockFormat, py::nodelete>> block(
      m, "BlockFormat",
      "A format whose elements share scales: mxfp4, nvfp4, group(int4,128,float16). See "
      "numemu.format().");
  block.def_readonly("name", &BlockFormat::name, "The canonical name.")
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
          "rules", [](const BlockFormat& f) { return rules_serving(f).names; },
          "Names of the scale rules without arguments that serve it.")
      .def_property_readonly("bits_per_element", &BlockFormat::bits_per_element,
                             "Of full blocks, without the tensor scale.")
      .def("__repr__", [](const BlockFormat& f) { return "numemu.format('" + f.name + "')"; })
      .def(
          "__eq__", [](const BlockFormat& f, const BlockFormat& g) { return f.name == g.name; },
          py::is_operator())
      .def("__hash__", [](const BlockFormat& f) { return py::hash(py::str(f.name)); })
      .def("__reduce__", [](const BlockFormat& f) {
        return py::make_tuple(py::module_::import("numemu._records").attr("format_named"),
                              py::make_tuple(f.name));
      });
  add_method<quantize_blocks_signature, BlockFormat, &quantize>(block);
  add_method<dequantize_blocks_signature, BlockFormat, &dequantize>(block);
  add_function<format_signature, &format_named>(m);
  add_method<describe_block_signature, BlockFormat, &describe_block>(block);
  add_function<block_formats_signature, &all_block_formats>(m);
}

}  // namespace numemu::python
