// Cold: once a run.
#include "api/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/networks.hpp"
#include "api/studies.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/net/train/score.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::api {
namespace {

constexpr std::int64_t kMostImages = 100'000'000, kMostPixels = 4096, kMostSteps = 1'000'000'000;
constexpr std::int64_t kMostSeed = std::int64_t{1} << 53;

constexpr const char* kTrainedNet =
    "A reference network with a shipped checkpoint, a .safetensors or .onnx file, or NAME=FILE";
constexpr const char* kDataSet =
    "glyphs, clicks, chain, mnist:DIR, cifar10:DIR, cifar100:DIR, images:DIR, text:FILE, "
    "tokens:FILE or npy:DIR, with options: docs/data.md";
constexpr const char* kFold = "Fold batch normalisation into the weights before it";
constexpr const char* kOtherSet = "Calibrate on the samples of another data set";
constexpr const char* kMeasureOnly = "Measure only";

std::string metric_help() {
  return fmt::format(
      "Metrics beside top-1 and loss; the first one judges: {} (default: those of the data set)",
      joined(net::score_names(), ", "));
}

/// Of ReportPaths.
Option figures_option(std::string& target) {
  return {.name = "figures",
          .target = &target,
          .help = "Folder for the report's figures as SVG, PDF and CSV and its tables as LaTeX",
          .value = "DIR"};
}

Option gate_option(std::optional<experiments::Gate>& gate) {
  std::vector<std::string> names;
  for (const experiments::GatePreset& preset : experiments::gate_presets())
    names.emplace_back(preset.name);
  return {
      .name = "gate",
      .target = [&gate](const std::string& text) { gate = experiments::parse_gate(text); },
      .help = fmt::format("Exit with 1 if the accuracy misses a target at 99 %: 0.99 (of float32's "
                          "top-1), METRIC>=NUMBER, METRIC>=SHARE*float32 or {}",
                          joined(names, ", ")),
      .value = "TARGET"};
}

// "shift=2,flip,crop=4"
net::Augmentation parse_augmentation(const std::string& text) {
  net::Augmentation augment;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    start = end + 1;
    const std::string name = part.substr(0, part.find('='));
    if (part == "flip") {
      augment.flip = true;
      continue;
    }
    std::int64_t pixels = 0;
    const char* const last = part.data() + part.size();
    const char* const first = part.data() + std::min(part.size(), name.size() + 1);
    const auto [stop, error] = std::from_chars(first, last, pixels);
    const bool known = name == "shift" || name == "crop";
    if (!known || error != std::errc() || stop != last || pixels < 1 || pixels > kMostPixels) {
      throw usage_error(fmt::format(
          "--augment: expected shift=PIXELS, crop=PIXELS or flip, separated by commas, not '{}'",
          part));
    }
    (name == "shift" ? augment.shift : augment.crop) = pixels;
  }
  return augment;
}

Option existing_option(Existing& existing, Existing to, const char* name, std::string help) {
  return {.name = name, .target = [&existing, to] { existing = to; }, .help = std::move(help)};
}

