// The rows as RFC 4180 CSV: the content of the report's table, with keys and every metric.

#include "experiments/report/columns.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/report.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// Spreadsheets take a text that begins so for a formula and run it; an apostrophe, which they do
/// not show, makes it a text.
std::string spreadsheet_text(const std::string& text) {
  return text.find_first_of("=+-@\t\r") == 0 ? "'" + text : text;
}

}  // namespace

void write_csv(const ReportInput& input, const std::string& path) {
  std::string out;
  const std::vector<Record> records = read_records(*input.rows);
  const std::vector<Column> columns = exported_columns(records);
  for (const Column& column : columns) out += (out.empty() ? "" : ",") + csv_field(column.name);
  out += "\r\n";
  for (const Record& record : records) {
    std::string line;
    bool first = true;
    for (const Column& column : columns) {
      if (!first) line += ',';
      first = false;
      const std::string text = cell_text(column.value(record));
      line += csv_field(column.is_text ? spreadsheet_text(text) : text);
    }
    out += line + "\r\n";
  }
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
