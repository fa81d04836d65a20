#include "experiments/report/html_cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/escape.hpp"
#include "experiments/report/number_text.hpp"

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
  if (low && high) out += fmt::format(" <small>[{}, {}]</small>", percent(low), percent(high));
  return out;
}

std::string html_figure(const Measure& measure, const std::optional<double>& x, bool change) {
  if (x && measure.factor == 100) return html_number(shown_percent(*x), measure.digits, change);
  return html_number(x ? std::optional(measure.factor * *x) : std::nullopt,
                     shown_decimals(measure.factor * x.value_or(0), measure.digits), change);
}

std::string html_change_cell(const Record& r) {
  const JudgedFigure& judged = r.judged;
  std::string out = html_figure(*judged.measure, judged.difference, true);
  if (judged.difference_low && judged.difference_high &&
      *judged.difference_low < *judged.difference_high)
    out += fmt::format(" <small>[{}, {}]</small>",
                       html_figure(*judged.measure, judged.difference_low, true),
                       html_figure(*judged.measure, judged.difference_high, true));
  return html_number_cell(judged.difference, out);
}

std::string html_change_title(const Measure& measure) {
  return measure.factor == 100 ? ">Change, points" : ">Change";
}

std::string html_measured_cell(const Record& r) {
  if (!r.sqnr_db && r.not_finite) return "<td class=\"n lost\" data-v=\"-1e9\">NaN</td>";
  if (r.is_float32() && r.difference) return "<td class=\"n\" data-v=\"1e9\">∞</td>";
  std::string text = html_number(r.sqnr_db, 1);
  if (const auto ends = r.sqnr_interval())
    text += fmt::format(" <small>[{:.1f}, {:.1f}]</small>", ends->first, ends->second);
  if (const auto centred = r.hidden_by_mean())
    text += fmt::format(" <small>{} without the mean</small>", html_number(centred, 1));
  return html_number_cell(r.sqnr_db, text);
}

std::string html_predicted_cell(const Record& r) {
  std::string text = html_number(r.predicted_sqnr_db, 1);
  if (!r.predicted_sqnr_db && !r.left_out.empty())
    text += fmt::format(" <small class=\"why\">{}</small>", html_text(r.left_out));
  if (r.sqnr_missed()) text += " <small class=\"verdict fails\">fails</small>";
  if (r.unit_ignored()) text += " <small>unit left out</small>";
  return html_number_cell(r.predicted_sqnr_db, text);
}

std::string html_gained_cell(const Record& r) {
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

}  // namespace numemu::experiments
