// Cells of the page's tables.
#pragma once
#include <optional>
#include <string>

namespace numemu::experiments {

/// What stands for a value that is not there.
inline constexpr const char* kNone = "–";

/// A decimal with a true minus sign, and a plus sign if `sign`; kNone if empty.
std::string html_number(const std::optional<double>& x, int digits, bool sign = false);
/// A right-aligned cell: `shown` is HTML, `value` is what sorting compares.
std::string html_number_cell(const std::optional<double>& value, const std::string& shown);
/// A cell of untrusted text.
std::string html_text_cell(const std::string& text);

}  // namespace numemu::experiments
