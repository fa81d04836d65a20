// Matrix units: open, describe, multiply, trace, hold results against them; test vectors, and
// results made elsewhere held against those that a unit or an operation must give.
#include "api/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/formats.hpp"
#include "api/oracle.hpp"
#include "api/text/trace.hpp"
#include "api/text/verification.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/python.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::python {

/// numemu.Unit.
struct OpenedUnit {
  api::UnitPtr unit;
};
/// Of numemu.Unit, a name, a file NAME.json or a dict. Throws Error as api::open_unit() does.
OpenedUnit open_unit(py::handle unit);
/// A numemu.Verified.
py::object python_of(const api::Verified&);
/// In the words of `numemu verify`. Throws Error naming what is none of them.
api::Equality equality_of(const std::string& nan, std::uint64_t ulp, const std::string& zero_sign);

namespace {

/// A product of arrays of Python, and what keeps them alive.
struct HeldProduct {
  std::unique_ptr<api::Product> product;
  std::vector<py::object> owners;
};

/// What a call says of a product: A, B and C from argument `first` on, and the arguments of
/// kOperands behind them.
struct ProductWords {
  const Arguments& given;
  std::size_t first;
  bool dots = false;
  bool b_by_columns = false;

  py::handle operator[](std::size_t i) const { return given[first + i]; }
};
enum : std::uint8_t { kA, kB, kC, kScaleA, kScaleB, kMeta, kMetaLayout, kFormatA, kFormatB, kSeed };
const std::string kOperands =
    "scale_a=None, scale_b=None, meta=None, meta_layout='', format_a=None, format_b=None, seed=0";

class Reader {
 public:
  explicit Reader(const unit::Unit& unit) : unit_(unit) {}

  /// Codes of the unit's operand; where it takes any format, of the one that is told or that the
  /// type names.
  Codes operand(py::handle x, py::handle told, const Format* own, const char* name,
                const char* told_name) {
    Given one = given(x, name);
    const Format* format = !told.is_none() ? &format_of(told, told_name) : one.format;
    if (format == nullptr && own != nullptr && own->container_shift != 0 &&
        one.array.type == ArrayType::float32)
      format = &find_format("float32");  // the unit drops low bits
    if (format == nullptr) format = own;
    if (format == nullptr)
      throw usage_error(
          fmt::format("{}: expected a format: unit {} takes any", told_name, unit_.row().name));
    one = as_type(std::move(one), container_type(*format), name);
    owners_.push_back(one.owner);
    return {format, std::move(one.array)};
  }
  std::optional<Array> array(py::handle x, const char* name) {
    if (x.is_none()) return std::nullopt;
    Given one = given(x, name);
    owners_.push_back(one.owner);
    return std::move(one.array);
  }
  std::vector<py::object> owners() { return std::move(owners_); }

