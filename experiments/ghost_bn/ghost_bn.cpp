// Ghost batch normalisation: the noise of its statistics, workers in its place, how far weights
// travel, and what large batches lose and regain (Hoffer et al., Train longer, generalize better,
// NeurIPS 2017, arXiv 1705.08741).
#include "experiments/ghost_bn/ghost_bn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/train/options.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::ghost_bn {

double mean_noise(std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

double variance_noise(std::int64_t n) {
  return std::sqrt(2 * static_cast<double>(n - 1)) / static_cast<double>(n);
}

double mean_inverse_deviation(std::int64_t n) {
  const double half = static_cast<double>(n) / 2;
  return std::sqrt(half) * portable::exp(stats::log_gamma(half - 1) - stats::log_gamma(half - 0.5));
}

double mean_variance(std::int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }

namespace {

constexpr double kMostExponent = 2;
constexpr int kSteps = 60;  // of the search: 0.618^60 is below the spacing of doubles near 1

double sum(std::size_t n, const std::function<double(std::size_t)>& term) {
  return pairwise_sum(static_cast<std::int64_t>(n),
                      [&](std::int64_t i) { return term(static_cast<std::size_t>(i)); });
}

/// The least sum of squares that c x^p leaves of y.
double left_by_power(const std::vector<double>& x, const std::vector<double>& y, double p) {
  const auto term = [&](std::size_t i) { return portable::pow(x[i], p); };
  const double with = sum(x.size(), [&](std::size_t i) { return y[i] * term(i); }),
               own = sum(x.size(), [&](std::size_t i) { return term(i) * term(i); }),
               c = with / own;
  return sum(x.size(), [&](std::size_t i) {
    const double rest = y[i] - c * term(i);
    return rest * rest;
  });
}

}  // namespace

Growth growth(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  const auto count = static_cast<double>(n);
  const auto log = [&](std::size_t i) { return portable::log(x[i]); };
  const double middle = sum(n, [&](std::size_t i) { return y[i]; }) / count,
               center = sum(n, log) / count,
               all = sum(n, [&](std::size_t i) { return (y[i] - middle) * (y[i] - middle); });
  if (n < 3 || !(all > 0)) return {NAN, NAN, NAN};
  const double both = sum(n, [&](std::size_t i) { return (log(i) - center) * (y[i] - middle); }),
               spread =
                   sum(n, [&](std::size_t i) { return (log(i) - center) * (log(i) - center); });
  // Golden-section search.
  double low = 0, high = kMostExponent;
  for (int step = 0; step < kSteps; ++step) {
    const double part = (std::numbers::phi - 1) * (high - low);
    if (left_by_power(x, y, high - part) < left_by_power(x, y, low + part))
      high = low + part;
    else
      low = high - part;
  }
  const double exponent = (low + high) / 2;
  return {both * both / spread / all, 1 - left_by_power(x, y, exponent) / all, exponent};
}

namespace {

/// Samples of a small batch, which are those of a ghost batch, and of a large one.
struct Batches {
  std::int64_t small = 0, large = 0;

  std::int64_t ratio() const { return large / small; }
  /// The recipe with statistics over ghost batches.
  Json ghosts() const { return {{"norm", {{"ghost", small}}}}; }
};

/// Of the settings `batch` and `large`. Throws Error unless the large one is a multiple.
Batches batches(const Settings& settings) {
  const Batches both{settings.integer("batch"), settings.integer("large")};
  if (both.large % both.small != 0 || both.large == both.small)
    throw usage_error(fmt::format("--set: large: expected a multiple of batch = {}, not {}",
                                  both.small, both.large));
  return both;
}

/// Moments of statistics of n normal numbers.
struct Moments {
  Estimate mean, variance, inverse;  ///< E[mean^2], E[(v - E v)^2], E[1 / sqrt(v)]

  static void fields(auto& self, const auto& visit) {
    visit("mean", self.mean);
    visit("variance", self.variance);
    visit("inverse", self.inverse);
  }
};

Moments moments(std::int64_t n, std::int64_t samples, std::uint64_t seed) {
  const std::int64_t columns = std::max<std::int64_t>(2, samples / n);
  const RandomSource random{seed, Stream::data, static_cast<std::uint32_t>(n)};
  const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n * columns), 31);
  const net::BatchStatistics batch = net::batch_statistics(x.data(), n, columns, {});
  const auto mean = [&](const auto& term) {
    const stats::Mean of = stats::mean_of(columns, [&](std::int64_t c) {
      return term(batch.mean[static_cast<std::size_t>(c)],
                  batch.variance[static_cast<std::size_t>(c)]);
    });
    return Estimate{of.value, of.error};
  };
  const double expected = mean_variance(n);
  return {mean([](double m, double) { return m * m; }),
          mean([&](double, double v) { return (v - expected) * (v - expected); }),
          mean([](double, double v) { return 1 / std::sqrt(v); })};
}

