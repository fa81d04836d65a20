// Studies: methods times seeds, a typed measurement of each run, and what tables and charts show of
// the methods seed by seed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emu/stats/paired.hpp"
#include "experiments/engine/chart.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/trials.hpp"

namespace numemu::experiments {

/// A figure of every run: [method][seed].
using SeedFigures = std::vector<std::vector<double>>;

/// The measurements of a study, whose fields Measured declares (formats/storage/fields.hpp).
/// `get` is a member of Measured or a function of it.
template <class Measured>
struct Study {
  std::vector<std::string> methods;         ///< names; the first is compared with
  std::vector<std::vector<Measured>> runs;  ///< [method][seed]

  std::size_t size() const { return runs.size(); }
  std::size_t seeds() const { return runs.front().size(); }
  template <class Get>
  std::vector<double> figures(std::size_t method, const Get& get) const {
    std::vector<double> values;
    for (const Measured& run : runs[method])
      values.push_back(static_cast<double>(std::invoke(get, run)));
    return values;
  }
  template <class Get>
  SeedFigures figures(const Get& get) const {
    SeedFigures all;
    for (std::size_t m = 0; m < size(); ++m) all.push_back(figures(m, get));
    return all;
  }
  template <class Get>
  double mean(std::size_t method, const Get& get) const {
    return stats::paired_interval(figures(method, get)).mean;
  }
};

/// Where and how the runs of a study are made.
struct StudyPlan {
  std::vector<std::string> methods;
  std::vector<std::uint64_t> seeds;
  bool at_once = false;     ///< by run_trials_at_once()
  std::string prefix = {};  ///< of the labels "METHOD, seed S"
};

/// One run of a study: what its result depends on, and how it is measured.
template <class Measured>
struct StudyRun {
  Json point;
  std::function<Measured()> measure;
};

/// Runs every method with every seed as a trial, seed by seed within a method; `run_of` makes one
/// of a method's place and a seed. Throws Error without methods or seeds.
template <class Measured, class RunOf>
Study<Measured> run_study(const ExperimentRun& run, const StudyPlan& plan, const RunOf& run_of) {
  if (plan.methods.empty() || plan.seeds.empty())
    throw Error("comparison of training methods: expected at least one method and one seed");
  std::vector<TypedTrial<Measured>> trials;
  for (std::size_t m = 0; m < plan.methods.size(); ++m) {
    for (const std::uint64_t seed : plan.seeds) {
      StudyRun<Measured> one = run_of(m, seed);
      trials.push_back({std::move(one.point),
                        plan.prefix + plan.methods[m] + ", seed " + std::to_string(seed),
                        std::move(one.measure)});
    }
  }
  std::vector<Measured> results = run_typed(run, trials, plan.at_once);
  Study<Measured> study{plan.methods, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i % plan.seeds.size() == 0) study.runs.emplace_back();
    study.runs.back().push_back(std::move(results[i]));
  }
  return study;
}

/// The difference of a method to another, paired by seed.
stats::PairedInterval gain(const SeedFigures&, std::size_t method, std::size_t on = 0);

/// A column of a table whose rows are the methods.
struct StudyColumn {
  std::string header;
  std::function<std::string(std::size_t method)> cell;
};
ResultTable study_table(std::string title, std::size_t methods, const std::vector<StudyColumn>&);

StudyColumn name_column(std::string header, std::vector<std::string> names);
/// Means over the seeds, with so many digits; "-" where they are not finite.
StudyColumn mean_column(std::string header, const SeedFigures&, int digits = 2);
/// The mean difference to the first method, and its 95 % interval; "-" for the first.
StudyColumn difference_column(std::string header, const SeedFigures&, int digits = 2);
StudyColumn interval_column(const SeedFigures&, int digits = 2);

/// A point of a chart at a difference, with its interval.
ChartPoint gain_point(double x, std::string name, const stats::PairedInterval&);
/// Bars of the difference of every method but the first to the first.
Chart gain_chart(std::string title, std::string caption, std::string y,
                 const std::vector<std::string>& methods, const SeedFigures&);

}  // namespace numemu::experiments
