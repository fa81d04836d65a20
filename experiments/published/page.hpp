// One page of all published systems: what their papers claim beside what runs here found.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/html.hpp"

namespace numemu::experiments {

/// A concluded run of an experiment.
struct ConcludedRun {
  std::string name;  ///< of its folder
  std::string link;  ///< to its report or its conclusion, relative to the page
  ExperimentFile file;
};

/// How runs judged the published claims that they test, and the claims that no experiment tests.
struct SystemsTally {
  VerdictCounts tests = {};      ///< a claim in a run, of claims that any set-up tests
  std::size_t identities = 0;    ///< of these, those that hold of what any correct program meets
  VerdictCounts elsewhere = {};  ///< of claims that the paper tests on another set-up
  std::size_t without = 0;       ///< claims that an experiment tests, but none of the runs
  std::size_t not_tested = 0;    ///< claims that need what is not here
};
SystemsTally tally(const std::vector<ConcludedRun>&);

/// "33 systems. Of 60 tests of published claims that any set-up can test 50 hold, ...". Plain text.
std::string answer(const SystemsTally&);

/// Every claim of every system with its runs, in the order of `runs`.
std::string systems_markdown(const std::vector<ConcludedRun>& runs);
/// The same as one self-contained page, with the first figure of every system's first run.
std::string systems_html(const std::vector<ConcludedRun>& runs, const ReportAssets&);
/// What draws its figures outside the page (paper_page()), and its claims as one table.
Json systems_paper(const std::vector<ConcludedRun>& runs, const ReportAssets&);
ResultTable systems_table(const std::vector<ConcludedRun>& runs);

}  // namespace numemu::experiments
