// Batch augmentation: several augmented copies of each sample in a batch, what they do to the
// variance of its mean gradient, and how many updates they save (Hoffer et al., Augment your batch,
// CVPR 2020, arXiv 1901.09335).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/batch_augmentation/gradients.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments {
namespace batch_augmentation {

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
}  // namespace batch_augmentation

extern const Experiment experiment_batch_augmentation;
const Experiment experiment_batch_augmentation = {
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
     {"copies", "1,2,4", "1,2,4", "1,2,4", "copies of each sample, 1 and more",
      wholes(1, batch_augmentation::kMostCopies)},
     {"formats", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4",
      "of the roles, float32 first", list_of()},
     {"roles", "weight,activation", "weight,activation", "weight,activation",
      "tensors in the formats", list_of()},
     {"shift", "3", "3", "3", "largest shift of a copy, in pixels", whole(0, 16)},
     {"flip", "0", "0", "0", "1: copies are mirrored with probability 1/2", whole(0, 1)},
     {"crop", "2", "2", "2", "pixels by which a copy's window is smaller at most", whole(0, 16)},
     {"gradient_samples", "128", "1024", "1024", "samples whose gradients are read one by one",
      whole(2 * 20, 1'000'000)},
     {"gradient_batch", "8", "8", "8", "samples of a batch whose mean gradient is measured",
      whole(1, 10'000)},
     {"gradient_batches", "60", "400", "400", "of them", whole(2 * 20, 1'000'000)},
     {"epochs", "4", "8", "8", "epochs at as many updates", whole(1, 10'000)},
     {"batch", "16", "16", "16", "samples of an update", whole(1, 100'000)},
     {"train_samples", "128", "1024", "1024", "first training images; the others give gradients",
      whole(0, 1'000'000'000)},
     {"eval_samples", "200", "1000", "1000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"tests", "8", "16", "16", "tests on the way", whole(1, 1000)},
     {"tuned_nets", "-", "-", "-", "trained networks to train on, .onnx files; -: none",
      takes_networks_or_none()},
     {"tuned_data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
     {"tuned_shift", "4", "4", "4", "as shift", whole(0, 16)},
     {"tuned_flip", "1", "1", "1", "as flip", whole(0, 1)},
     {"tuned_crop", "0", "0", "0", "as crop", whole(0, 16)},
     {"tuned_lr", "0.01", "0.01", "0.01", "rate of their SGD", real(1e-9, 1e3)},
     {"tuned_warmup", "0", "0", "0", "steps of the rising learning rate", whole(0, 1'000'000'000)},
     training_settings("4", "32", {"128", "1000", "1000"}, {"200", "1000", "4000"},
                       {.prefix = "tuned_"}),
     seeds_setting({"1", "5", "10"}, "numbers of copies")},
    batch_augmentation::run_batch_augmentation};

}  // namespace numemu::experiments
