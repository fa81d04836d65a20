// Matrix units: open, describe, multiply, trace, hold results against them.
#include "api/units.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/oracle.hpp"
#include "api/text/trace.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"
#include "bindings/python/units.hpp"
#include "bindings/python/verified.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

/// A product of arrays of Python, and what keeps them alive.
struct HeldProduct {
  std::unique_ptr<api::Product> product;
  std::vector<py::object> owners;
};

/// The words of a product beside A, B and C, as Python gives them.
struct Words {
  py::object scale_a, scale_b, meta, format_a, format_b;
  std::string meta_layout, b_layout;
  std::uint64_t seed;
  bool dots;
};

class Reader {
 public:
  explicit Reader(const unit::Unit& unit) : unit_(unit) {}

  /// Codes of the unit's operand; where it takes any format, of the one that is told or that the
  /// type names.
  Codes operand(const py::object& x, const py::object& told, const Format* own, const char* name) {
    Given one = keep(given(x, name));
    const Format* format = !told.is_none() ? &format_of(told) : one.format;
    if (format == nullptr && own != nullptr && own->container_shift != 0 &&
        one.array.type == ArrayType::float32)
      format = &find_format("float32");  // the unit drops low bits
    if (format == nullptr) format = own;
    if (format == nullptr)
      throw usage_error(
          fmt::format("{}: expected a format: unit {} takes any", name, unit_.row().name));
    return {format, std::move(one.array)};
  }
  std::optional<Array> array(const py::object& x, const char* name) {
    if (x.is_none()) return std::nullopt;
    return std::move(keep(given(x, name)).array);
  }
  std::vector<py::object> owners() { return std::move(owners_); }

 private:
  Given keep(Given one) {
    owners_.push_back(one.owner);
    return one;
  }

  const unit::Unit& unit_;
  std::vector<py::object> owners_;
};

HeldProduct product_of(const OpenedUnit& opened, const py::object& a, const py::object& b,
                       const py::object& c, const Words& words, const py::object& out) {
  const unit::UnitDescription* u = opened.unit->description();
  Reader read(*opened.unit);
  if (words.b_layout != "kn" && words.b_layout != "nk")
    throw usage_error(fmt::format("b_layout: expected kn or nk, found {}", words.b_layout));
  api::Operands operands{.a = read.operand(a, words.format_a, u == nullptr ? nullptr : u->a, "a"),
                         .b = read.operand(b, words.format_b, u == nullptr ? nullptr : u->b, "b"),
                         .c = read.array(c, "c"),
                         .scale_a = read.array(words.scale_a, "scale_a"),
                         .scale_b = read.array(words.scale_b, "scale_b"),
                         .meta = read.array(words.meta, "meta"),
                         .meta_layout = words.meta_layout,
                         .shape = words.dots ? api::ProductShape::dots : api::ProductShape::batches,
                         .b_by_columns = words.b_layout == "nk",
                         .seed = words.seed};
  if (!out.is_none()) operands.d = writable(out);
  return {api::make_product(opened.unit, std::move(operands)), read.owners()};
}

/// D, and flags where they are wanted.
py::object result_of(api::Product& p, const py::object& out, bool flags) {
  py::object d = out.is_none() ? numpy_of(std::move(p.d)) : out;
  if (!flags) return d;
  return py::make_tuple(std::move(d), numpy_of(std::move(p.flags)));
}

py::object gemm(const OpenedUnit& opened, const py::object& a, const py::object& b,
                const py::object& c, const Words& words, std::optional<float> alpha, bool flags,
                bool reference, const py::object& out) {
  const HeldProduct held = product_of(opened, a, b, c, words, out);
  {
    const py::gil_scoped_release released;
    api::multiply(*held.product, {.alpha = alpha, .reference = reference, .flags = flags});
  }
  return result_of(*held.product, out, flags);
}

/// (i, j), (product, i, j) or the number of a dot.
std::string place_words(const py::object& at) {
  if (PyIndex_Check(at.ptr())) return py::str(at);
  std::string text;
  for (const py::handle one : py::reinterpret_borrow<py::sequence>(at))
    text += (text.empty() ? "" : ",") + std::string(py::str(one));
  return text;
}

py::object trace(const OpenedUnit& opened, const py::object& a, const py::object& b,
                 const py::object& c, const Words& words, const py::object& at) {
  const HeldProduct held = product_of(opened, a, b, c, words, py::none());
  const api::Product& p = *held.product;
  const std::string first = p.d.shape.size() == 1 ? "0" : p.d.shape.size() == 2 ? "0,0" : "0,0,0";
  const api::Place place = api::parse_place("at", at.is_none() ? first : place_words(at), p);
  std::string text;
  Json json;
  {
    const py::gil_scoped_release released;
    const api::TracedOutput traced = api::trace(p, place);
    text = api::trace_text(traced, api::place_text(place, p));
    json = api::trace_json(traced);
    api::add_place(place, p, json);
  }
  return py::module_::import("numemu._records").attr("Trace")(python_of(json), text);
}

