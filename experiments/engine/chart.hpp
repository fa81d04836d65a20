// A chart that an experiment draws: series of points with intervals, rendered by one template.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

struct ChartPoint {
  double x = 0;                  ///< bars: unused
  std::string name = {};         ///< bars: the category; else a label of the point
  double y = 0;                  ///< points without a finite x and y are not drawn
  double low = NAN, high = NAN;  ///< 95 % interval, drawn where finite
};

/// The point with the 95 % interval of its standard error.
inline ChartPoint with_error(ChartPoint point, double error) {
  point.low = point.y - stats::kNormal95 * error;
  point.high = point.y + stats::kNormal95 * error;
  return point;
}

struct ChartSeries {
  std::string name = {};  ///< in the legend: "measured", "predicted", a method
  std::vector<ChartPoint> points = {};
  bool predicted = false;  ///< a dashed line; among bars a diamond, on the bar of what is measured
};

/// Lines join the points of a series in the order of x; intervals are bands where points lie
/// close, else error bars. Kind `points` joins only predicted points; names
/// are written beside them where there are few. Bars run horizontally, categories in order of
/// appearance, the value y along the axis below; on a logarithmic axis, which has no zero, they are
/// points. Series whose names differ only in the word "measured" or "predicted" share a colour.
struct Chart {
  enum class Kind : unsigned char { line, points, bars } kind = Kind::line;
  std::string title = {};
  std::string caption = {};    ///< encoding, rounding, unit, what to see
  std::string x = {}, y = {};  ///< axis titles, with their units; bars: of categories and of values
  bool log_x = false, log_y = false;
  std::vector<ChartSeries> series = {};
};

/// {"kind", "title", "caption", "x", "y", "log_x", "log_y", "series": [{"name", "predicted",
/// "points": [{"name", "x", "y", "ci95"}]}]}; null for what is not finite, no "name" where it is
/// empty, no "ci95" without an interval.
Json to_json(const Chart&);

}  // namespace numemu::experiments
