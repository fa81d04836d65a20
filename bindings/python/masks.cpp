// Masks of arrays, and how many there are.
#include "api/masks.hpp"

#include <optional>
#include <string>
#include <utility>

#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {
namespace {

py::object mask(const Arguments& a) {
  const Given in = float32_of(a[0], "x");
  const auto rule = a.get<std::string>(1);
  const auto axis = a.get<std::optional<int>>(2);
  const auto seed = a.get<std::uint64_t>(3);
  api::MaskedArray masked;
  {
    const py::gil_scoped_release released;
    masked = api::mask(in.array, {.rule = rule, .axis = axis, .seed = seed});
  }
  return py::module_::import("numemu.masks")
      .attr("Masked")(policies::to_string(masked.policy), numpy_of(std::move(masked.values)),
                      numpy_of(std::move(masked.keep)).attr("view")("bool"), masked.kept);
}

py::object count(const Arguments& a) {
  const auto family = a.get<std::string>(0), pattern = a.get<std::string>(1);
  const auto elements = a.get<std::optional<std::int64_t>>(2);
  api::MaskCounts counts;
  {
    const py::gil_scoped_release released;
    counts = api::count_masks(family, pattern, elements);
  }
  const std::string& digits = counts.count.decimal;
  py::object whole = py::none();
  if (!digits.empty())
    whole = py::reinterpret_steal<py::object>(PyLong_FromString(digits.c_str(), nullptr, 10));
  return py::module_::import("numemu.masks")
      .attr("MaskCount")(counts.elements, whole, counts.count.log10, counts.count.log2,
                         counts.log10_per_block);
}

Signature mask_signature(
    "mask", "x, rule, *, axis=None, seed=0",
    "x (float32, any shape) under a mask rule of docs/masks.md, 'transposable(2:4)': a "
    "numemu.masks.Masked.\n\n"
    "Groups run along `axis`, the last by default; tiles lie in the matrices of the last two axes. "
    "seed: of rules that draw.");
Signature count_signature(
    "count_masks", "family, pattern, elements=None",
    "How many masks a pattern admits: of one group or tile of 'N:M', or of an array of so many "
    "elements: a numemu.masks.MaskCount.\n\n"
    "family: group, transposable, transposable upper bound, sequential, and unstructured, which "
    "needs `elements`.");

}  // namespace

void add_masks(py::module_& m) {
  add_function<mask_signature, &mask>(m);
  add_function<count_signature, &count>(m);
}

}  // namespace numemu::python
