// Errors of a format under a law or of numbers, predicted beside measured; the best scale.
#include "api/analysis.hpp"

#include <optional>
#include <string>
#include <utility>

#include "bindings/python/arrays.hpp"
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

  explicit Numbers(const py::object& dist) {
    if (py::isinstance<py::str>(dist)) {
      name = dist.cast<std::string>();
      return;
    }
    name = "numbers";
    given = python::given(dist, "numbers");
    if (given->format != nullptr) throw Error("numbers: expected float16, float32 or float64");
  }
  const Array* sample() const { return given ? &given->array : nullptr; }
};

py::object error(const py::object& format, const py::object& dist, const std::string& rounding,
                 const std::string& overflow, const py::object& scale, const std::string& rule,
                 std::optional<std::int64_t> n, std::uint64_t seed, bool best_scale) {
  const Numbers numbers(dist);
  const api::AnalysisRequest request{.format = format_of(format).name,
                                     .numbers = numbers.name,
                                     .sample = numbers.sample(),
                                     .rounding = rounding,
                                     .overflow = overflow,
                                     .scale = py::str(scale),
                                     .rule = rule,
                                     .n = n,
                                     .seed = seed,
                                     .best_scale = best_scale};
  Json json;
  {
    const py::gil_scoped_release released;
    json = api::analysis_json(api::analyze(request));
  }
  return python_of(json);
}

}  // namespace

void add_analysis(py::module_& m) {
  m.def(
      "error", &error, "format"_a, "dist"_a, py::kw_only(), "rounding"_a = "rne",
      "overflow"_a = "saturate", "scale"_a = 1, "rule"_a = "", "n"_a = py::none(), "seed"_a = 0,
      "best_scale"_a = false,
      "Errors of a scalar format of at most 16 bits, predicted and measured: the dict that `numemu "
      "analyze --json` prints.\n\n"
      "dist: normal, laplace, uniform, lognormal:S, lognormal:S:log2, of which n numbers are drawn "
      "(a million); a .npy file; or an array of numbers. scale: x / scale is rounded; rule: the "
      "scale rule that chooses it. result['figures']['sqnr_db'] has predicted, measured, ci95 and "
      "verdict, as have mse, mean_error, overflow, underflow and others. best_scale: also the "
      "scales with the least MSE.");
}

}  // namespace numemu::python
