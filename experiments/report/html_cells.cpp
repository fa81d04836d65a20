#include "experiments/report/html_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/headline.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kLongWord = 40;

}  // namespace

std::string html_number(const std::optional<double>& x, int digits, bool sign) {
  if (!x) return kNone;
  std::string text =
      sign ? fmt::format("{:+.{}f}", *x, digits) : fmt::format("{:.{}f}", *x, digits);
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

std::string html_number_cell(const std::optional<double>& value, const std::string& shown) {
  constexpr double kMost = 1e9;  // that tables sort by
  return value
             ? fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", std::min(*value, kMost), shown)
             : fmt::format("<td class=\"n\" data-v=\"\">{}</td>", shown);
}

std::string html_interval(const std::string& low, const std::string& high) {
  return fmt::format(" <small>[{}, {}]</small>", low, high);
}

std::string html_verdict_cell(Verdict verdict, const std::string& shown) {
  return fmt::format("<td class=\"verdict {}\">{}</td>", to_string(verdict), shown);
}

std::string html_text_cell(const std::string& text, std::string_view attributes) {
  if (text.empty()) return fmt::format("<td>{}</td>", html_text(kNone));
  // A long word, such as a chain of steps, may break behind its joints: it would push all other
  // columns out of the page.
  std::string out;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(' ', first), text.size());
    std::size_t from = first;
    for (std::size_t i = first; end - first > kLongWord && i + 1 < end; ++i) {
      if (text[i] != ',' && text[i] != '+' && text[i] != '(') continue;
      out += html_text(text.substr(from, i + 1 - from)) + "<wbr>";
      from = i + 1;
    }
    out += html_text(text.substr(from, end + 1 - from));
    first = end + 1;
  }
  return fmt::format("<td{}>{}</td>", attributes, out);
}

std::string html_share(const std::optional<double>& x, const std::optional<double>& low,
                       const std::optional<double>& high, bool sign) {
  const auto percent = [sign](const std::optional<double>& share) {
    return html_number(share ? std::optional(shown_percent(*share)) : std::nullopt, 2, sign);
  };
  std::string out = percent(x);
  if (low && high) out += html_interval(percent(low), percent(high));
  return out;
}

std::string html_figure(const Measure& measure, const std::optional<double>& x, bool change) {
  if (x && measure.factor == 100) return html_number(shown_percent(*x), measure.digits, change);
  return html_number(x ? std::optional(measure.factor * *x) : std::nullopt,
                     shown_decimals(measure.factor * x.value_or(0), measure.digits), change);
}

std::string html_change_cell(const ReportRow& r) {
  const JudgedFigure& judged = r.judged;
  std::string out = html_figure(*judged.measure, judged.difference, true);
  if (judged.difference_low && judged.difference_high &&
      *judged.difference_low < *judged.difference_high)
    out += html_interval(html_figure(*judged.measure, judged.difference_low, true),
                         html_figure(*judged.measure, judged.difference_high, true));
  return html_number_cell(judged.difference, out);
}

std::string html_change_title(const Measure& measure) {
  return measure.factor == 100 ? ">Change, points" : ">Change";
}

std::string html_measured_cell(const ReportRow& r) {
  if (!r.sqnr_db && r.not_finite) return "<td class=\"n lost\" data-v=\"-1e9\">NaN</td>";
  if (r.is_float32() && r.difference) return "<td class=\"n\" data-v=\"1e9\">∞</td>";
  std::string text = html_number(r.sqnr_db, 1);
  if (const auto ends = r.sqnr_interval())
    text += fmt::format(" <small>[{:.1f}, {:.1f}]</small>", ends->first, ends->second);
  if (const auto centred = r.hidden_by_mean())
    text += fmt::format(" <small>{} without the mean</small>", html_number(centred, 1));
  return html_number_cell(r.sqnr_db, text);
}

std::string html_predicted_cell(const ReportRow& r) {
  std::string text = html_number(r.predicted_sqnr_db, 1);
  if (!r.predicted_sqnr_db && !r.left_out.empty())
    text += fmt::format(" <small class=\"why\">{}</small>", html_text(r.left_out));
  if (r.sqnr_missed()) text += kFails;
  if (r.unit_ignored()) text += " <small>unit left out</small>";
  return html_number_cell(r.predicted_sqnr_db, text);
}

std::string html_gained_cell(const ReportRow& r) {
  std::string text = html_number(r.gained_db, 1);
  if (r.predicted_gained_db)
    text += fmt::format(" <small>predicted {}</small>", html_number(r.predicted_gained_db, 1));
  return html_number_cell(r.gained_db, text);
}

std::string html_table_start(const std::string& label, const std::vector<std::string>& titles,
                             const std::string& attributes) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}><thead><tr>",
      html_text(label), attributes);
  for (const std::string& title : titles) {
    const bool numeric = title.starts_with('>');
    out += fmt::format("<th scope=\"col\"{}>{}</th>", numeric ? " class=\"n\"" : "",
                       html_text(title.substr(numeric ? 1 : 0)));
  }
  return out + "</tr></thead><tbody>";
}

