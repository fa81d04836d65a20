// What an experiment concluded as its file has it (experiment.json), and the charts that it draws:
// series of points with intervals, rendered by one template.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/judge.hpp"

namespace numemu::experiments {

struct ChartPoint {
  double x = 0;                  ///< bars: unused
  std::string name = {};         ///< bars: the category; else a label of the point
  double y = 0;                  ///< points without a finite x and y are not drawn
  double low = NAN, high = NAN;  ///< 95 % interval, drawn where finite

  static void fields(auto& self, const auto& visit) {
    EndsOf ci95{self.low, self.high};
    visit("name", self.name, kIfAny);
    visit("x", self.x, kNullable);
    visit("y", self.y, kNullable);
    visit("ci95", ci95, kIfAny);
  }
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
  /// Of draws: whether so few show too little of their law, so that their points are hollow.
  Member<bool> heavy_tails = {};

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("predicted", self.predicted);
    visit("heavy_tails", self.heavy_tails);
    visit("points", self.points);
  }
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

}  // namespace numemu::experiments

namespace numemu {

/// "line", "points", "bars"; any other text is a line.
template <>
struct FieldCodec<experiments::Chart::Kind> {
  static constexpr const char* kExpected = "a kind of chart";
  static Json write(experiments::Chart::Kind);
  static bool read(const Json&, experiments::Chart::Kind&);
};

}  // namespace numemu

namespace numemu::experiments {

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

/// A claim with what its findings decide.
struct ClaimRow {
  std::string key, claim;
  std::int64_t holds = 0, undecided = 0, fails = 0;
  Verdict verdict = Verdict::none;
  Member<Finding> worst;  ///< null where nothing was compared

  /// Of its findings; a file may have any numbers, of which negative ones count as 0.
  VerdictCounts counts() const;

  static void fields(auto& self, const auto& visit) {
    visit("key", self.key);
    visit("claim", self.claim);
    visit("holds", self.holds);
    visit("undecided", self.undecided);
    visit("fails", self.fails);
    visit("verdict", self.verdict, kNullable);
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
  std::vector<Finding> findings;
  std::vector<Chart> charts;

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
