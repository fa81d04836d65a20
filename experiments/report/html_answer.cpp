// The first section: the best points or the ranking of layers, outputs not finite, notes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/configurations.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/headline.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "experiments/report/verdicts.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

std::string paragraph(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences)
    out += (out.empty() ? "" : " ") + html_text(sentence);
  return out.empty() ? "" : "<p class=\"headline\">" + out + "</p>\n";
}

std::string list(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += "<li>" + html_text(sentence) + "</li>";
  return out.empty() ? "" : "<ul class=\"sentences headline\">" + out + "</ul>\n";
}

/// Longer lists of names fold up.
constexpr std::size_t kListed = 12;

/// "0.5", "0.01", "1 %"
std::string limit_number(const Measure& measure) {
  if (measure.relative) return fmt::format("{:g} %", 100 * measure.small);
  return measure.factor == 1 ? fmt::format("{:g}", measure.small)
                             : fmt::format("{:.1f}", measure.factor * measure.small);
}

const char* answer_words(Verdict little) {
  return little == Verdict::holds ? "yes" : little == Verdict::fails ? "no" : "undecided";
}

/// The value alone, with its measure where the table is headed by another one.
std::string value_cell(const ReportRow& r, const Measure& heading) {
  const JudgedFigure& judged = r.judged;
  return html_number_cell(judged.value, html_figure(*judged.measure, judged.value) +
                                            (judged.measure == &heading || !judged.value
                                                 ? ""
                                                 : fmt::format(" <small>{}</small>",
                                                               html_text(judged.measure->title))));
}

/// What a row reached, and its change from float32: two cells.
std::string result_cells(const ReportRow& r, const Measure& heading) {
  return value_cell(r, heading) + html_change_cell(r);
}

std::vector<std::string> result_titles(const Measure& measure) {
  return {fmt::format(">{}", measure.title), html_change_title(measure)};
}

/// The cells of a configuration: of several seeds the mean, and the range of the change over them.
std::string result_cells(const Configuration& c, const Measure& heading) {
  const ReportRow& r = c.mean;
  if (c.rows.size() < 2) return result_cells(r, heading);
  const auto [least, most] = c.losses();
  const Measure& measure = *r.judged.measure;
  const double sign = measure.falls ? 1 : -1,
               of = measure.relative ? std::abs(r.judged.baseline.value_or(1)) : 1;
  const auto [low, high] = std::minmax({sign * of * least, sign * of * most});
  return value_cell(r, heading) +
         html_number_cell(
             r.judged.difference,
             fmt::format("{} <small>seeds {} to {}</small>",
                         html_figure(measure, r.judged.difference, true),
                         html_figure(measure, low, true), html_figure(measure, high, true)));
}

/// The prediction, marked where it fails for more seeds than it holds for.
std::string judged_prediction_cell(const Configuration& c) {
  std::vector<ReportRow> rows;
  for (const ReportRow* r : c.rows) rows.push_back(*r);
  const Tally outputs = judge_predictions(rows).outputs;
  const std::string cell = html_predicted_cell(c.mean);
  if (outputs.fails <= outputs.holds) return cell;
  constexpr std::string_view kEnd = "</td>";
  return cell.substr(0, cell.size() - kEnd.size()) + kFails + std::string(kEnd);
}

/// The bits of weights that products read, where biases and norms make the mean another.
std::string product_bits(const RowBits& bits) {
  const Member<double>& products = bits.product_weight;
  if (!products || !bits.weight || std::abs(*products - *bits.weight) < 0.05) return "";
  return fmt::format(" <small>weights of products {}</small>", html_number(products, 2));
}

std::string best_table(const std::vector<Configuration>& all, const Measure& measure) {
  const BestPoints best = best_points(all);
  if (best.points.empty()) return "";
  std::vector<std::string> titles = {
      "Configuration",
      fmt::format("{} < {}", measure.falls ? "Adds" : "Loses", limit_number(measure)),
      ">Bits W / A"};
  if (measure.small == 0) titles.erase(titles.begin() + 1);
  for (const std::string& title : result_titles(measure)) titles.push_back(title);
  const bool predictions = std::any_of(
      all.begin(), all.end(), [](const Configuration& c) { return any_predictions({c.mean}); });
  titles.emplace_back(">SQNR, dB");
  if (predictions) titles.emplace_back(">Predicted, dB");
  titles.emplace_back("Unit");
  const bool seeds = std::any_of(best.points.begin(), best.points.end(),
                                 [](const Configuration* c) { return c->rows.size() > 1; });
  std::string out = fmt::format(
      "<h2 id=\"h-best\">Best points</h2>\n<p class=\"facts\">No other configuration loses less "
      "with as few bits. {}{}The change from float32 is paired by sample; its 95 % interval "
      "decides the verdict.{}</p>",
      best.left_out, best.left_out.empty() ? "" : " ",
      seeds ? " Values are the mean and range over seeds; a verdict requires that all seeds agree."
            : "");
  out += html_table_start("Best points", titles);
  const Configuration* safe = cheapest_safe(all);
  for (const Configuration* c : best.points) {
    const ReportRow& r = c->mean;
    const RowBits& bits = r.row->bits;
    const Verdict little = loses_little(*c);
    out +=
        fmt::format("<tr{}><th scope=\"row\">{}</th>", c == safe ? " class=\"baseline\"" : "",
                    html_text(r.label)) +
        (measure.small == 0
             ? ""
             : html_verdict_cell(little == Verdict::none ? Verdict::undecided : little,
                                 answer_words(little))) +
        html_number_cell(r.mean_bits(), html_number(bits.weight, 2) + " / " +
                                            html_number(bits.activation, 2) + product_bits(bits)) +
        result_cells(*c, measure) + html_measured_cell(r) +
        (predictions ? judged_prediction_cell(*c) : "") + html_text_cell(short_unit(r.unit)) +
        "</tr>";
  }
  return out + kTableEnd;
}

