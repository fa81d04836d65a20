// Batch augmentation: several augmented copies of each sample in a batch, what they do to the
// variance of its mean gradient, and how many updates they save (Hoffer et al., Augment your batch,
// CVPR 2020, arXiv 1901.09335).
#include "experiments/batch_augmentation/batch_augmentation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "emu/stats/resampling.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::batch_augmentation {

// The variance of mean gradients by the number of copies, predicted from gradients of single
// samples and measured over batches.
double mean_variance(double sigma2, double rho, double samples, double copies) {
  return sigma2 / samples * (rho + (1 - rho) / copies);
}

Moments moments(const MomentGroups& groups, std::int64_t copies, std::int64_t left_out) {
  double n = 0, squares = 0, means = 0, along = 0;
  for (const MomentGroup& group : groups) along += group.along;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const MomentGroup& group = groups[static_cast<std::size_t>(g)];
    if (g == left_out) {
      along += group.own - 2 * group.along;  // |T - S|^2
      continue;
    }
    n += static_cast<double>(group.samples);
    squares += group.squares;
    means += group.means;
  }
  const auto of = static_cast<double>(copies);
  return {.one = squares / n,
          .same = copies > 1 ? (of * means - squares) / n / (of - 1) : NAN,
          .other = (along - means) / (n * (n - 1))};
}

Estimate estimate(std::int64_t groups,
                  const std::function<double(std::int64_t left_out)>& statistic) {
  return {statistic(kNone), stats::jackknife_error(groups, statistic)};
}

void GradientSums::add(std::size_t group, std::span<const std::vector<float>> copies) {
  const std::size_t size = copies.front().size();
  const auto of = static_cast<double>(copies.size());
  std::vector<double>& sum = sums_[group];
  sum.resize(size);
  std::vector<double> mean(size);
  MomentGroup& to = groups_[group];
  ++to.samples;
  for (const std::vector<float>& g : copies) {
    to.squares += stats::sum_of_squares(std::ssize(g), g.data()) / of;
    for (std::size_t i = 0; i < size; ++i) mean[i] += double{g[i]};
  }
  for (std::size_t i = 0; i < size; ++i) {
    mean[i] /= of;
    sum[i] += mean[i];
  }
  to.means += pairwise_sum(std::ssize(mean), [&](std::int64_t i) {
    const double m = mean[static_cast<std::size_t>(i)];
    return m * m;
  });
}

MomentGroups GradientSums::groups() const {
  MomentGroups all = groups_;
  std::vector<double> total;
  for (const std::vector<double>& sum : sums_) {
    total.resize(std::max(total.size(), sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
  }
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return pairwise_sum(std::ssize(a), [&](std::int64_t i) {
      return a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)];
    });
  };
  for (std::size_t g = 0; g < all.size(); ++g) {
    all[g].along = product(sums_[g], total);
    all[g].own = product(sums_[g], sums_[g]);
  }
  return all;
}

namespace {

constexpr std::int64_t kGradientEpoch = 0;  // of augmentation's draws

/// The network whose gradients are read: after its training in float32, without batch
/// normalisation.
net::Graph subject(const TrainTrial& warm, const net::Dataset& data) {
  net::Graph graph = trained_in_float32(warm, data);
  net::fold_batch_norm(graph);
  return graph;
}

/// Gradients at one network of training samples in a drawn order behind the first ones.
class Reader {
 public:
  Reader(const Group& group, const TrainTrial& warm, const net::Dataset& data)
      : augment_(group.augment),
        seed_(warm.seed),
        data_(data),
        graph_(subject(warm, data)),
        first_(first_sample(group, warm, data)),
        order_(net::shuffled(data.train_count() - first_, seed_, 0)) {}

  const net::Graph& graph() const { return graph_; }

  std::vector<std::int64_t> samples(std::int64_t place, std::int64_t count) const {
    std::vector<std::int64_t> ids(order_.begin() + place, order_.begin() + place + count);
    for (std::int64_t& id : ids) id += first_;
    return ids;
  }

