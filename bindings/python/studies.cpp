// Sweeps, experiments and reports: what numemu/studies.py makes its functions of.
#include "api/studies.hpp"

#include <utility>

#include "bindings/python/call.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/options.hpp"
#include "bindings/python/python.hpp"
#include "experiments/engine/row_store.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

/// Runs the sweep, writes its report and gives folder, counts and the points' names.
py::object sweep(const Arguments& a) {
  api::SweepRequest asked;
  Options options(a.get<py::object>(0), "sweep");
  options.read(asked);
  options.require_all_read();
  LongWork work(a[1], a[2]);
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
      api::write_report(planned.out, api::default_paths(planned.out, planned.figures), context,
                        true, planned.gate);
  });
  return py::dict("out"_a = planned.out, "points"_a = summary.points,
                  "computed"_a = summary.computed, "kept"_a = summary.kept,
                  "names"_a = planned.names);
}

py::object rows(const Arguments& a) {
  const auto folder = a.get<std::string>(0);
  std::vector<Json> all;
  {
    const py::gil_scoped_release released;
    for (const experiments::Row& row : experiments::merge_rows(folder)) all.push_back(to_json(row));
  }
  py::list list;
  for (const Json& row : all) list.append(python_of(row));
  return list;
}

py::object experiment(const Arguments& a) {
  api::ExperimentRequest asked;
  Options options(a.get<py::object>(0), "experiment");
  options.read(asked);
  options.require_all_read();
  LongWork work(a[1], a[2]);
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

py::object report(const Arguments& a) {
  const auto folder = a.get<std::string>(0);
  const auto predictions = a.get<bool>(1);
  LongWork work(py::none(), a[2]);
  std::string unfinished;
  const api::ReportPaths paths = api::default_paths(folder);
  work.run([&] {
    unfinished = api::write_report(folder, paths, work.context(), predictions).unfinished;
  });
  return py::dict("html"_a = paths.html, "csv"_a = paths.csv, "sqlite"_a = paths.sqlite,
                  "markdown"_a = paths.markdown, "unfinished"_a = unfinished);
}

// What numemu/studies.py calls; `options` are dicts of options by name.
Signature sweep_signature("_sweep", "options, progress, say", "numemu.sweep()");
Signature rows_signature("_rows", "folder", "numemu.rows()");
Signature experiment_signature("_experiment", "options, progress, say", "numemu.experiment()");
Signature report_signature("_report", "folder, predictions, say", "numemu.report()");

}  // namespace

void add_studies(py::module_& m) {
  add_function<sweep_signature, &sweep>(m);
  add_function<rows_signature, &rows>(m);
  add_function<experiment_signature, &experiment>(m);
  add_function<report_signature, &report>(m);
  m.def("_experiments", [] {
    std::vector<std::string> names;
    for (const auto* const experiment : experiments::all_experiments())
      names.emplace_back(experiment->name);
    return names;
  });
}

}  // namespace numemu::python
