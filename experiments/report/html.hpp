// The HTML report as text: what write_html writes, for any set of assets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/report.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/verdicts.hpp"

namespace numemu::experiments {

struct Asset {
  std::string_view name, text;
};

/// Everything a page is made of. `libraries` is empty in a build without Node.
struct ReportAssets {
  std::string_view page, style, script, libraries;
  std::vector<Asset> charts;  ///< Vega-Lite specifications, by file stem
};

/// What this build embeds; defined by a generated source (cmake/report.cmake).
const ReportAssets& embedded_assets();

/// One self-contained page. Without libraries it has every table and a hint how to get the charts.
std::string render_html(const ReportInput&, const ReportAssets&);

/// The figures of an experiment as HTML: as many as stand side by side, and the others.
struct ExperimentFigures {
  std::string first, others;
};
/// What an experiment concluded (experiment.json): answer, first figures, claims, other figures,
/// sentences, findings, tables, settings; "" for null. Missing and mistyped parts are left out.
std::string experiment_section(const Json* experiment, const ExperimentFigures& = {});
/// The sortable table of all points.
std::string points_table(const std::vector<ReportRow>&);
/// What was predicted, how often it held; every refused tensor and every failed prediction.
std::string verdict_tables(const Verdicts&);

std::string notes_section(const std::vector<ReportRow>&);  ///< by kind, folded; after the figures
/// The first section: headline, the best points (or the ranking of layers), points
/// whose outputs are not finite, notes.
std::string answer_section(const std::vector<ReportRow>&);
/// The gate's sentences; "" without a gate.
std::string gate_paragraph(const std::vector<ReportRow>&, const std::string& unfinished);

/// Texts by the placeholder of a caption that they replace.
using CaptionWords = std::map<std::string, std::string>;
/// A figure of a page. Its data are those of `chart`, or, of an experiment, of the chart `number`.
struct DrawnFigure {
  std::string name;  ///< of its element (fig-NAME) and of its files
  std::string chart, title, caption;
  std::optional<std::size_t> number = {};
};
/// What draws the figures of a report outside a page (js/node.js): the page's data and, as
/// `figures`, what it shows in that order.
Json paper_page(const ReportInput&, const ReportAssets&);
struct NamedChart {
  std::string name;  ///< of its files
  Chart chart;
};
/// The same of charts, and of what the report draws of `datasets` (chart_datasets()).
Json paper_page(const std::vector<NamedChart>&, const Json& datasets, const ReportAssets&);

/// The figures that `datasets` can fill, numbered, in the order of the charts' usermeta; `absent`
/// gets the titles of the others with the reason. Throws Error naming a chart that is not JSON with
/// a usermeta object.
std::string figures_html(const std::vector<Asset>& charts, const Json& datasets,
                         const CaptionWords& words, std::vector<std::string>& absent);

/// With a capital letter first.
std::string capitalised(std::string text);

/// `page` without the text from {{#name}} to {{/name}}, or, where `keep`, without these
/// two marks.
std::string with_section(std::string_view page, std::string_view name, bool keep);

/// `page` with every {{name}} replaced; inserted text is not searched again. Unknown names stay as
/// they are.
std::string fill_template(std::string_view page,
                          const std::vector<std::pair<std::string_view, std::string>>& values);

/// A list with {"kind": "line", "points" or "bars", "title", "caption", "x", "y", "log_x", "log_y",
/// "series": [{"name", "predicted", "colour", "group"}], "records": [{"series", "predicted",
/// "name", "x", "y", "low", "high", "dense"}]} for every chart of experiment.json that has a point
/// to draw. Records have finite numbers only (above 0 on logarithmic axes; an interval's end at or
/// below 0 is the smallest number drawn), `low` and `high` null without an interval; `dense` where
/// points of the series stand close. `colour` is a number that series share whose names differ only
/// in "measured" or "predicted", `group` what is left of the names. A series of draws also has
/// "hollow", its records "heavy_tails" (ChartSeries::heavy_tails). Null and files of any shape give
/// what can be read of them.
Json experiment_charts(const Json* experiment);

/// The same of charts that were read.
Json experiment_charts(const std::vector<Chart>&);

/// Their figures, numbered E1, E2, ..., from one to before another; "" for none.
std::string experiment_figures(const Json& charts, std::size_t from = 0, std::size_t to = SIZE_MAX);
/// What draws them on a page without rows.
std::string experiment_scripts(const Json& charts, const ReportAssets&);

}  // namespace numemu::experiments