std::vector<Option> optimizer_options(TrainRequest& r) {
  net::TrainOptions& train = r.train;
  return {
      {.name = "optimizer",
       .target = &r.optimizer,
       .help =
           joined(net::optimizer_names(), ", ") + " (default: the recipe's, else the network's)",
       .value = "NAME"},
      // The list is the arguments of a call.
      {.name = "objectives",
       .target =
           [&train](const std::string& text) {
             train.objectives = parse_call("objectives(" + text + ")").arguments;
           },
       .help = joined(net::objective_names(), ", ") +
               ", in turn within a step, separated by commas (default: the recipe's, else "
               "cross_entropy)",
       .value = "LIST",
       .flag = "--objective"},
      {.name = "schedule",
       .target = &train.schedule,
       .help = joined(net::schedule_names(), ", "),
       .value = "NAME",
       .standard = true},
      {.name = "learning_rate",
       .target = &r.learning_rate,
       .help = "Learning rate (default: depends on network and optimizer)",
       .flag = "--lr",
       .real = Option::Real::positive},
      {.name = "warmup",
       .target = &r.warmup,
       .help = "Warm-up steps of the learning rate (default: as for --lr)",
       .least = 0,
       .most = kMostSteps},
      {.name = "weight_decay",
       .target = &r.weight_decay,
       .help = "Weight decay (default: as for --lr)",
       .real = Option::Real::non_negative},
      {.name = "clip",
       .target = &r.clip,
       .help = "Maximum global norm of the gradients, 0: no limit (default: as for --lr)",
       .real = Option::Real::non_negative},
      {.name = "momentum",
       .target = &train.momentum,
       .help = "Momentum of sgd",
       .real = Option::Real::fraction,
       .standard = true},
      {.name = "nesterov", .target = &train.nesterov, .help = "Use Nesterov momentum for sgd"},
      {.name = "beta1",
       .target = &train.beta1,
       .help = "Decay of the first moment of adam and adamax",
       .real = Option::Real::fraction,
       .standard = true},
      {.name = "beta2",
       .target = &train.beta2,
       .help = "Decay of the second moment of adam, or of the largest gradient of adamax",
       .real = Option::Real::fraction,
       .standard = true},
      {.name = "epsilon",
       .target = &train.epsilon,
       .help = "Added to the root of adam's second moment",
       .real = Option::Real::positive,
       .standard = true},
  };
}

std::vector<Option> loop_options(TrainRequest& r) {
  net::TrainOptions& train = r.train;
  return {
      {.name = "epochs",
       .target = &train.epochs,
       .help = "Passes over the training samples",
       .least = 1,
       .most = 100000,
       .standard = true},
      {.name = "patience",
       .target = &train.patience,
       .help = "End after E epochs without a lower validation loss, with the best weights "
               "(default: all epochs, the last weights)",
       .value = "E",
       .least = 1,
       .most = 100000},
      {.name = "batch",
       .target = &train.batch,
       .help = "Samples per step",
       .least = 1,
       .most = 65536,
       .standard = true},
      {.name = "workers",
       .target = &train.workers,
       .help = "Simulated workers that share the samples of a step and exchange gradients",
       .value = "N",
       .least = 1,
       .most = 65536,
       .standard = true},
      {.name = "micro_batches",
       .target = &train.micro_batches,
       .help = "Parts that each worker cuts its samples into",
       .value = "M",
       .least = 1,
       .most = 65536,
       .standard = true},
      {.name = "local_steps",
       .target = &train.local_steps,
       .help = "Steps that each worker takes on weights of its own between two exchanges (default: "
               "gradients are exchanged in every step)",
       .value = "H",
       .least = 1,
       .most = kMostSteps},
      {.name = "augment",
       .target = [&r](const std::string& text) { r.augment = parse_augmentation(text); },
       .help = "Augment training images: shift=PIXELS, crop=PIXELS, flip, separated by commas",
       .value = "LIST"},
      {.name = "copies",
       .target = &train.copies,
       .help = "Augmented copies of each sample in a step, which has batch x M rows",
       .value = "M",
       .least = 1,
       .most = 1024,
       .standard = true},
      {.name = "image_size",
       .target = &r.view.image_size,
       .help = "Resize images to S x S pixels (default: as stored)",
       .value = "S",
       .least = 1,
       .most = kMostPixels},
      {.name = "image_sizes",
       .target =
           [&train](const std::string& text) { train.sizes.shares = net::parse_image_sizes(text); },
       .help = "SIZE:SHARE, separated by commas: each step draws the size of its images",
       .value = "LIST"},
      {.name = "size_changes",
       .target = &train.sizes.change,
       .help = "What keeps the cost of a step at another size, by the square of the ratio or, for "
               "both, by the ratio each",
       .value = "WHAT",
       .words = {"batch", "copies", "both", "none"},
       .standard = true},
      {.name = "size_smoothing",
       .target = &train.sizes.smoothing,
       .help =
           "Every K steps compare the gradient with that of one copy, and scale the loss to its "
           "norm (default: never)",
       .value = "K",
       .least = 1,
       .most = kMostSteps},
      {.name = "label_noise",
       .target = &r.view.label_noise,
       .help = "Replace this share of the training labels by other classes",
       .value = "P",
       .real = Option::Real::fraction},
      {.name = "seed",
       .target = &r.seed,
       .help = "Seed of weights, order, dropout, augmentation and label noise (the recipe's is for "
               "rounding)",
       .least = 0,
       .most = kMostSeed,
       .standard = true},
  };
}

}  // namespace