py::object verify(const OpenedUnit& opened, const py::object& d, const py::object& a,
                  const py::object& b, const py::object& c, const Words& words,
                  const std::string& nan, std::uint64_t ulp, const std::string& zero_sign) {
  HeldProduct held = product_of(opened, a, b, c, words, py::none());
  Given given_d = given(d, "d");
  if (given_d.array.type == ArrayType::float16) given_d.array.type = ArrayType::uint16;
  const api::Equality equality = equality_of(nan, ulp, zero_sign);
  std::optional<api::Verified> verified;
  {
    const py::gil_scoped_release released;
    verified =
        api::verify_product(std::move(held.product), std::move(given_d.array), "d", equality);
  }
  return python_of(*verified);
}

std::optional<std::string> name_of(const Format* format) {
  return format == nullptr ? std::nullopt : std::optional(format->name);
}

constexpr const char* kOperandsDoc =
    "a, b: codes in the unit's formats (the property `operands`), arrays of NumPy or CPU tensors; "
    "types that name their format (bfloat16 and float8 of torch and ml_dtypes) are checked against "
    "it. format_a, format_b: names, for units that take any format.\n"
    "c: in the type of the unit's C; float32 ones also take float16.\n"
    "scale_a, scale_b: codes of the block scales of units that have them, [products,] M x "
    "ceil(K / block) and ceil(K / block) x N.\n"
    "meta: of sparse units, whose A holds the kept elements: uint8, the index of each in its "
    "group, "
    "or with meta_layout='ptx' the words of mma.sp.\n"
    "b_layout: 'kn', or 'nk' where B (and its scales) is N x K. seed: of stochastic registers.\n";

}  // namespace

OpenedUnit open_unit(const py::object& unit) {
  if (py::isinstance<OpenedUnit>(unit)) return unit.cast<OpenedUnit>();
  if (py::isinstance<py::dict>(unit))
    return {unit::make_unit(unit::parse_description(json_of(unit, "unit").dump(), "unit"))};
  return {api::open_unit(py::module_::import("os").attr("fspath")(unit).cast<std::string>())};
}