 private:
  const unit::Unit& unit_;
  std::vector<py::object> owners_;
};

HeldProduct product_of(const OpenedUnit& opened, const ProductWords& words,
                       py::handle out = Py_None) {
  const unit::UnitDescription* u = opened.unit->description();
  Reader read(*opened.unit);
  api::Operands operands{
      .a = read.operand(words[kA], words[kFormatA], u == nullptr ? nullptr : u->a, "a", "format_a"),
      .b = read.operand(words[kB], words[kFormatB], u == nullptr ? nullptr : u->b, "b", "format_b"),
      .c = read.array(words[kC], "c"),
      .scale_a = read.array(words[kScaleA], "scale_a"),
      .scale_b = read.array(words[kScaleB], "scale_b"),
      .meta = read.array(words[kMeta], "meta"),
      .meta_layout = words.given.get<std::string>(words.first + kMetaLayout),
      .shape = words.dots ? api::ProductShape::dots : api::ProductShape::batches,
      .b_by_columns = words.b_by_columns,
      .seed = words.given.get<std::uint64_t>(words.first + kSeed)};
  if (!out.is_none()) operands.d = writable(out);
  return {api::make_product(opened.unit, std::move(operands)), read.owners()};
}

/// Whether B is N x K.
bool by_columns(const Arguments& given, std::size_t i) {
  const auto layout = given.get<std::string>(i);
  if (layout != "kn" && layout != "nk")
    throw usage_error(fmt::format("b_layout: expected kn or nk, found {}", layout));
  return layout == "nk";
}

/// Whether Ctrl-C should end the product: it takes longer than a moment.
bool is_long(const api::Product& p, bool by_reference) {
  constexpr double kMoment = 1 << 26;  // multiply-adds
  constexpr double kReference = 100;   // times slower
  const unit::Gemm& g = p.gemm;
  const double each =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  return static_cast<double>(p.batch.count) * each * (by_reference ? kReference : 1) > kMoment;
}

/// One number or an array of them.
std::vector<double> numbers_in(py::handle x, const char* name) {
  const GivenNumbers given = numbers(x, name);
  require_type(name, given.codes.array.type, {ArrayType::float32, ArrayType::float64}, "numbers");
  std::vector<double> values;
  with_element_type(given.codes.array.type, [&]<class T>(T) {
    const T* const at = given.codes.array.as<T>();
    for (std::int64_t i = 0; i < given.codes.array.elements(); ++i)
      values.push_back(static_cast<double>(at[i]));
  });
  return values;
}

/// The epilogue that a dict describes; nothing for None.
std::optional<api::FollowedBy> epilogue_of(const api::Product& p, py::handle given_dict,
                                           const char* call) {
  if (given_dict.is_none()) return std::nullopt;
  if (PyDict_Check(given_dict.ptr()) == 0) wrong_value({call, "epilogue"}, "a dict", given_dict);
  static const std::vector<std::string> known = {"requantize", "format_d",   "bias",
                                                 "factor",     "multiplier", "shift",
                                                 "zero_point", "low",        "high"};
  api::EpilogueNumbers n;
  n.arguments = true;
  n.factor.name = "factor";
  n.multiplier.name = "multiplier";
  n.shift.name = "shift";
  for (const auto& [word, value] : py::reinterpret_borrow<py::dict>(given_dict)) {
    const std::string key = text_of(word, {call, "epilogue"});
    if (std::ranges::find(known, key) == known.end())
      throw usage_error("epilogue: " + unknown_name("key", key, known));
    if (value.is_none()) continue;
    const Place place{call, key.c_str()};
    if (key == "requantize") {
      n.requantize = text_of(value, place);
    } else if (key == "format_d") {
      n.format = format_of(value, "format_d").name;
    } else if (key == "bias") {
      const Given bias = as_type(given(value, "bias"), ArrayType::int32, "bias");
      require_type("bias", bias.array.type, {ArrayType::int32}, "biases");
      n.bias.assign(bias.array.as<std::int32_t>(),
                    bias.array.as<std::int32_t>() + bias.array.elements());
    } else if (key == "factor") {
      n.factor.values = numbers_in(value, "factor");
    } else if (key == "multiplier") {
      n.multiplier.values = numbers_in(value, "multiplier");
    } else if (key == "shift") {
      n.shift.values = numbers_in(value, "shift");
    } else if (key == "zero_point") {
      n.zero_point = value_of<std::int64_t>(value, place);
    } else if (key == "low") {
      n.low = value_of<std::int64_t>(value, place);
    } else {
      n.high = value_of<std::int64_t>(value, place);
    }
  }
  return api::FollowedBy{api::make_epilogue(*p.unit, n), &find_format(n.format)};
}

py::object multiply(const OpenedUnit& opened, const ProductWords& words,
                    api::MultiplyOptions options, py::handle out, py::handle epilogue = Py_None) {
  const HeldProduct held = product_of(opened, words, out);
  api::Product& p = *held.product;
  const std::optional<api::FollowedBy> follows = epilogue_of(p, epilogue, "gemm");
  if (follows && (options.alpha || options.flags || !out.is_none()))
    throw usage_error("epilogue: not allowed with alpha, flags and out: it follows the unit");
  if (is_long(p, options.reference || options.flags)) {
    LongWork work(Py_None, Py_None);
    options.on_progress = work.counter();
    work.run([&] { api::multiply(p, options); });
  } else {
    const py::gil_scoped_release released;
    api::multiply(p, options);
  }
  if (follows)
    return numpy_of(std::move(api::requantized(p, follows->epilogue, *follows->format).array));
  py::object d = out.is_none() ? numpy_of(std::move(p.d)) : py::reinterpret_borrow<py::object>(out);
  if (!options.flags) return d;
  return py::make_tuple(std::move(d), numpy_of(std::move(p.flags)));
}

py::object gemm(const OpenedUnit& opened, const Arguments& a) {
  return multiply(opened, {.given = a, .first = 0, .b_by_columns = by_columns(a, 10)},
                  {.alpha = a.get<std::optional<float>>(11),
                   .reference = a.get<bool>(13),
                   .flags = a.get<bool>(12)},
                  a[14], a[15]);
}

py::object dot(const OpenedUnit& opened, const Arguments& a) {
  return multiply(opened, {.given = a, .first = 0, .dots = true},
                  {.reference = a.get<bool>(11), .flags = a.get<bool>(10)}, a[12]);
}

/// (i, j), (product, i, j) or the number of a dot; of Python or NumPy.
std::string place_words(py::handle at) {
  constexpr Place kAt{"trace", "at"};
  const auto number = [&](py::handle one) {
    using Limits = std::numeric_limits<std::int64_t>;
    return std::to_string(whole_of(one, kAt, Limits::min(), Limits::max()));
  };
  if (PyTuple_Check(at.ptr()) == 0 && PyList_Check(at.ptr()) == 0 && !py::isinstance<py::array>(at))
    return number(at);
  std::string text;
  for (const py::handle one : py::list(py::reinterpret_borrow<py::object>(at)))
    text += (text.empty() ? "" : ",") + number(one);
  return text;
}

py::object trace(const OpenedUnit& opened, const Arguments& a) {
  const HeldProduct held = product_of(
      opened, {.given = a, .first = 0, .dots = a.get<bool>(12), .b_by_columns = by_columns(a, 10)});
  const api::Product& p = *held.product;
  const std::string first = p.d.shape.size() == 1 ? "0" : p.d.shape.size() == 2 ? "0,0" : "0,0,0";
  const api::Place place = api::parse_place("at", a[11].is_none() ? first : place_words(a[11]), p);
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

py::object verify(const OpenedUnit& opened, const Arguments& a) {
  const api::Equality equality =
      equality_of(a.get<std::string>(13), a.get<std::uint64_t>(14), a.get<std::string>(15));
  HeldProduct held = product_of(
      opened, {.given = a, .first = 1, .dots = a.get<bool>(12), .b_by_columns = by_columns(a, 11)});
  Given given_d = given(a[0], "d");
  if (given_d.array.type == ArrayType::float16) given_d.array.type = ArrayType::uint16;
  const std::optional<api::FollowedBy> follows = epilogue_of(*held.product, a[16], "verify");
  std::optional<api::Verified> verified;
  {
    const py::gil_scoped_release released;
    verified = api::verify_product(std::move(held.product), std::move(given_d.array), "d", equality,
                                   follows);
  }
  return python_of(*verified);
}

py::object describe_unit(const OpenedUnit& opened, const Arguments&) {
  return python_of(api::unit_json(*opened.unit));
}

py::object units_named(const Arguments& a) {
  std::vector<std::string> names;
  for (const unit::Unit* one : api::find_units(a.get<std::string>(0)))
    names.push_back(one->row().name);
  return py::cast(names);
}

py::object unit_of(const Arguments& a) { return py::cast(open_unit(a[0])); }

/// What numemu.unit() makes an equal unit of: its name, or the text of its description.
std::string unit_text(const OpenedUnit& u) {
  const std::string& name = u.unit->row().name;
  try {
    if (api::open_unit(name) != nullptr) return name;
  } catch (const Error&) {
    // It has a name of a caller.
  }
  return unit::description_json(*u.unit->description());
}

std::optional<std::string> name_of(const Format* format) {
  return format == nullptr ? std::nullopt : std::optional(format->name);
}

const std::string kOperandsDoc =
    "a, b: codes in the unit's formats (the property `operands`), arrays of NumPy or CPU tensors; "
    "types that name their format (bfloat16 and float8 of torch and ml_dtypes) are checked against "
    "it. format_a, format_b: names, for units that take any format.\n"
    "c: in the type of the unit's C; float32 ones also take float16.\n"
    "scale_a, scale_b: codes of the block scales of units that have them, [products,] M x "
    "ceil(K / block) and ceil(K / block) x N.\n"
    "meta: of sparse units, whose A holds the kept elements: uint8, the index of each in its "
    "group, "
    "or with meta_layout='ptx' the words of mma.sp.\n"
    "seed: of stochastic registers.\n";
const std::string kLayoutDoc = "b_layout: 'kn', or 'nk' where B (and its scales) is N x K.\n";

const std::string kEpilogueDoc =
    "epilogue: of integer units, whose D are then codes of their sums: a dict of `requantize` "
    "('float', 'fixed-point-single', 'fixed-point-double'), `factor` or `multiplier` and `shift` "
    "(numbers, or one for each column), and `format_d` ('int8'), `bias` (int32), `zero_point`, "
    "`low`, `high`, as of `numemu gemm --requantize`.\n";

Signature gemm_signature(
    "gemm",
    "a, b, c=None, *, " + kOperands +
        ", b_layout='kn', alpha=None, flags=False, reference=False, out=None, epilogue=None",
    "D = A B + C, bit for bit: A is M x K, B K x N, C and D M x N; each may have a leading axis, "
    "the product, and an array without it serves all products.\n\n" +
        kOperandsDoc + kLayoutDoc +
        "alpha: D = RNE(RNE(alpha AB) + C) in float32, outside the unit.\n"
        "flags: returns (D, flags), exception flags of each output, uint8. reference: by the "
        "specification, some hundred times slower; the same bits.\n"
        "out: an array of the type and shape of D that takes it and is returned.\n" +
        kEpilogueDoc);
Signature dot_signature(
    "dot", "a, b, c=None, *, " + kOperands + ", flags=False, reference=False, out=None",
    "N dots: A and B are N x K, or K for one row that serves all; C and D have N elements.\n\n" +
        kOperandsDoc + "flags, reference, out: as of gemm().");
Signature trace_signature(
    "trace", "a, b, c=None, *, " + kOperands + ", b_layout='kn', at=None, dots=False",
    "How output `at`, (i, j) or (product, i, j), came about: a numemu.Trace, a dict of its steps, "
    "each with its terms, what was cut and the register, as `numemu gemm --trace --json` prints "
    "it; str() gives the text of `numemu gemm --trace`.\n\n" +
        kOperandsDoc + kLayoutDoc + "dots: the arrays are those of dot(), and `at` is a number.");
Signature verify_bits_signature(
    "verify",
    "d, a, b, c=None, *, " + kOperands +
        ", b_layout='kn', dots=False, nan='any', ulp=0, zero_sign='strict', epilogue=None",
    "D of another implementation held against the unit: a numemu.Verified, which is true where "
    "every output is equal, and else says which rule explains the others.\n\n"
    "nan: any, canonical or payload. ulp: finite results so many apart are equal. zero_sign: "
    "strict or ignore.\n" +
        kOperandsDoc + kLayoutDoc + "dots: the arrays are those of dot().\n" + kEpilogueDoc);
Signature describe_unit_signature(
    "describe", "",
    "A dict of all that is known of it, as `numemu units NAME --json` prints it; `parameters` is a "
    "description that numemu.unit() takes under another name.");
Signature unit_signature(
    "unit", "unit",
    "The unit of that name, alias or unambiguous short form ('h100.wgmma.e4m3.f32'); the one that "
    "a file NAME.json or a dict describes (docs/describe-a-unit.md). A unit is itself.");
Signature units_signature(
    "units", "pattern=''",
    "Names of all units of the catalogue, or of those that a pattern fits: 'h100.wgmma', "
    "'*.e4m3x*'.");

}  // namespace

OpenedUnit open_unit(py::handle unit) {
  if (py::isinstance<OpenedUnit>(unit)) return unit.cast<OpenedUnit>();
  if (PyDict_Check(unit.ptr()))
    return {unit::make_unit(unit::parse_description(json_of(unit, "unit").dump(), "unit"))};
  return {api::open_unit(text_of(unit, {"unit", "unit"}))};
}

void add_units(py::module_& m) {
  py::class_<OpenedUnit> unit(
      m, "Unit", "A matrix unit: the arithmetic of one instruction. See numemu.unit().");
  unit.def_property_readonly("name", [](const OpenedUnit& u) { return u.unit->row().name; })
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
      .def("__repr__",
           [](const OpenedUnit& u) { return "numemu.unit('" + u.unit->row().name + "')"; })
      .def(
          "__eq__",
          [](const OpenedUnit& u, const OpenedUnit& v) {
            return u.unit == v.unit || unit_text(u) == unit_text(v);
          },
          py::is_operator())
      .def("__hash__", [](const OpenedUnit& u) { return py::hash(py::str(u.unit->row().name)); })
      .def("__reduce__", [](const OpenedUnit& u) {
        return py::make_tuple(py::module_::import("numemu._core").attr("unit"),
                              py::make_tuple(unit_text(u)));
      });
  add_method<describe_unit_signature, OpenedUnit, &describe_unit>(unit);
  add_method<gemm_signature, OpenedUnit, &gemm>(unit);
  add_method<dot_signature, OpenedUnit, &dot>(unit);
  add_method<trace_signature, OpenedUnit, &trace>(unit);
  add_method<verify_bits_signature, OpenedUnit, &verify>(unit);
  add_function<unit_signature, &unit_of>(m);
  add_function<units_signature, &units_named>(m);
}

// Vectors and records.

namespace {

py::list fields_of(const oracle::Layout& layout) {
  py::list fields;
  for (const oracle::Field& f : layout) {
    fields.append(
        py::dict("name"_a = f.name, "bits"_a = f.bits, "count"_a = f.count,
                 "format"_a = f.format == nullptr ? std::nullopt : std::optional(f.format->name),
                 "result"_a = f.result));
  }
  return fields;
}

/// Records [first, first + n): for each field uint64 [n], or [n, count]; and their classes.
py::object records(const api::Vectors& vectors, const Arguments& a) {
  const auto first = a.get<std::int64_t>(0), n = a.get<std::int64_t>(1);
  if (first < 0 || n < 0 || first > vectors.size() || n > vectors.size() - first)
    throw usage_error(fmt::format("records: expected a part of {}, found {} from {} on",
                                  vectors.size(), n, first));
  const oracle::Layout& layout = vectors.layout();
  oracle::Records made;
  {
    const py::gil_scoped_release released;
    made = oracle::Records(layout, n);
    vectors.fill(first, made);
  }
  py::dict columns;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    ArrayShape shape = {n};
    if (layout[i].count != 1) shape.push_back(layout[i].count);
    columns[py::str(layout[i].name)] =
        numpy_of(api::array_of(ArrayType::uint64, shape, made.columns[i]));
  }
  py::list classes;
  for (std::int64_t i = 0; i < n; ++i) classes.append(made.class_name(i));
  return py::make_tuple(std::move(columns), std::move(classes));
}

template <class Enum>
Enum chosen(const char* option, const std::string& word,
            std::initializer_list<std::pair<const char*, Enum>> known) {
  std::string all;
  for (const auto& [name, value] : known) {
    if (word == name) return value;
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  throw usage_error(fmt::format("{}: expected one of {}, found {}", option, all, word));
}

py::object make_vectors(const Arguments& a) {
  api::VectorOptions options{.format_a = a.get<std::string>(7),
                             .format_b = a.get<std::string>(8),
                             .op = a.get<std::string>(1),
                             .format = a.get<std::string>(2),
                             .from = a.get<std::string>(3),
                             .to = a.get<std::string>(4),
                             .rounding = a.get<std::string>(5),
                             .overflow = a.get<std::string>(6),
                             .k = a.get<std::optional<std::int64_t>>(9),
                             .style = a.get<std::string>(10),
                             .level = a.get<std::int64_t>(11),
                             .n = a.get<std::optional<std::int64_t>>(12),
                             .seed = a.get<std::uint64_t>(13)};
  if (!a[0].is_none()) options.opened = open_unit(a[0]).unit;
  return py::cast(std::make_unique<api::Vectors>(options));
}

py::object verify_file(const Arguments& a) {
  const auto path = a.get<std::string>(0);
  api::RecordsTold told{.unit = a.get<std::string>(1),
                        .format_a = a.get<std::string>(7),
                        .format_b = a.get<std::string>(8),
                        .op = a.get<std::string>(2),
                        .from = a.get<std::string>(3),
                        .to = a.get<std::string>(4),
                        .rounding = a.get<std::string>(5),
                        .overflow = a.get<std::string>(6),
                        .k = a.get<std::int64_t>(9),
                        .fields = a.get<std::string>(10)};
  told.order =
      chosen("element_order", a.get<std::string>(11),
             {std::pair("lsb", oracle::ElementOrder::lsb), {"msb", oracle::ElementOrder::msb}});
  const api::Equality equality =
      equality_of(a.get<std::string>(12), a.get<std::uint64_t>(13), a.get<std::string>(14));
  std::optional<api::Verified> verified;
  LongWork work(Py_None, Py_None);
  work.run([&] { verified = api::verify_records(path, told, equality, work.counter()); });
  return python_of(*verified);
}

Signature records_signature(
    "records", "first, n",
    "Records [first, first + n) as a dict, for each field uint64 [n] or [n, count], and the names "
    "of their classes.");
Signature vectors_signature(
    "make_vectors",
    "unit=None, op='', format='', from_='', to='', rounding='', overflow='', format_a='', "
    "format_b='', k=None, style='mixed', level=1, n=None, seed=0",
    "What numemu.vectors() iterates over: a VectorMaker of a unit or an operation.");
Signature verify_file_signature(
    "verify",
    "path, *, unit='', op='', from_='', to='', rounding='', overflow='', format_a='', format_b='', "
    "k=0, fields='', element_order='lsb', nan='any', ulp=0, zero_sign='strict'",
    "A file of records in any form that `numemu verify --in` reads, held against the results that "
    "they must have: a numemu.Verified.\n\n"
    "What the file is about stands in its first line, or in unit, or op, from_, to, rounding, "
    "overflow, k. fields and element_order describe foreign lines. nan: any, canonical or payload. "
    "ulp: finite results so many apart are equal. zero_sign: strict or ignore.");

}  // namespace

py::object python_of(const api::Verified& v) {
  return py::module_::import("numemu._records")
      .attr("Verified")(python_of(api::verify_json(v)), api::verify_text(v), v.holds());
}

api::Equality equality_of(const std::string& nan, std::uint64_t ulp, const std::string& zero_sign) {
  api::Equality equality;
  equality.tolerance.nan = chosen("nan", nan,
                                  {std::pair("any", oracle::NanMatch::any),
                                   {"canonical", oracle::NanMatch::canonical},
                                   {"payload", oracle::NanMatch::payload}});
  equality.tolerance.zero =
      chosen("zero_sign", zero_sign,
             {std::pair("strict", oracle::ZeroSign::strict), {"ignore", oracle::ZeroSign::ignore}});
  equality.tolerance.ulps = ulp;
  return equality;
}

void add_vectors(py::module_& m) {
  py::class_<api::Vectors> maker(m, "VectorMaker", "What makes the records of numemu.vectors().");
  maker.def("__len__", &api::Vectors::size)
      .def_property_readonly("fields", [](const api::Vectors& v) { return fields_of(v.layout()); })
      .def_property_readonly(
          "header", [](const api::Vectors& v) { return oracle::header_line(v.subject()); });
  add_method<records_signature, api::Vectors, &records>(maker);
  py::list operations;
  for (const std::string_view name : oracle::operation_names())
    operations.append(std::string(name));
  m.attr("OPERATIONS") = py::tuple(operations);
  add_function<vectors_signature, &make_vectors>(m);
  add_function<verify_file_signature, &verify_file>(m);
}

}  // namespace numemu::python