std::vector<Option> options_of(OpenRequest& r) {
  return {
      {.name = "net",
       .target = &r.net,
       .help = kTrainedNet,
       .value = "NAME|FILE",
       .required = true},
      {.name = "data", .target = &r.data, .help = kDataSet, .value = "SET", .required = true},
      {.name = "calibrate_on", .target = &r.calibrate_on, .help = kOtherSet, .value = "SET"},
      {.name = "recipe",
       .target = &r.recipe,
       .help = "Recipe",
       .value = "NAME|R.json",
       .json = true},
      {.name = "image_size",
       .target = &r.image_size,
       .help = "Resize images to S x S pixels (default: as stored)",
       .value = "S",
       .least = 1,
       .most = kMostPixels},
      {.name = "fold_batch_norm", .target = &r.fold_batch_norm, .help = kFold},
  };
}

std::vector<Option> options_of(EvaluateRequest& r) {
  return {
      {.name = "metrics",
       .target = &r.metrics,
       .help = metric_help(),
       .value = "NAME...",
       .flag = "--metric"},
      {.name = "images",
       .target = &r.images,
       .help = "Use only the first N test images",
       .value = "N",
       .least = 1,
       .most = kMostImages},
      {.name = "predictions",
       .target = &r.predictions,
       .help = kMeasureOnly,
       .flag = "--no-predictions"},
      gate_option(r.gate),
      {.name = "fresh",
       .target = &r.fresh,
       .help = "Compute the float32 baseline again, ignoring the cache"},
  };
}

std::vector<Option> options_of(InferRequest& r) {
  return {
      {.name = "model",
       .target = &r.model,
       .help = "An .onnx file, a checkpoint, NAME=FILE or a network's name",
       .value = "NAME|FILE",
       .required = true},
      {.name = "in",
       .target = &r.in,
       .help =
           "Array of an input, samples first (or on the axis that the file calls batch); images "
           "[n, c, h, w] of an .onnx file, [n, h, w, c] of built-in networks (repeatable)",
       .value = "[name=]x.npy",
       .required = true,
       .files = true},
      {.name = "out",
       .target = &r.out,
       .help = "File for an output (repeatable)",
       .value = "[name=]y.npy|y.safetensors",
       .required = true,
       .files = true},
      {.name = "recipe",
       .target = &r.recipe,
       .help = "Recipe",
       .value = "NAME|R.json",
       .json = true},
      {.name = "calibrate_on",
       .target = &r.calibrate_on,
       .help = "Arrays (repeatable) or a data set that calibrate static scales (default: --in)",
       .value = "[name=]x.npy|SET"},
      {.name = "normalize",
       .target = &r.normalize,
       .help = "Of uint8: imagenet, cifar or none, (p / 255 - mean) / deviation",
       .value = "PRESET",
       .files = true},
      {.name = "mean",
       .target = &r.mean,
       .help = "Of uint8: mean, or one for each channel: 0.5/0.5/0.5",
       .value = "X",
       .files = true},
      {.name = "deviation",
       .target = &r.deviation,
       .help = "Of uint8: deviation, as --mean",
       .value = "X",
       .files = true},
      {.name = "metrics",
       .target = &r.metrics,
       .help = "Of the first output against float32: cosine, sqnr; others need targets (eval)",
       .value = "NAME...",
       .flag = "--metric"},
      {.name = "noise", .target = &r.noise, .help = "No noise of layers", .flag = "--outputs-only"},
      {.name = "predictions",
       .target = &r.predictions,
       .help = "Measure the noise only",
       .flag = "--no-predictions"},
      {.name = "fold_batch_norm", .target = &r.fold_batch_norm, .help = kFold},
      {.name = "batch",
       .target = &r.batch,
       .help = "Samples per batch",
       .value = "N",
       .least = 1,
       .most = 65536,
       .standard = true},
  };
}