std::string not_finite_table(const std::vector<ReportRow>& records) {
  std::vector<const ReportRow*> lost;
  for (const ReportRow& r : records) {
    if (r.not_finite) lost.push_back(&r);
  }
  if (lost.empty()) return "";
  std::stable_sort(lost.begin(), lost.end(), [](const ReportRow* a, const ReportRow* b) {
    return a->judged.loss().value_or(0) > b->judged.loss().value_or(0);
  });
  std::vector<std::string> titles = {"Configuration"};
  const Measure& measure = measure_of(records);
  for (const std::string& title : result_titles(measure)) titles.push_back(title);
  titles.emplace_back("Where and why");
  std::string out = "<h2 id=\"h-lost\">NaN and infinite values</h2>\n" +
                    html_table_start("Outputs that are not finite", titles);
  for (const ReportRow* r : lost) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(r->name)) +
           result_cells(*r, measure) + "<td class=\"why\">";
    for (const std::string& sentence : not_finite_sentences(*r->row))
      out += html_text(sentence) + "<br>";
    out += "</td></tr>";
  }
  return out + kTableEnd;
}

std::string loss_lists(const std::vector<Configuration>& all, const Measure& measure) {
  std::string out;
  const std::string limit = measure.loss_text(measure.small);
  for (const auto& [little, words] : {std::pair(Verdict::holds, "Lose less than {}"),
                                      {Verdict::undecided, "Undecided: the interval contains {}"},
                                      {Verdict::fails, "Lose {} or more"}}) {
    const std::vector<std::string> labels = labels_by_loss(all, little);
    if (labels.empty()) continue;
    std::string names;
    for (const std::string& label : labels)
      names += (names.empty() ? "<span>" : "; <span>") + html_text(label) + "</span>";
    if (labels.size() > kListed)
      names = fmt::format("<details><summary>{} configurations</summary>{}</details>",
                          labels.size(), names);
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", fmt::format(fmt::runtime(words), limit), names);
  }
  if (out.empty()) return "";
  return "<dl class=\"losses\">" + out + "</dl>" +
         (compared_units(all) > 1 ? "<p class=\"facts\">Where no unit is named, all units that "
                                    "were measured agree, or there is one.</p>"
                                  : "");
}

std::string ranking_cell(const ReportRow* r) {
  if (!r) return html_number_cell(std::nullopt, kNone);
  const std::string change = html_figure(*r->judged.measure, r->judged.difference, true);
  if (loses_numbers(*r))
    return fmt::format("<td class=\"n lost\">NaN <small>{}</small></td>", change);
  return html_number_cell(r->sqnr_db,
                          html_number(r->sqnr_db, 1) + fmt::format(" <small>{}</small>", change));
}

std::string ranking_table(const LayerRanking& ranking) {
  std::vector<std::string> titles = {"#", "Layer"};
  for (const std::string& format : ranking.formats) titles.push_back(">" + format);
  std::string out = html_table_start(ranking_title(ranking), titles);
  int place = 0;
  for (const RankedLayer& layer : ranking.layers) {
    const bool all = layer.name == layer_words("*");
    out +=
        fmt::format("<tr{}><td>{}</td><th scope=\"row\">{}</th>", all ? " class=\"baseline\"" : "",
                    all ? "" : fmt::format("{}", ++place), html_text(layer.name));
    for (const ReportRow* cell : layer.cells) out += ranking_cell(cell);
    out += "</tr>";
  }
  return fmt::format("<h2 id=\"h-ranking\">{}</h2>\n{}{}<p class=\"facts\">{}</p>",
                     ranking_title(ranking), out, kTableEnd, html_text(ranking_rule(ranking)));
}

}  // namespace

std::string gate_paragraph(const std::vector<ReportRow>& records, const std::string& unfinished) {
  return paragraph(gate_sentences(records, unfinished));
}

std::string answer_section(const std::vector<ReportRow>& records) {
  std::string out;
  if (asks_for_layers(records)) {
    const LayerRanking ranking = rank_layers(records);
    out = list(ranking_sentences(ranking)) + ranking_table(ranking) + not_finite_table(records);
  } else {
    const std::vector<Configuration> all = configurations(records);
    const Measure& measure = measure_of(records);
    out = list(best_of_widths(all)) + paragraph(headline(records)) + best_table(all, measure) +
          not_finite_table(records) + loss_lists(all, measure);
  }
  return out;
}

std::string notes_section(const std::vector<ReportRow>& records) {
  std::string out;
  for (const std::vector<SharedNote>& kind : by_kind(shared_notes(records))) {
    std::vector<std::string> lines;
    for (const SharedNote& note : kind) {
      const bool all = note.names.size() == records.size();
      lines.push_back(
          html_text(note.text) +
          (all ? "" : fmt::format(" <small>({})</small>", html_text(listed_names(note.names)))));
    }
    if (lines.size() == 1) {
      out += "<li>" + lines[0] + "</li>";
      continue;
    }
    out += fmt::format(
        "<li><details><summary>{} <small>and {} more of this kind</small></summary><ul>", lines[0],
        lines.size() - 1);
    for (std::size_t i = 1; i < lines.size(); ++i) out += "<li>" + lines[i] + "</li>";
    out += "</ul></details></li>";
  }
  return out.empty() ? "" : "<h2 id=\"h-notes\">Notes</h2><ul class=\"notes\">" + out + "</ul>";
}

}  // namespace numemu::experiments
