// Scalar formats: look up, encode, decode, quantize.
#include "api/formats.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <optional>
#include <string>

#include "bindings/python/arrays.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {
namespace {

/// Random words of a caller, one uint32 for each element.
struct Words {
  std::optional<Given> given;
  const std::uint32_t* of(const ArrayShape& shape) const {
    if (!given) return nullptr;
    require_type("random", given->array.type, {ArrayType::uint32}, "random bits");
    if (given->array.shape != shape)
      throw Error(fmt::format("random: shape: expected {}, found {}", shape_text(shape),
                              shape_text(given->array.shape)));
    return given->array.as<std::uint32_t>();
  }
};

Words words_of(const py::object& random) {
  return random.is_none() ? Words{} : Words{given(random, "random")};
}

/// Flags are wanted where `flags` is True or an array, which they fill.
struct FlagRoom {
  std::optional<Room> room;
  Array* array() { return room ? &room->array : nullptr; }
};

FlagRoom flag_room(const py::object& flags, const ArrayShape& shape) {
  if (flags.is_none() || flags.ptr() == Py_False) return {};
  return {room(flags.ptr() == Py_True ? py::none() : flags, ArrayType::uint8, shape, "flags")};
}

py::object encode(const Format& format, const py::object& x, const std::string& rounding,
                  const std::string& overflow, std::uint64_t seed, const py::object& random,
                  const py::object& flags, const py::object& out) {
  const GivenNumbers in = numbers(x, "x");
  const Words words = words_of(random);
  Conversion conversion =
      api::conversion_of(format, {.rounding = rounding, .overflow = overflow, .seed = seed});
  conversion.random_words = words.of(in.codes.array.shape);
  FlagRoom raised = flag_room(flags, in.codes.array.shape);
  Room to = room(out, container_type(format), in.codes.array.shape);
  {
    const py::gil_scoped_release released;
    api::encode_into(in.codes, conversion, to.array, raised.array());
  }
  if (!raised.room) return to.object;
  return py::make_tuple(std::move(to.object), std::move(raised.room->object));
}

ArrayType type_named(const Format& format, const py::object& dtype) {
  if (dtype.is_none()) return container_type(api::decoded_type(format, "", "codes"));
  const py::dtype wanted = py::dtype::from_args(dtype);
  return parse_array_type(std::string(py::str(static_cast<const py::object&>(wanted))));
}

py::object decode(const Format& format, const py::object& x, const py::object& dtype,
                  const py::object& out) {
  Given in = codes(x, &format, "codes");
  const ArrayType type = out.is_none() ? type_named(format, dtype) : given(out, "out").array.type;
  Room to = room(out, type, in.array.shape);
  const Codes from{&format, std::move(in.array)};
  const py::gil_scoped_release released;
  api::decode_into(from, to.array);
  return to.object;
}

py::object quantize(const Format& format, const py::object& x, double scale,
                    const std::string& rounding, const std::string& overflow, std::uint64_t seed,
                    const py::object& random, const py::object& out) {
  const Given in = float32_of(x, "x");
  const Words words = words_of(random);
  Conversion conversion =
      api::conversion_of(format, {.rounding = rounding, .overflow = overflow, .seed = seed});
  conversion.random_words = words.of(in.array.shape);
  Room to = room(out, ArrayType::float32, in.array.shape);
  const py::gil_scoped_release released;
  api::quantize_into(in.array, conversion, scale, to.array);
  return to.object;
}

py::object values(const Format& format) {
  if (format.bits > 16)
    throw usage_error(fmt::format("values: {} has {} bits, expected a format of at most 16",
                                  format.name, format.bits));
  const std::vector<double> all = finite_values(format);
  return numpy_of(api::array_of(ArrayType::float64, {std::ssize(all)}, all));
}

py::dict counts(const py::object& flags) {
  const Given in = given(flags, "flags");
  require_type("flags", in.array.type, {ArrayType::uint8}, "flags");
  FlagCounts sum;
  sum.elements = in.array.elements();
  for (std::int64_t i = 0; i < sum.elements; ++i) sum.add(in.array.as<std::uint8_t>()[i]);
  return counts_dict(sum);
}

constexpr const char* kRoundingDoc =
    "rounding: rne, rna, rtz, rup, rdn, rodd, sr(N), sr(N,a|b|c|odd). overflow: saturate, "
    "propagate, "
    "ieee. Random bits of sr(N) are a function of `seed` and the index of the element, or, where "
    "`random` is given, the low N bits of its uint32 words, one for each element.";

}  // namespace

const Format& format_of(const py::handle& format) {
  if (py::isinstance<Format>(format)) return format.cast<const Format&>();
  if (!py::isinstance<py::str>(format))
    throw py::type_error("format: expected numemu.Format or a name, found " +
                         std::string(py::str(py::type::of(format).attr("__name__"))));
  return api::find_scalar_format(format.cast<std::string>());
}

py::dict counts_dict(const FlagCounts& c) {
  return py::dict("elements"_a = c.elements, "inexact"_a = c.inexact, "underflow"_a = c.underflow,
                  "overflow"_a = c.overflow, "invalid"_a = c.invalid);
}

