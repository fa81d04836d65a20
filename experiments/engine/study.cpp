#include "experiments/engine/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/train/options.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/update_json.hpp"

namespace numemu::experiments {

std::vector<Setting> training_settings(const BySize& epochs, const BySize& batch,
                                       const BySize& train, const BySize& eval,
                                       const TrainingRows& rows) {
  const auto row = [&](const char* key, const BySize& by, std::string doc, const Takes& takes) {
    return Setting{rows.prefix + key, by.smoke, by.standard, by.full, std::move(doc), takes};
  };
  const Takes count = whole(0, 1'000'000'000);
  return {row("epochs", epochs, "epochs of training", whole(1, 10'000)),
          row("batch", batch, rows.of + "s of a step",
              whole(static_cast<double>(rows.least_batch), 100'000)),
          row("train_samples", train, "training " + rows.of + "s; 0: all", count),
          row("eval_samples", eval, "test " + rows.of + "s; 0: all", count)};
}

std::vector<Setting> rate_settings() {
  return {
      {"lr", "0", "0", "0", "learning rate, as 0.01 for a trained file; 0: the recommended rate",
       real(0, 1e3)},
      {"warmup", "0", "0", "0", "steps of the rising learning rate; without effect where lr is 0",
       whole(0, 1'000'000'000)}};
}

Setting seeds_setting(const BySize& by, const std::string& paired) {
  return {"seeds",       by.smoke, by.standard, by.full, "seeds that " + paired + " are paired by",
          whole(1, 1000)};
}

TrainTrial training_of(const Settings& settings, const std::string& net,
                       const TrainingNeeds& needs) {
  TrainTrial trial;
  const auto whole = [&](const char* key, std::int64_t least, std::int64_t most) {
    return settings.integer(needs.prefix + key, least, most);
  };
  trial.net = net;
  trial.options.optimizer = !needs.optimizer.empty() ? needs.optimizer
                            : settings.values().contains("optimizer")
                                ? settings.text("optimizer")
                                : net::recommended_optimizer(net);
  net::use_recommended_rates(trial.options, net);
  if (const std::string lr = needs.prefix + "lr";
      settings.values().contains(lr) && settings.number(lr, 0, 1e3) > 0) {
    trial.options.learning_rate = settings.number(lr, 0, 1e3);
    trial.options.warmup = whole("warmup", 0, 1'000'000'000);
  }
  trial.options.epochs = whole("epochs", 1, 10'000);
  trial.options.batch = whole("batch", needs.least_batch, 100'000);
  trial.train_samples = whole("train_samples", 0, 1'000'000'000);
  trial.eval_samples = whole("eval_samples", 0, 1'000'000'000);
  return trial;
}

std::vector<std::uint64_t> seeds_of(const ExperimentRun& run, const std::string& key,
                                    std::int64_t least, std::int64_t most) {
  std::vector<std::uint64_t> seeds(
      static_cast<std::size_t>(run.settings.integer(key, least, most)));
  for (std::size_t s = 0; s < seeds.size(); ++s) seeds[s] = run.seed + s;
  return seeds;
}

std::vector<std::string> TrainingPlan::names() const {
  std::vector<std::string> all;
  for (const TrainingMethod& method : methods) all.push_back(method.name);
  return all;
}

TrainTrial TrainingPlan::trial_of(std::size_t method, std::uint64_t seed) const {
  TrainTrial one = trial;
  one.recipe = methods[method].recipe;
  one.around = methods[method].around;
  one.seed = seed;
  if (methods[method].change) methods[method].change(one);
  one.options.learning_rate *= methods[method].rate_factor;
  return one;
}

void TrainingPlan::require_trainable(const net::Dataset& set) const {
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const TrainTrial one = trial_of(m, seeds.empty() ? 0 : seeds.front());
    net::Graph graph = initial_network(one, set);
    at(prefix + methods[m].name, [&] { experiments::require_trainable(one, std::move(graph)); });
  }
}

Json TrainingPlan::point(std::size_t method, std::uint64_t seed, const net::Dataset& set) const {
  Json point = point_of(trial_of(method, seed), set);
  point.update(methods[method].counted);
  return point;
}

void tune_rates(const ExperimentRun& run, const net::Dataset& data,
                const std::vector<double>& factors, const std::vector<std::uint64_t>& seeds,
                TrainingPlan& plan, Conclusion& conclusion) {
  for (TrainingMethod& method : plan.methods) method.rate_factor = factors.front();
  if (factors.size() == 1) return;
  plan.require_trainable(data);
  std::vector<StudyColumn> columns = {name_column("method", plan.names())};
  std::vector<double> best(plan.methods.size(), -HUGE_VAL), chosen(plan.methods.size());
  for (const double factor : factors) {
    TrainingPlan tried = plan;
    tried.seeds = seeds;
    tried.trial.tests = 0;
    tried.prefix += fmt::format("rate times {}: ", factor);
    for (TrainingMethod& method : tried.methods) method.rate_factor = factor;
    const auto study = run_training_study<TrainOutcome>(
        run, data, tried,
        [&data](const TrainTrial& trial, std::size_t) { return run_train_trial(trial, data); });
    const bool accuracy = study.runs[0][0].accuracy;
    SeedFigures metrics = study.figures(&TrainOutcome::metric);
    for (std::vector<double>& values : metrics)
      for (double& value : values) value *= accuracy ? 100 : 1;
    columns.push_back(
        mean_column(fmt::format("{} at {} x {:g}", accuracy ? "top-1, %" : "bits per character",
                                factor, plan.trial.options.learning_rate),
                    metrics, accuracy ? 2 : 4));
    for (std::size_t m = 0; m < best.size(); ++m) {
      const double mean = stats::paired_interval(metrics[m]).mean, good = accuracy ? mean : -mean;
      const bool diverged = std::ranges::any_of(
          study.runs[m], [](const TrainOutcome& one) { return one.diverged.has_value(); });
      if (diverged || !(good > best[m])) continue;
      best[m] = good;
      chosen[m] = factor;
    }
  }
  for (std::size_t m = 0; m < best.size(); ++m)
    if (std::isfinite(best[m])) plan.methods[m].rate_factor = chosen[m];
  columns.push_back({"chosen factor", [&](std::size_t m) {
                       return fmt::format("{:g}", plan.methods[m].rate_factor);
                     }});
  conclusion.tables.push_back(
      study_table(fmt::format("Learning rates of {} on {}, {} that are not judged", plan.trial.net,
                              data.name(), counted(std::ssize(seeds), "seed")),
                  best.size(), columns));
}

namespace {

/// Means over the seeds that did not diverge.
Chart curves_of(const TrainingPlan& plan, const Study<TrainOutcome>& study,
                const std::string& metric, double factor) {
  Chart chart{.title = fmt::format("By update: {} on {}", plan.trial.net, plan.data),
              .caption = fmt::format("Mean over {} on the test split, under the recipe of the "
                                     "training; runs that diverged are left out.",
                                     counted(std::ssize(plan.seeds), "seed")),
              .x = "updates",
              .y = metric};
  for (std::size_t m = 0; m < study.size(); ++m) {
    std::map<double, std::vector<double>> at;
    for (const TrainOutcome& run : study.runs[m]) {
      for (std::size_t i = 0; i < run.at.size() && !run.diverged; ++i)
        at[run.at[i]].push_back(factor * run.reached[i]);
    }
    for (const auto& [updates, values] : at)
      chart.of(study.methods[m])
          .points.push_back({.x = updates, .y = stats::paired_interval(values).mean});
  }
  return chart;
}

}  // namespace

TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan) {
  plan.require_trainable(data);
  TrainingTable training;
  training.study = run_training_study<TrainOutcome>(
      run, data, plan,
      [&data](const TrainTrial& trial, std::size_t) { return run_train_trial(trial, data); });
  const bool accuracy = training.study.runs[0][0].accuracy;
  training.top1 = training.study.figures(&TrainOutcome::top1);
  const SeedFigures metrics =
      accuracy ? training.top1 : training.study.figures(&TrainOutcome::metric);
  // How the metric is called, and how many digits of it mean something.
  const std::string metric = accuracy ? "top-1, %" : "bits per character",
                    difference = accuracy ? "difference, points" : "difference, bits";
  const int digits = accuracy ? 2 : 4;
  const StudyColumn means = mean_column(metric, metrics, digits);
  std::vector<StudyColumn> columns = {name_column("method", training.study.methods), means,
                                      difference_column(difference, metrics, digits),
                                      interval_column(metrics, digits)};
  for (std::size_t s = 0; s < plan.seeds.size(); ++s) {
    SeedFigures of_seed;
    for (const std::vector<double>& values : metrics) of_seed.push_back({values[s]});
    const StudyColumn shown = mean_column("", of_seed, digits);
    columns.push_back({fmt::format("seed {}", plan.seeds[s]), [&training, shown, s](std::size_t m) {
                         const auto update = training.study.runs[m][s].diverged;
                         return update ? fmt::format("diverged at update {}", *update)
                                       : shown.cell(m);
                       }});
  }
  training.table = study_table(fmt::format("{} on {}, {}, paired by seed", plan.trial.net,
                                           plan.data, counted(std::ssize(plan.seeds), "seed")),
                               training.study.size(), columns);
  training.chart =
      gain_chart(fmt::format("What each method costs {} on {}", plan.trial.net, plan.data),
                 fmt::format("Mean difference to {} ({} {}) over {}, with its 95 % interval by "
                             "Student's t law paired by seed; {}.",
                             plan.methods[0].name, metric, means.cell(0),
                             counted(std::ssize(plan.seeds), "seed"),
                             accuracy ? "below 0 is worse" : "above 0 is worse"),
                 difference, training.study.methods, metrics);
  training.curves = curves_of(plan, training.study, metric, accuracy ? 100 : 1);
  return training;
}

namespace {

constexpr const char* kFloat32 = "float32";

ComparedRun measure(TrainTrial trial, const net::Dataset& data, const RecipeComparison& c) {
  ComparedRun run;
  const std::int64_t samples = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  if (c.after) {
    trial.on_step = [&](const net::Graph& graph, std::int64_t number) {
      if (number + 1 == steps) run.after = c.after(trial, graph);
    };
  }
  run.outcome = run_train_trial(trial, data);
  const policies::Recipe recipe = parsed_recipe(trial);
  net::TrainOptions options = trial.options;
  policies::use_objectives(recipe, "recipe of a training trial", options);
  const net::Graph graph = initial_network(trial, data);
  run.state_bytes = policies::parameter_bytes({recipe, graph}, options).state;
  return run;
}

void show(const RecipeComparison& c, const ComparedUnder& under, const std::string& data,
          Conclusion& conclusion) {
  const Study<ComparedRun>& study = under.study;
  const bool accuracy = under.accuracy();
  const std::string title = fmt::format("{} on {}, {}, {}, paired by seed", c.trial.net, data,
                                        under.recipe, counted(study.seeds(), "seed"));
  const SeedFigures metrics = study.figures([](const ComparedRun& run) {
    return run.outcome.accuracy ? run.outcome.top1() : run.outcome.metric;
  });
  const int digits = accuracy ? 2 : 4;
  conclusion.tables.push_back(study_table(
      title, study.size(),
      {name_column("method", study.methods),
       mean_column(accuracy ? "top-1, %" : "bits per character", metrics, digits),
       difference_column(accuracy ? "gain, points" : "gain, bits", under.better, digits),
       interval_column(under.better, digits),
       mean_column("state, bytes per parameter", study.figures(&ComparedRun::state_bytes))}));
  conclusion.charts.push_back(gain_chart(
      fmt::format("Gain on '{}': {}", study.methods[0], title),
      "Mean difference over the seeds, with its 95 % interval by Student's t law paired by seed; "
      "above 0 is better.",
      accuracy ? "gain, points" : "gain, bits per character", study.methods, under.better));
}

}  // namespace

TrainingPlan RecipeComparison::plan(const ExperimentRun& run, const std::string& name) const {
  const Json recipe =
      name == kFloat32 ? Json::object() : read_recipe(name, run.folders.data, "--set: recipes");
  TrainingPlan plan{.trial = trial,
                    .seeds = seeds_of(run),
                    .methods = methods,
                    .at_once = at_once,
                    .prefix = fmt::format("{}, {}: ", trial.net, name)};
  for (TrainingMethod& method : plan.methods) {
    method.recipe = recipe;
    method.change = [change = method.change](TrainTrial& one) {
      if (change) change(one);
      if (!one.recipe.empty()) one.recipe["update"]["optimizer"] = one.options.optimizer;
    };
    if (!figured.empty()) method.counted["figured"] = figured;
  }
  return plan;
}

void require_trainable(const ExperimentRun& run, const net::Dataset& data,
                       const RecipeComparison& c) {
  for (const std::string& name : c.recipes) {
    const TrainingPlan plan = c.plan(run, name);
    for (std::size_t m = 0; m < plan.methods.size(); ++m) {
      const TrainTrial trial = plan.trial_of(m, run.seed);
      net::Graph graph = initial_network(trial, data);
      at(fmt::format("--set: recipes: {} on {}", name, c.trial.net), ErrorKind::usage,
         [&] { require_trainable(trial, std::move(graph), "training"); });
    }
  }
}

std::vector<ComparedUnder> compare_methods(const ExperimentRun& run, const net::Dataset& data,
                                           const RecipeComparison& c, Conclusion& conclusion) {
  std::vector<TrainingPlan> plans;  // all recipes are read before any work
  for (const std::string& name : c.recipes) plans.push_back(c.plan(run, name));
  std::vector<ComparedUnder> all;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    ComparedUnder under{c.recipes[r],
                        run_training_study<ComparedRun>(run, data, plans[r],
                                                        [&](const TrainTrial& trial, std::size_t) {
                                                          return measure(trial, data, c);
                                                        }),
                        {}};
    under.better = under.study.figures(&ComparedRun::better);
    say_diverged(under.study, plans[r].seeds, plans[r].prefix, conclusion);
    show(c, under, data.name(), conclusion);
    all.push_back(std::move(under));
  }
  return all;
}

Json recipe_in(const std::string& format, const std::vector<std::string>& roles) {
  Json recipe = Json::object();
  if (format == kFloat32) return recipe;
  for (const std::string& role : roles) recipe["roles"][role] = {{"format", format}};
  return recipe;
}

namespace {

constexpr double kLevel = 0.05;  // of all tests

double of_both_sides(const Tails& tails) {
  return std::min(1.0, 2 * std::min(tails.above, tails.below));
}

double degrees_of(const stats::PairedInterval& d) { return static_cast<double>(d.n - 1); }

/// The standard error of the mean, which the interval at 95 % says.
double error_of(const stats::PairedInterval& d) {
  return (d.high - d.low) / 2 / stats::student_quantile(degrees_of(d), kLevel / 2);
}

}  // namespace

std::string ends_text(double low, double high, int digits, bool sign) {
  const auto shown = [&](double end) {
    return fmt::format("{}{:.{}f}", sign && !std::signbit(end) ? "+" : "", end, digits);
  };
  return fmt::format("[{}, {}]", shown(low), shown(high));
}

std::string interval_text(const stats::PairedInterval& d, const char* unknown, int digits) {
  if (!std::isfinite(d.low) || !std::isfinite(d.high)) return unknown;
  return ends_text(d.low, d.high, digits);
}

std::string mean_text(const stats::PairedInterval& d, int digits) {
  const std::string interval = interval_text(d, "", digits);
  return fmt::format("{:+.{}f}{}{}", d.mean, digits, interval.empty() ? "" : " ", interval);
}

std::string half_text(double mean, double half, int digits) {
  if (!std::isfinite(half)) return fmt::format("{:.{}f}", mean, digits);
  return fmt::format("{:.{}f} +- {:.{}f}", mean, digits, half, digits);
}

std::string half_text(const stats::PairedInterval& d, int digits) {
  return half_text(d.mean, d.high - d.mean, digits);
}

Finding interval_finding(std::string what, double predicted, const stats::PairedInterval& measured,
                         const Allowed& allowed) {
  return interval_finding(std::move(what), predicted, measured.mean, {measured.low, measured.high},
                          allowed);
}

Tails tails(const stats::PairedInterval& d, double bound) {
  if (d.n < 2) return {};
  const double error = error_of(d), t = (d.mean - bound) / error;
  if (!std::isfinite(error) || !std::isfinite(t)) return {};
  return {stats::student_tail(degrees_of(d), t), stats::student_tail(degrees_of(d), -t)};
}

Tails tails(const stats::PairedAnswers& answers, double bound) {
  if (answers.only1 + answers.only2 == 0 && bound == 0) return {};
  const double score = stats::paired_score(answers, 1, bound);
  return {normal::cdf(-score), normal::cdf(score)};
}

double p_value(const stats::PairedInterval& d, double bound) {
  return of_both_sides(tails(d, bound));
}

double p_value(const stats::PairedAnswers& answers, double bound) {
  return of_both_sides(tails(answers, bound));
}

namespace {

/// "; 2 of 5 runs diverged", or "; the same in all 3 runs", which show no spread and thus no
/// interval; else "".
std::string of_runs(const stats::PairedInterval& d) {
  if (d.left_out > 0)
    return fmt::format("; {} of {} diverged", d.left_out, counted(d.n + d.left_out, "run"));
  return d.n > 1 && std::isinf(d.high) ? fmt::format("; the same in all {} runs", d.n) : "";
}

}  // namespace

void PairedClaims::add(std::string what, const stats::PairedInterval& d, double bound,
                       std::string claim) {
  findings_.push_back({std::move(what) + of_runs(d), bound, d.mean, d.low, d.high});
  findings_.back().claim = std::move(claim);
  p_values_.push_back(p_value(d, bound));
  diverged_.push_back(d.left_out > 0);
}

std::vector<Finding> PairedClaims::judged() const {
  std::vector<Finding> findings = findings_;
  judge_sides(findings, p_values_);
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (diverged_[i]) judge_diverged(findings[i]);
  return findings;
}

std::vector<Finding> judge_gains(const std::vector<PairedGain>& gains) {
  std::vector<Finding> findings;
  std::vector<double> above, below;
  for (const PairedGain& gain : gains) {
    findings.push_back({.what = gain.what,
                        .predicted = 0,
                        .measured = gain.difference.mean,
                        .low = gain.difference.low,
                        .high = gain.difference.high,
                        .claim = gain.claim});
    const Tails both = tails(gain.difference, 0);
    above.push_back(both.above);
    below.push_back(both.below);
  }
  judge_signs(findings, above, below);
  for (std::size_t i = 0; i < gains.size(); ++i) {
    findings[i].what += of_runs(gains[i].difference) + " (claimed above 0)";
    if (gains[i].difference.left_out > 0) judge_diverged(findings[i]);
  }
  return findings;
}

stats::PairedInterval gain(const SeedFigures& figures, std::size_t method, std::size_t on) {
  return stats::paired_interval(figures[method], figures[on]);
}

ResultTable study_table(std::string title, std::size_t rows,
                        const std::vector<StudyColumn>& columns) {
  ResultTable table{std::move(title), {}, {}};
  table.rows.resize(rows);
  for (const StudyColumn& column : columns) {
    table.header.push_back(column.header);
    for (std::size_t row = 0; row < rows; ++row) table.rows[row].push_back(column.cell(row));
  }
  return table;
}

StudyColumn name_column(std::string header, std::vector<std::string> names) {
  return {std::move(header), [names = std::move(names)](std::size_t m) { return names[m]; }};
}

StudyColumn mean_column(std::string header, const SeedFigures& figures, int digits) {
  return {std::move(header), [figures, digits](std::size_t m) {
            const stats::PairedInterval mean = stats::paired_interval(figures[m]);
            const std::string text =
                std::isfinite(mean.mean) ? fmt::format("{:.{}f}", mean.mean, digits) : "-";
            return mean.left_out == 0 || mean.n == 0
                       ? text
                       : fmt::format("{} ({} left out)", text, counted(mean.left_out, "run"));
          }};
}

StudyColumn difference_column(std::string header, const SeedFigures& figures, int digits) {
  return {std::move(header), [figures, digits](std::size_t m) {
            const double mean = gain(figures, m).mean;
            return m > 0 && std::isfinite(mean) ? fmt::format("{:+.{}f}", mean, digits) : "-";
          }};
}

StudyColumn interval_column(const SeedFigures& figures, int digits) {
  return {"95 % interval", [figures, digits](std::size_t m) {
            return m > 0 ? interval_text(gain(figures, m), "-", digits) : std::string("-");
          }};
}

ChartPoint gain_point(double x, std::string name, const stats::PairedInterval& gain) {
  return {.x = x, .name = std::move(name), .y = gain.mean, .low = gain.low, .high = gain.high};
}

Chart gain_chart(std::string title, std::string caption, std::string y,
                 const std::vector<std::string>& methods, const SeedFigures& figures) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = std::move(title),
              .caption = std::move(caption),
              .y = std::move(y),
              .series = {{"measured", {}, false}}};
  for (std::size_t m = 1; m < methods.size(); ++m)
    chart.series[0].points.push_back(
        gain_point(static_cast<double>(m), methods[m], gain(figures, m)));
  return chart;
}

}  // namespace numemu::experiments
