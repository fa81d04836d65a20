#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "api/studies.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "policies/notes/notes.hpp"

namespace numemu::api {
namespace {

std::vector<std::string> point_names(const experiments::SweepConfig& config) {
  std::vector<experiments::Row> rows;
  for (const experiments::Point& point : config.points) {
    rows.emplace_back().point = point.row;
    rows.back().recipe_name = point.recipe_name;
  }
  std::vector<std::string> names;
  for (const experiments::ReportRow& record : experiments::report_rows(rows))
    names.push_back(record.name);
  return names;
}

}  // namespace

Sweep plan_sweep(const SweepRequest& asked, const Folders& folders) {
  Sweep sweep;
  const bool text = asked.config.starts_with('{');
  sweep.path = text                   ? "sweep"
               : asked.config.empty() ? folders.data + "/sweeps/lenet-glyphs.json"
                                      : asked.config;
  experiments::SweepConfig& config = sweep.config;
  config = experiments::parse_sweep(text ? asked.config : read_text(sweep.path), sweep.path,
                                    folders.data);
  if (!asked.metrics.empty()) experiments::set_metrics(config, asked.metrics);
  experiments::set_calibration(config, asked.calibrate_on);
  if (!asked.predictions) experiments::turn_predictions_off(config);
  if (config.points.empty()) throw Error(sweep.path + ": expected at least one point");
  sweep.shard = experiments::parse_shard(asked.shard);
  sweep.out =
      asked.out.empty() ? "out/" + std::filesystem::path(sweep.path).stem().string() : asked.out;
  sweep.gate = asked.gate;
  sweep.existing = asked.existing;
  sweep.figures = asked.figures;
  sweep.names = point_names(config);
  return sweep;
}

experiments::SweepEstimate estimate(const Sweep& sweep, const Context& context) {
  return experiments::estimate_sweep(sweep.config, context.folders, sweep.out, sweep.shard,
                                     sweep.existing, context.clock);
}

experiments::SweepSummary run_sweep(const Sweep& sweep, const Context& context,
                                    const std::function<void(const PointProgress&)>& on_points,
                                    const std::string& host) {
  const net::RunScope scope(context.run);
  const experiments::SweepConfig& config = sweep.config;
  if (sweep.gate && sweep.shard.count > 1)
    throw usage_error("--gate: expected beside it no --shard; after all shards: numemu report " +
                      sweep.out);
  require_writable_folder(sweep.out);
  require_report_files(sweep.out, default_paths(sweep.out, sweep.figures));
  context.on_checked();
  auto [dataset, trained] = experiments::load_sweep(config, context.folders);
  if (sweep.gate)
    experiments::require_float32(*sweep.gate,
                                 policies::own_quantizers(trained.graph, trained.path));
  experiments::RowStore rows =
      experiments::open_rows(config, dataset, trained, sweep.out, sweep.shard, sweep.existing);
  experiments::Workbench bench(
      std::move(dataset), std::move(trained), config.eval_images,
      {context.folders.cache, sweep.existing == Existing::fresh, context.on_work, config.metrics});

  // Points cost as much as their samples: a short one is not taken for a long one.
  const std::vector<const experiments::Point*> points =
      experiments::shard_points(config, sweep.shard);
  std::vector<double> before = {0};  // cost of the points before each, and of all
  for (const experiments::Point* point : points)
    before.push_back(before.back() + experiments::cost_of(*point, bench));
  PointProgress at{.total = before.back(), .points = points.size()};
  const auto tell = [&] {
    if (on_points) on_points(at);
  };
  experiments::SweepHooks hooks;
  std::vector<double> shares(points.size());  // of the points' costs, done
  const auto done = [&](std::size_t point, double share) {
    at.done += (before[point + 1] - before[point]) * (share - shares[point]);
    shares[point] = share;
    at.point = point;
  };
  hooks.on_work = [&](std::size_t point, const WorkState& work) {
    done(point, work.done / work.total);
    at.phase = work.phase;
    tell();
  };
  hooks.seconds = context.clock;
  hooks.host = host;
  hooks.warn = [&](const std::string& what) { context.warn("numemu: " + what); };
  hooks.on_point = [&, was = std::size_t{0}](std::size_t ended, std::size_t kept, std::size_t,
                                             const experiments::Point&) mutable {
    if (kept > was) at.free += before[ended] - before[ended - 1];
    was = kept;
    done(ended - 1, 1);
    at.phase = {};
    tell();
  };
  return experiments::run_sweep(config, bench, rows, sweep.out, sweep.shard, hooks);
}

}  // namespace numemu::api
