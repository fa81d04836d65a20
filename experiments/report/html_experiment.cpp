// The conclusion of an experiment, shown before the rows: question, claims with their results,
// figures; then the details: sentences, findings, tables, settings. Its charts are made ready to be
// drawn: what cannot be drawn is left out here, so that the page's script has nothing to check.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/record.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// The list at `key`, empty where there is none.
const Json& list_at(const Json& json, const char* key) {
  static const Json none = Json::array();
  const Json* found = json_at(json, {key});
  return found && found->is_array() ? *found : none;
}

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

/// Predicted, measured, interval.
std::string number_cells(const Json& finding) {
  return number_cell(json_number(finding, {"predicted"})) +
         number_cell(json_number(finding, {"measured"})) +
         fmt::format("<td class=\"n\">{}</td>", interval(finding));
}

std::string finding_row(const Json& finding) {
  const Verdict verdict = json_verdict(finding, {"verdict"});
  return "<tr>" + html_text_cell(json_text(finding, {"what"})) + number_cells(finding) +
         html_verdict_cell(verdict, to_string(verdict)) + "</tr>";
}

/// "3 hold, 1 is undecided": those that there are.
std::string counted(const VerdictCounts& counts) {
  std::string out;
  const auto add = [&out](std::size_t n, const char* one, const char* more) {
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, n == 1 ? one : more);
  };
  add(counts.holds, "holds", "hold");
  add(counts.undecided, "is undecided", "are undecided");
  add(counts.fails, "fails", "fail");
  return out;
}

VerdictCounts counts_of(const Json& findings) {
  VerdictCounts counts;
  for (const Json& finding : findings) counts.add(json_verdict(finding, {"verdict"}));
  return counts;
}

std::string claim_row(const Json& claim) {
  const Json* worst = json_at(claim, {"worst"});
  const std::string text = html_text(json_text(claim, {"claim"}));
  if (!worst || !worst->is_object()) {
    return "<tr><td>" + text + "</td>" + number_cells(Json()) +
           "<td class=\"verdict\">not tested</td></tr>";
  }
  const auto count = [&claim](const char* key) {
    const std::optional<double> n = json_number(claim, {key});
    return n && *n > 0 && *n < 1e9 ? static_cast<std::size_t>(*n) : 0;
  };
  const VerdictCounts counts{count("holds"), count("undecided"), count("fails")};
  const std::size_t total = counts.compared();
  const Verdict verdict = json_verdict(claim, {"verdict"});
  return fmt::format("<tr><td>{}<small>{}{}</small></td>", text,
                     total > 1 ? fmt::format("The worst of {}: ", total) : "",
                     html_text(json_text(*worst, {"what"}))) +
         number_cells(*worst) +
         html_verdict_cell(verdict, fmt::format("{}<small>{}</small>", to_string(verdict),
                                                total > 1 ? counted(counts) : "")) +
         "</tr>";
}

/// The conclusion in a sentence and in a table; "" for files without claims.
std::string claims_part(const Json& claims) {
  if (claims.empty()) return "";
  const VerdictCounts counts = counts_of(claims);
  std::string rows;
  for (const Json& claim : claims) rows += claim_row(claim);
  std::string answer = "Claims: " + counted(counts);
  if (const std::size_t untested = claims.size() - counts.compared(); untested > 0)
    answer += fmt::format("; this run did not test {}", untested);
  return "<p class=\"answer\">" + answer + ".</p>" +
         html_table_start("Claims", {"Claimed", ">Predicted", ">Measured", ">95 %", "Verdict"},
                          " class=\"claims\"") +
         rows + kTableEnd;
}

/// All of them, or those with another verdict than holds.
std::string findings_table(const Json& findings, bool only_not_held) {
  std::string out =
      html_table_start("Findings", {"Finding", ">Predicted", ">Measured", ">95 %", "Verdict"});
  for (const Json& finding : findings) {
    if (!only_not_held || json_verdict(finding, {"verdict"}) != Verdict::holds)
      out += finding_row(finding);
  }
  return out + kTableEnd;
}

bool is_self_check(const Json& finding) { return json_text(finding, {"self_check"}) == "true"; }

