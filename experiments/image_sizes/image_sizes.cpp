// Mix & Match: trainings on images of several sizes, their cost, and accuracy by the size of test
// images (Hoffer et al. 2019, arXiv 1908.08986).
#include "experiments/image_sizes/image_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/size_smoothing.hpp"
#include "emu/net/train/step.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::image_sizes {

// A step by image size: its multiply-adds beside its area, and the weight of its copies.
namespace {

/// Places of a feature map, [1, height, width, channels], or 1 of a row.
double places(const net::Shape& shape) {
  return static_cast<double>(net::element_count(shape)) / static_cast<double>(shape.back());
}

double rows(const net::PlannedStep& step) {
  return static_cast<double>(step.samples * step.copies);
}

/// Samples and copies at `size` over those at the size of the data set.
double more_rows(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return rows(net::sized_step(options, own, size)) / rows(net::sized_step(options, own, own));
}

}  // namespace

net::Graph& at_size(net::Graph& graph, std::int64_t size) {
  net::Shape& shape = graph.inputs.at(0).shape;
  shape.at(0) = shape.at(1) = size;
  return graph;
}

double sample_cost(const net::Graph& graph, std::int64_t size) {
  const net::Shape input{1, size, size, graph.inputs.at(0).shape.back()};
  const std::vector<net::Shape> shapes = net::value_shapes(graph, std::span(&input, 1));
  double cost = 0;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto node = static_cast<std::size_t>(
        std::ranges::find(graph.nodes, layer.node->name, &net::Node::name) - graph.nodes.begin());
    const int read = layer.node->inputs.front();
    const bool first = read < std::ssize(graph.inputs);
    cost += (2 * places(shapes[graph.value_of(node)]) + (first ? 0 : places(shapes[read]))) *
            static_cast<double>(layer.weight->size());
  }
  return cost;
}

double training_cost(const net::Graph& graph, const net::Dataset& data,
                     const net::TrainOptions& options) {
  std::map<std::int64_t, double> of_sample;
  double cost = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const net::PlannedStep& step : net::epoch_steps(options, data, epoch)) {
      const std::int64_t size = step.image == 0 ? data.input_shape()[0] : step.image;
      if (!of_sample.contains(size)) of_sample[size] = sample_cost(graph, size);
      cost += rows(step) * of_sample[size];
    }
  }
  return cost;
}

double area_cost(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return more_rows(options, own, size) * static_cast<double>(size * size) /
         static_cast<double>(own * own);
}

double step_cost(const net::Graph& graph, const net::TrainOptions& options, std::int64_t own,
                 std::int64_t size) {
  return more_rows(options, own, size) * sample_cost(graph, size) / sample_cost(graph, own);
}

namespace {

constexpr double kCostHolds = 0.1;  // of a step's multiply-adds, relative

/// The weight that smoothing gives a step with copies.
struct Smoothed {
  double weight = 0;
  static void fields(auto& self, const auto& visit) { visit("weight", self.weight); }
};

}  // namespace

