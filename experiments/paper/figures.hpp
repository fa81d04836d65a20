// Figures and tables of a report as files for papers: the report's own charts, drawn by Node.js,
// and tables for LaTeX (package booktabs).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/report.hpp"

namespace numemu::experiments {

/// Widths of a page's one and two columns, and the ends of the names of their files.
struct PaperWidth {
  double inches;
  const char* suffix;
};
inline constexpr PaperWidth kPaperWidths[] = {{3.3, "1col"}, {7, "2col"}};
/// No letter of a figure is smaller at these widths.
inline constexpr double kLeastPoints = 8;

struct PaperFigure {
  std::string name;               ///< of its files: letters, digits and '-'
  std::vector<std::string> svgs;  ///< one for each of kPaperWidths
  Json records;                   ///< an array of flat objects: what is drawn
};

/// Draws a page of paper_page(). Throws Error where this build has no charting libraries, or where
/// Node.js is not installed or fails.
std::vector<PaperFigure> draw_figures(const Json& page, const ReportAssets&);

/// What draw_figures() needs; throws its Error before long work.
void require_drawing(const ReportAssets&);

/// RFC 4180, a column for each key of the records, numbers with all their digits.
std::string figure_csv(const Json& records);

struct WrittenFigures {
  std::size_t figures = 0, tables = 0;
  bool pdf = false;  ///< rsvg-convert is installed
};
/// Writes NAME-1col.svg, NAME-2col.svg and, where rsvg-convert is installed, the same as .pdf, and
/// NAME.csv for each figure into `folder`, which it makes.
WrittenFigures write_figures(const std::vector<PaperFigure>&, const std::string& folder);
/// The figures of a page of paper_page(), and LaTeX tables by name as NAME.tex.
WrittenFigures write_paper(const Json& page,
                           const std::vector<std::pair<std::string, std::string>>& tables,
                           const std::string& folder);
/// Those of a report, and its tables.
WrittenFigures write_paper(const ReportInput&, const std::string& folder);

/// Columns of numbers are aligned to the right.
std::string latex_table(const std::string& title, const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows,
                        const std::vector<bool>& numeric);

/// Of texts: columns whose cells are all numbers are aligned to the right.
std::string latex_table(const ResultTable&);

/// "points" of the rows; "claims", "findings" and "table-1", "table-2", ... of an experiment. Those
/// that have lines, by the names of their files.
std::vector<std::pair<std::string, std::string>> latex_tables(const ReportInput&);

}  // namespace numemu::experiments