std::string findings_part(const Json& all) {
  Json findings = Json::array();
  for (const Json& finding : all) {
    if (!is_self_check(finding)) findings.push_back(finding);
  }
  if (findings.empty()) return "";
  const VerdictCounts counts = counts_of(findings);
  std::string out = fmt::format("<h3>Findings</h3><p>Of {} prediction{} {}.</p>", findings.size(),
                                findings.size() == 1 ? "" : "s", counted(counts));
  constexpr std::size_t kFew = 20;  // that need no fold
  const std::size_t open = findings.size() - counts.holds;
  if (open > 0 && open < findings.size()) {
    out += fmt::format("<details{}><summary>Findings that do not hold</summary>{}</details>",
                       open <= kFew ? " open" : "", findings_table(findings, true));
  }
  return out + fmt::format("<details{}><summary>All findings</summary>{}</details>",
                           findings.size() <= kFew && open == 0 ? " open" : "",
                           findings_table(findings, false));
}

/// Identities that the program checks: not part of the conclusion.
std::string self_checks_part(const Json& findings) {
  Json checks = Json::array();
  for (const Json& finding : findings) {
    if (is_self_check(finding)) checks.push_back(finding);
  }
  if (checks.empty()) return "";
  const std::size_t passed = counts_of(checks).holds;
  return fmt::format(
      "<details{}><summary>Self-checks (both sides are the same computation): {} of {} "
      "hold</summary>{}</details>",
      passed < checks.size() ? " open" : "", passed, checks.size(), findings_table(checks, false));
}

std::string table_part(const Json& table) {
  const std::string title = json_text(table, {"title"});
  std::vector<std::string> titles;
  for (const Json& name : list_at(table, "header"))
    titles.push_back(name.is_string() ? name.get<std::string>() : "");
  std::string out = fmt::format("<h3>{}</h3>", html_text(title)) + html_table_start(title, titles);
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
      "<details><summary>Settings</summary>" + html_table_start("Settings", {"Setting", "Value"});
  for (const auto& [key, value] : settings->items())
    out += "<tr>" + html_text_cell(key) + html_text_cell(json_text(*settings, {key.c_str()})) +
           "</tr>";
  return out + kTableEnd + "</details>";
}

std::string sentences_part(const Json& experiment) {
  std::string sentences;
  for (const Json& sentence : list_at(experiment, "sentences")) {
    if (sentence.is_string())
      sentences += fmt::format("<li>{}</li>", html_text(sentence.get<std::string>()));
  }
  return sentences.empty() ? "" : "<ul class=\"sentences\">" + sentences + "</ul>";
}

std::string tables_part(const Json& experiment) {
  std::string out;
  for (const Json& table : list_at(experiment, "tables")) out += table_part(table);
  return out;
}

/// The question, or the name where a file has none.
std::string heading(const Json& experiment) {
  std::string question = json_text(experiment, {"question"});
  if (question.empty()) return "Experiment: " + json_text(experiment, {"name"});
  question[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(question[0])));
  return question + "?";
}

constexpr std::size_t kDensePoints = 12;  // from here on error bars would hide the line

bool flag(const Json& json, const char* key) { return json_text(json, {key}) == "true"; }

struct Axes {
  bool bars, log_x, log_y;

  bool draws(std::optional<double> x, std::optional<double> y) const {
    return (bars || (x && (!log_x || *x > 0))) && y && (!log_y || *y > 0);
  }
};

/// The series' points that can be drawn; `least` gets the smallest value of them.
Json records_of(const Json& series, const Axes& axes, double& least) {
  Json records = Json::array();
  for (const Json& point : list_at(series, "points")) {
    const std::optional<double> x = json_number(point, {"x"}), y = json_number(point, {"y"});
    if (!axes.draws(x, y)) continue;
    const Json& ends = list_at(point, "ci95");
    const bool interval = ends.size() == 2 && ends[0].is_number() && ends[1].is_number() &&
                          (!axes.log_y || ends[1].get<double>() > 0);
    least = std::min(least, *y);
    if (interval && ends[0].get<double>() > 0) least = std::min(least, ends[0].get<double>());
    records.push_back({{"series", json_text(series, {"name"})},
                       {"predicted", flag(series, "predicted")},
                       {"name", json_text(point, {"name"})},
                       {"x", axes.bars ? Json() : Json(*x)},
                       {"y", *y},
                       {"low", interval ? ends[0] : Json()},
                       {"high", interval ? ends[1] : Json()}});
  }
  for (Json& record : records) record["dense"] = records.size() > kDensePoints;
  return records;
}

