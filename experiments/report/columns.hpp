// The columns of an exported row, declared once; CSV and SQLite derive from them. RFC 4180 CSV is
// written beside them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// Empty, a number, or a text.
using ReportCell = std::variant<std::monostate, double, std::string>;

struct Column {
  std::string name;
  bool is_text;
  std::function<ReportCell(const Record&)> value;
};

/// One column per field of a record, in a fixed order; names are identifiers.
const std::vector<Column>& record_columns();
/// The same and, for every score of the rows but top-1, score_NAME with its interval, float32's
/// figure, the difference and its interval.
std::vector<Column> exported_columns(const std::vector<Record>&);

/// A cell as text: the shortest decimal that reads back as the same double; empty for an empty
/// cell.
std::string cell_text(const ReportCell&);
ReportCell number_cell(const std::optional<double>&);
/// Empty texts become empty cells.
ReportCell text_cell(const std::string&);

}  // namespace numemu::experiments
