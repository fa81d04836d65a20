// The report's own files (template, style, scripts, charts) and the charting libraries, compiled
// into the program.
#pragma once
#include <string_view>
#include <vector>

namespace numemu::experiments {

struct Asset {
  std::string_view name, text;
};

/// Everything a page is made of. `libraries` is empty in a build without Node.
struct ReportAssets {
  std::string_view page, style, script, libraries;
  std::vector<Asset> charts;  ///< Vega-Lite specifications, by file stem
};

/// What this build embeds; defined by a generated source (cmake/report.cmake).
const ReportAssets& embedded_assets();

}  // namespace numemu::experiments
