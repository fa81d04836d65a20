// The page's tables, written as plain HTML so that they need no script to be read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"

namespace numemu::experiments {
namespace {

constexpr const char* kNone = "–";

std::string number(const std::optional<double>& x, int digits, bool sign = false) {
  if (!x) return kNone;
  std::string text =
      sign ? fmt::format("{:+.{}f}", *x, digits) : fmt::format("{:.{}f}", *x, digits);
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

std::optional<double> times100(const std::optional<double>& x) {
  return x ? std::optional(*x * 100) : std::nullopt;
}

std::string with_interval(const std::optional<double>& x, const std::optional<double>& low,
                          const std::optional<double>& high, bool sign) {
  std::string out = number(times100(x), 2, sign);
  if (low && high) {
    out += fmt::format(" <small>[{}, {}]</small>", number(times100(low), 2, sign),
                       number(times100(high), 2, sign));
  }
  return out;
}

/// A numeric cell: `shown` is HTML; `value` is what sorting compares.
std::string numeric_cell(const std::optional<double>& value, const std::string& shown) {
  return value ? fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", *value, shown)
               : fmt::format("<td class=\"n\" data-v=\"\">{}</td>", shown);
}

std::string text_cell_html(const std::string& text) {
  return fmt::format("<td>{}</td>", html_text(text.empty() ? kNone : text));
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

std::string sqnr_cell(const Record& r, const std::optional<double>& db) {
  const bool exact = !db && !r.quantized() && r.difference.value_or(1) == 0;
  return exact ? "<td class=\"n\" data-v=\"1e9\">∞</td>" : numeric_cell(db, number(db, 1));
}

struct TableColumn {
  const char* title;
  bool numeric;
  std::function<std::string(const Record&)> cell;
};

std::vector<TableColumn> table_columns(const std::vector<Record>& records) {
  std::vector<TableColumn> out;
  out.push_back({"#", true, [](const Record& r) {
                   const double n = static_cast<double>(r.position + 1);
                   return numeric_cell(n, number(n, 0));
                 }});
  const auto differs = [&records](auto field) {
    return std::any_of(records.begin(), records.end(),
                       [&](const Record& r) { return r.*field != records.front().*field; });
  };
  if (differs(&Record::net))
    out.push_back({"Network", false, [](auto& r) { return text_cell_html(r.net); }});
  if (differs(&Record::data))
    out.push_back({"Data", false, [](auto& r) { return text_cell_html(r.data); }});
  if (differs(&Record::seed)) {
    out.push_back({"Seed", true, [](auto& r) { return numeric_cell(r.seed, number(r.seed, 0)); }});
  }
  out.push_back({"Weights", false, [](auto& r) { return role_cell(r.weight); }});
  out.push_back({"Activations", false, [](auto& r) { return role_cell(r.activation); }});
  if (std::any_of(records.begin(), records.end(), [](auto& r) { return !r.other.empty(); })) {
    out.push_back({"Other rules", false, [](auto& r) { return text_cell_html(r.other); }});
  }
  out.push_back({"Unit", false, [](auto& r) { return text_cell_html(r.unit); }});
  out.push_back({"Bits W", true,
                 [](auto& r) { return numeric_cell(r.bits_weight, number(r.bits_weight, 2)); }});
  out.push_back({"Bits A", true, [](auto& r) {
                   return numeric_cell(r.bits_activation, number(r.bits_activation, 2));
                 }});
  out.push_back({"Top-1, %", true, [](auto& r) {
                   return numeric_cell(r.top1, with_interval(r.top1, r.ci_low, r.ci_high, false));
                 }});
  out.push_back({"Change, points", true, [](auto& r) {
                   return numeric_cell(r.difference, with_interval(r.difference, r.difference_low,
                                                                   r.difference_high, true));
                 }});
  out.push_back({"SQNR measured, dB", true, [](auto& r) { return sqnr_cell(r, r.sqnr_db); }});
  out.push_back(
      {"SQNR predicted, dB", true, [](auto& r) { return sqnr_cell(r, r.predicted_sqnr_db); }});
  return out;
}

std::string verdict_row(const std::string& what, std::size_t made, const std::string& held,
                        const std::string& rule) {
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
      what, made, held, rule);
}

std::string share(std::size_t held, std::size_t made) {
  if (made == 0) return kNone;
  return fmt::format("{} <small>({:.0f} %)</small>", held,
                     100.0 * static_cast<double>(held) / static_cast<double>(made));
}

std::string spread(const Spread& s) {
  return s.count
             ? fmt::format("median {:.2f} dB <small>(at most {:.2f})</small>", s.median, s.largest)
             : kNone;
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

std::string verdict_tables(const Verdicts& v) {
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Predictions\"><table><thead><tr><th scope=\"col\">Prediction</th>"
      "<th scope=\"col\" class=\"n\">Compared</th><th scope=\"col\" class=\"n\">Held</th><th "
      "scope=\"col\">Rule</th></tr></thead><tbody>";
  out +=
      verdict_row("Empirical error of a tensor", v.empirical, share(v.empirical_held, v.empirical),
                  "equal within 1e-9 relative, deterministic rounding");
  out += verdict_row("Distribution fits a weight tensor", v.weight_tensors,
                     share(v.weight_accepted, v.weight_tensors),
                     "Kolmogorov-Smirnov distance below its threshold");
  out += verdict_row("Distribution fits an activation tensor", v.activation_tensors,
                     share(v.activation_accepted, v.activation_tensors), "the same");
  out += verdict_row("Error from an accepted fit", v.fitted, share(v.fitted_held, v.fitted),
                     fmt::format("within {:.1f} dB", kFittedToleranceDb));
  out += verdict_row("SQNR of a layer", v.layers.count, spread(v.layers),
                     "absolute difference, no limit set");
  out += verdict_row("SQNR of the output", v.outputs.count, spread(v.outputs),
                     "absolute difference, no limit set");
  out += "</tbody></table></div>";
  if (!v.refused.empty()) {
    out +=
        "<h3>Tensors that no distribution fits</h3>"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Refused "
        "tensors\"><table><thead><tr><th scope=\"col\">Layer</th><th scope=\"col\">Role</th>"
        "<th scope=\"col\" class=\"n\">Elements</th><th scope=\"col\">Best family</th><th "
        "scope=\"col\" class=\"n\">KS distance</th>"
        "<th scope=\"col\" class=\"n\">Threshold</th></tr></thead><tbody>";
    for (const RefusedTensor& t : v.refused) {
      out += fmt::format(
          "<tr><th scope=\"row\">{}</th>{}<td class=\"n\">{}</td>{}<td class=\"n\">{}</td><td "
          "class=\"n\">{}</td></tr>",
          html_text(t.layer), text_cell_html(t.role), grouped(t.n), text_cell_html(t.family),
          number(t.distance, 3), number(t.threshold, 3));
    }
    out += "</tbody></table></div>";
  }
  if (!v.failed.empty()) {
    constexpr std::size_t kShown = 20;
    out += fmt::format("<h3>Predictions that failed{}</h3>",
                       v.failed.size() > kShown
                           ? fmt::format(" (the worst {} of {})", kShown, v.failed.size())
                           : "");
    out +=
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Failed "
        "predictions\"><table><thead><tr><th scope=\"col\">Kind</th><th scope=\"col\">Layer</th>"
        "<th scope=\"col\">Role</th><th scope=\"col\">Format</th><th scope=\"col\" "
        "class=\"n\">Predicted, dB</th>"
        "<th scope=\"col\" class=\"n\">Measured, dB</th></tr></thead><tbody>";
    for (std::size_t i = 0; i < std::min(kShown, v.failed.size()); ++i) {
      const FailedPrediction& f = v.failed[i];
      const auto db = [](double x) {
        return number(std::isfinite(x) ? std::optional(x) : std::nullopt, 2);
      };
      out += "<tr>" + text_cell_html(f.what) + text_cell_html(f.layer) + text_cell_html(f.role) +
             text_cell_html(f.format) + "<td class=\"n\">" + db(f.predicted_db) +
             "</td><td class=\"n\">" + db(f.measured_db) + "</td></tr>";
    }
    out += "</tbody></table></div>";
  }
  return out;
}

}  // namespace numemu::experiments
