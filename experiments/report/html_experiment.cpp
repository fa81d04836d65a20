// The conclusion of an experiment, shown before the rows: question, answer, the first figures,
// claims with their results, figures; then the details: sentences, findings, tables, settings. Its
// charts are made ready to be drawn: what cannot be drawn is left out here, so that the page's
// script has nothing to check.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/published/systems.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// Findings may be decibels or shares of a thousandth: four significant digits show both.
std::string finding_text(double x) {
  const std::string digits = fmt::format("{:.4g}", std::fabs(x));
  return x < 0 ? "−" + digits : digits;
}

std::string interval(double low, double high) {
  if (!known(low) || !known(high)) return kNone;
  return fmt::format("[{}, {}]", finding_text(low), finding_text(high));
}

std::string number_cell(double x, double half) {
  return html_number_cell(
      known(x), known(x) ? finding_text(x) + "<small>" + spread_text(half) + "</small>" : kNone);
}

/// Predicted and what it may be off by, measured and half of the interval, interval.
std::string number_cells(const Finding& finding) {
  return number_cell(finding.predicted, finding.tolerance) +
         number_cell(finding.measured, half_width(finding)) +
         fmt::format("<td class=\"n\">{}</td>", interval(finding.low, finding.high));
}

std::string finding_row(const Finding& finding) {
  return "<tr>" + html_text_cell(finding.what) + number_cells(finding) +
         html_verdict_cell(finding.verdict, to_string(finding.verdict)) + "</tr>";
}

/// Of findings or claims.
VerdictCounts counts_of(const auto& all) {
  VerdictCounts counts;
  for (const auto& one : all) counts.add(one.verdict);
  return counts;
}

/// `published`: a cell with the paper's figure, or "" where no claim has one; `verdict`: its words.
std::string claim_row(const ClaimRow& claim, const std::string& published,
                      const std::string& verdict) {
  const std::string text = html_text(claim.claim);
  if (!claim.worst) {
    return "<tr><td>" + text + "</td>" + published + number_cells({}) + "<td class=\"verdict\">" +
           verdict + "</td></tr>";
  }
  const VerdictCounts counts = claim.counts();
  const std::size_t total = counts.compared();
  return fmt::format("<tr><td>{}<small>{}{}</small></td>", text,
                     total > 1 ? fmt::format("The worst of {}: ", total) : "",
                     html_text(claim.worst->what)) +
         published + number_cells(*claim.worst) +
         html_verdict_cell(claim.verdict, fmt::format("{}<small>{}</small>", verdict,
                                                      total > 1 ? verdict_words(counts) : "")) +
         "</tr>";
}

/// The conclusion in a sentence and in a table; "" for files without claims.
std::string claims_part(const ExperimentFile& file) {
  const std::vector<ClaimRow>& claims = file.claims;
  if (claims.empty()) return "";
  const VerdictCounts counts = counts_of(claims);
  const std::vector<std::string> published = published_figures(file);
  std::string rows;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::string cell;
    if (!published.empty())
      cell = published[i].empty()
                 ? fmt::format("<td class=\"published none\">{}</td>", kNone)
                 : fmt::format("<td class=\"published\">{}</td>", html_text(published[i]));
    rows += claim_row(claims[i], cell, verdict_text(file, claims[i]));
  }
  std::vector<std::string> header = html_finding_titles("Claimed");
  if (!published.empty()) header.insert(header.begin() + 1, "Published");
  std::string all = "All claims: " + verdict_words(counts);
  if (const std::size_t untested = claims.size() - counts.compared(); untested > 0)
    all += fmt::format("; this run did not test {}", untested);
  return "<p>" + all + ".</p>" + html_table_start("Claims", header, " class=\"claims\"") + rows +
         kTableEnd;
}

/// All of them, or those with another verdict than holds.
std::string findings_table(const std::vector<Finding>& findings, bool only_not_held) {
  std::string out = html_table_start("Findings", html_finding_titles("Finding"));
  for (const Finding& finding : findings) {
    if (!only_not_held || finding.verdict != Verdict::holds) out += finding_row(finding);
  }
  return out + kTableEnd;
}

std::string findings_part(const std::vector<Finding>& all) {
  std::vector<Finding> findings;
  std::ranges::remove_copy_if(all, std::back_inserter(findings), &Finding::self_check);
  if (findings.empty()) return "";
  const VerdictCounts counts = counts_of(findings);
  std::string out = fmt::format("<h3>Findings</h3><p>Of {} prediction{} {}.</p>", findings.size(),
                                findings.size() == 1 ? "" : "s", verdict_words(counts));
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
std::string self_checks_part(const std::vector<Finding>& findings) {
  std::vector<Finding> checks;
  std::ranges::copy_if(findings, std::back_inserter(checks), &Finding::self_check);
  if (checks.empty()) return "";
  const std::size_t passed = counts_of(checks).holds;
  return fmt::format(
      "<details{}><summary>Self-checks (both sides are the same computation): {} of {} "
      "hold</summary>{}</details>",
      passed < checks.size() ? " open" : "", passed, checks.size(), findings_table(checks, false));
}

std::string table_part(const ResultTable& table) {
  std::string out = fmt::format("<h3>{}</h3>", html_text(table.title)) +
                    html_table_start(table.title, table.header);
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += html_text_cell(cell);
    out += "</tr>";
  }
  return out + kTableEnd;
}

std::string settings_part(const Json& settings) {
  if (!settings.is_object() || settings.empty()) return "";
  std::string out =
      "<details><summary>Settings</summary>" + html_table_start("Settings", {"Setting", "Value"});
  for (const auto& [key, value] : settings.items())
    out += "<tr>" + html_text_cell(key) + html_text_cell(json_text(value, {})) + "</tr>";
  return out + kTableEnd + "</details>";
}

