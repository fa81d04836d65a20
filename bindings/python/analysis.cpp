// Errors of a format under a law or of numbers, predicted beside measured; the best scale.
#include "api/analysis.hpp"

#include <optional>
#include <string>
#include <utility>

#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
#include "bindings/python/formats.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"
#include "formats/error.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::python {
namespace {

/// A law's name or numbers.
struct Numbers {
  std::string name;
  std::optional<Given> given;

  explicit Numbers(py::handle dist) {
    if (PyUnicode_Check(dist.ptr()) || py::hasattr(dist, "__fspath__")) {
      name = text_of(dist, {"error", "dist"});
      return;
    }
    name = "numbers";
    given = python::given(dist, "numbers");
    if (given->format != nullptr) throw Error("numbers: expected float16, float32 or float64");
  }
  const Array* sample() const { return given ? &given->array : nullptr; }
};

/// In the words of the command line.
std::string scale_text(py::handle scale) {
  if (PyUnicode_Check(scale.ptr())) return text_of(scale, {"error", "scale"});
  return py::repr(py::float_(number_of(scale, {"error", "scale"})));
}

py::object error(const Arguments& a) {
  const Numbers numbers(a[1]);
  const api::AnalysisRequest request{.format = format_of(a[0]).name,
                                     .numbers = numbers.name,
                                     .sample = numbers.sample(),
                                     .rounding = a.get<std::string>(2),
                                     .overflow = a.get<std::string>(3),
                                     .scale = scale_text(a[4]),
                                     .rule = a.get<std::string>(5),
                                     .n = a.get<std::optional<std::int64_t>>(6),
                                     .seed = a.get<std::uint64_t>(7),
                                     .best_scale = a.get<bool>(8)};
  Json json;
  {
    const py::gil_scoped_release released;
    json = api::analysis_json(api::analyze(request));
  }
  return python_of(json);
}

Signature error_signature(
    "error",
    "format, dist, *, rounding='rne', overflow='saturate', scale=1, rule='', n=None, seed=0, "
    "best_scale=False",
    "Errors of a scalar format of at most 16 bits, predicted and measured: the dict that `numemu "
    "analyze --json` prints.\n\n"
    "dist: normal, laplace, uniform, lognormal:S, lognormal:S:log2, of which n numbers are drawn "
    "(a million); a .npy file; or an array of numbers. scale: x / scale is rounded; rule: the "
    "scale rule that chooses it. result['figures']['sqnr_db'] has predicted, measured, ci95 and "
    "verdict, as have mse, mean_error, overflow, underflow and others. best_scale: also the "
    "scales with the least MSE.");

}  // namespace

void add_analysis(py::module_& m) { add_function<error_signature, &error>(m); }

}  // namespace numemu::python