void add_steps(const ExperimentRun& run, const net::Dataset& data, const Question& asked,
               Conclusion& conclusion) {
  net::TrainOptions options = asked.trial.options;
  const net::Graph graph = initial_network(asked.trial, data);
  ResultTable table{
      fmt::format("Steps of {} by image size, over one of {} pixels with a batch of {}",
                  asked.trial.net, asked.own, options.batch),
      {"pixels", "batch", "by area", "by the shapes of layers"},
      {}};
  for (const net::ImageSizes::Share& share : asked.methods[kBatch].sizes.shares) {
    options.sizes = asked.methods[kBatch].sizes;
    const double area = area_cost(options, asked.own, share.size),
                 shapes = step_cost(graph, options, asked.own, share.size);
    if (share.size != asked.own)
      conclusion.add(
          exact_finding(fmt::format("multiply-adds of a step at {} pixels over those at {}",
                                    share.size, asked.own),
                        area, shapes, std::abs(shapes - 1) <= kCostHolds, near(1, kCostHolds)),
          "area");
    const net::PlannedStep step = net::sized_step(options, asked.own, share.size);
    table.rows.push_back({std::to_string(share.size), std::to_string(step.samples),
                          fmt::format("{:.3f}", area), fmt::format("{:.3f}", shapes)});
    options.sizes = asked.methods[kSmoothed].sizes;
    const net::PlannedStep copied = net::sized_step(options, asked.own, share.size);
    if (copied.copies == 1) continue;
    const auto found = run_cases<Smoothed>(run, std::vector{copied}, [&](const auto& planned) {
      TrainTrial trial = asked.trial;
      trial.options = options;
      Json point = point_of(trial, data);
      point["smoothing at"] = planned.image;
      return TypedTrial<Smoothed>{
          point, fmt::format("smoothing at {} pixels", planned.image), [=, &data] {
            const net::Dataset seen = net::view_of(data, {.image_size = planned.image});
            net::Graph network = initial_network(trial, data);
            net::StepInput input;
            input.samples = net::shuffled(data.train_count(), trial.seed, 0);
            input.samples.resize(static_cast<std::size_t>(
                std::min<std::int64_t>(planned.samples, data.train_count())));
            input.x = seen.train_batch(input.samples, input.targets, &options.augment, trial.seed,
                                       0, planned.copies);
            const net::CopyNorms norms =
                net::copy_norms(at_size(network, planned.image), input, planned.copies, options);
            return Smoothed{norms.one / norms.all};
          }};
    });
    const double most = std::sqrt(static_cast<double>(copied.copies)), weight = found[0].weight;
    conclusion.add(
        exact_finding(fmt::format("weight of {} copies at {} pixels in the first step, from 1 to",
                                  copied.copies, share.size),
                      most, weight, weight >= 1 && weight <= most, {1, most}),
        "weights");
  }
  conclusion.tables.push_back(std::move(table));
}

namespace {

void check_sizes(const std::string& text) {
  if (net::parse_image_sizes(text).size() < 2)
    throw usage_error("expected at least two sizes that are mixed, not " + text);
}

Question question(const ExperimentRun& run, const net::Dataset& whole) {
  const Settings& settings = run.settings;
  Question asked{.trial = training_of(settings, settings.text("net")),
                 .tests = settings.whole_numbers("tests")};
  net::TrainOptions& options = asked.trial.options;
  asked.trial.seed = options.seed = run.seed;
  options.copies = settings.integer("copies");
  options.augment.shift = settings.integer("shift");
  options.augment.flip = settings.integer("flip") == 1;
  const auto shares = net::parse_image_sizes(settings.text("sizes"));
  const std::int64_t small = settings.integer("small");
  const std::int64_t every = settings.integer("smoothing");
  const net::Dataset data = restricted(whole, asked.trial.train_samples, false);
  asked.own = data.input_shape().empty() ? 0 : data.input_shape().front();
  asked.norm_samples = settings.integer("norm_samples", 2, data.calibration_count());
  asked.methods = {{fmt::format("{} pixels", asked.own), {}},
                   {fmt::format("{} pixels, batch", small), {{{small, 1}}, "batch"}},
                   {"mixed, batch", {shares, "batch"}},
                   {"mixed, copies", {shares, "copies"}},
                   {"mixed, copies, smoothed", {shares, "copies", every}}};
  if (std::ranges::find(asked.tests, asked.own) == asked.tests.end())
    throw usage_error(
        fmt::format("--set: tests: expected the size of the data set, {}, among them", asked.own));
  if (asked.tests.size() < 2)
    throw usage_error(fmt::format("--set: tests: expected another size beside {}", asked.own));
  if (small == asked.own)
    throw usage_error(fmt::format(
        "--set: small: expected another size than that of the data set, {}", asked.own));
  const net::Graph graph = initial_network(asked.trial, data);
  for (const Method& method : asked.methods) {
    net::TrainOptions one = options;
    one.sizes = method.sizes;
    net::require_fit(graph, data, one);
  }
  net::TrainOptions of_tests = options;
  of_tests.sizes.change = "none";
  for (const std::int64_t size : asked.tests) {
    of_tests.sizes.shares = {{size, 1}};
    net::require_fit(graph, data, of_tests);
  }
  for (const std::string& format : settings.list("formats")) {
    TrainTrial one = asked.trial;
    one.recipe = recipe_in(format);
    const policies::RecipeNumerics bound(parsed_recipe(one), graph, "--set: formats");
    bound.require_trainable("--set: formats");
  }
  return asked;
}

constexpr std::int64_t kChunk = 64;  // samples of a batch that statistics are re-estimated on

/// Top-1 in per cent by test size, with statistics as trained and re-estimated; multiply-adds.
struct Trained {
  std::optional<std::int64_t> diverged = {};  ///< the update from which on no loss is finite
  std::int64_t steps = 0;
  double multiply_adds = 0;
  std::vector<double> stale = {}, tuned = {};

