// From rows to things people read: a self-contained HTML report, CSV, SQLite and Markdown.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace numemu::experiments {

/// Everything a report shows. `rows` are rows of schema version 1 in point order.
struct ReportInput {
  const nlohmann::ordered_json* sweep = nullptr;  ///< canonical sweep configuration
  const std::vector<nlohmann::ordered_json>* rows = nullptr;
  const nlohmann::ordered_json* tensors =
      nullptr;  ///< histograms of the float32 tensors (tensors.json), may be null
  const nlohmann::ordered_json* experiment =
      nullptr;  ///< what the experiment that made the rows concluded (experiment.json), may be null
};

/// Each writes atomically (temporary file, rename) and throws Error naming the file when it cannot.
void write_html(const ReportInput&, const std::string& path);
void write_csv(const ReportInput&, const std::string& path);
void write_sqlite(const ReportInput&, const std::string& path);
void write_markdown(const ReportInput&, const std::string& path);

}  // namespace numemu::experiments
