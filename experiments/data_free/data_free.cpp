// Samples made from a trained network's own batch-norm statistics in place of data: what
// calibration loses (The Knowledge Within, Haroush et al., CVPR 2020, arXiv 1912.01274).
#include "experiments/data_free/data_free.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/npy.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/calibrate/synthesize.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/tune/base/run_steps.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuning.hpp"

namespace numemu::experiments::data_free {

namespace {

/// The derivative of ln Gamma(x), x > 0: by its recurrence to x >= 10, then its asymptotic series,
/// whose next term is below 1e-13 there.
double digamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + portable::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

}  // namespace

double floor_divergence(std::int64_t n) {
  const auto count = static_cast<double>(n);
  return count / 2 *
         (digamma((count - 1) / 2) - portable::log(count / 2) - 1 + (count + 1) / (count - 3));
}

// Independent numbers: the divergence that real data have.

void add_floor(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kGroups = 32;  // of channels, whose spread is the error of the mean
  const std::int64_t channels = run.settings.integer("channels") / kGroups;
  const Distribution law = Distribution::parse("normal", false);
  ResultTable table{
      "J n of n independent normal numbers a channel", {"n", "predicted", "measured"}, {}};
  for (const std::int64_t n : {16, 64, 256}) {
    double sum = 0, squares = 0;
    for (std::int64_t g = 0; g < kGroups; ++g) {
      RandomSource random;
      random.seed = run.seed;
      random.stream = Stream::data;
      random.tensor = static_cast<std::uint32_t>(n);
      random.draw = static_cast<std::uint16_t>(g);
      net::Tensor x({n, channels});
      for (std::size_t i = 0; i < x.data.size(); ++i)
        x.data[i] = static_cast<float>(law.draw(random, i));
      const std::vector<double> zeros(static_cast<std::size_t>(channels)),
          ones(static_cast<std::size_t>(channels), 1.0);
      const double j = static_cast<double>(n) / static_cast<double>(channels) *
                       policies::norm_divergence({"", zeros, ones}, x, nullptr);
      sum += j;
      squares += j * j;
    }
    const double mean = sum / kGroups;
    const double error = std::sqrt(std::max(0.0, squares / kGroups - mean * mean) / (kGroups - 1));
    const double predicted = floor_divergence(n);
    conclusion.add(
        closed_form(fmt::format("J n of {} independent numbers", n), predicted, mean, error),
        "floor");
    table.rows.push_back(
        {std::to_string(n), fmt::format("{:.4f}", predicted), fmt::format("{:.4f}", mean)});
  }
  conclusion.tables.push_back(std::move(table));
}

// Samples of every source, and quantized networks calibrated and re-normalised on them.

namespace {

using policies::SampleSource;

constexpr std::array<const char*, 4> kSources = {"real", "batch_norm", "class", "noise"};
enum Which : std::size_t { kReal, kBatchNorm, kClass, kNoise };
constexpr double kMargin = 1;  // points of top-1: what counts as alike

struct Plan {
  std::string net;
  bool trained_here = false;  ///< a reference network without a file: trained for the run
  TrainTrial trial;
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> formats;
  std::string rule, distill;
  policies::Synthesis synthesis;
  std::int64_t samples = 0, images = 0;
};

Plan plan_of(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  Plan plan;
  plan.net = settings.text("net");
  const std::vector<std::string> names = net::net_names();
  plan.trained_here = std::find(names.begin(), names.end(), plan.net) != names.end();
  plan.trial.net = plan.net;
  if (plan.trained_here) {
    plan.trial.options.optimizer = net::recommended_optimizer(plan.net);
    net::use_recommended_rates(plan.trial.options, plan.net);
  }
  plan.trial.options.epochs = settings.integer("epochs");
  plan.trial.options.batch = settings.integer("batch");
  plan.trial.train_samples = settings.integer("train_samples");
  plan.seeds = seeds_of(run);
  plan.formats = settings.list("formats");
  plan.rule = settings.text("rule");
  plan.distill = settings.text("distill");
  plan.synthesis.steps = settings.integer("steps");
  plan.synthesis.batch = settings.integer("samples_of_batch");
  plan.synthesis.rate = settings.number("rate");
  plan.synthesis.class_weight = settings.number("class_weight");
  plan.synthesis.smooth = policies::parse_smoothing(settings.text("smooth"));
  plan.samples = settings.integer("samples");
  plan.images = settings.integer("images");
  return plan;
}

Json recipe_of(const Plan& plan, const std::string& format) {
  return {{"roles",
           {{"weight", {{"format", format}, {"granularity", "channel"}}},
            {"activation", {{"format", format}}}}},
          {"calibrate", {{"rule", plan.rule}, {"samples", plan.samples}}}};
}

/// NCHW and labels, as the data set npy:FOLDER reads them.
void write_samples(const std::string& folder, const net::Tensor& x,
                   const std::vector<std::int32_t>& labels) {
  std::filesystem::create_directories(folder);
  net::Tensor planes = x;
  ArrayShape shape(x.shape.begin(), x.shape.end());
  if (x.shape.size() == 4) {
    const std::int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
    for (std::int64_t n = 0; n < x.dim(0); ++n) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        for (std::int64_t c = 0; c < channels; ++c)
          planes.data[(n * channels + c) * pixels + p] = x.data[(n * pixels + p) * channels + c];
      }
    }
    shape = {x.dim(0), x.dim(3), x.dim(1), x.dim(2)};
  }
  write_npy(folder + "/x.npy", ArrayType::float32, shape, planes.data.data());
  if (!labels.empty())
    write_npy(folder + "/y.npy", ArrayType::int32, {static_cast<std::int64_t>(labels.size())},
              labels.data());
}