  static void fields(auto& self, const auto& visit) {
    visit("diverged", self.diverged);
    visit("steps", self.steps);
    visit("multiply_adds", self.multiply_adds);
    visit("stale", self.stale);
    visit("tuned", self.tuned);
  }
};

Trained measure(const TrainTrial& trial, const net::Dataset& whole, const Question& asked) {
  const net::Dataset data = restricted(whole, trial.train_samples, false);
  net::Graph graph = initial_network(trial, data);
  const policies::Recipe recipe = parsed_recipe(trial);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  Trained result;
  {
    policies::RecipeNumerics numerics(recipe, graph);
    net::Observing counted(numerics, {.before = [&](const net::Step&, const net::Product& product) {
                             result.multiply_adds += net::multiply_adds(product);
                           }});
    net::TrainHooks hooks;
    hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
      result.steps = step + 1;
      if (std::isfinite(loss))
        result.diverged.reset();
      else if (!result.diverged)
        result.diverged = step + 1;
    };
    net::train(graph, data, options, counted, hooks);
  }
  if (result.diverged) return result;  // no accuracy
  const net::Checkpoint trained = net::parameters_of(graph);
  for (const std::int64_t size : asked.tests) {
    const net::Dataset seen = net::view_of(data, {.image_size = size});
    at_size(graph, size);
    net::load_parameters(graph, trained, "image-sizes");
    policies::RecipeNumerics numerics(recipe, graph);
    freeze(numerics, graph, seen);
    const auto top1 = [&] { return 100 * test_top1(graph, seen, trial.eval_samples, numerics); };
    result.stale.push_back(top1());
    const policies::CalibrationBatch batch = calibration_of(seen);
    std::vector<std::vector<net::Tensor>> batches;
    for (std::int64_t first = 0; first < asked.norm_samples; first += kChunk)
      batches.push_back(batch(first, std::min(kChunk, asked.norm_samples - first)));
    policies::reestimate_batch_norm(graph, batches, numerics);
    result.tuned.push_back(top1());
  }
  return result;
}

