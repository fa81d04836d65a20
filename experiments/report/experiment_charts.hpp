// The charts of experiment.json, made ready to be drawn.
#pragma once
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// A list with {"kind": "line", "points" or "bars", "title", "caption", "x", "y", "log_x", "log_y",
/// "series": [{"name", "predicted", "colour", "group"}], "records": [{"series", "predicted",
/// "name", "x", "y", "low", "high", "dense"}]} for every chart of experiment.json that has a point
/// to draw. Records have finite numbers only (above 0 on logarithmic axes; an interval's end at or
/// below 0 is the smallest number drawn), `low` and `high` null without an interval; `dense` where
/// points of the series stand close. `colour` is a number that series share whose names differ only
/// in "measured" or "predicted", `group` what is left of the names. Null and files of any shape
/// give what can be read of them.
Json experiment_charts(const Json* experiment);

/// Their figures, numbered E1, E2, ...; "" for none.
std::string experiment_figures(const Json& charts);

}  // namespace numemu::experiments
