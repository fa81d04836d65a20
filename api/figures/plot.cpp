#include "api/figures/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "api/text/lists.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/paper/figures.hpp"
#include "experiments/report/datasets.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using experiments::Chart, experiments::ChartSeries;

constexpr int kDrawnBits = 10;  // more values than a line of a page shows

void require_place(const std::string& out) {
  if (out.empty()) throw usage_error("--out: expected a folder for the figures");
  require_writable_folder(out);
  experiments::require_drawing(experiments::embedded_assets());
}

WrittenPlot write_page(const Json& page, const std::string& out) {
  const auto drawn = experiments::draw_figures(page, experiments::embedded_assets());
  WrittenPlot written{.figures = {}, .pdf = experiments::write_figures(drawn, out).pdf};
  for (const experiments::PaperFigure& figure : drawn) written.figures.push_back(figure.name);
  return written;
}

/// Letters, digits and '-'; "abs-normal" of the law |normal|.
std::string file_words_of(std::string text) {
  if (text.size() > 2 && text.front() == '|' && text.back() == '|')
    text = "abs-" + text.substr(1, text.size() - 2);
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  return text;
}

const char* family_of(const std::string& format) {
  if (!block_format_meant(format).empty()) return "block";
  switch (find_format(format).kind) {
    case Kind::floating:
      return "float";
    case Kind::codebook:
      return "codebook";
    default:
      return "int";
  }
}

/// The series of that name: of points whose draws show too little of their law, or of others.
ChartSeries& series_of(Chart& chart, const std::string& name, bool heavy_tails,
                       bool predicted = false) {
  ChartSeries& series = chart.of(heavy_tails ? name + ", heavy tails" : name, predicted);
  series.heavy_tails = heavy_tails;
  return series;
}

}  // namespace

WrittenPlot plot_error(const AnalysisTableRequest& request, const std::string& out) {
  require_place(out);
  const AnalysisTable table = analyze_table(request);
  std::vector<std::string> laws;
  std::map<std::string, Chart> charts;
  std::set<std::string> heavy;
  for (const AnalyzedFormat& row : table.rows) {
    Chart& chart = charts[row.law];
    if (chart.series.empty()) {
      laws.push_back(row.law);
      // The colours and shapes that they have in reports.
      for (const char* family : {"float", "int"}) series_of(chart, family, false);
    }
    if (row.kind == AnalyzedFormat::Kind::reached) continue;
    if (row.kind == AnalyzedFormat::Kind::limit) {
      // "limit: Lloyd-Max, 16 levels": a line for each kind.
      std::string name = row.format.starts_with("limit: ") ? row.format.substr(7) : row.format;
      if (name.starts_with("Lloyd-Max")) name = "Lloyd-Max";
      series_of(chart, name, false, true).points.push_back({.x = row.bits, .y = row.sqnr_db});
      continue;
    }
    const std::string name = !request.rules.empty() ? row.format + ", " + row.rule : row.format;
    if (row.heavy_tails) heavy.insert(row.law);
    series_of(chart, family_of(row.format), row.heavy_tails)
        .points.push_back({.x = row.bits,
                           .name = name,
                           .y = row.sqnr_db,
                           .low = row.sqnr_db - row.half_db.value_or(NAN),
                           .high = row.sqnr_db + row.half_db.value_or(NAN)});
  }
  std::vector<experiments::NamedChart> rows;
  for (const std::string& law : laws) {
    Chart& chart = charts[law];
    chart.kind = Chart::Kind::points;
    chart.title = "Error of formats against bits under the law " + law;
    chart.caption = fmt::format(
        "SQNR of {} saturate against stored bits of an element{}.", to_string(table.rounding),
        heavy.contains(law)
            ? fmt::format("; block formats (hollow) on {} draws, whose tails are too heavy for "
                          "so few: not comparable with the integrals of the others",
                          table.n)
            : "");
    chart.x = "stored bits per element";
    chart.y = "SQNR, dB";
    rows.push_back({"error-" + file_words_of(law), chart});
  }
  return write_page(experiments::paper_page(rows, experiments::chart_datasets({}, nullptr),
                                            experiments::embedded_assets()),
                    out);
}

WrittenPlot plot_cells(const std::vector<std::string>& formats, const std::string& out) {
  require_place(out);
  std::vector<experiments::SweptFormat> all;
  Chart spacing{.kind = Chart::Kind::line,
                .title = "Steps between neighbouring values",
                .caption = "The step to the next value, in per cent of the value.",
                .x = "value",
                .y = "step, % of value",
                .log_x = true,
                .log_y = true};
  for (const std::string& name : format_list(formats)) {
    const Format& format = find_format(name);
    if (std::ranges::find(all, format.name, &experiments::SweptFormat::name) != all.end()) continue;
    if (format.bits > kDrawnBits)
      throw usage_error(fmt::format("--format: {}: expected at most {} bits", name, kDrawnBits));
    all.push_back(experiments::swept_format(format));
  }
  if (all.empty()) throw usage_error("--format: expected a format");
  Json datasets = experiments::chart_datasets({}, nullptr);
  datasets["steps"] = experiments::step_records(all);
  for (const experiments::SweptFormat& format : all) {
    const Json steps = experiments::step_records({format});
    for (const Json& step : steps)
      spacing.of(format.name)
          .points.push_back(
              {.x = step["value"].get<double>() * format.largest, .y = step["step"].get<double>()});
  }
  return write_page(
      experiments::paper_page({{"spacing", spacing}}, datasets, experiments::embedded_assets()),
      out);
}

WrittenPlot plot_predicted(const std::string& folder, const std::string& out) {
  require_place(out);
  const std::vector<experiments::Row> rows = experiments::merge_rows(folder);
  const Json none = Json::object();
  Json page = experiments::paper_page({.sweep = &none, .rows = &rows, .folder = folder},
                                      experiments::embedded_assets());
  Json kept = Json::array();
  for (const Json& figure : page["figures"]) {
    const std::string name = figure["name"].get<std::string>();
    if (name == "predicted" || name == "expected") kept.push_back(figure);
  }
  if (kept.empty()) throw Error(folder + ": expected rows with a prediction beside a measurement");
  page["figures"] = kept;
  return write_page(page, out);
}

}  // namespace numemu::api
