// Studies: methods times seeds, a typed measurement of each run, what tables and charts show of the
// methods seed by seed, and trainings compared under several recipes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/storage/json.hpp"

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
  std::vector<std::string> methods = {};
  std::vector<std::uint64_t> seeds = {};
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
  std::vector<Measured> results = run_typed(run, std::move(trials), plan.at_once);
  Study<Measured> study{plan.methods, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i % plan.seeds.size() == 0) study.runs.emplace_back();
    study.runs.back().push_back(std::move(results[i]));
  }
  return study;
}

/// The update, from 1, from which on no loss of a run is finite: a member `diverged` of Measured or
/// of its TrainOutcome `outcome`.
template <class Measured>
std::optional<std::int64_t> diverged_at(const Measured& run) {
  if constexpr (requires { run.outcome; })
    return run.outcome.diverged;
  else
    return run.diverged;
}

/// A sentence for each run that diverged.
template <class Measured>
void say_diverged(const Study<Measured>& study, const std::vector<std::uint64_t>& seeds,
                  const std::string& prefix, Conclusion& conclusion) {
  for (std::size_t m = 0; m < study.size(); ++m) {
    for (std::size_t s = 0; s < study.seeds(); ++s) {
      const auto update = diverged_at(study.runs[m][s]);
      if (update)
        conclusion.sentences.push_back(prefix + study.methods[m] + ", seed " +
                                       std::to_string(seeds[s]) + ": diverged at update " +
                                       std::to_string(*update) + ".");
    }
  }
}

/// The difference of a method to another, paired by seed.
stats::PairedInterval gain(const SeedFigures&, std::size_t method, std::size_t on = 0);

/// A column of a table whose rows are the methods, or the cases of another question.
struct StudyColumn {
  std::string header;
  std::function<std::string(std::size_t row)> cell;
};
ResultTable study_table(std::string title, std::size_t rows, const std::vector<StudyColumn>&);

StudyColumn name_column(std::string header, std::vector<std::string> names);
/// Means over the seeds, with so many digits, "-" where they are not finite; and how many runs
/// diverged, which are left out.
StudyColumn mean_column(std::string header, const SeedFigures&, int digits = 2);
/// The mean difference to the first method, and its 95 % interval; "-" for the first.
StudyColumn difference_column(std::string header, const SeedFigures&, int digits = 2);
StudyColumn interval_column(const SeedFigures&, int digits = 2);

/// A point of a chart at a difference, with its interval.
ChartPoint gain_point(double x, std::string name, const stats::PairedInterval&);
/// Bars of the difference of every method but the first to the first.
Chart gain_chart(std::string title, std::string caption, std::string y,
                 const std::vector<std::string>& methods, const SeedFigures&);

/// Defaults of a setting by size; one alone holds for all.
struct BySize {
  const char *smoke, *standard, *full;
  BySize(const char* all) : smoke(all), standard(all), full(all) {}
  BySize(const char* small, const char* middle, const char* large)
      : smoke(small), standard(middle), full(large) {}
};
struct TrainingRows {
  std::string of = "image";  ///< what a sample is
  std::string prefix = {};   ///< of the keys
  std::int64_t least_batch = 1;
};
/// The rows of the settings that training_of() reads.
std::vector<Setting> training_settings(const BySize& epochs, const BySize& batch,
                                       const BySize& train_samples, const BySize& eval_samples,
                                       const TrainingRows& = {});
/// Of `lr` and `warmup`, for experiments whose network may be a trained file: the recommended rates
/// are those of a training from the start, and 0.1 takes a trained ResNet-20 from 87.7 to 76 %.
std::vector<Setting> rate_settings();
/// Of `seeds`, which seeds_of() reads.
Setting seeds_setting(const BySize&, const std::string& paired = "methods");

struct TrainingNeeds {
  std::string optimizer = {};    ///< empty: the setting `optimizer`, else the network's own
  std::int64_t least_batch = 1;  ///< what the network or the question requires
  std::string prefix = {};       ///< of the settings' names, where an experiment has two trainings
};

/// Of the settings `epochs`, `batch`, `train_samples` and `eval_samples`, at the rates recommended
/// for the network and the optimizer, or at those of the settings `lr` and `warmup` (in steps)
/// where an experiment has them; the recipe is float32. Throws Error naming the setting.
TrainTrial training_of(const Settings&, const std::string& net, const TrainingNeeds& = {});

