// From rows to things people read: a self-contained HTML report, CSV, SQLite and Markdown.
#pragma once
#include <string>
#include <vector>

#include "experiments/cite/citation.hpp"
#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// Everything a report shows. `rows` are in point order.
struct ReportInput {
  const Json* sweep = nullptr;  ///< canonical sweep configuration
  const std::vector<Row>* rows = nullptr;
  const Json* tensors = nullptr;  ///< histograms of the float32 tensors (tensors.json), may be null
  const Json* experiment =
      nullptr;  ///< what the experiment that made the rows concluded (experiment.json), may be null
  std::string unfinished = {};  ///< "1 of 23 points present"; empty where none is missing
  std::string folder = {};      ///< of the rows, which name files in it
  CitedProgram program = {};    ///< that the report tells to cite
};

/// Each writes atomically (temporary file, rename) and throws Error naming the file when it cannot.
void write_html(const ReportInput&, const std::string& path);
void write_csv(const ReportInput&, const std::string& path);
void write_sqlite(const ReportInput&, const std::string& path);
void write_markdown(const ReportInput&, const std::string& path);

}  // namespace numemu::experiments
