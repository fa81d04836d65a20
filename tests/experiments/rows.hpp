// Rows of tests, which are written as JSON and read as structs.
#pragma once
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/row_store.hpp"
#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

inline std::vector<Row> read_rows(const std::vector<Json>& rows) {
  std::vector<Row> out;
  for (const Json& row : rows) out.push_back(read_row(row));
  return out;
}

/// The same; they live as long as the test program.
inline const std::vector<Row>* kept_rows(const std::vector<Json>& rows) {
  static std::deque<std::vector<Row>> kept;
  return &kept.emplace_back(read_rows(rows));
}

/// Those of reports, which point to them.
inline std::vector<ReportRow> report_rows_of(const std::vector<Json>& rows,
                                             const std::string& folder = "") {
  return report_rows(*kept_rows(rows), folder);
}

/// merge_rows() as JSON.
inline std::vector<Json> merged_rows(const std::string& folder) {
  std::vector<Json> out;
  for (const Row& row : merge_rows(folder)) out.push_back(to_json(row));
  return out;
}

}  // namespace numemu::experiments