std::vector<Option> options_of(TrainRequest& r) {
  std::vector<Option> all = {
      {.name = "net",
       .target = &r.net,
       .help = "Reference network, ONNX file or checkpoint",
       .value = "NAME|FILE",
       .standard = true},
      {.name = "data", .target = &r.data, .help = kDataSet, .value = "SET", .required = true},
      {.name = "out",
       .target = &r.out,
       .help = "Folder for the checkpoint, metrics.jsonl and the state",
       .value = "DIR",
       .standard = true},
      {.name = "recipe",
       .target = &r.recipe,
       .help = "Recipe: the numerics of training",
       .value = "NAME|R.json",
       .json = true},
      {.name = "store",
       .target = &r.store,
       .help = "Type of the stored weights",
       .words = {"f32", "f16", "bf16"},
       .standard = true},
      {.name = "save_every",
       .target = &r.save_every,
       .help = "Store the state every N steps and after each epoch",
       .value = "N",
       .least = 1,
       .most = kMostSteps},
      {.name = "fresh",
       .target = &r.fresh,
       .help = "Ignore the state in the folder and start over"},
  };
  std::ranges::move(optimizer_options(r), std::back_inserter(all));
  std::ranges::move(loop_options(r), std::back_inserter(all));
  return all;
}

std::vector<Option> options_of(SweepRequest& r) {
  return {
      {.name = "config",
       .target = &r.config,
       .help = "Sweep file",
       .value = "CONFIG.json",
       .flag = "config",
       .json = true},
      {.name = "out",
       .target = &r.out,
       .help = "Folder for rows and report (default out/<name of the sweep>)",
       .value = "DIR"},
      {.name = "calibrate_on", .target = &r.calibrate_on, .help = kOtherSet, .value = "SET"},
      {.name = "metrics",
       .target = &r.metrics,
       .help = metric_help(),
       .value = "NAME...",
       .flag = "--metric"},
      {.name = "shard",
       .target = &r.shard,
       .help = "Run only the points i, i+n, i+2n, ...",
       .value = "i/n"},
      existing_option(r.existing, Existing::fresh, "fresh",
                      "Delete existing rows (with --shard: this shard's) and compute the float32 "
                      "baseline again, ignoring the cache"),
      existing_option(r.existing, Existing::keep_old, "keep_old",
                      "Keep rows of other numerics versions as well"),
      {.name = "predictions",
       .target = &r.predictions,
       .help = kMeasureOnly,
       .flag = "--no-predictions"},
      gate_option(r.gate),
      figures_option(r.figures),
  };
}

std::vector<Option> options_of(ExperimentRequest& r) {
  return {
      {.name = "name", .target = &r.name, .help = "Experiment", .value = "NAME", .flag = "name"},
      {.name = "settings",
       .target = &r.settings,
       .help = "Change a setting (repeatable)",
       .value = "key=value",
       .flag = "--set"},
      {.name = "size",
       .target = &r.size,
       .help = "smoke (20 s), default (10 minutes) or full (longer)",
       .value = "SIZE",
       .standard = true},
      {.name = "seed",
       .target = &r.seed,
       .help = "Seed of all random draws",
       .least = 0,
       .most = kMostSeed,
       .standard = true},
      {.name = "out",
       .target = &r.out,
       .help = "Folder for rows and report (default out/NAME-SIZE)",
       .value = "DIR"},
      existing_option(r.existing, Existing::fresh, "fresh",
                      "Delete existing rows and compute the float32 baseline again, ignoring the "
                      "cache"),
      {.name = "shard",
       .target = &r.shard,
       .help = "Run only the trials i, i+n, i+2n, ... and conclude nothing",
       .value = "i/n"},
      figures_option(r.figures),
  };
}

}  // namespace numemu::api