/// Moments of the statistics of normal numbers (settings sizes, samples).
void add_statistics(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> sizes = run.settings.whole_numbers("sizes");
  const std::int64_t samples = run.settings.integer("samples");
  const auto results = run_cases<Moments>(run, sizes, [&](std::int64_t n) -> TypedTrial<Moments> {
    return {{{"statistics of ghost batches", n}, {"samples", samples}, {"seed", run.seed}},
            fmt::format("statistics of {} numbers", n),
            [=, seed = run.seed] { return moments(n, samples, seed); }};
  });
  ResultTable table{
      fmt::format("statistics of n normal numbers, about {} numbers each", samples), {"n"}, {}};
  Chart chart{
      .title = "Noise of the statistics of a ghost batch",
      .caption = "Standard deviations over n normal numbers of variance 1, closed forms dashed.",
      .x = "values per statistic",
      .y = "standard deviation",
      .log_x = true,
      .log_y = true};
  for (const char* name :
       {"deviation of the mean", "deviation of the variance", "E[1 / deviation]"})
    table.header.insert(table.header.end(), {name, "predicted"});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t n = sizes[i];
    std::vector<std::string> row = {fmt::format("{}", n)};
    const auto add = [&](const char* what, const Estimate& measured, double predicted, bool root) {
      const double square = root ? predicted * predicted : predicted;
      conclusion.add(
          closed_form(fmt::format("{}, n = {}", what, n), square, measured.value, measured.error),
          "statistics");
      const double shown = root ? std::sqrt(measured.value) : measured.value;
      row.insert(row.end(), {fmt::format("{:.4f}", shown), fmt::format("{:.4f}", predicted)});
      const auto x = static_cast<double>(n);
      if (root) chart.add(what, {.x = x, .y = shown}, {.x = x, .y = predicted});
    };
    add("mean square of the mean", results[i].mean, mean_noise(n), true);
    add("variance of the variance", results[i].variance, variance_noise(n), true);
    add("mean inverse deviation", results[i].inverse, mean_inverse_deviation(n), false);
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

/// Relative distances of what two ways to train one step leave.
struct Apart {
  double updates = 0, running = 0;  ///< of the updates, of the running statistics

  static void fields(auto& self, const auto& visit) {
    visit("updates", self.updates);
    visit("running", self.running);
  }
};

/// Updates of a step, by parameter.
class Recorded final : public net::Forwarding {
 public:
  Recorded(net::Numerics& inner, std::vector<std::vector<float>>& updates)
      : Forwarding(inner), updates_(&updates) {}
  void update(const net::Step& step, const net::Update& update) override {
    updates_->push_back(*update.delta);
    Forwarding::update(step, update);
  }

 private:
  std::vector<std::vector<float>>* updates_;
};

/// |a - b| / |a| over all tensors.
double distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<float>>& b) {
  double difference = 0, whole = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    const auto n = static_cast<std::int64_t>(a[p].size());
    difference += stats::sum_of_squared_differences(n, a[p].data(), b[p].data());
    whole += stats::sum_of_squares(n, a[p].data());
  }
  return std::sqrt(difference / whole);
}

Apart apart(const TrainTrial& ghosts, const TrainTrial& workers, const net::Dataset& data) {
  std::vector<std::vector<float>> updates[2], running[2];
  for (const int which : {0, 1}) {
    TrainTrial trial = which == 0 ? ghosts : workers;
    trial.around = {"updates", [&](net::Numerics& inner) {
                      return std::make_unique<Recorded>(inner, updates[which]);
                    }};
    trial.on_step = [&](const net::Graph& graph, std::int64_t) {
      for (const net::Parameter* parameter : graph.parameters())
        if (!parameter->trained) running[which].push_back(parameter->value.data);
    };
    run_train_trial(trial, data);
  }
  return {distance(updates[0], updates[1]), distance(running[0], running[1])};
}