void add_formats(py::module_& m) {
  constexpr auto kLives = py::return_value_policy::reference;  // as long as the program
  const std::string words = kRoundingDoc;
  py::class_<Format, std::unique_ptr<Format, py::nodelete>>(
      m, "Format", "A scalar number format: float8_e4m3fn, int4, e3m2+finite. See numemu.format().")
      .def_readonly("name", &Format::name, "The canonical name.")
      .def_readonly("bits", &Format::bits, "Bits of a code.")
      .def_readonly("exponent_bits", &Format::exponent_bits)
      .def_readonly("mantissa_bits", &Format::mantissa_bits)
      .def_readonly("bias", &Format::bias)
      .def_readonly("is_signed", &Format::is_signed)
      .def_readonly("doc", &Format::doc, "What it is, in one line.")
      .def_readonly("source", &Format::source, "Where its row comes from.")
      .def_property_readonly("has_infinity", &Format::has_infinity)
      .def_property_readonly("has_nan", &Format::has_nan)
      .def_property_readonly(
          "largest", [](const Format& f) { return api::facts_of(f).largest; },
          "The largest finite value; None where it is beyond float64.")
      .def_property_readonly(
          "smallest_normal", [](const Format& f) { return api::facts_of(f).smallest_normal; },
          "The smallest normal value; None for integers.")
      .def_property_readonly(
          "smallest", [](const Format& f) { return api::facts_of(f).smallest; },
          "The smallest value above 0.")
      .def_property_readonly(
          "values", &values,
          "Every finite value in ascending order, float64 [N], 0 once; of formats "
          "of at most 16 bits.")
      .def_property_readonly(
          "dtype", [](const Format& f) { return dtype_of(container_type(f)); },
          "Of an array of codes: uint8 up to 8 bits, uint16 up to 16; float32 and float64 where a "
          "code is one.")
      .def(
          "describe", [](const Format& f) { return python_of(api::format_json(f)); },
          "A dict of all that is known of it, as `numemu formats NAME --json` prints it.")
      .def("encode", &encode, "x"_a, py::kw_only(), "rounding"_a = "rne", "overflow"_a = "saturate",
           "seed"_a = 0, "random"_a = py::none(), "flags"_a = false, "out"_a = py::none(),
           ("Codes of the numbers x, each rounded once: an array of the shape of x and of "
            "`dtype`.\n\n"
            "x: float16, float32, float64 or integers, or codes whose type names their format "
            "(bfloat16 and float8 of torch and ml_dtypes). " +
            words +
            "\nflags: True returns (codes, flags), uint8 of the shape of x, with 1 inexact, 2 "
            "underflow, 4 overflow, 16 invalid; an array is filled and returned.\n"
            "out: an array in C order that takes the codes and is returned.")
               .c_str())
      .def("decode", &decode, "codes"_a, py::kw_only(), "dtype"_a = py::none(),
           "out"_a = py::none(),
           "The numbers that codes mean, exactly: float32, or float64 where float32 does not hold "
           "every value of the format, of the shape of the codes.")
      .def("quantize", &quantize, "x"_a, py::kw_only(), "scale"_a = 1.0, "rounding"_a = "rne",
           "overflow"_a = "saturate", "seed"_a = 0, "random"_a = py::none(), "out"_a = py::none(),
           ("decode(encode(x / scale)) * scale as float32 of the shape of x, without codes "
            "between. " +
            words)
               .c_str())
      .def("__repr__", [](const Format& f) { return "numemu.format('" + f.name + "')"; })
      .def("__eq__", [](const Format& f, const Format& g) { return f.name == g.name; })
      .def("__hash__", [](const Format& f) { return py::hash(py::str(f.name)); })
      .def("__reduce__", [](const Format& f) {
        return py::make_tuple(py::module_::import("numemu._records").attr("format_named"),
                              py::make_tuple(f.name));
      });
  m.def(
      "formats", [] { return named_formats(); }, kLives,
      "Every named scalar format, in the order of docs/formats.md.");
  m.def(
      "encode",
      [](const py::object& x, const py::object& format, const std::string& rounding,
         const std::string& overflow, std::uint64_t seed, const py::object& random,
         const py::object& flags, const py::object& out) {
        return encode(format_of(format), x, rounding, overflow, seed, random, flags, out);
      },
      "x"_a, "format"_a, py::kw_only(), "rounding"_a = "rne", "overflow"_a = "saturate",
      "seed"_a = 0, "random"_a = py::none(), "flags"_a = false, "out"_a = py::none(),
      "numemu.format(format).encode(x, ...).");
  m.def(
      "decode",
      [](const py::object& codes, const py::object& format, const py::object& dtype,
         const py::object& out) {
        if (!format.is_none()) return decode(format_of(format), codes, dtype, out);
        const Given in = python::codes(codes, nullptr, "codes");
        return decode(*in.format, codes, dtype, out);
      },
      "codes"_a, "format"_a = py::none(), py::kw_only(), "dtype"_a = py::none(),
      "out"_a = py::none(),
      "numemu.format(format).decode(codes, ...); without a format for arrays whose type names it.");
  m.def(
      "set_threads", [](int most) { omp_set_num_threads(most < 1 ? omp_get_num_procs() : most); },
      "most"_a,
      "Most threads that calls of this thread of Python compute with; 0: as many as there are "
      "processors. No result depends on it.");
  m.def("counts", &counts, "flags"_a,
        "How many elements raised each flag: a dict of elements, inexact, underflow, overflow, "
        "invalid.");
}

}  // namespace numemu::python
