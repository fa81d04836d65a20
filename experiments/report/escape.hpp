// Makes untrusted text safe in the four places it is printed: HTML, JSON inside HTML, CSV and
// Markdown.
#pragma once
#include <string>
#include <string_view>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// `& < > " '` as character references: safe as element content and inside a quoted attribute.
std::string html_text(std::string_view text);

/// JSON that can stand inside a script element: every `<` is written \u003c, so that neither
/// `</script` nor `<!--` can occur; invalid UTF-8 becomes U+FFFD.
std::string html_json(const Json& value);

/// Our own script source inside a script element: `</script`, `<script` and `<!--` get a backslash
/// that JavaScript ignores in the string and regular-expression literals where they can stand.
std::string html_script(std::string_view source);

/// One CSV field (RFC 4180): quoted when it holds a comma, a quote, CR or LF; quotes doubled.
std::string csv_field(std::string_view text);

/// Spreadsheets take a text that begins so for a formula and run it; an apostrophe, which they do
/// not show, makes it a text.
std::string spreadsheet_text(const std::string& text);

/// One cell of a Markdown table: pipes and markup characters escaped, line breaks become spaces.
std::string markdown_cell(std::string_view text);

}  // namespace numemu::experiments