/// Accuracy by the size of test images in a format.
void add_training(const ExperimentRun& run, const net::Dataset& data, const Question& asked,
                  const std::string& format, Conclusion& conclusion) {
  TrainingPlan plan{.trial = asked.trial,
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .at_once = true,
                    .prefix = format + ", "};
  for (const Method& method : asked.methods)
    plan.methods.push_back(
        {.name = method.name,
         .recipe = recipe_in(format),
         .change =
             [sizes = method.sizes](TrainTrial& trial) {
               trial.options.sizes = sizes;
               trial.options.seed = trial.seed;
             },
         .counted = {{"tests", run.settings.text("tests")}, {"norm_samples", asked.norm_samples}}});
  const auto study = run_training_study<Trained>(
      run, data, plan,
      [&](const TrainTrial& trial, std::size_t) { return measure(trial, data, asked); });
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const net::Dataset used = restricted(data, asked.trial.train_samples, false);
  const net::Graph graph = initial_network(asked.trial, used);
  std::vector<double> predicted(study.size());  // multiply-adds of all seeds
  for (std::size_t m = 0; m < study.size(); ++m) {
    for (const std::uint64_t seed : plan.seeds)
      predicted[m] += training_cost(graph, used, plan.trial_of(m, seed).options);
  }
  const auto at = [&](std::vector<double> Trained::*figures, std::size_t t) {
    return study.figures(
        [=](const Trained& one) { return one.diverged ? NAN : (one.*figures).at(t); });
  };
  const std::size_t own =
      static_cast<std::size_t>(std::ranges::find(asked.tests, asked.own) - asked.tests.begin());
  // What is lost at the other sizes, on average.
  const SeedFigures drop = study.figures([=](const Trained& one) {
    if (one.diverged) return double{NAN};
    double sum = 0;
    for (const double top1 : one.tuned) sum += one.tuned[own] - top1;
    return sum / static_cast<double>(std::max<std::size_t>(one.tuned.size() - 1, 1));
  });
  const SeedFigures top1 = at(&Trained::tuned, own);
  std::vector<PairedGain> gains;
  for (const std::size_t m : {kBatch, kCopies}) {
    gains.push_back(
        {fmt::format("{}: points gained at {} pixels by '{}'", format, asked.own, study.methods[m]),
         gain(top1, m, kFixed), published_in(format, "accuracy")});
    gains.push_back(
        {fmt::format("{}: points less lost at other sizes by '{}'", format, study.methods[m]),
         gain(drop, kFixed, m), published_in(format, "resilience")});
  }
  gains.push_back({fmt::format("{}: points gained by smoothing", format),
                   gain(top1, kSmoothed, kCopies), published_in(format, "smoothing")});
  std::vector<StudyColumn> columns{
      name_column("method", study.methods),
      {"steps",
       [&](std::size_t m) { return fmt::format("{:.0f}", study.mean(m, &Trained::steps)); }},
      {"G multiply-adds, predicted | counted", [&](std::size_t m) {
         const double seeds = 1e9 * static_cast<double>(plan.seeds.size());
         return fmt::format("{:.2f} | {:.2f}", predicted[m] / seeds,
                            study.mean(m, &Trained::multiply_adds) * 1e-9);
       }}};
  Chart chart{.title = "Accuracy by the size of test images, " + asked.trial.net + " in " + format,
              .caption =
                  "Means over the seeds, statistics re-estimated for each size, and as "
                  "trained for the first method.",
              .x = "pixels",
              .y = "top-1, %"};
  for (std::size_t t = 0; t < asked.tests.size(); ++t) {
    const SeedFigures stale = at(&Trained::stale, t), tuned = at(&Trained::tuned, t);
    const auto size = static_cast<double>(asked.tests[t]);
    const auto mean = [](const std::vector<double>& figures) {
      return stats::paired_interval(figures).mean;
    };
    columns.push_back(mean_column(fmt::format("{} as trained, %", asked.tests[t]), stale, 1));
    columns.push_back(mean_column(fmt::format("{} re-estimated, %", asked.tests[t]), tuned, 1));
    for (std::size_t m = 0; m < study.size(); ++m)
      chart.of(study.methods[m]).points.push_back({.x = size, .y = mean(tuned[m])});
    chart.of(study.methods[kFixed] + ", as trained")
        .points.push_back({.x = size, .y = mean(stale[kFixed])});
    if (t == own) continue;
    gains.push_back({fmt::format("{}: points gained by re-estimated statistics at {} pixels, '{}'",
                                 format, asked.tests[t], study.methods[kFixed]),
                     stats::paired_interval(tuned[kFixed], stale[kFixed]),
                     published_in(format, "statistics")});
  }
  conclusion.add(judge_gains(gains));
  conclusion.tables.push_back(
      study_table(fmt::format("{} on {} in {}, {}: top-1 by size of test images", asked.trial.net,
                              data.name(), format, counted(std::ssize(plan.seeds), "seed")),
                  study.size(), columns));
  conclusion.charts.push_back(std::move(chart));
  for (std::size_t m = 0; m < study.size(); ++m) {
    double counted = 0;
    for (const Trained& one : study.runs[m]) counted += one.multiply_adds;
    conclusion.add(exact_finding(fmt::format("{}: multiply-adds of '{}'", format, study.methods[m]),
                                 predicted[m], counted, predicted[m] == counted),
                   "cost");
  }
}