policies::CalibrationBatch batches_of(const net::Tensor& x) {
  return [&x](std::int64_t first, std::int64_t count) {
    return std::vector<net::Tensor>{policies::samples_of(x, first, count)};
  };
}

/// Top-1 in [0, 1], and how many test images only this network or only that of real data gets
/// right.
struct Answers {
  double top1 = 0;
  std::int64_t only_own = 0, only_real = 0, n = 0;

  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1);
    visit("only_own", self.only_own);
    visit("only_real", self.only_real);
    visit("n", self.n);
  }
};

/// What samples are used for: ranges; batch-norm statistics as well; ranges and fine-tuning.
enum Way : std::size_t { kRanges, kStatistics, kTuned, kWayCount };
constexpr std::array<const char*, kWayCount> kWays = {"ranges", "ranges and batch-norm statistics",
                                                      "ranges and fine-tuning"};
constexpr std::array<const char*, kWayCount> kClaims = {"ranges", "statistics", "fine-tuning"};

struct OfSource {
  double divergence = 0;
  std::vector<std::array<Answers, kWayCount>> formats = {};  ///< by format

  static void fields(auto& self, const auto& visit) {
    visit("divergence", self.divergence);
    visit("formats", self.formats);
  }
};

struct Measured {
  double float32 = 0;
  std::vector<OfSource> sources = {};

  static void fields(auto& self, const auto& visit) {
    visit("float32", self.float32);
    visit("sources", self.sources);
  }
};

/// One seed: a network, samples of every source, and what the quantized network makes of the test
/// images after calibration, and after batch-norm statistics were estimated again as well.
class Measurement {
 public:
  Measurement(const ExperimentRun& run, const Plan& plan, const net::Dataset& data,
              std::uint64_t seed)
      : run_(run), plan_(plan), data_(data), seed_(seed) {
    if (!plan.trained_here) return;
    TrainTrial trial = plan.trial;
    trial.net = plan.net;
    trial.seed = seed;
    trained_ = net::parameters_of(trained_in_float32(trial, data));
  }

  Measured run() {
    net::Graph folded = network();
    const std::vector<policies::NormTarget> targets = policies::fold_to_targets(folded);
    net::Numerics float32;
    Measured result{share(evaluated(folded, float32))};
    std::vector<std::array<net::Evaluation, kWayCount>> of_real;
    for (std::size_t s = 0; s < kSources.size(); ++s) {
      const net::Tensor x = samples(s, folded, targets);
      OfSource source{policies::norm_divergence(folded, targets, x)};
      for (std::size_t f = 0; f < plan_.formats.size(); ++f) {
        const std::array<net::Evaluation, kWayCount> own = {calibrated(folded, x, plan_.formats[f]),
                                                            normalised(x, plan_.formats[f]),
                                                            tuned(x, plan_.formats[f])};
        if (s == kReal) of_real.push_back(own);
        source.formats.emplace_back();
        for (std::size_t way = 0; way < kWayCount; ++way)
          source.formats.back()[way] = compared(own[way], of_real[f][way]);
      }
      result.sources.push_back(std::move(source));
    }
    return result;
  }

