// Test vectors, and results made elsewhere held against those that a unit or an operation must
// give.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/formats.hpp"
#include "api/oracle.hpp"
#include "api/text/verification.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"
#include "bindings/python/units.hpp"
#include "bindings/python/verified.hpp"
#include "formats/error.hpp"

namespace numemu::python {
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
py::tuple records(const api::Vectors& vectors, std::int64_t first, std::int64_t n) {
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
  py::class_<api::Vectors>(m, "VectorMaker")
      .def(py::init([](const py::object& unit, const std::string& op, const std::string& format,
                       const std::string& from, const std::string& to, const std::string& rounding,
                       const std::string& overflow, const std::string& format_a,
                       const std::string& format_b, std::optional<std::int64_t> k,
                       const std::string& style, std::int64_t level, std::optional<std::int64_t> n,
                       std::uint64_t seed) {
             api::VectorOptions options{.format_a = format_a, .format_b = format_b, .op = op};
             if (!unit.is_none()) options.opened = open_unit(unit).unit;
             options.format = format;
             options.from = from;
             options.to = to;
             options.rounding = rounding;
             options.overflow = overflow;
             options.k = k;
             options.style = style;
             options.level = level;
             options.n = n;
             options.seed = seed;
             return std::make_unique<api::Vectors>(options);
           }),
           py::kw_only(), "unit"_a = py::none(), "op"_a = "", "format"_a = "", "from_"_a = "",
           "to"_a = "", "rounding"_a = "", "overflow"_a = "", "format_a"_a = "", "format_b"_a = "",
           "k"_a = py::none(), "style"_a = "mixed", "level"_a = 1, "n"_a = py::none(), "seed"_a = 0)
      .def("__len__", &api::Vectors::size)
      .def_property_readonly("fields", [](const api::Vectors& v) { return fields_of(v.layout()); })
      .def_property_readonly("header",
                             [](const api::Vectors& v) { return oracle::header_line(v.subject()); })
      .def("records", &records, "first"_a, "n"_a);
  m.def(
      "verify",
      [](const py::object& in, const std::string& unit, const std::string& op,
         const std::string& from, const std::string& to, const std::string& rounding,
         const std::string& overflow, const std::string& format_a, const std::string& format_b,
         std::int64_t k, const std::string& fields, const std::string& element_order,
         const std::string& nan, std::uint64_t ulp, const std::string& zero_sign) {
        const auto path = py::module_::import("os").attr("fspath")(in).cast<std::string>();
        api::RecordsTold told{.unit = unit,
                              .format_a = format_a,
                              .format_b = format_b,
                              .op = op,
                              .from = from,
                              .to = to,
                              .rounding = rounding,
                              .overflow = overflow,
                              .k = k,
                              .fields = fields};
        told.order = chosen(
            "element_order", element_order,
            {std::pair("lsb", oracle::ElementOrder::lsb), {"msb", oracle::ElementOrder::msb}});
        const api::Equality equality = equality_of(nan, ulp, zero_sign);
        std::optional<api::Verified> verified;
        {
          const py::gil_scoped_release released;
          verified = api::verify_records(path, told, equality);
        }
        return python_of(*verified);
      },
      "path"_a, py::kw_only(), "unit"_a = "", "op"_a = "", "from_"_a = "", "to"_a = "",
      "rounding"_a = "", "overflow"_a = "", "format_a"_a = "", "format_b"_a = "", "k"_a = 0,
      "fields"_a = "", "element_order"_a = "lsb", "nan"_a = "any", "ulp"_a = 0,
      "zero_sign"_a = "strict",
      "A file of records in any form that `numemu verify --in` reads, held against the results "
      "that "
      "they must have: a numemu.Verified.\n\n"
      "What the file is about stands in its first line, or in unit, or op, from_, to, rounding, "
      "overflow, k. fields and element_order describe foreign lines. nan: any, canonical or "
      "payload. "
      "ulp: finite results so many apart are equal. zero_sign: strict or ignore.");
}

}  // namespace numemu::python