Conclusion run_image_sizes(const ExperimentRun& run) {
  const net::Dataset data = load_data(run);
  const Question asked = question(run, data);
  Conclusion conclusion;
  add_steps(run, data, asked, conclusion);
  for (const std::string& format : run.settings.list("formats"))
    add_training(run, data, asked, format, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::image_sizes

namespace numemu::experiments {

extern const Experiment experiment_image_sizes = {
    "image-sizes",
    "what images of several sizes in one training cost, and what they are worth at each size",
    "Hoffer et al. (arXiv 1908.08986) claim that steps on images of sizes drawn at random, with "
    "batches or copies that keep their cost, train networks that are more accurate at the usual "
    "size and at others, once the statistics of normalisation are re-estimated for the size.",
    {{"area", "A step costs as much at every size, within 10 % (published; the margin is ours)."},
     {"cost", "Counted multiply-adds are those of the shapes of layers (derived here)."},
     {"weights", "Smoothing weighs copies from 1 to the root of their number (derived here)."},
     {"accuracy", "Mixed sizes gain accuracy at the size of the data set (published).", "seeds"},
     {"resilience", "Mixed sizes lose less accuracy at other sizes (published).", "seeds"},
     {"smoothing", "Smoothed gradients gain accuracy (published).", "seeds"},
     {"statistics", "Re-estimated statistics gain accuracy at other sizes (published).", "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"net", "mobilenet-small", "mobilenet-small", "resnet20", "network that takes all sizes",
      takes_network()},
     {"data", "glyphs", "glyphs", "cifar10", "data set of square images", takes_data_set()},
     {"formats", "float32", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4",
      "of weights and activations in training and test", list_of()},
     {"sizes", "28:0.3,36:0.2,20:0.3,14:0.2", "28:0.3,36:0.2,20:0.3,14:0.2",
      "32:0.3,48:0.2,24:0.3,16:0.2", "pixels and shares of steps where sizes are mixed",
      text_of(image_sizes::check_sizes)},
     {"small", "20", "20", "24", "pixels of a training at one smaller size", whole(1, 4096)},
     {"tests", "14,20,28,36", "14,20,28,36", "16,24,32,48", "pixels of test images",
      wholes(1, 4096)},
     {"copies", "1", "of each sample at the size of the data set", whole(1, 1024)},
     {"smoothing", "4", "8", "16", "steps between two measurements of smoothing",
      whole(1, 1'000'000)},
     {"shift", "2", "2", "4", "largest shift of augmentation, in pixels", whole(0, 4096)},
     {"flip", "0", "0", "1", "1: augmentation flips images", whole(0, 1)},
     {"norm_samples", "64", "256", "512", "samples that statistics are re-estimated on",
      whole(2, 1'000'000'000)},
     {"optimizer", "adam", "adam", "sgd", "at the rates recommended for it", takes_optimizer()},
     rate_settings(),
     {"epochs", "1", "passes over the training images", whole(1, 10'000)},
     {"batch", "8", "8", "32", "samples of a step at the size of the data set", whole(1, 100'000)},
     {"train_samples", "256", "3072", "2048", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "60", "400", "1000", "test images; 0: all", whole(0, 1'000'000'000)},
     seeds_setting({"1", "3", "3"})},
    image_sizes::run_image_sizes};

}  // namespace numemu::experiments