  /// The gradient of the mean loss, all parameters in a row; with `copy` that of one copy alone.
  std::vector<float> gradient(const std::vector<std::int64_t>& ids, std::int64_t copies,
                              net::Numerics& numerics, std::int64_t copy = kNone) {
    net::Targets targets;
    net::Tensor x = data_.train_batch(ids, targets, &augment_, seed_, kGradientEpoch, copies);
    if (copy != kNone) {
      const std::int64_t size = x.size() / copies;
      x.data = {x.data.begin() + copy * size, x.data.begin() + (copy + 1) * size};
      x.shape[0] = 1;
      targets.classes.resize(1);
    }
    const TrainingPass pass = training_pass(graph_, x, targets.classes, numerics, step_++, seed_);
    std::vector<float> all;
    for (const net::Tensor& g : pass.gradients)
      for (const float value : g.data) all.push_back(value / pass.scale);
    return all;
  }

 private:
  net::Augmentation augment_;
  std::uint64_t seed_;
  net::Dataset data_;  // counts its own test reads
  net::Graph graph_;
  std::int64_t first_;
  std::vector<std::int64_t> order_;
  std::int64_t step_ = 0;
};

MomentGroups read_single(Reader reader, const GradientPlan& plan, std::int64_t copies) {
  net::Numerics float32;
  GradientSums sums(kGroups);
  for (std::int64_t n = 0; n < plan.single; ++n) {
    std::vector<std::vector<float>> of_sample;
    for (std::int64_t copy = 0; copy < copies; ++copy)
      of_sample.push_back(reader.gradient(reader.samples(n, 1), copies, float32, copy));
    sums.add(static_cast<std::size_t>(n * kGroups / plan.single), of_sample);
  }
  return sums.groups();
}

MeasuredCopies read_batches(Reader reader, const TrainTrial& trial, const GradientPlan& plan,
                            const std::vector<std::int64_t>& copies) {
  policies::RecipeNumerics numerics(parsed_recipe(trial), reader.graph());
  MeasuredCopies measured;
  for (const std::int64_t m : copies) {
    GradientSums sums(kGroups);
    for (std::int64_t b = 0; b < plan.batches; ++b) {
      const std::vector<float> mean[] = {
          reader.gradient(reader.samples(plan.single + b * plan.batch, plan.batch), m, numerics)};
      sums.add(static_cast<std::size_t>(b * kGroups / plan.batches), mean);
    }
    measured.by_copies.push_back({m, sums.groups()});
  }
  return measured;
}

}  // namespace

GradientPlan gradient_plan(const Settings& settings) {
  return {settings.integer("gradient_samples"), settings.integer("gradient_batch"),
          settings.integer("gradient_batches")};
}

std::int64_t first_sample(const Group& group, const TrainTrial& trial, const net::Dataset& data) {
  if (group.trained_before()) return 0;
  return trial.train_samples == 0 ? data.train_count() : trial.train_samples;
}

void require_single_gradients(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = initial_network(trial, data);
  net::fold_batch_norm(graph);
  for (const net::Node& node : graph.nodes) {
    if (node.op->kind() == "batch_norm")
      throw usage_error(
          fmt::format("--set: nets: {} of {} ties the samples of a batch and cannot be folded",
                      node.name, trial.net));
  }
}