 private:
  net::Graph network() const {
    if (!plan_.trained_here) return load_trained_net(plan_.net, data_, run_.folders).graph;
    net::Graph graph = net::build_net(plan_.net, data_);
    net::load_parameters(graph, trained_, plan_.net);
    return graph;
  }

  net::Tensor samples(std::size_t source, net::Graph& folded,
                      const std::vector<policies::NormTarget>& targets) const {
    const std::string folder = fmt::format("{}/samples/{}-{}", run_.out, kSources[source], seed_);
    net::Tensor x;
    std::vector<std::int32_t> labels;
    if (source == kReal) {
      const std::int64_t places = data_.calibration_count() / plan_.samples;
      net::Targets classes;
      x = data_.calibration_batch(
          static_cast<std::int64_t>(seed_ % static_cast<std::uint64_t>(places)) * plan_.samples,
          plan_.samples, classes);
    } else {
      policies::Synthesis options = plan_.synthesis;
      options.seed = seed_;
      options.source = source == kNoise   ? SampleSource::noise
                       : source == kClass ? SampleSource::classes
                                          : SampleSource::batch_norm;
      policies::SynthesizedSamples made =
          policies::synthesize(folded, targets, plan_.samples, options);
      x = std::move(made.x);
      labels = std::move(made.labels);
    }
    write_samples(folder, x, labels);
    return x;
  }

  net::Evaluation evaluated(const net::Graph& graph, net::Numerics& numerics) const {
    return net::evaluate(graph, data_, net::Split::test, std::min(plan_.images, data_.test_count()),
                         numerics);
  }

  net::Evaluation calibrated(const net::Graph& folded, const net::Tensor& x,
                             const std::string& format) const {
    policies::RecipeNumerics numerics(policies::Recipe::make(recipe_of(plan_, format), "data-free"),
                                      folded);
    numerics.freeze(folded, x.dim(0), batches_of(x));
    return evaluated(folded, numerics);
  }

  net::Evaluation normalised(const net::Tensor& x, const std::string& format) const {
    net::Graph graph = network();
    {
      policies::RecipeNumerics numerics(
          policies::Recipe::make(recipe_of(plan_, format), "data-free"), graph);
      numerics.freeze(graph, x.dim(0), batches_of(x));
      policies::reestimate_batch_norm(graph, {{x}}, numerics);
    }
    net::fold_batch_norm(graph);
    return calibrated(graph, x, format);
  }

  /// Toward the class probabilities of float32, by the setting `distill`.
  net::Evaluation tuned(const net::Tensor& x, const std::string& format) const {
    net::Graph graph = network(), reference = network();
    net::fold_batch_norm(graph);
    net::fold_batch_norm(reference);
    const policies::Recipe recipe = policies::Recipe::make(recipe_of(plan_, format), "data-free");
    policies::Tuning tuning{std::move(graph), std::move(reference),      {},   recipe,
                            "data-free",      {x.dim(0), batches_of(x)}, seed_};
    policies::complete_ranges(tuning);
    policies::run_tune_steps(tuning, policies::parse_tune_steps(plan_.distill, "--set: distill"));
    return evaluated(tuning.graph, *policies::tuned_numerics(tuning));
  }

  static double share(const net::Evaluation& e) {
    return static_cast<double>(e.correct) / static_cast<double>(e.n);
  }
  static Answers compared(const net::Evaluation& own, const net::Evaluation& real) {
    const stats::PairedAnswers answers = paired_answers(own, real);
    return {share(own), answers.only1, answers.only2, own.n};
  }

  const ExperimentRun& run_;
  const Plan& plan_;
  const net::Dataset& data_;
  std::uint64_t seed_;
  net::Checkpoint trained_;
};

using Runs = Study<Measured>;  // of one method

/// Per cent, seed by seed.
std::vector<double> top1(const Runs& study, std::size_t source, std::size_t format,
                         std::size_t way) {
  return study.figures(0, [&](const Measured& m) {
    return 100 * m.sources.at(source).formats.at(format)[way].top1;
  });
}

/// Points of top-1 by which a source is above another: over seeds by Student's law; of one seed,
/// and against real data, over images.
stats::PairedInterval gain(const Runs& study, std::size_t source, std::size_t other,
                           std::size_t format, std::size_t way) {
  const stats::PairedInterval over =
      stats::paired_interval(top1(study, source, format, way), top1(study, other, format, way));
  if (study.seeds() > 1 || (source != kReal && other != kReal)) return over;
  const std::size_t made = source == kReal ? other : source;
  const Answers& answers = study.runs[0][0].sources.at(made).formats.at(format)[way];
  std::int64_t own = answers.only_own, real = answers.only_real;
  if (source == kReal) std::swap(own, real);
  const stats::Interval ends = stats::paired_difference(own, real, answers.n);
  return {over.mean, 100 * ends.low, 100 * ends.high, 1};
}