std::vector<std::string> html_finding_titles(const char* first) {
  return {first, ">Predicted ± tolerance", ">Measured ± half of 95 %", ">95 %", "Verdict"};
}
namespace {

/// How many failures the page lists; SQLite has them all.
constexpr std::size_t kWorstShown = 20;

std::string count_cell(std::size_t n) { return html_number_cell(n, fmt::format("{}", n)); }

std::string verdict_row(const std::string& what, const Tally& t, const std::string& rule) {
  std::string out = fmt::format("<tr><th scope=\"row\">{}</th>", what) + count_cell(t.compared());
  out += html_number_cell(t.holds, t.compared()
                                       ? fmt::format("{} <small>({:.0f} %)</small>", t.holds,
                                                     std::floor(100.0 * t.holds / t.compared()))
                                       : kNone);
  out += count_cell(t.undecided) + count_cell(t.fails);
  return out + fmt::format("<td>{}</td></tr>", rule);
}

/// Acceptance of a fit as a verdict: a refused fit makes no prediction, so none fails.
Tally acceptance(std::size_t accepted, std::size_t tensors) {
  Tally out;
  out.holds = accepted;
  out.undecided = tensors - accepted;
  return out;
}

std::string limits(const Tally& t) {
  std::string out =
      fmt::format("within {:g} dB; undecided where the interval has both sides", kLayerHolds);
  if (t.compared()) {
    out += fmt::format(" <small>median {:.2f} dB, at most {:.2f} dB{}</small>", t.median, t.largest,
                       t.not_finite ? fmt::format("; {} NaN or infinite", t.not_finite) : "");
  }
  return out;
}

std::string summary(const Verdicts& v) {
  std::string out = html_table_start(
      "Predictions", {"Prediction", ">Compared", ">Holds", ">Undecided", ">Fails", "Rule"});
  const char* ks = "Kolmogorov-Smirnov distance at most 0.03 + 1.36 / √n; undecided: refused";
  out += verdict_row("Distribution fits a weight tensor",
                     acceptance(v.weight_accepted, v.weight_tensors), ks);
  out += verdict_row("Distribution fits an activation tensor",
                     acceptance(v.activation_accepted, v.activation_tensors), ks);
  out += verdict_row("Error from an accepted fit", v.fitted,
                     fmt::format("within {:g} dB of the measured SQNR", kFittedTolerance));
  out += verdict_row("SQNR of a layer", v.layers, limits(v.layers));
  out += verdict_row("SQNR of the output", v.outputs, limits(v.outputs));
  if (v.accuracy.compared() > 0) {
    Tally accuracy;
    static_cast<VerdictCounts&>(accuracy) = v.accuracy;
    out += verdict_row("Accuracy", accuracy,
                       "measured in the 95 % interval of what was expected; fails outside that of "
                       "99.9 %");
  }
  out += kTableEnd;
  if (v.empirical.compared() == 0) return out;
  return out + fmt::format(
                   "<p class=\"facts\">Self-check, no prediction: the error of a tensor's "
                   "elements, summed inside and outside the quantizer, agrees within 1e-9 in {} "
                   "of {} tensors; {} undecided (random rounding), {} fail.</p>",
                   v.empirical.holds, v.empirical.compared(), v.empirical.undecided,
                   v.empirical.fails);
}

std::string refused_table(const std::vector<RefusedTensor>& refused) {
  std::string out = "<h3>Tensors without a fitted distribution</h3>";
  out += html_table_start("Refused tensors", {"Layer", "Role", ">Elements", "Best family",
                                              ">KS distance", ">Threshold"});
  for (const RefusedTensor& t : refused) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(t.layer)) +
           html_text_cell(t.role) + html_number_cell(t.n, grouped(t.n)) + html_text_cell(t.family) +
           html_number_cell(t.distance, html_number(t.distance, 3)) +
           html_number_cell(t.threshold, html_number(t.threshold, 3)) + "</tr>";
  }
  return out + kTableEnd;
}

std::string failed_table(const std::vector<FailedPrediction>& failed) {
  std::string out = "<h3>Predictions that failed";
  if (failed.size() > kWorstShown)
    out += fmt::format(" (the worst {} of {}; SQLite has all)", kWorstShown, failed.size());
  out +=
      "</h3>" + html_table_start("Failed predictions", {"Kind", "Layer", "Role", "Format",
                                                        ">Predicted, dB", ">Measured, dB", "Why"});
  const auto db = [](double x) { return html_number_cell(known(x), html_number(known(x), 2)); };
  for (std::size_t i = 0; i < std::min(kWorstShown, failed.size()); ++i) {
    const FailedPrediction& f = failed[i];
    out += "<tr>" + html_text_cell(f.what) + html_text_cell(f.layer) + html_text_cell(f.role) +
           html_text_cell(f.format) + db(f.predicted_db) +
           (f.why.empty() ? db(f.measured_db) + "<td></td>"
                          : "<td class=\"n lost\">NaN</td>" + html_text_cell(f.why)) +
           "</tr>";
  }
  return out + kTableEnd;
}

}  // namespace

std::string points_table(const std::vector<ReportRow>& records) {
  const std::vector<ShownColumn> columns = shown_columns(records, Medium::html);
  std::string out = "<table id=\"points\"><thead><tr>";
  for (const ShownColumn& column : columns) {
    out += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                       column.numeric ? " class=\"n\"" : "", html_text(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const ReportRow& record : records) {
    out += record.quantized() ? "<tr>" : "<tr class=\"baseline\">";
    for (const ShownColumn& column : columns) out += column.cell(record);
    out += "</tr>\n";
  }
  return out + "</tbody></table>";
}

std::string verdict_tables(const Verdicts& v) {
  std::string out;
  for (const std::string& sentence : prediction_sentences(v))
    out += (out.empty() ? "<p>" : " ") + html_text(sentence);
  out += (out.empty() ? "" : "</p>") + summary(v);
  if (!v.failed.empty()) out += failed_table(v.failed);
  if (!v.refused.empty()) out += refused_table(v.refused);
  return out;
}

}  // namespace numemu::experiments