/// As many from the run's seed on as the setting `key` says.
std::vector<std::uint64_t> seeds_of(const ExperimentRun&, const std::string& key = "seeds",
                                    std::int64_t least = 1, std::int64_t most = 1000);

struct TrainingMethod {
  std::string name;  ///< in the table, in the chart and in the progress line; no part of the trial
  Json recipe = Json::object();  ///< {}: float32
  NumericsAround around = {};
  std::function<void(TrainTrial&)> change = {};  ///< of a trial with recipe and seed; may be empty
  double rate_factor = 1;                        ///< of the plan's learning rate
  Json counted = Json::object();  ///< members of the point beside those of the training
};

/// What all methods share. The same seed gives every method the same initial weights and the same
/// batches, so that methods are compared seed by seed.
struct TrainingPlan {
  TrainTrial trial;  ///< without recipe and seed
  std::string data = {};
  std::vector<std::uint64_t> seeds = {};
  std::vector<TrainingMethod> methods = {};  ///< the first is the one the others are compared with
  /// By run_trials_at_once(): a training on each thread, to the same bytes. Each `around` must
  /// allow it.
  bool at_once = false;
  std::string prefix = {};  ///< of the labels

  std::vector<std::string> names() const;
  TrainTrial trial_of(std::size_t method, std::uint64_t seed) const;
  /// Throws Error naming a method whose recipe cannot train the network.
  void require_trainable(const net::Dataset&) const;
  /// point_of() the trial, and what the method counts.
  Json point(std::size_t method, std::uint64_t seed, const net::Dataset&) const;
};

/// Trains and measures every method with every seed: `measure` has a TrainTrial and the place of
/// its method.
template <class Measured, class Measure>
Study<Measured> run_training_study(const ExperimentRun& run, const net::Dataset& data,
                                   const TrainingPlan& plan, const Measure& measure) {
  return run_study<Measured>(run, {plan.names(), plan.seeds, plan.at_once, plan.prefix},
                             [&](std::size_t method, std::uint64_t seed) -> StudyRun<Measured> {
                               return {plan.point(method, seed, data),
                                       [=, &measure, trial = plan.trial_of(method, seed)] {
                                         return measure(trial, method);
                                       }};
                             });
}

struct TrainingTable {
  Study<TrainOutcome> study;
  SeedFigures top1;  ///< per cent
  /// Per method: mean metric, mean difference to the first method with the paired t interval at
  /// 95 % (one seed: none), and the metric of each seed; per cent and points, or bits per
  /// character.
  ResultTable table;
  /// Bars of the mean difference of every other method to the first, with its paired interval.
  Chart chart;
  /// The metric over the updates, means over the seeds; no series where the trial has no tests.
  Chart curves;
};

/// Gives every method the factor on the plan's learning rate with the best mean metric over these
/// seeds, which should be none that are judged, and adds a table. A single factor is not tried.
void tune_rates(const ExperimentRun& run, const net::Dataset& data,
                const std::vector<double>& factors, const std::vector<std::uint64_t>& seeds,
                TrainingPlan& plan, Conclusion& conclusion);

/// A study of the accuracy alone. `data` must be the set that `plan.data` names. Throws Error for
/// no method, no seed, or what the training refuses.
TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan);

/// Methods under several recipes.
struct RecipeComparison {
  TrainTrial trial;                          ///< without recipe and seed
  std::vector<TrainingMethod> methods = {};  ///< without recipe; the first is compared with
  std::vector<std::string> recipes = {};     ///< "float32", or names of shipped recipes and files
  bool at_once = true;
  /// Figures of the network that the last update left, part of the result; may be empty. `figured`
  /// says what they are, for the point.
  std::function<std::vector<double>(const TrainTrial&, const net::Graph&)> after = {};
  std::string figured = {};

  /// Under one of the recipes.
  TrainingPlan plan(const ExperimentRun&, const std::string& recipe) const;
};

/// A run: its accuracy, or minus its bits per character, so that more is better.
struct ComparedRun {
  TrainOutcome outcome;
  double state_bytes = 0;          ///< of the optimizers, for each trained parameter
  std::vector<double> after = {};  ///< RecipeComparison::after

  /// Per cent, or minus bits per character; NaN where the run diverged.
  double better() const { return outcome.accuracy ? outcome.top1() : -outcome.metric; }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("state_bytes", self.state_bytes);
    visit("after", self.after, kIfAny);
  }
};

