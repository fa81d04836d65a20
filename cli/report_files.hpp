// Writing the report of a sweep folder and printing its summary.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace numemu::cli {

struct ReportPaths {
  std::string html, csv, sqlite, markdown;  ///< an empty path is not written
};

/// Beside the rows: report.html, report.csv, report.sqlite, report.md.
ReportPaths default_paths(const std::string& folder);

/// Merges the rows of `folder`, writes the files and returns the rows.
std::vector<nlohmann::ordered_json> write_report(const std::string& folder, const ReportPaths&);

/// One line a row: numerics, bits, accuracy, SQNR measured and predicted.
std::string summary_table(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace numemu::cli
