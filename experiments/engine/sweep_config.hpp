// A sweep: a grid of recipes over one network and one data set, and its expansion into points.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/row.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

/// One cell of a sweep.
struct Point {
  policies::Recipe recipe;  ///< of one with stages the last
  RowPoint row;             ///< of its row, without what only the network's file can tell
  std::string where;        ///< "sweep.json: point 7", for errors
  /// Of a recipe that was chosen by name or file, with the settings that change it; no part of the
  /// identity.
  std::string recipe_name = {};
  /// One of these settings is of the key `calibrate`: it was set on purpose.
  bool sets_calibration = false;
};

struct SweepConfig {
  Json json;  ///< canonical: every key present
  std::string net, data;
  std::int64_t eval_images = 10000;       ///< samples of the test split (of a text: windows)
  bool fold_batch_norm = false;           ///< fold the network's batch normalisation first
  std::vector<std::string> metrics = {};  ///< names of scores; none: those of the data set
  std::string calibrate_on = {};          ///< the data set that calibrates; none: `data`
  std::vector<Point> points;              ///< in order; repeated points are kept once
  std::int64_t repeated = 0;              ///< how many grid cells repeated an earlier point
};

/// Parses and expands. Grid keys are dotted paths into the recipe, any of its keys
/// ("roles.weight.format", "gemms.*.unit", "layers", "transform"), or "recipe", whose values take
/// the place of `base`: recipes, or names of shipped ones (of DATA/recipes) and files. A role whose
/// format becomes a block format, or an element format again, takes the defaults of the new one.
/// `net` and `data` are as on the command line, paths relative to the working folder.
/// "predictions": false turns them off. `tie` moves keys together, key by key; seeds multiply
/// everything. At most a million points, and 1000 keys in the grid, in all ties and in a single
/// point. Throws Error naming the key.
SweepConfig parse_sweep(const std::string& text, const std::string& where,
                        const std::string& data = "");

/// Metrics of every row beside those that all have; they are part of the points. Throws Error for
/// an unknown one.
void set_metrics(SweepConfig&, const std::vector<std::string>& names);

/// Another data set for calibration. The digest of the data, which is part of every row's key, has
/// both.
void set_calibration(SweepConfig&, const std::string& data);

/// Inference uses the last stage: sets recipe and stage of the point.
void set_recipe(Point&, const policies::Recipe&);

/// Turns predictions off in every point: their "predictions" is false then, and absent otherwise.
void turn_predictions_off(SweepConfig&);
/// Turns predictions off in one point.
void turn_predictions_off(Point&);
bool makes_predictions(const Point&);

/// The row's key: SHA-256 of the canonical JSON of the point and the numerics version.
std::string row_key(const RowPoint&);
std::string row_key(const Json& point);

/// Dotted path into the recipe -> value. `*` stands for every key of an object.
using PointSettings = std::vector<std::pair<std::string, Json>>;

/// Applies them to a canonical recipe, in their order; but the format of a role before its other
/// keys: a change between an element format and a block format takes the new format's scale,
/// granularity and axis (policies::patch_role), and a scale that was the old format's default
/// becomes the new one's. Throws Error naming the path.
void apply_settings(Json& recipe, PointSettings settings, const std::string& where);

}  // namespace numemu::experiments
