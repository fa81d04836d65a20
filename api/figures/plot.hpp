// Figures for papers without a sweep: error against bits, cells of formats; predicted against
// measured of a folder.
#pragma once
#include <string>
#include <vector>

#include "api/analysis.hpp"
#include "api/context.hpp"

namespace numemu::api {

struct WrittenPlot {
  std::vector<std::string> figures;  ///< names of their files, without suffixes
  bool pdf = false;                  ///< rsvg-convert is installed: there are .pdf files
};

/// Each writes NAME-1col.svg, NAME-2col.svg, the same as .pdf, and NAME.csv into `out`, which it
/// makes. Throws Error before the work for a folder that cannot be made and where figures cannot
/// be drawn (docs/figures.md).

/// error-LAW for each law: SQNR in dB against stored bits for every row of analyze_table(), a
/// series for each family of formats, and lines for its limits.
WrittenPlot plot_error(const AnalysisTableRequest&, const std::string& out);

/// steps: the positive values of scalar formats of at most 10 bits on a line; spacing: the step to
/// the next value, in per cent of the value. `formats` are lists as in AnalysisTableRequest.
WrittenPlot plot_cells(const std::vector<std::string>& formats, const std::string& out);

/// predicted and expected, as in the report of the rows of `folder`. Throws Error where no row has
/// a prediction beside a measurement.
WrittenPlot plot_predicted(const std::string& folder, const std::string& out);

}  // namespace numemu::api