/// What ran under a recipe.
struct ComparedUnder {
  std::string recipe;
  Study<ComparedRun> study;
  SeedFigures better;  ///< ComparedRun::better()

  bool accuracy() const { return study.runs[0][0].outcome.accuracy; }
  /// "points of top-1" or "bits per character".
  std::string unit() const { return accuracy() ? "points of top-1" : "bits per character"; }
};

/// Throws Error for a recipe that cannot train the network with one of the methods.
void require_trainable(const ExperimentRun&, const net::Dataset&, const RecipeComparison&);

/// Trains every method with every seed under every recipe. Adds a table and a chart for each
/// recipe, and a sentence for each run that diverged.
std::vector<ComparedUnder> compare_methods(const ExperimentRun&, const net::Dataset&,
                                           const RecipeComparison&, Conclusion&);

/// The roles in a format, float32 for none: of weights and activations by default.
Json recipe_in(const std::string& format,
               const std::vector<std::string>& roles = {"weight", "activation"});

/// The claim's key in float32, of which publications speak, "few bits" in every other format or
/// recipe.
inline std::string published_in(std::string_view format, std::string claim) {
  return format == "float32" ? std::move(claim) : "few bits";
}

/// "[-0.31, +0.52]", or without signs "[0.31, 0.52]".
std::string ends_text(double low, double high, int digits = 2, bool sign = true);
/// The ends of an interval; `unknown` for the infinite interval of a single seed.
std::string interval_text(const stats::PairedInterval&, const char* unknown = "-", int digits = 2);
/// "+0.10 [-0.31, +0.52]", of a single seed the mean alone.
std::string mean_text(const stats::PairedInterval&, int digits = 2);
/// "0.10 +- 0.41".
std::string half_text(double mean, double half, int digits);
/// Of an interval that is as long to either side.
std::string half_text(const stats::PairedInterval&, int digits);

/// interval_finding() of a mean over seeds or repeats.
Finding interval_finding(std::string what, double predicted, const stats::PairedInterval& measured,
                         const Allowed&);

/// The same difference, taken the other way.
inline stats::PairedInterval negated(const stats::PairedInterval& d) {
  return {-d.mean, -d.high, -d.low, d.n, d.left_out};
}

/// The difference of shares in points.
inline stats::PairedInterval in_points(const stats::PairedInterval& d) {
  return {100 * d.mean, 100 * d.low, 100 * d.high, d.n, d.left_out};
}

/// One-sided p-values.
struct Tails {
  double above = 1;  ///< that the true mean is not above the bound
  double below = 1;  ///< that it is not below
};

/// Of Student's t test. Both are 1 where the interval is not known, as of a single difference.
Tails tails(const stats::PairedInterval&, double bound);
/// Of a difference of answers, by the score test that gives its interval
/// (stats::paired_difference); `bound` lies inside (-1, 1). Both are 1 where no answer differs and
/// the bound is 0.
Tails tails(const stats::PairedAnswers&, double bound);

/// The probability of a mean at least as far from `bound`, either side, where `bound` is the true
/// one: twice the smaller of tails(), at most 1.
double p_value(const stats::PairedInterval&, double bound);
double p_value(const stats::PairedAnswers&, double bound);

/// Collects claims that a mean difference lies above a bound. Runs that diverged are left out of
/// the mean, and `what` says how many; with any the claim does not hold.
class PairedClaims {
 public:
  /// `claim` is the key of the experiment's claim.
  void add(std::string what, const stats::PairedInterval&, double bound, std::string claim = "");
  /// By judge_sides().
  std::vector<Finding> judged() const;

 private:
  std::vector<Finding> findings_;
  std::vector<double> p_values_;
  std::vector<bool> diverged_;
};

/// A difference that is claimed to be above 0.
struct PairedGain {
  std::string what;
  stats::PairedInterval difference;
  std::string claim = {};  ///< key of the experiment's claim
};

/// One finding each, with " (claimed above 0)" behind `what`: judge_signs() of tails() at 0, with
/// Holm's procedure over all. One seed gives no verdict, nor does an interval with 0 inside. Runs
/// that diverged as in PairedClaims.
std::vector<Finding> judge_gains(const std::vector<PairedGain>&);

}  // namespace numemu::experiments