void judge(const Plan& plan, const Runs& study, Conclusion& conclusion) {
  for (std::size_t way = 0; way < kWayCount; ++way) {
    for (std::size_t f = 0; f < plan.formats.size(); ++f) {
      for (const std::size_t source : {kBatchNorm, kClass}) {
        const auto add = [&](const std::string& what, const stats::PairedInterval& points,
                             const Allowed& allowed) {
          conclusion.add(interval_finding(what, 0, points, allowed), kClaims[way]);
        };
        add(fmt::format("points of top-1 of {} samples over noise, {}, {} (above 0 claimed)",
                        kSources[source], plan.formats[f], kWays[way]),
            gain(study, source, kNoise, f, way), at_least(0));
        add(fmt::format("points of top-1 of real data over {} samples, {}, {} (at most {} claimed)",
                        kSources[source], plan.formats[f], kWays[way], kMargin),
            gain(study, kReal, source, f, way), at_most(kMargin));
      }
    }
  }
  for (const std::size_t source : {kBatchNorm, kClass}) {
    const std::vector<double> ratios = study.figures(0, [&](const Measured& m) {
      return m.sources.at(source).divergence / m.sources.at(kNoise).divergence;
    });
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    conclusion.add(
        interval_finding(
            fmt::format("J of {} samples over that of noise, of all seeds (at most 0.1 claimed)",
                        kSources[source]),
            0, stats::paired_interval(ratios).mean, {*least, *most}, at_most(0.1)),
        "similarity");
  }
}

ResultTable table_of(const Plan& plan, const Runs& study) {
  std::vector<StudyColumn> columns = {
      {"source", [](std::size_t s) { return kSources[s]; }},
      {"J n", [&](std::size_t s) {
         const double divergence =
             study.mean(0, [&](const Measured& m) { return m.sources.at(s).divergence; });
         return fmt::format("{:.4g}", divergence * static_cast<double>(plan.samples));
       }}};
  for (std::size_t f = 0; f < plan.formats.size(); ++f) {
    for (std::size_t way = 0; way < kWayCount; ++way) {
      SeedFigures of_source;
      for (std::size_t s = 0; s < kSources.size(); ++s) of_source.push_back(top1(study, s, f, way));
      columns.push_back(mean_column(fmt::format("{}, {}", plan.formats[f], kWays[way]), of_source));
    }
  }
  return study_table(fmt::format("{}: samples of each source, {} of them, {}; top-1 in %", plan.net,
                                 plan.samples, counted(study.seeds(), "seed")),
                     kSources.size(), columns);
}

Chart chart_of(const Plan& plan, const Runs& study) {
  Chart chart{
      .kind = Chart::Kind::bars,
      .title = "Top-1 by the source of the samples",
      .caption = fmt::format("{} with weights and activations of few bits; ranges (rule {}), "
                             "batch-norm statistics and fine-tuning ({}) from {} samples of each "
                             "source.",
                             plan.net, plan.rule, plan.distill, plan.samples),
      .y = "top-1, %"};
  for (std::size_t f = 0; f < plan.formats.size(); ++f) {
    for (std::size_t way = 0; way < kWayCount; ++way) {
      ChartSeries series{fmt::format("{}, {}", plan.formats[f], kWays[way])};
      for (std::size_t s = 0; s < kSources.size(); ++s)
        series.points.push_back(
            gain_point(0, kSources[s], stats::paired_interval(top1(study, s, f, way))));
      chart.series.push_back(std::move(series));
    }
  }
  return chart;
}

}  // namespace