ReadGradients read_gradients(const ExperimentRun& run, const Group& group, const std::string& net,
                             const net::Dataset& data) {
  const GradientPlan plan = gradient_plan(run.settings);
  TrainTrial warm = group.trial(run.settings, net, "float32");
  warm.options.epochs = group.trained_before() ? 0 : 1;
  const std::int64_t most = group.copies.back();
  const Json network = point_of(warm, data);
  std::vector<Trial> trials = {untyped(TypedTrial<OfCopies>{
      {{"single gradients", network}, {"samples", plan.single}, {"copies", most}},
      short_name(net) + ": single gradients",
      [=, &data] {
        return OfCopies{most, read_single(Reader(group, warm, data), plan, most)};
      }})};
  for (const std::string& format : group.formats) {
    const TrainTrial trial = group.trial(run.settings, net, format);
    trials.push_back(untyped(TypedTrial<MeasuredCopies>{
        {{"gradients of batches", network},
         {"recipe", parsed_recipe(trial).json()},
         {"behind", plan.single},
         {"batch", plan.batch},
         {"batches", plan.batches},
         {"copies", group.copies}},
        fmt::format("{} in {}: gradients of batches", short_name(net), format),
        [=, &data] {
          return read_batches(Reader(group, warm, data), trial, plan, group.copies);
        }}));
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  ReadGradients all{measured<OfCopies>(results.front()), {}};
  for (std::size_t f = 1; f < results.size(); ++f)
    all.in_formats.push_back(measured<MeasuredCopies>(results[f]));
  return all;
}

namespace {

constexpr double kFormatTolerance = 0.1;  // relative, of a variance under few bits

double joint_error(const Estimate& a, const Estimate& b) {
  return std::sqrt(a.error * a.error + b.error * b.error);
}

/// From the middle to either end of the 95 % interval of a jackknife.
double half(const Estimate& estimate) {
  return stats::student_quantile(kGroups - 1, 0.025) * estimate.error;
}

}  // namespace

std::vector<double> add_gradients(const ExperimentRun& run, const Group& group,
                                  const std::string& net, const net::Dataset& data,
                                  Conclusion& conclusion) {
  const ReadGradients found = read_gradients(run, group, net, data);
  const GradientPlan plan = gradient_plan(run.settings);
  const std::int64_t drawn = group.copies.back();
  const auto batch = static_cast<double>(plan.batch);
  const auto from_single = [&](const auto& statistic) {
    return estimate(kGroups, [&](std::int64_t out) {
      return statistic(moments(found.single.groups, drawn, out));
    });
  };
  const auto variance = [&](const Moments& m, std::int64_t copies) {
    return mean_variance(m.sigma2(), m.rho(), batch, static_cast<double>(copies));
  };
  const std::string name = short_name(net);
  const Estimate rho = from_single([](const Moments& m) { return m.rho(); });
  ResultTable table{
      fmt::format("{}: mean gradients of {}, {} batches, {}", name, counted(plan.batch, "sample"),
                  plan.batches, counted(plan.single, "single sample")),
      {"format", "copies", "variance, predicted in float32", "measured", "measured / predicted",
       "|mu|^2", "rho"},
      {}};
  Chart chart{.title = fmt::format("Variance of the mean gradient, {}", name),
              .caption = fmt::format("{} samples; predictions from float32 gradients of single "
                                     "samples, rho = {:.3f}. 95 % intervals.",
                                     plan.batch, rho.value),
              .x = "copies of a sample",
              .y = "E|g - mu|^2",
              .log_x = true,
              .log_y = true};
  std::vector<double> ratios;
  const MeasuredCopies& float32 = found.in_formats.front();
  for (std::size_t f = 0; f < group.formats.size(); ++f) {
    const std::string& format = group.formats[f];
    const MeasuredCopies& measured = found.in_formats[f];
    const bool exact = f == 0;
    const Estimate own = estimate(kGroups, [&](std::int64_t out) { return measured.rho(out); });
    for (const OfCopies& of : measured.by_copies) {
      const Estimate predicted =
          from_single([&](const Moments& m) { return variance(m, of.copies); });
      const Estimate seen = estimate(kGroups, [&](std::int64_t o) { return of.variance(o); });
      const std::string what =
          fmt::format("{} in {}: variance of the mean gradient, M = {}", name, format, of.copies);
      const double error = joint_error(predicted, seen);
      if (exact) {
        conclusion.add(closed_form(what, predicted.value, seen.value, error), "variance");
        const Estimate square = from_single(
                           [&](const Moments&m) { return m.other + variance(m, of.copies); }),
                       length = estimate(kGroups, [&](std::int64_t o) { return of.square(o); });
        conclusion.add(closed_form(fmt::format("{}: mean square of the mean gradient, M = {}", name,
                                               of.copies),
                                   square.value, length.value, joint_error(square, length)),
                       "square");
      } else {
        conclusion.add(model_finding(what, predicted.value, seen.value, error,
                                     kFormatTolerance * predicted.value),
                       "formats");
      }
      const auto x = static_cast<double>(of.copies);
      chart.of(format + " measured")
          .points.push_back(with_error({.x = x, .y = seen.value}, seen.error));
      if (exact) {
        chart.of(format + " predicted", true)
            .points.push_back(with_error({.x = x, .y = predicted.value}, predicted.error));
        ratios.push_back(from_single([&](const Moments& m) {
                           return variance(m, of.copies) / variance(m, 1);
                         }).value);
      }
      table.rows.push_back({format, fmt::format("{}", of.copies),
                            fmt::format("{:.4g} +- {:.2g}", predicted.value, half(predicted)),
                            fmt::format("{:.4g} +- {:.2g}", seen.value, half(seen)),
                            fmt::format("{:.3f}", seen.value / predicted.value),
                            fmt::format("{:.4g}", moments(of.groups, 1).other),
                            half_text(own.value, half(own), 3)});
    }
    if (!exact) {
      const Estimate lower =
          estimate(kGroups, [&](std::int64_t o) { return measured.rho(o) - float32.rho(o); });
      conclusion.add(
          interval_finding(fmt::format("{}: rho in {} minus that in float32", name, format), 0,
                           lower.value, {lower.value - half(lower), lower.value + half(lower)},
                           at_most(0)),
          "rho");
    }
  }
  conclusion.sentences.push_back(fmt::format(
      "{}: two copies of a sample have gradients of correlation {} in float32; {} copies take the "
      "variance of the mean gradient to {:.3f} of that of one, never below rho.",
      name, half_text(rho.value, half(rho), 3), drawn, ratios.back()));
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  return ratios;
}

TrainTrial Group::trial(const Settings& settings, const std::string& net,
                        const std::string& format) const {
  TrainTrial trial =
      training_of(settings, net, {.optimizer = trained_before() ? "sgd" : "", .prefix = prefix});
  trial.options.augment = augment;
  trial.recipe = recipe_in(format, roles);
  return trial;
}

namespace {

/// A training with what it had reached on the way.
struct Trained {
  TrainOutcome outcome;
  std::int64_t updates = 0;
  std::vector<double> at, reached;  ///< updates, and top-1 in per cent behind them

  double top1() const { return outcome.top1(); }
  /// Updates before the first test that reached it; where none did, one test behind the last.
  double updates_to(double top1) const {
    if (outcome.diverged || !std::isfinite(top1)) return NAN;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (reached[i] >= top1) return at[i];
    return at.back() + at.front();
  }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("updates", self.updates);
    visit("at", self.at);
    visit("reached", self.reached);
  }
};

struct Method {
  std::int64_t copies = 1;
  bool as_many_rows = false;  ///< as one copy, in fewer updates

  std::string name() const {
    return fmt::format("M = {}{}", copies, as_many_rows ? ", as many rows" : "");
  }
};

std::vector<Method> methods_of(const Group& group) {
  std::vector<Method> methods;
  for (const std::int64_t m : group.copies) methods.push_back({m, false});
  for (const std::int64_t m : group.copies)
    if (m > 1) methods.push_back({m, true});
  return methods;
}

/// Tests `tests` times at equal distances, the last time behind the last update; 0: never.
Trained trained(TrainTrial trial, const net::Dataset& data, std::int64_t tests) {
  Trained result;
  trial.tests = tests;
  trial.on_loss = [&](double) { ++result.updates; };
  result.outcome = run_train_trial(trial, data);
  result.at = std::exchange(result.outcome.at, {});
  for (const double metric : std::exchange(result.outcome.reached, {}))
    result.reached.push_back(100 * metric);
  return result;
}

/// Of the updates that each number of copies takes to what one copy ends with, by seed.
struct Updates {
  SeedFigures needed;       ///< [copies][seed]
  SeedFigures over_single;  ///< over those of one copy
  std::vector<std::size_t> unreached;
};

Updates updates_of(const Study<Trained>& study, std::size_t count) {
  Updates updates;
  for (std::size_t m = 0; m < count; ++m) {
    std::vector<double> needed, ratio;
    std::size_t unreached = 0;
    for (std::size_t s = 0; s < study.seeds(); ++s) {
      const double target = study.runs[0][s].top1();
      needed.push_back(study.runs[m][s].updates_to(target));
      ratio.push_back(needed.back() / study.runs[0][s].updates_to(target));
      unreached += needed.back() > static_cast<double>(study.runs[m][s].updates);
    }
    updates.needed.push_back(std::move(needed));
    updates.over_single.push_back(std::move(ratio));
    updates.unreached.push_back(unreached);
  }
  return updates;
}

Chart curves(const std::string& title, const Study<Trained>& study, std::size_t count) {
  Chart chart{.title = "Accuracy by updates: " + title,
              .caption = "Mean top-1 over the seeds, tested in the format of the training.",
              .x = "updates",
              .y = "top-1, %"};
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t i = 0; i < study.runs[m].front().at.size(); ++i)
      chart.of(study.methods[m])
          .points.push_back(
              {.x = study.runs[m].front().at[i],
               .y = study.mean(m, [i](const Trained& t) { return t.reached.at(i); })});
  }
  return chart;
}