std::string sentences_part(const std::vector<std::string>& all) {
  std::string sentences;
  for (const std::string& sentence : all)
    sentences += fmt::format("<li>{}</li>", html_text(sentence));
  return sentences.empty() ? "" : "<ul class=\"sentences\">" + sentences + "</ul>";
}

/// The question, or the name where a file has none.
std::string heading(const ExperimentFile& experiment) {
  if (experiment.question.empty()) return "Experiment: " + experiment.name;
  return capitalised(experiment.question) + "?";
}

constexpr std::size_t kDensePoints = 12;  // from here on error bars would hide the line

struct Axes {
  bool bars, log_x, log_y;

  bool draws(const ChartPoint& point) const {
    return (bars || (known(point.x) && (!log_x || point.x > 0))) && known(point.y) &&
           (!log_y || point.y > 0);
  }
};

/// The series' points that can be drawn; `least` gets the smallest value of them.
Json drawn_points_of(const ChartSeries& series, const Axes& axes, double& least) {
  Json records = Json::array();
  for (const ChartPoint& point : series.points) {
    if (!axes.draws(point)) continue;
    const bool interval = known(point.low) && known(point.high) && (!axes.log_y || point.high > 0);
    least = std::min(least, point.y);
    if (interval && point.low > 0) least = std::min(least, point.low);
    records.push_back({{"series", series.name},
                       {"predicted", series.predicted},
                       {"name", point.name},
                       {"x", axes.bars ? Json() : Json(point.x)},
                       {"y", point.y},
                       {"low", interval ? Json(point.low) : Json()},
                       {"high", interval ? Json(point.high) : Json()}});
  }
  for (Json& record : records) {
    record["dense"] = records.size() > kDensePoints;
    if (series.heavy_tails) record["heavy_tails"] = *series.heavy_tails;
  }
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

Json ready(const Chart& chart) {
  const Axes axes{chart.kind == Chart::Kind::bars, chart.log_x, chart.log_y};
  double least = HUGE_VAL;
  std::map<std::string, std::pair<std::size_t, std::string>> groups;  // colour and name by stem
  Json series = Json::array(), records = Json::array();
  for (const ChartSeries& one : chart.series) {
    const Json drawn = drawn_points_of(one, axes, least);
    if (drawn.empty()) continue;
    const std::string of = stem(one.name);
    const auto& [colour, group] =
        groups.emplace(of, std::pair(groups.size(), of.empty() ? one.name : of)).first->second;
    series.push_back(
        {{"name", one.name}, {"predicted", one.predicted}, {"colour", colour}, {"group", group}});
    if (one.heavy_tails) series.back()["hollow"] = *one.heavy_tails;
    for (const Json& record : drawn) records.push_back(record);
  }
  for (Json& record : records) {
    if (axes.log_y && !record["low"].is_null())
      record["low"] = std::max(least, record["low"].get<double>());
  }
  return {{"kind", json_of(chart.kind)},
          {"title", chart.title},
          {"caption", chart.caption},
          {"x", chart.x},
          {"y", chart.y},
          {"log_x", chart.log_x},
          {"log_y", chart.log_y},
          {"series", series},
          {"records", records}};
}

}  // namespace

std::string experiment_section(const Json* json, const ExperimentFigures& figures) {
  if (!json || !json->is_object()) return "";
  const ExperimentFile experiment = read_experiment(*json);
  const std::string claims = claims_part(experiment),
                    sentences = sentences_part(experiment.sentences);
  std::string out =
      fmt::format("<section aria-labelledby=\"h-experiment\">\n<h2 id=\"h-experiment\">{}</h2>\n",
                  html_text(heading(experiment)));
  if (const std::string answer = answer_of(experiment); !answer.empty())
    out += "<p class=\"answer\">" + html_text(answer) + "</p>";
  out += figures.first;
  if (!experiment.source.empty())
    out += "<p class=\"source\">" + html_text(experiment.source) + "</p>";
  out += claims;
  // Without claims the sentences are the conclusion.
  if (claims.empty()) out += sentences;
  out += figures.others;
  if (!claims.empty() && !sentences.empty()) out += "<h3>What was found</h3>" + sentences;
  out += findings_part(experiment.findings);
  for (const ResultTable& table : experiment.tables) out += table_part(table);
  out += self_checks_part(experiment.findings) + settings_part(experiment.settings);
  return out + "\n</section>\n";
}

Json experiment_charts(const std::vector<Chart>& all) {
  Json charts = Json::array();
  for (const Chart& chart : all) {
    Json one = ready(chart);
    if (!one["records"].empty()) charts.push_back(std::move(one));
  }
  return charts;
}

Json experiment_charts(const Json* experiment) {
  return experiment ? experiment_charts(read_experiment(*experiment).charts) : Json::array();
}

std::string experiment_figures(const Json& charts, std::size_t from, std::size_t to) {
  std::string out;
  for (std::size_t i = from; i < std::min(to, charts.size()); ++i) {
    out += fmt::format(
        "<figure id=\"fig-e{0}\"><div class=\"plot\" data-chart=\"experiment\" data-number=\"{1}\">"
        "</div><figcaption><b>Figure E{0}. {2}.</b> {3}</figcaption></figure>\n",
        i + 1, i, html_text(charts[i]["title"].get<std::string>()),
        html_text(charts[i]["caption"].get<std::string>()));
  }
  return out.empty() ? "" : "<div class=\"figures\">" + out + "</div>";
}

}  // namespace numemu::experiments
