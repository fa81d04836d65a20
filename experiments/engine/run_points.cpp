#include "experiments/engine/run_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/engine/sweep.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

SweepConfig config_of(const BuiltSweep& built) {
  Json sweep = {{"numemu_sweep", 1},
                {"net", built.net},
                {"data", built.data},
                {"eval_images", built.images},
                {"points", Json::array()}};
  sweep.update(built.more);
  for (const BuiltPoint& point : built.points) sweep["points"].push_back(point.settings);
  SweepConfig config = parse_sweep(sweep.dump(), built.experiment);
  if (config.repeated > 0 && !built.repeated.empty()) throw usage_error(built.repeated);
  for (std::size_t i = 0; i < built.points.size(); ++i) {
    Point& point = config.points.at(i);
    if (point.recipe_name.empty()) point.recipe_name = built.points[i].row_name;
  }
  return config;
}

}  // namespace

PointRun::PointRun(const ExperimentRun& run, BuiltSweep built, std::string folder)
    : run_(run), built_(std::move(built)), folder_(std::move(folder)), config_(config_of(built_)) {}

void PointRun::open(const net::Dataset& dataset, const TrainedNet& trained) {
  store_.emplace(open_rows(config_, dataset, trained, folder_, run_.shard, run_.existing));
}

std::vector<Row> PointRun::rows(const Workbench& bench) {
  SweepHooks hooks = run_.hooks;
  if (run_.hooks.on_point) {
    hooks.on_point = [&](std::size_t done, std::size_t kept, std::size_t total, Point point) {
      const std::string& name = built_.points[std::min(done, built_.points.size() - 1)].name;
      if (!name.empty()) point.where = name;
      if (name.empty() && !point.recipe_name.empty()) point.where = point.recipe_name;
      run_.hooks.on_point(done, kept, total, point);
    };
    if (!built_.points.front().name.empty())
      hooks.on_point(0, 0, config_.points.size(), config_.points.front());
  }
  run_sweep(config_, bench, *store_, folder_, run_.shard, hooks);
  if (!run_.shard.whole()) throw OthersMissing();
  return merge_rows(folder_);
}

Workbench open_bench(const ExperimentRun& run, const std::string& net, net::Dataset dataset,
                     TrainedNet trained, std::int64_t images) {
  run.say(fmt::format("loading {} on {}", net, run.settings.text("data")));
  return Workbench(std::move(dataset), std::move(trained), images,
                   {run.folders.cache, run.existing == Existing::fresh, run.on_bench});
}

}  // namespace numemu::experiments