void add_sources(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  require_one_class(data, "experiment data-free");
  const Plan plan = plan_of(run);
  if (plan.samples > data.calibration_count())
    throw usage_error(
        fmt::format("--set: samples: expected at most the {} calibration samples of {}",
                    data.calibration_count(), data.name()));
  for (const std::string& format : plan.formats)
    policies::Recipe::make(recipe_of(plan, format), "--set: formats");
  Json shipped = {{"samples", data.digest()}};
  if (!plan.trained_here) identify(shipped, load_trained_net(plan.net, data, run.folders));
  const auto study = run_study<Measured>(
      run, {{plan.net}, plan.seeds}, [&](std::size_t, std::uint64_t seed) -> StudyRun<Measured> {
        TrainTrial trial = plan.trial;
        trial.seed = seed;
        Json point = plan.trained_here ? point_of(trial, data) : shipped;
        point["seed"] = seed;
        point["synthesis"] = {{"steps", plan.synthesis.steps},
                              {"batch", plan.synthesis.batch},
                              {"rate", plan.synthesis.rate},
                              {"class_weight", plan.synthesis.class_weight},
                              {"smooth", policies::to_string(plan.synthesis.smooth)},
                              {"samples", plan.samples}};
        point["formats"] = plan.formats;
        point["rule"] = plan.rule;
        point["distill"] =
            policies::tune_steps_text(policies::parse_tune_steps(plan.distill, "--set: distill"));
        point["images"] = plan.images;
        return {std::move(point),
                [&run, &plan, &data, seed] { return Measurement(run, plan, data, seed).run(); }};
      });
  judge(plan, study, conclusion);
  double float32 = 0;
  for (const Measured& one : study.runs[0]) float32 += one.float32;
  conclusion.sentences.push_back(fmt::format(
      "In float32 {} has {:.2f} % top-1; the folder samples has the samples of every source.",
      plan.net, 100 * float32 / static_cast<double>(study.seeds())));
  conclusion.tables.push_back(table_of(plan, study));
  conclusion.charts.push_back(chart_of(plan, study));
}

}  // namespace numemu::experiments::data_free

namespace numemu::experiments {

extern const Experiment experiment_data_free = {
    "data-free",
    "can samples made from a network's batch-norm statistics replace the data that quantization is "
    "calibrated on",
    "Haroush et al. (CVPR 2020, arXiv 1912.01274) claim that samples whose batch statistics match "
    "those a network stores serve calibration nearly as well as real data, and noise does not.",
    {{"floor",
      "The divergence of independent data of the right law is the closed form's (derived here)."},
     {"similarity",
      "Samples made from the statistics have at most a tenth of noise's divergence (derived "
      "here)."},
     {"statistics",
      "Calibrated on samples made from the statistics, in ranges and batch-norm statistics, top-1 "
      "is above that with noise and at most 1 point below that with as many real images "
      "(published; the "
      "margin is ours).",
      "images"},
     {"ranges", "The same with ranges alone (a contrast).", "images"},
     {"fine-tuning",
      "The same of networks that are fine-tuned on those samples toward float32, without labels "
      "(published; the margin is ours).",
      "images"}},
    {{"channels", "3200", "32000", "320000", "channels of independent numbers",
      whole(32, 1'000'000)},
     {"net", "vgg-small", "vgg-small", "resnet20",
      "reference network, trained for the run, or a file", takes_network()},
     data_setting(),
     {"epochs", "1", "2", "12", "of its training", whole(1, 10'000)},
     {"batch", "32", "128", "128", "samples of a step of it", whole(2, 100'000)},
     {"train_samples", "2048", "8192", "0", "training samples; 0: all", whole(0, 1'000'000'000)},
     {"formats", "int4", "int8,int4", "int8,int6,int5,int4", "of weights and activations",
      list_of()},
     {"rule", "mse", "of calibration"},
     {"distill", "distill(epochs=1)", "distill", "distill", "steps of tune that fine-tune",
      text_of([](const std::string& text) { policies::parse_tune_steps(text, ""); })},
     {"samples", "32", "64", "256", "samples of each source", whole(2, 512)},
     {"samples_of_batch", "32", "64", "64", "samples whose statistics are matched together",
      whole(2, 65'536)},
     {"steps", "30", "150", "500", "of Adam", whole(1, 1'000'000)},
     {"rate", "0.1", "of Adam, falling with a cosine", real(1e-6, 100)},
     {"class_weight", "0.02", "of the cross-entropy of class-conditional samples", real(0, 1e6)},
     {"smooth", "images", "none, images or gradient: what is averaged over 3 x 3 pixels",
      text_of([](const std::string& text) { policies::parse_smoothing(text); })},
     {"images", "256", "2000", "10000", "test samples", whole(1, 1'000'000'000)},
     {"seeds", "1", "3", "5", "networks and sets of samples", whole(1, 1000)}},
    conclude<data_free::add_floor, data_free::add_sources>};

}  // namespace numemu::experiments
