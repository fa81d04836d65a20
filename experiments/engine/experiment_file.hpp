// What an experiment concluded as its file has it (experiment.json), and the charts that it draws:
// series of points with intervals, rendered by one template.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/row.hpp"
#include "formats/storage/fields.hpp"

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

  /// The series of that name, which is added behind the others where there is none.
  ChartSeries& of(const std::string& name, bool predicted = false);
  /// Points of the series "NAME measured" and "NAME predicted".
  void add(const std::string& name, ChartPoint measured, ChartPoint predicted);
};

/// A table of texts.
struct ResultTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  static void fields(auto& self, const auto& visit) {
    visit("title", self.title);
    visit("header", self.header);
    visit("rows", self.rows);
  }
};

/// A point, a series and a chart as the file has them: null for what is not finite, no name where
/// it is empty, no interval where an end is not finite.
struct ChartPointRow {
  std::string name;
  Member<double> x, y;
  Member<Ends> ci95;

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name, kIfAny);
    visit("x", self.x);
    visit("y", self.y);
    visit("ci95", self.ci95);
  }
};
struct ChartSeriesRow {
  std::string name;
  bool predicted = false;
  std::vector<ChartPointRow> points;

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("predicted", self.predicted);
    visit("points", self.points);
  }
};
struct ChartRow {
  std::string kind;  ///< "line", "points", "bars"
  std::string title, caption, x, y;
  bool log_x = false, log_y = false;
  std::vector<ChartSeriesRow> series;

  static void fields(auto& self, const auto& visit) {
    visit("kind", self.kind);
    visit("title", self.title);
    visit("caption", self.caption);
    visit("x", self.x);
    visit("y", self.y);
    visit("log_x", self.log_x);
    visit("log_y", self.log_y);
    visit("series", self.series);
  }
};
ChartRow chart_row(const Chart&);

/// A finding (judge.hpp).
struct FindingRow {
  std::string what;
  Member<double> predicted, measured;
  Member<Ends> ci95;
  Member<double> tolerance;  ///< written where the claim is a distance from what is predicted
  Member<Verdict> verdict;
  Member<bool> self_check;  ///< written where it is one
  std::string claim;        ///< its key

  bool is_self_check() const { return self_check == true; }
  Verdict judged() const { return verdict.value_or(Verdict::none); }
  /// Of the interval; nothing where that is not known.
  std::optional<double> half_width() const {
    if (!ci95 || !ci95->known()) return std::nullopt;
    return (*ci95->high - *ci95->low) / 2;
  }

  static void fields(auto& self, const auto& visit) {
    visit("what", self.what);
    visit("predicted", self.predicted);
    visit("measured", self.measured);
    visit("ci95", self.ci95);
    visit("tolerance", self.tolerance);
    visit("verdict", self.verdict);
    visit("self_check", self.self_check);
    visit("claim", self.claim, kIfAny);
  }
};

/// A claim with what its findings decide.
struct ClaimRow {
  std::string key, claim;
  std::int64_t holds = 0, undecided = 0, fails = 0;
  Member<Verdict> verdict;
  Member<FindingRow> worst;  ///< null where nothing was compared

  Verdict judged() const { return verdict.value_or(Verdict::none); }
  /// Of its findings; a file may have any numbers, of which negative ones count as 0.
  VerdictCounts counts() const;

  static void fields(auto& self, const auto& visit) {
    visit("key", self.key);
    visit("claim", self.claim);
    visit("holds", self.holds);
    visit("undecided", self.undecided);
    visit("fails", self.fails);
    visit("verdict", self.verdict);
    visit("worst", self.worst);
  }
};

struct ExperimentFile {
  std::int64_t schema = 1;
  std::string name, question, source, version;
  std::string answer;  ///< in a sentence or two; "" where its claims are the answer
  Member<std::uint64_t> seed;
  Json settings;  ///< values by key
  std::vector<ClaimRow> claims;
  std::vector<std::string> sentences;
  std::vector<ResultTable> tables;
  std::vector<FindingRow> findings;
  std::vector<ChartRow> charts;

  static void fields(auto& self, const auto& visit) {
    visit("numemu_experiment", self.schema);
    visit("name", self.name);
    visit("question", self.question);
    visit("answer", self.answer, kIfAny);
    visit("source", self.source);
    visit("version", self.version);
    visit("seed", self.seed);
    visit("settings", self.settings);
    visit("claims", self.claims);
    visit("sentences", self.sentences);
    visit("tables", self.tables);
    visit("findings", self.findings);
    visit("charts", self.charts);
  }
};

/// What can be read of a file: parts that are missing or of another type are empty.
ExperimentFile read_experiment(const Json&);

}  // namespace numemu::experiments
