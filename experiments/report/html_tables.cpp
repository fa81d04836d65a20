// The sortable table of all points, as plain HTML so that it needs no script to be read, and what
// predictions, fits and their failures are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/record.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
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
  const auto db = [](double x) {
    const std::optional<double> finite = std::isfinite(x) ? std::optional(x) : std::nullopt;
    return html_number_cell(finite, html_number(finite, 2));
  };
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

std::string points_table(const std::vector<Record>& records) {
  const std::vector<ShownColumn> columns = shown_columns(records, Medium::html);
  std::string out = "<table id=\"points\"><thead><tr>";
  for (const ShownColumn& column : columns) {
    out += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                       column.numeric ? " class=\"n\"" : "", html_text(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Record& record : records) {
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
