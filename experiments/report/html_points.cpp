// The sortable table of all points, as plain HTML so that it needs no script to be read.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/report/escape.hpp"
#include "experiments/report/gate_text.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/predictions_off.hpp"
#include "experiments/report/row_scores.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

std::string role_cell(const RoleRecord& role) {
  if (!role.quantized) return "<td>float32 <small>not quantized</small></td>";
  std::string axes = role.rounding;
  for (const std::string& part : {role.overflow, role.scale}) {
    if (!part.empty()) axes += (axes.empty() ? "" : " · ") + part;
  }
  if (!role.granularity.empty()) axes += " / " + role.granularity;
  if (role.granularity == "block" && !role.axis.empty()) axes += " along " + role.axis;
  if (!role.mask.empty()) axes += " · mask " + role.mask;
  return fmt::format("<td>{} <small>{}</small></td>", html_text(role.format), html_text(axes));
}

struct TableColumn {
  std::string title;
  bool numeric;
  std::function<std::string(const Record&)> cell;
};

/// What rows are judged by, where that is not top-1, and its change.
void add_judged_columns(std::vector<TableColumn>& out, const std::vector<Record>& records) {
  std::vector<const Measure*> measures;
  for (const Record& r : records) {
    const Measure* const own = r.judged.measure;
    if (!own->is_top1() && std::count(measures.begin(), measures.end(), own) == 0)
      measures.push_back(own);
  }
  for (const Measure* measure : measures) {
    out.push_back({measure->title, true, [measure](const Record& r) {
                     if (r.judged.measure != measure) return html_number_cell(std::nullopt, kNone);
                     return html_number_cell(r.judged.value, html_figure(*measure, r.judged.value));
                   }});
    out.push_back({"Change", true, [measure](const Record& r) {
                     if (r.judged.measure != measure) return html_number_cell(std::nullopt, kNone);
                     return html_change_cell(r);
                   }});
  }
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return r.perplexity.has_value(); }))
    out.push_back({"Perplexity", true, [](auto& r) {
                     return html_number_cell(r.perplexity, html_number(r.perplexity, 3));
                   }});
}

std::vector<TableColumn> table_columns(const std::vector<Record>& records) {
  std::vector<TableColumn> out;
  out.push_back({"#", true, [](const Record& r) {
                   const double n = static_cast<double>(r.position + 1);
                   return html_number_cell(n, html_number(n, 0));
                 }});
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return !r.recipe.empty(); }))
    out.push_back({"Recipe", false, [](auto& r) { return html_text_cell(r.recipe); }});
  out.push_back({"Weights", false, [](auto& r) { return role_cell(r.weight); }});
  out.push_back({"Activations", false, [](auto& r) { return role_cell(r.activation); }});
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return !r.other.empty(); })) {
    out.push_back({"Other rules", false, [](auto& r) { return html_text_cell(r.other); }});
  }
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return !r.settings.empty(); })) {
    out.push_back({"Settings", false, [](auto& r) { return html_text_cell(r.settings); }});
  }
  out.push_back({"Unit", false, [](auto& r) { return html_text_cell(r.unit); }});
  out.push_back({"Bits W", true, [](auto& r) {
                   return html_number_cell(r.bits_weight, html_number(r.bits_weight, 2));
                 }});
  out.push_back({"Bits A", true, [](auto& r) {
                   return html_number_cell(r.bits_activation, html_number(r.bits_activation, 2));
                 }});
  add_judged_columns(out, records);
  for (const std::string& name : score_columns(records)) {
    out.push_back({name, true, [name](const Record& r) {
                     const RowScore* const score = r.row->score(name);
                     return html_number_cell(score ? score->value : Member<double>(),
                                             score_text(r, name));
                   }});
  }
  out.push_back({"Top-1, %", true, [](auto& r) {
                   return html_number_cell(r.top1, html_share(r.top1, r.ci_low, r.ci_high, false));
                 }});
  out.push_back({"Change, points", true, [](auto& r) {
                   if (r.is_baseline()) return html_number_cell(r.difference, kNone);
                   return html_number_cell(r.difference, html_share(r.difference, r.difference_low,
                                                                    r.difference_high, true));
                 }});
  if (any_gate(records)) {
    out.push_back({"Gate", false, [](const Record& r) {
                     const std::string verdict = gate_verdict(r);
                     if (verdict.empty()) return html_text_cell("");
                     std::string words = html_text(gate_words(r));
                     if (const std::size_t comma = words.find(", "); comma != words.npos)
                       words = words.replace(comma, 2, "<small>") + "</small>";
                     return html_verdict_cell(verdict == "pass"   ? Verdict::holds
                                              : verdict == "fail" ? Verdict::fails
                                                                  : Verdict::undecided,
                                              words);
                   }});
  }
  out.push_back({"SQNR measured, dB", true, html_measured_cell});
  if (any_predictions(records)) out.push_back({"SQNR predicted, dB", true, html_predicted_cell});
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return r.gained_db.has_value(); }))
    out.push_back({"SQNR at best gain, dB", true, html_gained_cell});
  if (std::any_of(records.begin(), records.end(),
                  [](auto& r) { return r.not_finite || !r.notes.empty(); })) {
    out.push_back({"Notes", false, [](const Record& r) {
                     const std::string lost = r.not_finite_words(), notes = r.all_notes();
                     const char* both = lost.empty() || notes.empty() ? "" : "; ";
                     return html_text_cell(lost + both + notes, " class=\"why\"");
                   }});
  }
  return out;
}

}  // namespace

std::string points_table(const std::vector<Record>& records) {
  const std::vector<TableColumn> columns = table_columns(records);
  std::string out = "<table id=\"points\"><thead><tr>";
  for (const TableColumn& column : columns) {
    out += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                       column.numeric ? " class=\"n\"" : "", html_text(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Record& record : records) {
    out += record.quantized() ? "<tr>" : "<tr class=\"baseline\">";
    for (const TableColumn& column : columns) out += column.cell(record);
    out += "</tr>\n";
  }
  return out + "</tbody></table>";
}

}  // namespace numemu::experiments
