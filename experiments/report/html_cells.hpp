// Cells of the page's tables.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

/// Shown in place of a missing value.
inline constexpr const char* kNone = "–";

/// A decimal with a true minus sign, and a plus sign if `sign`; kNone if empty.
std::string html_number(const std::optional<double>& x, int digits, bool sign = false);
/// A right-aligned cell: `shown` is HTML, `value` is what sorting compares.
std::string html_number_cell(const std::optional<double>& value, const std::string& shown);
/// An interval in small print behind a number.
std::string html_interval(const std::string& low, const std::string& high);
/// The mark of a prediction that fails.
inline constexpr const char* kFails = " <small class=\"verdict fails\">fails</small>";
/// A cell in the colour of the verdict; `shown` is HTML.
std::string html_verdict_cell(Verdict, const std::string& shown);
/// A cell of untrusted text.
std::string html_text_cell(const std::string& text, std::string_view attributes = "");
/// A share in percent with its 95 % interval in small print: "97.95 [97.6, 98.2]".
std::string html_share(const std::optional<double>& x, const std::optional<double>& low,
                       const std::optional<double>& high, bool sign);
/// A number of a measure as its tables show it; of a change with its sign.
std::string html_figure(const Measure&, const std::optional<double>& x, bool change = false);
/// The change of what a row is judged by, with its 95 % interval in small print.
std::string html_change_cell(const ReportRow&);
/// ">Change, points"
std::string html_change_title(const Measure&);
/// The measured SQNR of a row: "NaN" where its outputs are not finite, an infinity where float32 is
/// reproduced.
std::string html_measured_cell(const ReportRow&);
/// The predicted one; kNone with the reason where the row gives one, and what it leaves out.
std::string html_predicted_cell(const ReportRow&);
/// The measured SQNR at the best common gain of the outputs, with the predicted one in small print.
std::string html_gained_cell(const ReportRow&);
/// The start of a table that scrolls by itself; a title that begins with '>' heads numbers.
std::string html_table_start(const std::string& label, const std::vector<std::string>& titles,
                             const std::string& attributes = "");
inline constexpr const char* kTableEnd = "</tbody></table></div>";
/// Titles of a table of findings; `first` heads what they are about.
std::vector<std::string> html_finding_titles(const char* first);

}  // namespace numemu::experiments
