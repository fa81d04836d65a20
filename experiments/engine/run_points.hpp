// Points that an experiment builds in code: a sweep of its own, run into the experiment's folder,
// with a row for each point in their order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

struct BuiltPoint {
  Json settings;  ///< as a point of "points" of a sweep (parse_sweep)
  /// For progress, while it runs; "": progress names the last point that ended.
  std::string name = {};
  std::string row_name = {};  ///< recipe_name of the row of a recipe without a name
};

struct BuiltSweep {
  std::string experiment;  ///< its name, with which messages about points begin
  std::string net, data;
  std::int64_t images = 0;
  Json more = Json::object();  ///< "base", "seeds", "predictions" of the sweep
  std::vector<BuiltPoint> points = {};
  /// The error where two points are the same; "": the caller knows that none are.
  std::string repeated = {};
};

/// In three steps, so that every mistake is found before the float32 work of a workbench, which
/// comes after the second one.
class PointRun {
 public:
  /// Throws Error naming the point that a recipe refuses, and for points that repeat.
  PointRun(const ExperimentRun&, BuiltSweep, std::string folder);
  const std::vector<Point>& points() const { return config_.points; }
  /// open_rows() of sweep.hpp.
  void open(const net::Dataset&, const TrainedNet&);
  /// The row of each point, in their order. Throws OthersMissing where the run is a shard.
  std::vector<Row> rows(const Workbench&);

 private:
  const ExperimentRun& run_;
  BuiltSweep built_;
  std::string folder_;
  SweepConfig config_;
  std::optional<RowStore> store_;
};

/// The workbench of a run on its data, which it says it is loading.
Workbench open_bench(const ExperimentRun&, const std::string& net, net::Dataset, TrainedNet,
                     std::int64_t images);

}  // namespace numemu::experiments
