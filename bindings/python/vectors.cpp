// Test vectors, and results made elsewhere held against those that a unit or an operation must
// give.
#include "bindings/python/vectors.hpp"

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
#include "bindings/python/call.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/python.hpp"
#include "bindings/python/units.hpp"
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