/// Accuracy by copies in one format; `ratios` are what add_gradients() returned.
void add_training(const ExperimentRun& run, const Group& group, const std::string& net,
                  const std::string& format, const std::vector<double>& ratios,
                  const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t tests = run.settings.integer("tests");
  const TrainTrial shared = group.trial(run.settings, net, format);
  const std::vector<Method> methods = methods_of(group);
  const std::size_t count = group.copies.size();
  const std::string where = fmt::format("{} in {}", short_name(net), format);
  TrainingPlan plan{.trial = shared,
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .at_once = true,
                    .prefix = where + ", "};
  const auto tests_of = [&](const Method& method) { return method.as_many_rows ? 0 : tests; };
  for (const Method& method : methods)
    plan.methods.push_back({.name = method.name(),
                            .recipe = shared.recipe,
                            .change =
                                [method](TrainTrial& trial) {
                                  trial.options.copies = method.copies;
                                  if (method.as_many_rows) trial.options.epochs /= method.copies;
                                },
                            .counted = {{"tests", tests_of(method)}}});
  const auto study =
      run_training_study<Trained>(run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return trained(trial, data, tests_of(methods[m]));
      });
  const SeedFigures top1 = study.figures(&Trained::top1);
  const Updates updates = updates_of(study, count);
  std::vector<PairedGain> saved, equal, rows;
  for (std::size_t m = 1; m < methods.size(); ++m) {
    if (m >= count) {
      rows.push_back({where + ": points lost by " + study.methods[m], gain(top1, 0, m), "rows"});
      continue;
    }
    equal.push_back({where + ": points gained by " + study.methods[m], gain(top1, m),
                     published_in(format, "accuracy")});
    std::vector<double> share = updates.over_single[m];
    for (double& s : share) s = 1 - s;
    saved.push_back({fmt::format("{}: share of the updates to the accuracy of M = 1 saved by {}",
                                 where, study.methods[m]),
                     stats::paired_interval(share), published_in(format, "updates")});
    conclusion.add(
        interval_finding(
            fmt::format("{}: updates of {} over those of M = 1, at least the share of the variance",
                        where, study.methods[m]),
            ratios[m], stats::paired_interval(updates.over_single[m]), at_least(ratios[m])),
        "noise");
    if (updates.unreached[m] > 0)
      conclusion.sentences.push_back(fmt::format(
          "{}: {} did not reach the accuracy of M = 1 with {} of {} seeds; there it counts as one "
          "test later than the last.",
          where, study.methods[m], updates.unreached[m], study.seeds()));
  }
  for (const std::vector<PairedGain>& gains : {saved, equal, rows})
    conclusion.add(judge_gains(gains));
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const std::string title = fmt::format("{}, batches of {}, {}", where, shared.options.batch,
                                        counted(std::ssize(plan.seeds), "seed"));
  const auto rows_of = [&](std::size_t m) {
    return fmt::format("{}",
                       study.runs[m].front().updates * shared.options.batch * methods[m].copies);
  };
  conclusion.tables.push_back(study_table(
      title, study.size(),
      {name_column("copies", study.methods),
       {"updates", [&](std::size_t m) { return fmt::format("{}", study.runs[m][0].updates); }},
       {"rows", rows_of},
       mean_column("top-1, %", top1),
       difference_column("difference, points", top1),
       interval_column(top1),
       {"updates to the accuracy of M = 1",
        [&](std::size_t m) {
          return m < count ? mean_column("", updates.needed, 0).cell(m) : std::string("-");
        }},
       {"over those of M = 1", [&](std::size_t m) {
          return m < count ? mean_column("", updates.over_single, 3).cell(m) : std::string("-");
        }}}));
  conclusion.charts.push_back(curves(title, study, count));
}

