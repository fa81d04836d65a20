// Numbers and texts as table cells.
#include "experiments/report/html_cells.hpp"

#include <fmt/format.h>

#include "experiments/report/escape.hpp"

namespace numemu::experiments {

std::string html_number(const std::optional<double>& x, int digits, bool sign) {
  if (!x) return kNone;
  std::string text =
      sign ? fmt::format("{:+.{}f}", *x, digits) : fmt::format("{:.{}f}", *x, digits);
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

std::string html_number_cell(const std::optional<double>& value, const std::string& shown) {
  return value ? fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", *value, shown)
               : fmt::format("<td class=\"n\" data-v=\"\">{}</td>", shown);
}

std::string html_text_cell(const std::string& text) {
  return fmt::format("<td>{}</td>", html_text(text.empty() ? kNone : text));
}

}  // namespace numemu::experiments