/// A step of sgd on ghost batches and on as many workers (settings net, batch, large).
void add_workers(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainTrial ghost = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"});
  ghost.seed = run.seed;
  ghost.train_samples = ghost.options.batch = batches(run.settings).large;
  ghost.eval_samples = 1;
  ghost.options.epochs = 1;
  ghost.options.weight_decay = ghost.options.clip = 0;
  TrainTrial workers = ghost;
  ghost.recipe = batches(run.settings).ghosts();
  workers.options.workers = batches(run.settings).ratio();
  const std::vector<Apart> found =
      run_cases<Apart>(run, std::vector<int>{0}, [&](int) -> TypedTrial<Apart> {
        return {{{"ghost batches", point_of(ghost, data)}, {"workers", point_of(workers, data)}},
                "ghost batches and workers",
                [=, &data] { return apart(ghost, workers, data); }};
      });
  // A sum over the batch has that many roundings of 2^-24, whose signs are independent, so that
  // their root is what they come to; the rest is room for addends that cancel.
  const double order = static_cast<double>(ghost.options.batch) * 0x1p-24;
  const std::string what = fmt::format(
      "{} workers and ghost batches of {}: ", workers.options.workers, batches(run.settings).small);
  conclusion.add(exact_finding(what + "relative distance of updates", 0, found[0].updates,
                               found[0].updates <= order, at_most(order)),
                 "workers");
  // Workers round the running values once each, ghost batches all together.
  const double folds = static_cast<double>(workers.options.workers + 1) * 0x1p-24;
  conclusion.add(exact_finding(what + "relative distance of running statistics", 0,
                               found[0].running, found[0].running <= folds, at_most(folds)),
                 "workers");
}

constexpr double kRandomWalk = 0.5;  // exponent of the distance of a walk without a force

/// Distance from the first weights after 1, 2, 4, ... steps.
struct Walk {
  std::vector<double> steps, distances;

  Growth law() const { return growth(steps, distances); }
  static void fields(auto& self, const auto& visit) {
    visit("steps", self.steps);
    visit("distances", self.distances);
  }
};

Walk walk(TrainTrial trial, const net::Dataset& data) {
  const net::Graph first = initial_network(trial, data);
  Walk walk;
  trial.on_step = [&](const net::Graph& graph, std::int64_t step) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(step + 1))) return;
    const std::vector<const net::Parameter*> from = first.parameters(), to = graph.parameters();
    double squares = 0;
    for (std::size_t p = 0; p < from.size(); ++p) {
      if (from[p]->trained)
        squares += stats::sum_of_squared_differences(
            from[p]->value.size(), from[p]->value.data.data(), to[p]->value.data.data());
    }
    walk.steps.push_back(static_cast<double>(step + 1));
    walk.distances.push_back(std::sqrt(squares));
  };
  run_train_trial(trial, data);
  return walk;
}

