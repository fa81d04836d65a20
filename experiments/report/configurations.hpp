// Rows that differ in nothing but their seed, what they lose against float32, and the best of a
// sweep.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/report/report_row.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu::experiments {

/// The unquantized row of the same network, data and seed; the first one; null if there is none.
const ReportRow* find_baseline(const std::vector<ReportRow>&, const ReportRow& of);

/// Whether a row loses less than what is small of its measure, by its paired 95 % interval. None
/// where the row is not quantized or not measured, or no loss of the measure is called small.
Verdict loses_little(const ReportRow&);

/// What tables of the rows are headed by: the measure of the first row that is not judged by top-1,
/// else top-1.
const Measure& measure_of(const std::vector<ReportRow>&);

/// Rows that differ in nothing but their seed.
struct Configuration {
  /// The first row, named without its seed. Of several seeds: what they measure is the mean over
  /// them, without intervals, and absent where a seed lacks it.
  ReportRow mean;
  std::vector<const ReportRow*> rows;  ///< one for each seed

  /// What was lost against float32, in its own measure: the mean.
  std::optional<double> loss() const;
  /// Least and greatest loss of a seed.
  std::pair<double, double> losses() const;
};
/// All rows by configuration, in order of appearance; points to the rows.
std::vector<Configuration> configurations(const std::vector<ReportRow>&);

/// Holds or fails only where each seed does.
Verdict loses_little(const Configuration&);

/// The quantized configuration with the fewest mean bits that surely loses less than the limit; the
/// more accurate wins ties, then the higher SQNR. Null if there is none.
const Configuration* cheapest_safe(const std::vector<Configuration>&);
/// The first row of it.
const ReportRow* cheapest_safe(const std::vector<ReportRow>&);

struct BestPoints {
  std::vector<const Configuration*> points;
  std::string left_out;  ///< a sentence, where some are
};
/// The best configurations of a sweep: those of which no other has as few bits and loses less, and
/// the cheapest safe one, fewest bits first; those that lose most are left out, down to `most`.
BestPoints best_points(const std::vector<Configuration>&, std::size_t most = 8);

/// Names of the configurations of a class, each once: the label where all its units agree ("int8 (2
/// units)" where the sweep has more), else with the unit.
std::vector<std::string> labels_by_loss(const std::vector<Configuration>&, Verdict little);
/// The units of those that labels_by_loss lists.
std::size_t compared_units(const std::vector<Configuration>&);

}  // namespace numemu::experiments
