// Studies: run sweeps and experiments, read their rows, write their reports.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/context.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/gate.hpp"
#include "experiments/engine/sweep.hpp"

namespace numemu::api {

using experiments::Existing, experiments::Gate;

struct SweepRequest {
  std::string config = {};                ///< file or JSON; "" is the shipped sweep
  std::string out = {};                   ///< folder; "" is out/<name of the sweep>
  std::string calibrate_on = {};          ///< a data set; "" is the sweep's own
  std::vector<std::string> metrics = {};  ///< none: the sweep's
  std::string shard = "0/1";
  std::optional<Gate> gate = {};
  Existing existing = Existing::resume;
  bool predictions = true;
  std::string figures = {};  ///< of ReportPaths
};
/// A sweep with its points, before anything of it is loaded.
struct Sweep {
  std::string path, out;
  experiments::SweepConfig config;
  experiments::Shard shard;
  std::optional<Gate> gate = {};
  Existing existing = Existing::resume;
  std::string figures = {};
  /// What reports call the points; no two are alike.
  std::vector<std::string> names;

  /// The name of the i-th point of the shard.
  std::size_t number_of(std::size_t i) const { return shard.index + i * shard.count; }
};
Sweep plan_sweep(const SweepRequest&, const Folders&);

/// Times of the points that the folder lacks, by Context::clock.
experiments::SweepEstimate estimate(const Sweep&, const Context&);

/// How far the points of a shard are, in costs.
struct PointProgress {
  double done = 0, total = 0, free = 0;
  std::size_t point = 0, points = 0;  ///< the one that runs or that just ended
  std::string_view phase = {};        ///< of the one that runs; "" at its end
};
/// Runs the points that the folder lacks and stores their rows; `on_points` hears of them,
/// Context::on_work of what they share before the first one. `host` goes to times.jsonl.
experiments::SweepSummary run_sweep(const Sweep&, const Context&,
                                    const std::function<void(const PointProgress&)>& on_points = {},
                                    const std::string& host = "");

struct ReportPaths {
  std::string html, csv, sqlite, markdown;  ///< an empty path is not written
  /// A folder for every figure as SVG, PDF and CSV and for every table as LaTeX (docs/figures.md).
  std::string figures = {};
};
/// Beside the rows: report.html, report.csv, report.sqlite, report.md.
ReportPaths default_paths(const std::string& folder, const std::string& figures = {});
/// Throws Error for a path that is there and no regular file, for a folder where no file can be
/// made, for two paths of one file and for one of the files in `folder` that reports are made from;
/// with figures, for a folder that cannot be made and where nothing can draw them.
/// Call it before long work that ends with a report.
void require_report_files(const std::string& folder, const ReportPaths&);

struct WrittenReport {
  std::vector<experiments::Row> rows;
  std::string unfinished;   ///< "1 of 23 points present"; empty where none is missing
  std::string answer = {};  ///< of the folder's experiment, to its question; "" without one
};
/// How to cite the run of `folder`: version, command and digests, then an entry for BibTeX.
std::string cite(const std::string& folder);

/// Merges the rows of `folder`, writes the files and returns the rows; tells and says in
/// `unfinished` if they are not all the points of the folder's sweep.json. For an experiment.json
/// without rows it writes no CSV and SQLite, which hold rows alone. Throws what
/// require_report_files does before anything is written. Without `predictions` files and rows show
/// none. A gate judges every row that is returned and shown, not those of the folder: they stay
/// what was measured.
WrittenReport write_report(const std::string& folder, const ReportPaths&, const Context&,
                           bool predictions = true, const std::optional<Gate>& gate = {});

/// Whether the folder holds folders of experiments, and is none of a sweep or an experiment.
bool holds_experiments(const std::string& folder);
struct WrittenSystems {
  std::string answer;    ///< how many tests of published claims hold
  std::size_t runs = 0;  ///< conclusions that were read
};
/// The page of all published systems from the conclusions in the folder's folders, and in the
/// folder `figures` a figure of each system and its claims as a table; an empty path is not
/// written.
WrittenSystems write_systems(const std::string& folder, const std::string& html,
                             const std::string& markdown, const std::string& figures = "",
                             const Context& = {});

struct ExperimentRequest {
  std::string name = {};                   ///< one of experiments::all_experiments()
  std::string size = "default";            ///< smoke, default, full
  std::string out = {};                    ///< folder; "" is out/NAME-SIZE
  std::vector<std::string> settings = {};  ///< "key=value"
  experiments::GivenBy given_by = experiments::GivenBy::set;  ///< how messages name them
  std::int64_t seed = 0;
  std::string shard = "0/1";  ///< of its trials and points
  Existing existing = Existing::resume;
  std::string figures = {};  ///< of ReportPaths; of all experiments a folder of folders
};
struct ExperimentResult {
  std::string out;
  experiments::Conclusion conclusion;
  experiments::ExperimentFile file;  ///< experiment.json
  bool concluded = true;             ///< a shard stores its share, and nothing else

  bool failed() const;  ///< a finding failed
};
/// Context::on_work hears of what points share before the first one, the hooks of points and
/// trials.
ExperimentResult run_experiment(const ExperimentRequest&, const Context&,
                                const experiments::SweepHooks& = {});

struct AllExperiments {
  std::string out;                       ///< a folder for each experiment, systems.html, systems.md
  std::vector<std::string> errors = {};  ///< "NAME: message" of those that could not run
  std::string answer = {};               ///< of WrittenSystems; "" for a shard
};
/// Runs every experiment by `run`, each in a folder of its name in the folder of the request, whose
/// name is not read, and writes the page of all systems after each. An experiment that concluded
/// there, with the same settings, seed and numerics version, is not run again; one that throws
/// Error does not stop the others. Throws Error for settings, which no two experiments share.
AllExperiments run_all_experiments(const ExperimentRequest&,
                                   const std::function<void(const ExperimentRequest&)>& run);

/// A run of experiment `search` (docs/search.md).
struct SearchRequest {
  /// Values of its settings by key, lists in their items; what is not given has its default.
  std::map<std::string, std::vector<std::string>> settings = {};
  std::string out = {};      ///< folder; "" is out/search-SUBJECT-BITS-loss-POINTS
  std::string figures = {};  ///< of ReportPaths
  std::int64_t seed = 0;
  Existing existing = Existing::resume;
};

/// What run_experiment() takes. Throws Error where network and laws are both given or both absent,
/// and for options that laws do not have.
ExperimentRequest experiment_of(const SearchRequest&);

}  // namespace numemu::api