/// How the distance from the first weights grows at a constant rate (settings net, batch, large,
/// steps, seeds).
void add_walks(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Batches sizes = batches(run.settings);
  TrainTrial trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"});
  trial.options.schedule = "constant";
  trial.eval_samples = 1;
  const std::int64_t steps = run.settings.integer("steps"),
                     samples = trial.train_samples > 0 ? trial.train_samples : data.train_count();
  const std::vector<std::int64_t> of_batch = {sizes.small, sizes.large};
  StudyPlan plan{{}, seeds_of(run)};
  for (const std::int64_t batch : of_batch) plan.methods.push_back(fmt::format("batch {}", batch));
  plan.prefix = "distance, ";
  const auto study =
      run_study<Walk>(run, plan, [&](std::size_t m, std::uint64_t seed) -> StudyRun<Walk> {
        TrainTrial one = trial;
        one.options.batch = of_batch[m];
        one.seed = seed;
        const std::int64_t in_epoch = (samples + one.options.batch - 1) / one.options.batch;
        one.options.epochs = (steps + in_epoch - 1) / in_epoch;
        Json point = point_of(one, data);
        point["watched"] = "distance from the first weights";
        return {std::move(point), [=, &data] { return walk(one, data); }};
      });
  const auto figures = [&](auto get) {
    return study.figures([=](const Walk& walk) { return get(walk.law()); });
  };
  const SeedFigures logarithm = figures([](const Growth&g) { return g.logarithm; }),
                    power = figures([](const Growth&g) { return g.power; }),
                    exponent = figures([](const Growth&g) { return g.exponent; });
  Chart chart{.title = "Distance of the weights from where they began",
              .caption = "Constant learning rate; the mean over the seeds.",
              .x = "updates",
              .y = "|w - w0|",
              .log_x = true};
  // A tenth of the variance is left: a root mean square below a third of the deviation.
  constexpr double kLeastExplained = 0.9;
  std::vector<PairedGain> better;
  for (std::size_t m = 0; m < study.size(); ++m) {
    const Walk& first = study.runs[m].front();
    const std::string over = fmt::format("{}, updates {} to {}", study.methods[m],
                                         first.steps.front(), first.steps.back());
    conclusion.add(
        interval_finding(
            fmt::format("{}: share of the variance of the distance explained by a + b ln t, at "
                        "least {}",
                        over, kLeastExplained),
            kLeastExplained, stats::paired_interval(logarithm[m]), at_least(kLeastExplained)),
        "logarithm");
    better.push_back({over + ": share of the variance explained by a + b ln t, over that by c t^p",
                      stats::paired_interval(logarithm[m], power[m])});
    conclusion.add(
        interval_finding(fmt::format("{}: exponent p of c t^p, at most {}", over, kRandomWalk),
                         kRandomWalk, stats::paired_interval(exponent[m]), at_most(kRandomWalk)),
        "slower than a walk");
    for (std::size_t i = 0; i < first.steps.size(); ++i)
      chart.of(study.methods[m])
          .points.push_back({.x = first.steps[i], .y = study.mean(m, [i](const Walk& walk) {
                               return walk.distances.at(i);
                             })});
  }
  conclusion.add(judge_gains(better), "power");
  conclusion.tables.push_back(study_table(
      fmt::format("{}: growth of |w - w0| over {} updates", trial.net, steps), study.size(),
      {name_column("batch", study.methods), mean_column("R^2 of a + b ln t", logarithm, 4),
       mean_column("R^2 of c t^p", power, 4), mean_column("p", exponent, 3)}));
  conclusion.charts.push_back(std::move(chart));
}

constexpr double kMostLost = 0.5;  // points that regime adaptation is claimed to lose at most
// Nats. A gap in generalisation is one between networks that fit their training images as well:
// after as many epochs a large batch has taken fewer updates, and may simply have learnt less.
constexpr double kSameLoss = 0.05;

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

