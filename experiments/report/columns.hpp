// The columns of rows, declared once: those of exports, from which CSV and SQLite derive, and those
// of the tables that people read. RFC 4180 CSV is written beside them.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

/// Empty, a number, or a text.
using ReportCell = std::variant<std::monostate, double, std::string>;

/// Empty where the member is; an empty text is an empty cell.
ReportCell cell_of(const std::string&);
ReportCell cell_of(const std::optional<double>&);
inline ReportCell cell_of(double number) { return number; }
ReportCell cell_of(const Member<std::int64_t>&);
ReportCell cell_of(const Member<Verdict>&);
ReportCell cell_of(const Member<bool>&);

/// A column of an exported table, whose lines are T.
template <class T>
struct Field {
  std::string name;
  bool is_text;
  std::function<ReportCell(const T&)> value;
  std::string meaning;  ///< for docs/report-columns.md
};
using Column = Field<ReportRow>;

/// What a path of members, and of functions without arguments, leads to; nothing where a part on
/// the way is absent.
template <auto first, auto... rest>
auto found_at(const auto& item) {
  const auto& found = std::invoke(first, item);
  if constexpr (sizeof...(rest) == 0) {
    return std::optional<std::remove_cvref_t<decltype(found)>>(std::in_place, found);
  } else if constexpr (requires { found.has_value(); }) {
    return found ? found_at<rest...>(*found) : decltype(found_at<rest...>(*found))();
  } else {
    return found_at<rest...>(found);
  }
}

/// The column of what the path leads to.
template <class T, auto... path>
Field<T> field(std::string name, std::string meaning) {
  using Found = typename decltype(found_at<path...>(std::declval<const T&>()))::value_type;
  constexpr bool kText = std::same_as<Found, std::string> || std::same_as<Found, Member<Verdict>> ||
                         std::same_as<Found, Member<bool>>;
  return {std::move(name), kText,
          [](const T& item) {
            const auto found = found_at<path...>(item);
            return found ? cell_of(*found) : ReportCell();
          },
          std::move(meaning)};
}

/// One column per field of a row, in a fixed order; names are identifiers.
const std::vector<Column>& row_columns();
/// Of the score NAME: score_NAME, its interval, and so on.
std::vector<Column> score_columns_of(const std::string& name);
/// row_columns() and, for every score of the rows but top-1, score_NAME with its interval,
/// float32's figure, the difference and its interval.
std::vector<Column> exported_columns(const std::vector<ReportRow>&);

/// What the columns of CSV and SQLite mean: docs/report-columns.md.
std::string columns_page();

/// Where a table of rows is read.
enum class Medium : std::uint8_t { terminal, markdown, html };

/// Behind a prediction that fails, on the terminal.
inline constexpr const char* kMissed = "!";

/// What takes room on the terminal, in the order in which it is given up where that is narrow.
enum class Room : std::uint8_t {
  kept,
  expected_interval,
  conversions,  ///< rounding, overflow and scale rule beside formats
  unit_names,   ///< the first parts of units' names
  top1_interval,
  perplexity,
  bits,
  top1,      ///< where rows are judged by another figure
  expected,  ///< accuracy
  layers,
  unit,
  settings,
  predicted,
  formats,  ///< of rows with names
  names,    ///< the ends of long names
};

/// A column of such a table.
struct ShownColumn {
  std::string key;  ///< "weights", "top1", "judged"; of a score its name
  std::string title;
  bool numeric;
  std::function<std::string(const ReportRow&)> cell;  ///< text; of HTML the cell with its markup
  Room room = Room::kept;                             ///< it is given up with
  Room shortened = Room::kept;  ///< with which `shorter` takes the cell's place
  std::function<std::string(const ReportRow&)> shorter = nullptr;
};
/// Those that the rows have something for, in the medium's order.
std::vector<ShownColumn> shown_columns(const std::vector<ReportRow>&, Medium);

/// "int8 rne saturate absmax/tensor" as the role has them; of a mask alone "float32 MASK".
std::string role_text(const ReportRole&);

/// A cell as text: the shortest decimal that reads back as the same double; empty for an empty
/// cell.
std::string cell_text(const ReportCell&);

}  // namespace numemu::experiments