/// "conv1, predicted" -> "conv1".
std::string stem(std::string name) {
  for (const std::string word : {"measured", "predicted"}) {
    if (const std::size_t at = name.find(word); at != name.npos) name.erase(at, word.size());
  }
  const auto first = name.find_first_not_of(" ,:()"), last = name.find_last_not_of(" ,:()");
  return first == name.npos ? "" : name.substr(first, last + 1 - first);
}

Json ready(const Json& chart) {
  const std::string kind = json_text(chart, {"kind"});
  const Axes axes{kind == "bars", flag(chart, "log_x"), flag(chart, "log_y")};
  double least = HUGE_VAL;
  std::map<std::string, std::pair<std::size_t, std::string>> groups;  // colour and name by stem
  Json series = Json::array(), records = Json::array();
  for (const Json& one : list_at(chart, "series")) {
    const Json drawn = records_of(one, axes, least);
    if (drawn.empty()) continue;
    const std::string name = json_text(one, {"name"});
    const std::string of = stem(name);
    const auto& [colour, group] =
        groups.emplace(of, std::pair(groups.size(), of.empty() ? name : of)).first->second;
    series.push_back({{"name", name},
                      {"predicted", flag(one, "predicted")},
                      {"colour", colour},
                      {"group", group}});
    for (const Json& record : drawn) records.push_back(record);
  }
  for (Json& record : records) {
    if (axes.log_y && !record["low"].is_null())
      record["low"] = std::max(least, record["low"].get<double>());
  }
  return {{"kind", axes.bars || kind == "points" ? kind : "line"},
          {"title", json_text(chart, {"title"})},
          {"caption", json_text(chart, {"caption"})},
          {"x", json_text(chart, {"x"})},
          {"y", json_text(chart, {"y"})},
          {"log_x", axes.log_x},
          {"log_y", axes.log_y},
          {"series", series},
          {"records", records}};
}

}  // namespace

std::string experiment_section(const Json* experiment, const std::string& figures) {
  if (!experiment || !experiment->is_object()) return "";
  const std::string source = json_text(*experiment, {"source"});
  const Json& findings = list_at(*experiment, "findings");
  const std::string claims = claims_part(list_at(*experiment, "claims")),
                    sentences = sentences_part(*experiment);
  std::string out =
      fmt::format("<section aria-labelledby=\"h-experiment\">\n<h2 id=\"h-experiment\">{}</h2>\n",
                  html_text(heading(*experiment)));
  if (!source.empty()) out += "<p class=\"source\">" + html_text(source) + "</p>";
  out += claims;
  // Files of earlier versions have no claims: their sentences are the conclusion.
  if (claims.empty()) out += sentences;
  out += figures;
  if (!claims.empty() && !sentences.empty()) out += "<h3>What was found</h3>" + sentences;
  out += findings_part(findings) + tables_part(*experiment) + self_checks_part(findings) +
         settings_part(*experiment);
  return out + "\n</section>\n";
}

Json experiment_charts(const Json* experiment) {
  Json charts = Json::array();
  if (!experiment) return charts;
  for (const Json& chart : list_at(*experiment, "charts")) {
    Json one = ready(chart);
    if (!one["records"].empty()) charts.push_back(std::move(one));
  }
  return charts;
}

std::string experiment_figures(const Json& charts) {
  std::string out;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    out += fmt::format(
        "<figure id=\"fig-e{0}\"><div class=\"plot\" data-chart=\"experiment\" data-number=\"{1}\">"
        "</div><figcaption><b>Figure E{0}. {2}.</b> {3}</figcaption></figure>\n",
        i + 1, i, html_text(charts[i]["title"].get<std::string>()),
        html_text(charts[i]["caption"].get<std::string>()));
  }
  return out.empty() ? "" : "<div class=\"figures\">" + out + "</div>";
}

}  // namespace numemu::experiments