void add_units(py::module_& m) {
  using py::kw_only, py::none;
  const std::string operands = kOperandsDoc;
  py::class_<OpenedUnit>(m, "Unit",
                         "A matrix unit: the arithmetic of one instruction. See numemu.unit().")
      .def_property_readonly("name", [](const OpenedUnit& u) { return u.unit->row().name; })
      .def_property_readonly(
          "operands",
          [](const OpenedUnit& u) {
            const unit::UnitDescription* one = u.unit->description();
            return py::make_tuple(name_of(one == nullptr ? nullptr : one->a),
                                  name_of(one == nullptr ? nullptr : one->b));
          },
          "Names of the formats of A and B; None: any.")
      .def_property_readonly(
          "c_format", [](const OpenedUnit& u) { return name_of(u.unit->c_format()); },
          "Name of the format of C; None: two's complement.")
      .def_property_readonly(
          "d_format", [](const OpenedUnit& u) { return name_of(u.unit->d_format()); },
          "Name of the format of D; None: two's complement.")
      .def(
          "describe", [](const OpenedUnit& u) { return python_of(api::unit_json(*u.unit)); },
          "A dict of all that is known of it, as `numemu units NAME --json` prints it; "
          "`parameters` is the description that numemu.unit() takes.")
      .def(
          "gemm",
          [](const OpenedUnit& u, const py::object& a, const py::object& b, const py::object& c,
             const py::object& scale_a, const py::object& scale_b, const py::object& meta,
             const std::string& meta_layout, const std::string& b_layout,
             const py::object& format_a, const py::object& format_b, std::optional<float> alpha,
             std::uint64_t seed, bool flags, bool reference, const py::object& out) {
            return gemm(
                u, a, b, c,
                {scale_a, scale_b, meta, format_a, format_b, meta_layout, b_layout, seed, false},
                alpha, flags, reference, out);
          },
          "a"_a, "b"_a, "c"_a = none(), kw_only(), "scale_a"_a = none(), "scale_b"_a = none(),
          "meta"_a = none(), "meta_layout"_a = "", "b_layout"_a = "kn", "format_a"_a = none(),
          "format_b"_a = none(), "alpha"_a = none(), "seed"_a = 0, "flags"_a = false,
          "reference"_a = false, "out"_a = none(),
          ("D = A B + C, bit for bit: A is M x K, B K x N, C and D M x N; each may have a leading "
           "axis, the product, and an array without it serves all products.\n\n" +
           operands +
           "alpha: D = RNE(RNE(alpha AB) + C) in float32, outside the unit.\n"
           "flags: returns (D, flags), exception flags of each output, uint8. reference: by the "
           "specification, some hundred times slower; the same bits.\n"
           "out: an array of the type and shape of D that takes it and is returned.")
              .c_str())
      .def(
          "dot",
          [](const OpenedUnit& u, const py::object& a, const py::object& b, const py::object& c,
             const py::object& scale_a, const py::object& scale_b, const py::object& meta,
             const std::string& meta_layout, const py::object& format_a, const py::object& format_b,
             std::uint64_t seed, bool flags, bool reference, const py::object& out) {
            return gemm(u, a, b, c,
                        {scale_a, scale_b, meta, format_a, format_b, meta_layout, "kn", seed, true},
                        std::nullopt, flags, reference, out);
          },
          "a"_a, "b"_a, "c"_a = none(), kw_only(), "scale_a"_a = none(), "scale_b"_a = none(),
          "meta"_a = none(), "meta_layout"_a = "", "format_a"_a = none(), "format_b"_a = none(),
          "seed"_a = 0, "flags"_a = false, "reference"_a = false, "out"_a = none(),
          ("N dots: A and B are N x K, or K for one row that serves all; C and D have N "
           "elements.\n\n" +
           operands)
              .c_str())
      .def(
          "trace",
          [](const OpenedUnit& u, const py::object& a, const py::object& b, const py::object& c,
             const py::object& at, const py::object& scale_a, const py::object& scale_b,
             const py::object& meta, const std::string& meta_layout, const std::string& b_layout,
             const py::object& format_a, const py::object& format_b, std::uint64_t seed,
             bool dots) {
            return trace(
                u, a, b, c,
                {scale_a, scale_b, meta, format_a, format_b, meta_layout, b_layout, seed, dots},
                at);
          },
          "a"_a, "b"_a, "c"_a = none(), kw_only(), "at"_a = none(), "scale_a"_a = none(),
          "scale_b"_a = none(), "meta"_a = none(), "meta_layout"_a = "", "b_layout"_a = "kn",
          "format_a"_a = none(), "format_b"_a = none(), "seed"_a = 0, "dots"_a = false,
          ("How output `at`, (i, j) or (product, i, j), came about: a numemu.Trace, a dict of its "
           "steps, each with its terms, what was cut and the register, as `numemu gemm --trace "
           "--json` prints it; str() gives the text of `numemu gemm --trace`.\n\n" +
           operands + "dots: the arrays are those of dot(), and `at` is a number.")
              .c_str())
      .def(
          "verify",
          [](const OpenedUnit& u, const py::object& d, const py::object& a, const py::object& b,
             const py::object& c, const std::string& nan, std::uint64_t ulp,
             const std::string& zero_sign, const py::object& scale_a, const py::object& scale_b,
             const py::object& meta, const std::string& meta_layout, const std::string& b_layout,
             const py::object& format_a, const py::object& format_b, std::uint64_t seed,
             bool dots) {
            return verify(
                u, d, a, b, c,
                {scale_a, scale_b, meta, format_a, format_b, meta_layout, b_layout, seed, dots},
                nan, ulp, zero_sign);
          },
          "d"_a, "a"_a, "b"_a, "c"_a = none(), kw_only(), "nan"_a = "any", "ulp"_a = 0,
          "zero_sign"_a = "strict", "scale_a"_a = none(), "scale_b"_a = none(), "meta"_a = none(),
          "meta_layout"_a = "", "b_layout"_a = "kn", "format_a"_a = none(), "format_b"_a = none(),
          "seed"_a = 0, "dots"_a = false,
          ("D of another implementation held against the unit: a numemu.Verified, which is true "
           "where every output is equal, and else says which rule explains the others.\n\n"
           "nan: any, canonical or payload. ulp: finite results so many apart are equal. "
           "zero_sign: "
           "strict or ignore.\n" +
           operands)
              .c_str())
      .def("__repr__",
           [](const OpenedUnit& u) { return "numemu.unit('" + u.unit->row().name + "')"; });
  m.def("unit", &open_unit, "unit"_a,
        "The unit of that name, alias or unambiguous short form ('h100.wgmma.e4m3.f32'); the one "
        "that a file NAME.json or a dict describes (docs/describe-a-unit.md).");
  m.def(
      "units",
      [](const std::string& pattern) {
        std::vector<std::string> names;
        for (const unit::Unit* one : api::find_units(pattern)) names.push_back(one->row().name);
        return names;
      },
      "pattern"_a = "",
      "Names of all units of the catalogue, or of those that a pattern fits: 'h100.wgmma', "
      "'*.e4m3x*'.");
}

}  // namespace numemu::python
