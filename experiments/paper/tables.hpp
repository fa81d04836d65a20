// The tables of a report for LaTeX (package booktabs).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/report.hpp"

namespace numemu::experiments {

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