constexpr std::int64_t kMostCopies = 64;

/// Throws Error for what is wrong with the settings whatever the data are.
Group group_of(const Settings& settings, const std::string& prefix) {
  Group group{.prefix = prefix,
              .nets = {},
              .copies = settings.whole_numbers("copies"),
              .formats = settings.list("formats"),
              .roles = settings.list("roles"),
              .augment = {.shift = settings.integer(prefix + "shift"),
                          .flip = settings.integer(prefix + "flip") == 1,
                          .crop = settings.integer(prefix + "crop")}};
  if (settings.text(prefix + "nets") != "-") group.nets = settings.list(prefix + "nets");
  const std::vector<std::int64_t>& copies = group.copies;
  const bool ascending = std::ranges::adjacent_find(copies, std::greater_equal<>()) == copies.end();
  if (copies.size() < 2 || copies.front() != 1 || !ascending)
    throw usage_error("--set: copies: expected 1 and larger numbers, ascending, not " +
                      settings.text("copies"));
  if (group.formats.front() != "float32")
    throw usage_error("--set: formats: expected float32 first, not " + settings.text("formats"));
  if (group.augment.shift == 0 && !group.augment.flip && group.augment.crop == 0)
    throw usage_error(
        fmt::format("--set: {0}shift: expected a shift, {0}flip or {0}crop, which "
                    "make copies differ",
                    prefix));
  for (const std::string& net : group.nets) {
    for (const std::string& format : group.formats) {
      const TrainTrial trial = group.trial(settings, net, format);
      parsed_recipe(trial);
      for (const std::int64_t m : copies) {
        if (trial.options.epochs % m != 0)
          throw usage_error(
              fmt::format("--set: {}epochs: expected a multiple of all of copies = {}, not {}",
                          prefix, settings.text("copies"), trial.options.epochs));
      }
    }
  }
  return group;
}

