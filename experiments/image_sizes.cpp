// Mix & Match: trainings on images of several sizes, their cost, and accuracy by the size of test
// images (Hoffer et al. 2019, arXiv 1908.08986).
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/train/train.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/image_sizes/trainings.hpp"
#include "experiments/methods/rate.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {
namespace image_sizes {
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

Conclusion run_image_sizes(const ExperimentRun& run) {
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  const Question asked = question(run, data);
  Conclusion conclusion;
  add_steps(run, data, asked, conclusion);
  for (const std::string& format : run.settings.list("formats"))
    add_training(run, data, asked, format, conclusion);
  return conclusion;
}

}  // namespace
}  // namespace image_sizes

extern const Experiment experiment_image_sizes;
const Experiment experiment_image_sizes = {
    "image-sizes",
    "what images of several sizes in one training cost, and what they are worth at each size",
    "Hoffer et al. (arXiv 1908.08986) claim that steps on images of sizes drawn at random, with "
    "batches or copies that keep their cost, train networks that are more accurate at the usual "
    "size and at others, once the statistics of normalisation are re-estimated for the size.",
    {{"area", "A step costs as much at every size, within 10 % (published)."},
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
     {"copies", "1", "1", "1", "of each sample at the size of the data set", whole(1, 1024)},
     {"smoothing", "4", "8", "16", "steps between two measurements of smoothing",
      whole(1, 1'000'000)},
     {"shift", "2", "2", "4", "largest shift of augmentation, in pixels", whole(0, 4096)},
     {"flip", "0", "0", "1", "1: augmentation flips images", whole(0, 1)},
     {"norm_samples", "64", "256", "512", "samples that statistics are re-estimated on",
      whole(2, 1'000'000'000)},
     {"optimizer", "adam", "adam", "sgd", "at the rates recommended for it", takes_optimizer()},
     kRate,
     kWarmup,
     {"epochs", "1", "1", "1", "passes over the training images", whole(1, 10'000)},
     {"batch", "8", "8", "32", "samples of a step at the size of the data set", whole(1, 100'000)},
     {"train_samples", "256", "3072", "2048", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "60", "400", "1000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "3", "3", "seeds that methods are paired by", whole(1, 1000)}},
    image_sizes::run_image_sizes};

}  // namespace numemu::experiments
