// Scalar formats: look up, encode, decode, quantize.
#include "api/formats.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <optional>
#include <string>

#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {
namespace {

/// Random words of a caller, one uint32 for each element.
struct RandomWords {
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

RandomWords words_of(py::handle random) {
  return random.is_none()
             ? RandomWords{}
             : RandomWords{as_type(given(random, "random"), ArrayType::uint32, "random")};
}

/// Flags are wanted where `flags` is True or an array, which they fill.
struct FlagRoom {
  std::optional<Room> room;
  Array* array() { return room ? &room->array : nullptr; }
};

FlagRoom flag_room(py::handle flags, const ArrayShape& shape) {
  if (flags.is_none() || flags.ptr() == Py_False) return {};
  return {
      room(flags.ptr() == Py_True ? py::handle(Py_None) : flags, ArrayType::uint8, shape, "flags")};
}

py::object encode(const Format& format, const Arguments& a, std::size_t first) {
  const GivenNumbers in = numbers(a[0], "x");
  const RandomWords words = words_of(a[first + 3]);
  Conversion conversion = api::conversion_of(format, {.rounding = a.get<std::string>(first),
                                                      .overflow = a.get<std::string>(first + 1),
                                                      .seed = a.get<std::uint64_t>(first + 2)});
  conversion.random_words = words.of(in.codes.array.shape);
  FlagRoom raised = flag_room(a[first + 4], in.codes.array.shape);
  Room to = room(a[first + 5], container_type(format), in.codes.array.shape);
  {
    const py::gil_scoped_release released;
    api::encode_into(in.codes, conversion, to.array, raised.array());
  }
  if (!raised.room) return to.object;
  return py::make_tuple(std::move(to.object), std::move(raised.room->object));
}

ArrayType type_named(const Format& format, py::handle dtype) {
  if (dtype.is_none()) return container_type(api::decoded_type(format, "", "codes"));
  const py::dtype wanted = dtype_named(dtype, "dtype");
  const std::string name = py::str(static_cast<const py::object&>(wanted));
  if (name != "float16" && name != "float32" && name != "float64")
    throw Error(fmt::format("dtype: expected float16, float32 or float64, found {}", name));
  return parse_array_type(name);
}

py::object decode_as(const Format& format, Given in, py::handle dtype, py::handle out) {
  const ArrayType type = out.is_none() ? type_named(format, dtype) : given(out, "out").array.type;
  Room to = room(out, type, in.array.shape);
  const Codes from{&format, std::move(in.array)};
  {
    const py::gil_scoped_release released;
    api::decode_into(from, to.array);
  }
  return to.object;
}

py::object encode_method(const Format& format, const Arguments& a) { return encode(format, a, 1); }

py::object decode_method(const Format& format, const Arguments& a) {
  return decode_as(format, codes(a[0], &format, "codes"), a[1], a[2]);
}

py::object quantize_method(const Format& format, const Arguments& a) {
  const Given in = float32_of(a[0], "x");
  const RandomWords words = words_of(a[5]);
  Conversion conversion = api::conversion_of(format, {.rounding = a.get<std::string>(2),
                                                      .overflow = a.get<std::string>(3),
                                                      .seed = a.get<std::uint64_t>(4)});
  conversion.random_words = words.of(in.array.shape);
  const auto scale = a.get<double>(1);
  Room to = room(a[6], ArrayType::float32, in.array.shape);
  {
    const py::gil_scoped_release released;
    api::quantize_into(in.array, conversion, scale, to.array);
  }
  return to.object;
}

py::object encode_function(const Arguments& a) { return encode(format_of(a[1]), a, 2); }

py::object decode_function(const Arguments& a) {
  const Format* const format = a[1].is_none() ? nullptr : &format_of(a[1]);
  Given in = codes(a[0], format, "codes");
  const Format& own = *in.format;
  return decode_as(own, std::move(in), a[2], a[3]);
}

py::object values(const Format& format) {
  if (format.bits > 16)
    throw usage_error(fmt::format("values: {} has {} bits, expected a format of at most 16",
                                  format.name, format.bits));
  const std::vector<double> all = finite_values(format);
  return numpy_of(api::array_of(ArrayType::float64, {std::ssize(all)}, all));
}

py::object counts(const Arguments& a) {
  const Given in = given(a[0], "flags");
  require_type("flags", in.array.type, {ArrayType::uint8}, "flags");
  FlagCounts sum;
  sum.elements = in.array.elements();
  for (std::int64_t i = 0; i < sum.elements; ++i) sum.add(in.array.as<std::uint8_t>()[i]);
  return counts_dict(sum);
}

py::object describe(const Format& format, const Arguments&) {
  return python_of(api::format_json(format));
}

py::object all_formats(const Arguments&) {
  return py::cast(named_formats(), py::return_value_policy::reference);
}

py::object set_threads(const Arguments& a) {
  // Beyond the processors few more are started: OpenMP ends the process where the system refuses.
  constexpr std::int64_t kMost = 1024;
  constexpr int kStarted = 16;
  const auto most = static_cast<int>(whole_of(a[0], {"set_threads", "most"}, 0, kMost));
  const int processors = omp_get_num_procs();
  omp_set_num_threads(most == 0 ? processors : std::min(most, std::max(processors, kStarted)));
  return py::none();
}

const std::string kRoundingDoc =
    "rounding: rne, rna, rtz, rup, rdn, rodd, sr(N), sr(N,a|b|c|odd). overflow: saturate, "
    "propagate, ieee. Random bits of sr(N) are a function of `seed` and the index of the element, "
    "or, where `random` is given, the low N bits of its uint32 words, one for each element.";

Signature encode_signature(
    "encode",
    "x, *, rounding='rne', overflow='saturate', seed=0, random=None, flags=False, out=None",
    "Codes of the numbers x, each rounded once: an array of the shape of x and of `dtype`.\n\n"
    "x: float16, float32, float64 or integers, or codes whose type names their format (bfloat16 "
    "and float8 of torch and ml_dtypes). " +
        kRoundingDoc +
        "\nflags: True returns (codes, flags), uint8 of the shape of x, with 1 inexact, 2 "
        "underflow, 4 overflow, 16 invalid; an array is filled and returned.\n"
        "out: an array in C order that takes the codes and is returned.");
Signature decode_signature(
    "decode", "codes, *, dtype=None, out=None",
    "The numbers that codes mean, exactly: float32, or float64 where float32 does not hold every "
    "value of the format, of the shape of the codes. dtype: float16, float32 or float64, which "
    "must hold every value.");
Signature quantize_signature(
    "quantize",
    "x, *, scale=1.0, rounding='rne', overflow='saturate', seed=0, random=None, out=None",
    "decode(encode(x / scale)) * scale as float32 of the shape of x, without codes between. " +
        kRoundingDoc);
Signature encode_of("encode",
                    "x, format, *, rounding='rne', overflow='saturate', seed=0, random=None, "
                    "flags=False, out=None",
                    "numemu.format(format).encode(x, ...).");
Signature decode_of(
    "decode", "codes, format=None, *, dtype=None, out=None",
    "numemu.format(format).decode(codes, ...); without a format for arrays whose type names it.");
Signature describe_signature(
    "describe", "",
    "A dict of all that is known of it, as `numemu formats NAME --json` prints it.");
Signature formats_signature("formats", "",
                            "Every named scalar format, in the order of docs/formats.md.");
Signature set_threads_signature(
    "set_threads", "most",
    "Most threads that calls of this thread of Python compute with; 0: as many as there are "
    "processors. No result depends on it.");
Signature counts_signature(
    "counts", "flags",
    "How many elements raised each flag: a dict of elements, inexact, underflow, overflow, "
    "invalid.");

}  // namespace

const Format& format_of(const py::handle& format, const char* name) {
  if (py::isinstance<Format>(format)) return format.cast<const Format&>();
  if (py::isinstance<BlockFormat>(format))
    throw Error(fmt::format("{}: expected a scalar format, found the block format {}", name,
                            format.cast<const BlockFormat&>().name));
  if (!PyUnicode_Check(format.ptr()))
    throw usage_error(
        fmt::format("{}: expected numemu.Format or a name, found {}", name,
                    std::string(py::str(py::type::handle_of(format).attr("__name__")))));
  return api::find_scalar_format(text_of(format, {name, "name"}));
}

py::dict counts_dict(const FlagCounts& c) {
  return py::dict("elements"_a = c.elements, "inexact"_a = c.inexact, "underflow"_a = c.underflow,
                  "overflow"_a = c.overflow, "invalid"_a = c.invalid);
}

void add_formats(py::module_& m) {
  py::class_<Format, std::unique_ptr<Format, py::nodelete>> format(
      m, "Format",
      "A scalar number format: float8_e4m3fn, int4, e3m2+finite. See numemu.format().");
  format.def_readonly("name", &Format::name, "The canonical name.")
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
      .def("__repr__", [](const Format& f) { return "numemu.format('" + f.name + "')"; })
      .def(
          "__eq__", [](const Format& f, const Format& g) { return f.name == g.name; },
          py::is_operator())
      .def("__hash__", [](const Format& f) { return py::hash(py::str(f.name)); })
      .def("__reduce__", [](const Format& f) {
        return py::make_tuple(py::module_::import("numemu._records").attr("format_named"),
                              py::make_tuple(f.name));
      });
  add_method<encode_signature, Format, &encode_method>(format);
  add_method<decode_signature, Format, &decode_method>(format);
  add_method<quantize_signature, Format, &quantize_method>(format);
  add_method<describe_signature, Format, &describe>(format);
  add_function<formats_signature, &all_formats>(m);
  add_function<encode_of, &encode_function>(m);
  add_function<decode_of, &decode_function>(m);
  add_function<set_threads_signature, &set_threads>(m);
  add_function<counts_signature, &counts>(m);
}

}  // namespace numemu::python
