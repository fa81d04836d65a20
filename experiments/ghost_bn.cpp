// Ghost batch normalisation: the noise of its statistics, workers in its place, how far weights
// travel, and what large batches lose and regain (Hoffer et al., Train longer, generalize better,
// NeurIPS 2017, arXiv 1705.08741).
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/net/train/options.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/ghost_bn/questions.hpp"
#include "experiments/methods/published.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace ghost_bn {

Batches batches(const Settings& settings) {
  const Batches both{settings.integer("batch"), settings.integer("large")};
  if (both.large % both.small != 0 || both.large == both.small)
    throw usage_error(fmt::format("--set: large: expected a multiple of batch = {}, not {}",
                                  both.small, both.large));
  return both;
}

namespace {

constexpr double kMostLost = 0.5;  // points that regime adaptation is claimed to lose at most

struct Method {
  std::string name;
  bool large = true, scaled = true, ghosts = false, longer = false;
};
const std::vector<Method> kMethods = {
    {"small batch", false, false},
    {"large batch", true, false},
    {"large, rate scaled"},
    {"large, rate scaled, ghosts", true, true, true},
    {"large, rate scaled, longer", true, true, false, true},
    {"large, rate scaled, ghosts, longer", true, true, true, true}};
enum : std::size_t { kSmall, kLarge, kScaled, kGhosts, kLonger, kAll };

TrainTrial trial_of(TrainTrial trial, const Method& method, const Batches& sizes, double clip) {
  trial.options.batch = method.large ? sizes.large : sizes.small;
  if (method.scaled) {
    trial.options.learning_rate *= std::sqrt(static_cast<double>(sizes.ratio()));
    trial.options.clip = clip;
  }
  if (method.ghosts) trial.recipe.update(sizes.ghosts());
  if (method.longer) trial.options.epochs *= sizes.ratio();
  return trial;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, const std::string& format,
                  Conclusion& conclusion) {
  const Batches sizes = batches(run.settings);
  const double clip = run.settings.number("clip");
  TrainTrial trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"});
  if (format != "float32") {
    for (const char* role : {"weight", "activation"})
      trial.recipe["roles"][role] = {{"format", format}};
  }
  StudyPlan plan{{}, seeds_of(run)};
  for (const Method& method : kMethods) plan.methods.push_back(method.name);
  plan.prefix = format + ", ";
  const auto study = run_study<TrainOutcome>(
      run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<TrainOutcome> {
        TrainTrial one = trial_of(trial, kMethods[m], sizes, clip);
        one.seed = seed;
        return {point_of(one, data), [one, &data] { return run_train_trial(one, data); }};
      });
  const SeedFigures top1 = study.figures(&TrainOutcome::top1);
  const auto what = [&](const char* says, std::size_t of, std::size_t against) {
    return fmt::format("{}: points {} '{}' by '{}'", format, says, kMethods[against].name,
                       kMethods[of].name);
  };
  conclusion.add(judge_gains(
      {{what("lost to", kLarge, kSmall), gain(top1, kSmall, kLarge), published_in(format, "gap")},
       {what("gained on", kGhosts, kScaled), gain(top1, kGhosts, kScaled),
        published_in(format, "ghosts")},
       {what("gained on", kLonger, kScaled), gain(top1, kLonger, kScaled),
        published_in(format, "updates")}}));
  PairedClaims adapted;
  adapted.add(fmt::format("{}, at least -{}", what("gained on", kAll, kSmall), kMostLost),
              gain(top1, kAll, kSmall), -kMostLost, published_in(format, "adaptation"));
  conclusion.add(adapted.judged());
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const std::string title = fmt::format("{} in {}, batches of {} and {}, {} seeds", trial.net,
                                        format, sizes.small, sizes.large, plan.seeds.size());
  conclusion.tables.push_back(
      study_table(title, study.size(),
                  {name_column("method", study.methods), mean_column("top-1, %", top1),
                   difference_column("difference, points", top1), interval_column(top1)}));
  conclusion.charts.push_back(
      gain_chart("What large batches cost: " + title,
                 "Difference to the small batch, with its 95 % interval by Student's t law paired "
                 "by seed; below 0 is worse.",
                 "difference, points", study.methods, top1));
}

Conclusion run_ghost_bn(const ExperimentRun& run) {
  Conclusion conclusion;
  add_statistics(run, conclusion);
  if (run.settings.text("net") == "-") return conclusion;
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  add_workers(run, data, conclusion);
  add_walks(run, data, conclusion);
  for (const std::string& format : run.settings.list("formats"))
    add_training(run, data, format, conclusion);
  return conclusion;
}

}  // namespace
}  // namespace ghost_bn

extern const Experiment experiment_ghost_bn;
const Experiment experiment_ghost_bn = {
    "ghost-bn",
    "what large batches lose, and what statistics over ghost batches, scaled rates and as many "
    "updates give back",
    "Hoffer et al. (NeurIPS 2017, arXiv 1705.08741) claim that the gap in generalisation of large "
    "batches comes from fewer updates, not from their size, that the distance from the first "
    "weights grows with the logarithm of the updates, and that ghost batches, rates scaled by the "
    "root of the batch and as many updates close the gap.",
    {{"statistics", "Statistics of n numbers have the noise of the closed forms (derived here)."},
     {"workers",
      "Ghost batches train as workers with a normalisation of their own, but for the order of "
      "sums (derived here)."},
     {"logarithm",
      "The logarithm of the updates explains the distance better than a power "
      "(published)."},
     {"slower than a walk",
      "As a power the distance grows no faster than that of a random walk (a contrast)."},
     {"gap", "A large batch loses accuracy at as many epochs (published)."},
     {"ghosts", "Ghost batches regain accuracy at as many epochs (published)."},
     {"updates", "As many updates as of small batches regain accuracy (published)."},
     {"adaptation",
      "Scaled rates, ghost batches and as many updates lose at most 0.5 points (published; the "
      "margin is ours)."},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast)."}},
    {{"sizes", "16,64", "8,16,32,64,128,256", "8,16,32,64,128,256,1024", "numbers of a statistic",
      wholes(6, 1 << 20)},
     {"samples", "200000", "8000000", "64000000", "numbers drawn for each",
      whole(1000, 1'000'000'000)},
     {"net", "mlp-bn", "mlp-bn", "mlp-bn", "network with batch normalisation; -: none",
      takes_network_or_none()},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
     {"formats", "float32", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4",
      "of weights and activations in training", list_of()},
     {"large", "128", "256", "512", "samples of a large batch", whole(4, 100'000)},
     {"clip", "5", "5", "5", "largest norm of gradients where rates are scaled; 0: any",
      real(0, 1e6)},
     {"steps", "16", "512", "4096", "updates over which the distance is measured",
      whole(4, 1'000'000)},
     {"epochs", "1", "1", "4", "epochs of training, without those that are added",
      whole(1, 10'000)},
     {"batch", "32", "32", "32", "samples of a small batch and of a ghost batch", whole(2, 10'000)},
     {"train_samples", "512", "4096", "8192", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "4000", "0", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "3", "5", "seeds that methods are paired by", whole(1, 1000)}},
    ghost_bn::run_ghost_bn};

}  // namespace numemu::experiments
