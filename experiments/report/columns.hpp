// The columns of rows, declared once: those of exports, from which CSV and SQLite derive, and those
// of the tables that people read. RFC 4180 CSV is written beside them.
#pragma once
#include <cstdint>
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

/// Where a table of rows is read.
enum class Medium : std::uint8_t { terminal, markdown, html };

/// A column of such a table.
struct ShownColumn {
  std::string key;  ///< "weights", "top1", "judged"; of a score its name
  std::string title;
  bool numeric;
  std::function<std::string(const Record&)> cell;  ///< text; of HTML the cell with its markup
};
/// Those that the rows have something for, in the medium's order.
std::vector<ShownColumn> shown_columns(const std::vector<Record>&, Medium);

/// "int8 rne saturate absmax/tensor" as the role has them; of a mask alone "float32 MASK".
std::string role_text(const RoleRecord&);

/// A cell as text: the shortest decimal that reads back as the same double; empty for an empty
/// cell.
std::string cell_text(const ReportCell&);
ReportCell number_cell(const std::optional<double>&);
/// Empty texts become empty cells.
ReportCell text_cell(const std::string&);

}  // namespace numemu::experiments