/// Refuses settings that the data set does not serve.
void require_data(const Settings& settings, const Group& group, const net::Dataset& data) {
  if (data.kind() != net::DataKind::images)
    throw usage_error(fmt::format("--set: {}data: expected images, which can be augmented, not {}",
                                  group.prefix, data.name()));
  net::check(group.augment, data.input_shape()[0], data.input_shape()[1]);
  for (const std::string& net : group.nets) {
    const TrainTrial trial = group.trial(settings, net, "float32");
    restricted(data, trial.train_samples, false);
    if (trial.eval_samples > data.test_count())
      throw usage_error(fmt::format("--set: {}eval_samples: expected at most {}, not {}",
                                    group.prefix, data.test_count(), trial.eval_samples));
    require_single_gradients(trial, data);
    const std::int64_t first = first_sample(group, trial, data),
                       needed = gradient_plan(settings).samples();
    if (first + needed > data.train_count())
      throw usage_error(fmt::format(
          "--set: gradient_batches: {} training samples are left for gradients of {}, not {}",
          std::max<std::int64_t>(0, data.train_count() - first), net, needed));
  }
}

Conclusion run_batch_augmentation(const ExperimentRun& run) {
  std::vector<Group> groups = {group_of(run.settings, ""), group_of(run.settings, "tuned_")};
  std::erase_if(groups, [](const Group& group) { return group.nets.empty(); });
  if (groups.empty()) throw usage_error("--set: nets: expected networks here or in tuned_nets");
  gradient_plan(run.settings);
  seeds_of(run);
  std::vector<net::Dataset> sets;
  for (const Group& group : groups) {
    sets.push_back(load_data(run, group.prefix + "data"));
    require_data(run.settings, group, sets.back());
  }
  Conclusion conclusion;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& net : groups[g].nets) {
      const std::vector<double> ratios = add_gradients(run, groups[g], net, sets[g], conclusion);
      for (const std::string& format : groups[g].formats)
        add_training(run, groups[g], net, format, ratios, sets[g], conclusion);
    }
  }
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::batch_augmentation

