// Writing the report of a sweep folder and printing its summary.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/gate.hpp"

namespace numemu::cli {

struct ReportPaths {
  std::string html, csv, sqlite, markdown;  ///< an empty path is not written
};

/// Beside the rows: report.html, report.csv, report.sqlite, report.md.
ReportPaths default_paths(const std::string& folder);

/// Throws Error for a path that is there and no regular file, for a folder where no file can be
/// made, for two paths of one file and for one of the files in `folder` that reports are made from.
/// Call it before long work that ends with a report.
void require_report_files(const std::string& folder, const ReportPaths&);

struct WrittenReport {
  std::vector<Json> rows;
  std::string unfinished;  ///< "1 of 23 points present"; empty where none is missing
};

/// Merges the rows of `folder`, writes the files and returns the rows; says on stderr and in
/// `unfinished` if they are not all the points of the folder's sweep.json. For an experiment.json
/// without rows it writes no CSV and SQLite, which hold rows alone. Throws what
/// require_report_files does before anything is written. Without `predictions` files and rows show
/// none. A gate judges every row that is returned and shown, not those of the folder: they stay
/// what was measured.
WrittenReport write_report(const std::string& folder, const ReportPaths&, bool predictions = true,
                           const std::optional<experiments::Gate>& gate = {});

/// The meaning of the star at a predicted figure.
inline constexpr const char* kUnitLeftOut =
    "* predicted for exact sums, without the rounding noise of the unit";

/// `format` of a number times `factor`, "-" for null.
std::string number_text(const Json& value, const char* format, double factor = 1);
/// "[LOW, HIGH]" of a list of two, each as number_text.
std::string interval_text(const Json& pair, const char* format, double factor = 1);
/// "no window's figure differs from float32; at 95 % at most 24.7 % of blocks of 4 windows do
/// (Clopper-Pearson)", of a score of which no resample differs; "" of others, of `auc`, and of 0
/// samples. The exact interval of such a difference supposes that a window that differs does so in
/// every target.
std::string none_differs(const Json& score, std::int64_t samples);

/// One line a row: numerics, bits, accuracy, its change from float32, SQNR measured and predicted;
/// then lines about what is not finite, why something is not predicted, and notes. Rows of
/// different points never have the same line.
std::string summary_table(const std::vector<Json>& rows, const std::string& unfinished = "");

/// The gate's sentences alone, a line each; nothing without a gate.
std::string gate_lines(const WrittenReport&);

}  // namespace numemu::cli
