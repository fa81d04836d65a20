// What an experiment concluded, before everything that the rows say: sentences, figures, findings
// with their verdicts, tables, settings.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

/// The list at `key`, empty where there is none.
const Json& list_at(const Json& json, const char* key) {
  static const Json none = Json::array();
  const Json* found = json_at(json, {key});
  return found && found->is_array() ? *found : none;
}

std::string table_start(const std::string& label) {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>",
      html_text(label));
}

constexpr const char* kTableEnd = "</tbody></table></div>";

/// Findings may be decibels or shares of a thousandth: four significant digits show both.
std::string finding_text(double x) {
  const std::string digits = fmt::format("{:.4g}", std::fabs(x));
  return x < 0 ? "−" + digits : digits;
}

std::string number_cell(const std::optional<double>& x) {
  return html_number_cell(x, x ? finding_text(*x) : kNone);
}

std::string interval(const Json& finding) {
  const Json& ends = list_at(finding, "ci95");
  if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number()) return kNone;
  return fmt::format("[{}, {}]", finding_text(ends[0].get<double>()),
                     finding_text(ends[1].get<double>()));
}

std::string finding_row(const Json& finding) {
  const std::string verdict = html_text(json_text(finding, {"verdict"}));
  return "<tr>" + html_text_cell(json_text(finding, {"what"})) +
         number_cell(json_number(finding, {"predicted"})) +
         number_cell(json_number(finding, {"measured"})) +
         fmt::format("<td class=\"n\">{}</td><td class=\"verdict {}\">{}</td></tr>",
                     interval(finding), verdict, verdict);
}

std::string findings_table(const Json& findings, bool only_not_held) {
  std::string out = table_start("Findings");
  out +=
      "<th scope=\"col\">Finding</th><th scope=\"col\" class=\"n\">Predicted</th>"
      "<th scope=\"col\" class=\"n\">Measured</th><th scope=\"col\" class=\"n\">95 %</th>"
      "<th scope=\"col\">Verdict</th></tr></thead><tbody>";
  for (const Json& finding : findings) {
    if (!only_not_held || json_text(finding, {"verdict"}) != "holds") out += finding_row(finding);
  }
  return out + kTableEnd;
}

std::string findings_part(const Json& findings) {
  if (findings.empty()) return "";
  std::map<std::string, std::size_t> counts;
  for (const Json& finding : findings) ++counts[json_text(finding, {"verdict"})];
  std::string out = fmt::format(
      "<h3>Findings</h3><p>Of {} prediction{}, {} hold{}, {} {} undecided, {} fail{}.</p>",
      findings.size(), findings.size() == 1 ? "" : "s", counts["holds"],
      counts["holds"] == 1 ? "s" : "", counts["undecided"], counts["undecided"] == 1 ? "is" : "are",
      counts["fails"], counts["fails"] == 1 ? "s" : "");
  if (counts["holds"] < findings.size()) out += findings_table(findings, true);
  return out + fmt::format("<details{}><summary>All findings</summary>{}</details>",
                           counts["holds"] == findings.size() ? " open" : "",
                           findings_table(findings, false));
}

std::string table_part(const Json& table) {
  const std::string title = json_text(table, {"title"});
  std::string out = fmt::format("<h3>{}</h3>", html_text(title)) + table_start(title);
  for (const Json& name : list_at(table, "header"))
    out += fmt::format("<th scope=\"col\">{}</th>",
                       html_text(name.is_string() ? name.get<std::string>() : ""));
  out += "</tr></thead><tbody>";
  for (const Json& row : list_at(table, "rows")) {
    out += "<tr>";
    if (row.is_array()) {
      for (const Json& cell : row)
        out += html_text_cell(cell.is_string() ? cell.get<std::string>() : "");
    }
    out += "</tr>";
  }
  return out + kTableEnd;
}

std::string settings_part(const Json& experiment) {
  const Json* settings = json_at(experiment, {"settings"});
  if (!settings || !settings->is_object() || settings->empty()) return "";
  std::string out =
      "<details><summary>Settings</summary>" + table_start("Settings") +
      "<th scope=\"col\">Setting</th><th scope=\"col\">Value</th></tr></thead><tbody>";
  for (const auto& [key, value] : settings->items())
    out += "<tr>" + html_text_cell(key) + html_text_cell(json_text(*settings, {key.c_str()})) +
           "</tr>";
  return out + kTableEnd + "</details>";
}

}  // namespace

std::string experiment_section(const Json* experiment, const std::string& figures) {
  if (!experiment || !experiment->is_object()) return "";
  std::string out = fmt::format(
      "<section aria-labelledby=\"h-experiment\">\n<h2 id=\"h-experiment\">Experiment: {}</h2>\n",
      html_text(json_text(*experiment, {"name"})));
  std::string sentences;
  for (const Json& sentence : list_at(*experiment, "sentences")) {
    if (sentence.is_string())
      sentences += fmt::format("<li>{}</li>", html_text(sentence.get<std::string>()));
  }
  if (!sentences.empty()) out += "<ul class=\"headline\">" + sentences + "</ul>";
  out += figures;
  out += findings_part(list_at(*experiment, "findings"));
  for (const Json& table : list_at(*experiment, "tables")) out += table_part(table);
  out += settings_part(*experiment);
  return out + "\n</section>\n";
}

}  // namespace numemu::experiments