void add_training(const ExperimentRun& run, const net::Dataset& data, const std::string& format,
                  Conclusion& conclusion) {
  const Batches sizes = batches(run.settings);
  const double clip = run.settings.number("clip");
  TrainingPlan plan{
      .trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"}),
      .data = data.name(),
      .seeds = seeds_of(run),
      .prefix = format + ", "};
  for (const Method& method : kMethods) {
    plan.methods.push_back({.name = method.name, .recipe = recipe_in(format)});
    if (method.ghosts) plan.methods.back().recipe.update(sizes.ghosts());
    plan.methods.back().change = [=](TrainTrial& trial) {
      trial.options.batch = method.large ? sizes.large : sizes.small;
      if (method.scaled) {
        trial.options.learning_rate *= std::sqrt(static_cast<double>(sizes.ratio()));
        trial.options.clip = clip;
      }
      if (method.longer) trial.options.epochs *= sizes.ratio();
    };
  }
  const auto study = run_training_study<TrainOutcome>(
      run, data, plan,
      [&](const TrainTrial& trial, std::size_t) { return run_train_trial(trial, data); });
  const SeedFigures top1 = study.figures(&TrainOutcome::top1);
  const auto what = [&](const char* says, std::size_t of, std::size_t against) {
    return fmt::format("{}: points {} '{}' by '{}'", format, says, kMethods[against].name,
                       kMethods[of].name);
  };
  std::vector<Finding> findings = judge_gains(
      {{what("lost to", kLarge, kSmall), gain(top1, kSmall, kLarge), published_in(format, "gap")},
       {what("gained on", kGhosts, kScaled), gain(top1, kGhosts, kScaled),
        published_in(format, "ghosts")},
       {what("gained on", kLonger, kScaled), gain(top1, kLonger, kScaled),
        published_in(format, "updates")}});
  PairedClaims adapted;
  adapted.add(fmt::format("{}, at least -{}", what("gained on", kAll, kSmall), kMostLost),
              gain(top1, kAll, kSmall), -kMostLost, published_in(format, "adaptation"));
  findings.push_back(adapted.judged().front());
  const double small = study.mean(kSmall, &TrainOutcome::train_loss),
               large = study.mean(kLarge, &TrainOutcome::train_loss);
  if (!(std::fabs(large - small) <= kSameLoss))
    findings = without_verdict(
        std::move(findings),
        fmt::format(
            "no test of generalisation: the training loss of '{}' is {:.3g}, of '{}' {:.3g}",
            kMethods[kLarge].name, large, kMethods[kSmall].name, small));
  conclusion.add(std::move(findings));
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const std::string title =
      fmt::format("{} in {}, batches of {} and {}, {}", plan.trial.net, format, sizes.small,
                  sizes.large, counted(std::ssize(plan.seeds), "seed"));
  conclusion.tables.push_back(
      study_table(title, study.size(),
                  {name_column("method", study.methods), mean_column("top-1, %", top1),
                   mean_column("training loss", study.figures(&TrainOutcome::train_loss), 3),
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
  const net::Dataset data = load_data(run);
  add_workers(run, data, conclusion);
  add_walks(run, data, conclusion);
  for (const std::string& format : run.settings.list("formats"))
    add_training(run, data, format, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::ghost_bn

namespace numemu::experiments {

extern const Experiment experiment_ghost_bn = {
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
      "The logarithm of the updates explains at least 0.9 of the variance of the distance, as it "
      "does of powers up to about t^0.35, too (published; the margin is ours).",
      "seeds"},
     {"power", "It explains more than a power of the updates does (a contrast).", "seeds"},
     {"slower than a walk",
      "As a power the distance grows no faster than that of a random walk (a contrast).", "seeds"},
     {"gap",
      "A large batch loses accuracy at as many epochs, where its mean training loss of the last "
      "one "
      "is that of a small one within 0.05 (published; the margin is ours).",
      "seeds"},
     {"ghosts", "Ghost batches regain some of this gap at as many epochs (published).", "seeds"},
     {"updates", "As many updates as of small batches regain some of this gap (published).",
      "seeds"},
     {"adaptation",
      "Scaled rates, ghost batches and as many updates close this gap: they lose at most 0.5 "
      "points (published; the margin is ours).",
      "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"sizes", "16,64", "8,16,32,64,128,256", "8,16,32,64,128,256,1024", "numbers of a statistic",
      wholes(6, 1 << 20)},
     {"samples", "200000", "8000000", "64000000", "numbers drawn for each",
      whole(1000, 1'000'000'000)},
     {"net", "mlp-bn", "network with batch normalisation; -: none", takes_network_or_none()},
     data_setting("of images"),
     {"formats", "float32", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4",
      "of weights and activations in training", list_of()},
     {"large", "128", "256", "512", "samples of a large batch", whole(4, 100'000)},
     {"clip", "5", "largest norm of gradients where rates are scaled; 0: any", real(0, 1e6)},
     {"steps", "16", "512", "4096", "updates over which the distance is measured",
      whole(4, 1'000'000)},
     {"epochs", "1", "1", "4", "epochs of training, without those that are added",
      whole(1, 10'000)},
     {"batch", "32", "samples of a small batch and of a ghost batch", whole(2, 10'000)},
     {"train_samples", "512", "4096", "8192", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "4000", "0", "test images; 0: all", whole(0, 1'000'000'000)},
     seeds_setting({"1", "3", "5"})},
    ghost_bn::run_ghost_bn};

}  // namespace numemu::experiments
