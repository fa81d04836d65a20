// The sortable table of all points, as plain HTML so that it needs no script to be read.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"

namespace numemu::experiments {
namespace {

std::optional<double> times100(const std::optional<double>& x) {
  return x ? std::optional(*x * 100) : std::nullopt;
}

std::string with_interval(const std::optional<double>& x, const std::optional<double>& low,
                          const std::optional<double>& high, bool sign) {
  std::string out = html_number(times100(x), 2, sign);
  if (low && high) {
    out += fmt::format(" <small>[{}, {}]</small>", html_number(times100(low), 2, sign),
                       html_number(times100(high), 2, sign));
  }
  return out;
}

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
  const char* title;
  bool numeric;
  std::function<std::string(const Record&)> cell;
};

std::string sqnr_cell(const Record& r, const std::optional<double>& db,
                      const std::optional<double>& error) {
  const bool exact = !db && !r.quantized() && r.difference.value_or(1) == 0;
  if (exact) return "<td class=\"n\" data-v=\"1e9\">∞</td>";
  std::string text = html_number(db, 1);
  if (db && error) text += fmt::format(" <small>± {:.2f}</small>", *error);
  return html_number_cell(db, text);
}

void add_text_columns(std::vector<TableColumn>& out) {
  out.push_back({"Bits per character", true, [](auto& r) {
                   return html_number_cell(r.bits_per_character,
                                           html_number(r.bits_per_character, 4));
                 }});
  out.push_back({"Change, bits", true, [](auto& r) {
                   return html_number_cell(r.bits_change(), html_number(r.bits_change(), 4, true));
                 }});
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
  const auto differs = [&records](auto field) {
    return std::any_of(records.begin(), records.end(),
                       [&](const Record& r) { return r.*field != records.front().*field; });
  };
  if (differs(&Record::net))
    out.push_back({"Network", false, [](auto& r) { return html_text_cell(r.net); }});
  if (differs(&Record::data))
    out.push_back({"Data", false, [](auto& r) { return html_text_cell(r.data); }});
  if (differs(&Record::seed)) {
    out.push_back(
        {"Seed", true, [](auto& r) { return html_number_cell(r.seed, html_number(r.seed, 0)); }});
  }
  out.push_back({"Weights", false, [](auto& r) { return role_cell(r.weight); }});
  out.push_back({"Activations", false, [](auto& r) { return role_cell(r.activation); }});
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return !r.other.empty(); })) {
    out.push_back({"Other rules", false, [](auto& r) { return html_text_cell(r.other); }});
  }
  out.push_back({"Unit", false, [](auto& r) { return html_text_cell(r.unit); }});
  out.push_back({"Bits W", true, [](auto& r) {
                   return html_number_cell(r.bits_weight, html_number(r.bits_weight, 2));
                 }});
  out.push_back({"Bits A", true, [](auto& r) {
                   return html_number_cell(r.bits_activation, html_number(r.bits_activation, 2));
                 }});
  if (std::any_of(records.begin(), records.end(),
                  [](auto& r) { return r.bits_per_character.has_value(); }))
    add_text_columns(out);
  out.push_back({"Top-1, %", true, [](auto& r) {
                   return html_number_cell(r.top1,
                                           with_interval(r.top1, r.ci_low, r.ci_high, false));
                 }});
  out.push_back({"Change, points", true, [](auto& r) {
                   return html_number_cell(
                       r.difference,
                       with_interval(r.difference, r.difference_low, r.difference_high, true));
                 }});
  out.push_back({"SQNR measured, dB", true,
                 [](auto& r) { return sqnr_cell(r, r.sqnr_db, r.sqnr_error_db); }});
  out.push_back({"SQNR predicted, dB", true,
                 [](auto& r) { return sqnr_cell(r, r.predicted_sqnr_db, std::nullopt); }});
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
