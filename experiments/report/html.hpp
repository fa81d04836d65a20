// The HTML report as text: what write_html writes, for any set of assets.
#pragma once
#include <map>
#include <string>

#include "experiments/report/assets.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/report.hpp"

namespace numemu::experiments {

/// One self-contained page. Without libraries it has every table and a hint how to get the charts.
std::string render_html(const ReportInput&, const ReportAssets&);

/// What an experiment concluded (experiment.json): sentences, `figures` (HTML), verdicts, findings,
/// tables, settings; "" for null. Missing and mistyped parts are left out.
std::string experiment_section(const Json* experiment, const std::string& figures = "");
/// The sortable table of all points.
std::string points_table(const std::vector<Record>&);
/// What was predicted, how often it held; every refused tensor and every failed prediction.
std::string verdict_tables(const Verdicts&);

std::string notes_section(const std::vector<Record>&);  ///< by kind, folded; after the figures
/// The first section: headline, the best points (or the ranking of layers), points
/// whose outputs are not finite, notes.
std::string answer_section(const std::vector<Record>&);
/// The gate's sentences; "" without a gate.
std::string gate_paragraph(const std::vector<Record>&, const std::string& unfinished);

/// Texts by the placeholder of a caption that they replace.
using CaptionWords = std::map<std::string, std::string>;
/// The figures that `datasets` can fill, numbered, in the order of the charts' usermeta; `absent`
/// gets the titles of the others with the reason. Throws Error naming a chart that is not JSON with
/// a usermeta object.
std::string figures_html(const std::vector<Asset>& charts, const Json& datasets,
                         const CaptionWords& words, std::vector<std::string>& absent);

/// `page` without the text from {{#name}} to {{/name}}, or, where `keep`, without these
/// two marks.
std::string with_section(std::string_view page, std::string_view name, bool keep);

/// `page` with every {{name}} replaced; inserted text is not searched again. Unknown names stay as
/// they are.
std::string fill_template(std::string_view page,
                          const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace numemu::experiments
