// Sweeps, experiments and reports: what numemu/studies.py makes its functions of.
#include "api/studies.hpp"

#include <utility>

#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/options.hpp"
#include "bindings/python/python.hpp"
#include "experiments/engine/row_store.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

experiments::Existing existing_of(Options& options) {
  bool fresh = false;
  options.read("fresh", fresh);
  return fresh ? experiments::Existing::fresh : experiments::Existing::resume;
}

/// Runs the sweep, writes its report and gives folder, counts and the points' names.
py::object sweep(const py::dict& given, const py::object& progress, const py::object& say) {
  Options options(given, "sweep");
  api::SweepRequest asked;
  options.read("config", asked.config);
  options.read("out", asked.out);
  options.read("calibrate_on", asked.calibrate_on);
  options.read("metrics", asked.metrics);
  options.read("shard", asked.shard);
  options.read("predictions", asked.predictions);
  std::optional<std::string> gate;
  options.read("gate", gate);
  asked.existing = existing_of(options);
  options.require_all_read();
  if (gate) asked.gate = experiments::parse_gate(*gate);
  LongWork work(progress, say);
  api::Sweep planned;
  experiments::SweepSummary summary;
  work.run([&] {
    const api::Context context = work.context();
    planned = api::plan_sweep(asked, context.folders);
    const auto on_points = [&](const api::PointProgress& at) {
      const std::string point =
          std::to_string(std::min(at.point + 1, at.points)) + "/" + std::to_string(at.points);
      work.tell("point " + point + (at.phase.empty() ? "" : ", " + std::string(at.phase)), at.done,
                at.total);
    };
    summary = api::run_sweep(planned, context, on_points);
    if (planned.shard.count == 1)
      api::write_report(planned.out, api::default_paths(planned.out), context, true, planned.gate);
  });
  return py::dict("out"_a = planned.out, "points"_a = summary.points,
                  "computed"_a = summary.computed, "kept"_a = summary.kept,
                  "names"_a = planned.names);
}

py::list rows(const std::string& folder) {
  std::vector<Json> all;
  {
    const py::gil_scoped_release released;
    for (const experiments::Row& row : experiments::merge_rows(folder)) all.push_back(to_json(row));
  }
  py::list list;
  for (const Json& row : all) list.append(python_of(row));
  return list;
}

py::object experiment(const py::dict& given, const py::object& progress, const py::object& say) {
  Options options(given, "experiment");
  api::ExperimentRequest asked;
  options.read("name", asked.name);
  options.read("size", asked.size);
  options.read("out", asked.out);
  options.read("settings", asked.settings);
  options.read("seed", asked.seed);
  options.read("shard", asked.shard);
  asked.existing = existing_of(options);
  options.require_all_read();
  LongWork work(progress, say);
  experiments::SweepHooks hooks;
  hooks.on_point = [&](std::size_t done, std::size_t, std::size_t total,
                       const experiments::Point&) {
    work.tell("points", static_cast<double>(done), static_cast<double>(total));
  };
  hooks.on_trial = [&](std::size_t done, std::size_t, std::size_t total, const std::string& label) {
    work.tell(label.empty() ? "trials" : label, static_cast<double>(done),
              static_cast<double>(total));
  };
  api::ExperimentResult result;
  work.run([&] { result = api::run_experiment(asked, work.context(), hooks); });
  py::dict out("out"_a = result.out, "failed"_a = result.failed(),
               "concluded"_a = result.concluded);
  out["result"] = result.concluded ? python_of(numemu::json_of(result.file)) : py::none();
  return out;
}

py::dict report(const std::string& folder, bool predictions, const py::object& say) {
  LongWork work(py::none(), say);
  std::string unfinished;
  const api::ReportPaths paths = api::default_paths(folder);
  work.run([&] {
    unfinished = api::write_report(folder, paths, work.context(), predictions).unfinished;
  });
  return py::dict("html"_a = paths.html, "csv"_a = paths.csv, "sqlite"_a = paths.sqlite,
                  "markdown"_a = paths.markdown, "unfinished"_a = unfinished);
}

}  // namespace

void add_studies(py::module_& m) {
  m.def("_sweep", &sweep);
  m.def("_rows", &rows);
  m.def("_experiment", &experiment);
  m.def("_experiments", [] {
    std::vector<std::string> names;
    for (const auto* const experiment : experiments::all_experiments())
      names.emplace_back(experiment->name);
    return names;
  });
  m.def("_report", &report);
}

}  // namespace numemu::python