namespace numemu::experiments {

extern const Experiment experiment_batch_augmentation = {
    "batch-augmentation",
    "what several augmented copies of each sample do to the variance of a batch's gradient, how "
    "many updates they save, and what few bits do to both",
    "Hoffer et al. (CVPR 2020, arXiv 1901.09335) claim that a batch with several copies of each "
    "sample, each augmented on its own, generalises better and takes fewer updates to the same "
    "accuracy.",
    {{"variance",
      "The mean gradient of N samples with M copies has the variance sigma^2 / N (rho + (1 - rho) "
      "/ M) about its mean (derived here)."},
     {"square", "Its mean square is |mu|^2 plus that variance (derived here)."},
     {"formats",
      "Under few bits the variance stays within 10 % of what float32 gradients predict (a "
      "contrast)."},
     {"rho", "Rounding errors differ by copy, so that few bits lower rho (derived here)."},
     {"updates", "Copies save updates to the accuracy that one copy ends with (published).",
      "seeds"},
     {"noise", "The updates fall by no more than the variance of the gradient does (a contrast).",
      "seeds"},
     {"accuracy", "At as many updates copies gain accuracy (published).", "seeds"},
     {"rows",
      "At as many rows copies lose accuracy, since the variance of M of them is 1 + (M - 1) rho "
      "times that of as many samples (derived here).",
      "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"nets", "lenet", "lenet,mlp", "lenet,mlp", "networks trained from the start; -: none",
      takes_networks_or_none()},
     data_setting("of images"),
     {"copies", "1,2,4", "copies of each sample, 1 and more",
      wholes(1, batch_augmentation::kMostCopies)},
     {"formats", "float32,mxfp8_e4m3,mxfp4", "of the roles, float32 first", list_of()},
     {"roles", "weight,activation", "tensors in the formats", list_of()},
     {"shift", "3", "largest shift of a copy, in pixels", whole(0, 16)},
     {"flip", "0", "1: copies are mirrored with probability 1/2", whole(0, 1)},
     {"crop", "2", "pixels by which a copy's window is smaller at most", whole(0, 16)},
     {"gradient_samples", "128", "1024", "1024", "samples whose gradients are read one by one",
      whole(2 * 20, 1'000'000)},
     {"gradient_batch", "8", "samples of a batch whose mean gradient is measured",
      whole(1, 10'000)},
     {"gradient_batches", "60", "400", "400", "of them", whole(2 * 20, 1'000'000)},
     {"epochs", "4", "8", "8", "epochs at as many updates", whole(1, 10'000)},
     {"batch", "16", "samples of an update", whole(1, 100'000)},
     {"train_samples", "128", "1024", "1024", "first training images; the others give gradients",
      whole(0, 1'000'000'000)},
     {"eval_samples", "200", "1000", "1000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"tests", "8", "16", "16", "tests on the way", whole(1, 1000)},
     {"tuned_nets", "-", "trained networks to train on, .onnx files; -: none",
      takes_networks_or_none()},
     {"tuned_data", "glyphs", "data set of images", takes_data_set()},
     {"tuned_shift", "4", "as shift", whole(0, 16)},
     {"tuned_flip", "1", "as flip", whole(0, 1)},
     {"tuned_crop", "0", "as crop", whole(0, 16)},
     {"tuned_lr", "0.01", "rate of their SGD", real(1e-9, 1e3)},
     {"tuned_warmup", "0", "steps of the rising learning rate", whole(0, 1'000'000'000)},
     training_settings("4", "32", {"128", "1000", "1000"}, {"200", "1000", "4000"},
                       {.prefix = "tuned_"}),
     seeds_setting({"1", "5", "10"}, "numbers of copies")},
    batch_augmentation::run_batch_augmentation};

}  // namespace numemu::experiments
