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
  return Option("figures DIR", &target,
                "Folder for the report's figures as SVG, PDF and CSV and its tables as LaTeX");
}

Option gate_option(std::optional<experiments::Gate>& gate) {
  return Option(
      "gate TARGET", [&gate](const std::string& text) { gate = experiments::parse_gate(text); },
      gate_help());
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
  return Option(
      name, [&existing, to] { existing = to; }, std::move(help));
}

std::vector<Option> optimizer_options(TrainRequest& r) {
  net::TrainOptions& train = r.train;
  return {
      Option("optimizer NAME", &r.optimizer,
             joined(net::optimizer_names(), ", ") + " (default: the recipe's, else the network's)"),
      // The list is the arguments of a call.
      Option(
          "objectives LIST",
          [&train](const std::string& text) {
            train.objectives = parse_call("objectives(" + text + ")").arguments;
          },
          joined(net::objective_names(), ", ") +
              ", in turn within a step, separated by commas (default: the recipe's, else "
              "cross_entropy)")
          .called("--objective"),
      Option("schedule NAME", &train.schedule, joined(net::schedule_names(), ", ")).shown(),
      Option("learning_rate", &r.learning_rate,
             "Learning rate (default: depends on network and optimizer)")
          .called("--lr")
          .positive(),
      Option("warmup", &r.warmup, "Warm-up steps of the learning rate (default: as for --lr)")
          .from(0, kMostSteps),
      Option("weight_decay", &r.weight_decay, "Weight decay (default: as for --lr)").not_negative(),
      Option("clip", &r.clip,
             "Maximum global norm of the gradients, 0: no limit (default: as for --lr)")
          .not_negative(),
      Option("momentum", &train.momentum, "Momentum of sgd").fraction().shown(),
      Option("nesterov", &train.nesterov, "Use Nesterov momentum for sgd"),
      Option("beta1", &train.beta1, "Decay of the first moment of adam and adamax")
          .fraction()
          .shown(),
      Option("beta2", &train.beta2,
             "Decay of the second moment of adam, or of the largest gradient of adamax")
          .fraction()
          .shown(),
      Option("epsilon", &train.epsilon, "Added to the root of adam's second moment")
          .positive()
          .shown(),
  };
}

std::vector<Option> loop_options(TrainRequest& r) {
  net::TrainOptions& train = r.train;
  return {
      Option("epochs", &train.epochs, "Passes over the training samples").from(1, 100000).shown(),
      Option("patience E", &train.patience,
             "End after E epochs without a lower validation loss, with the best weights "
             "(default: all epochs, the last weights)")
          .from(1, 100000),
      Option("batch", &train.batch, "Samples per step").from(1, 65536).shown(),
      Option("workers N", &train.workers,
             "Simulated workers that share the samples of a step and exchange gradients")
          .from(1, 65536)
          .shown(),
      Option("micro_batches M", &train.micro_batches,
             "Parts that each worker cuts its samples into")
          .from(1, 65536)
          .shown(),
      Option("local_steps H", &train.local_steps,
             "Steps that each worker takes on weights of its own between two exchanges (default: "
             "gradients are exchanged in every step)")
          .from(1, kMostSteps),
      Option(
          "augment LIST", [&r](const std::string& text) { r.augment = parse_augmentation(text); },
          "Augment training images: shift=PIXELS, crop=PIXELS, flip, separated by commas"),
      Option("copies M", &train.copies,
             "Augmented copies of each sample in a step, which has batch x M rows")
          .from(1, 1024)
          .shown(),
      Option("image_size S", &r.view.image_size,
             "Resize images to S x S pixels (default: as stored)")
          .from(1, kMostPixels),
      Option(
          "image_sizes LIST",
          [&train](const std::string& text) { train.sizes.shares = net::parse_image_sizes(text); },
          "SIZE:SHARE, separated by commas: each step draws the size of its images"),
      Option("size_changes WHAT", &train.sizes.change,
             "What keeps the cost of a step at another size, by the square of the ratio or, for "
             "both, by the ratio each")
          .one_of({"batch", "copies", "both", "none"})
          .shown(),
      Option("size_smoothing K", &train.sizes.smoothing,
             "Every K steps compare the gradient with that of one copy, and scale the loss to its "
             "norm (default: never)")
          .from(1, kMostSteps),
      Option("label_noise P", &r.view.label_noise,
             "Replace this share of the training labels by other classes")
          .fraction(),
      Option("seed", &r.seed,
             "Seed of weights, order, dropout, augmentation and label noise (the recipe's is for "
             "rounding)")
          .from(0, kMostSeed)
          .shown(),
  };
}

}  // namespace

std::string gate_help() {
  std::vector<std::string> names;
  for (const experiments::GatePreset& preset : experiments::gate_presets())
    names.emplace_back(preset.name);
  return fmt::format(
      "Exit with 1 if the accuracy misses a target at 99 %: 0.99 (of float32's top-1), "
      "METRIC>=NUMBER, METRIC>=SHARE*float32 or {}",
      joined(names, ", "));
}

std::vector<Option> options_of(OpenRequest& r) {
  return {
      Option("net NAME|FILE", &r.net, kTrainedNet).needed(),
      Option("data SET", &r.data, kDataSet).needed(),
      Option("calibrate_on SET", &r.calibrate_on, kOtherSet),
      Option("recipe NAME|R.json", &r.recipe, "Recipe").or_json(),
      Option("image_size S", &r.image_size, "Resize images to S x S pixels (default: as stored)")
          .from(1, kMostPixels),
      Option("fold_batch_norm", &r.fold_batch_norm, kFold),
  };
}

std::vector<Option> options_of(EvaluateRequest& r) {
  return {
      Option("metrics NAME...", &r.metrics, metric_help()).called("--metric"),
      Option("images N", &r.images, "Use only the first N test images").from(1, kMostImages),
      Option("predictions", &r.predictions, kMeasureOnly).called("--no-predictions"),
      gate_option(r.gate),
      Option("fresh", &r.fresh, "Compute the float32 baseline again, ignoring the cache"),
  };
}

std::vector<Option> options_of(InferRequest& r) {
  return {
      Option("model NAME|FILE", &r.model,
             "An .onnx file, a checkpoint, NAME=FILE or a network's name")
          .needed(),
      Option("in [name=]x.npy", &r.in,
             "Array of an input, samples first (or on the axis that the file calls batch); images "
             "[n, c, h, w] of an .onnx file, [n, h, w, c] of built-in networks (repeatable)")
          .needed()
          .about_files(),
      Option("out [name=]y.npy|y.safetensors", &r.out, "File for an output (repeatable)")
          .needed()
          .about_files(),
      Option("recipe NAME|R.json", &r.recipe, "Recipe").or_json(),
      Option("calibrate_on [name=]x.npy|SET", &r.calibrate_on,
             "Arrays (repeatable) or a data set that calibrate static scales (default: --in)"),
      Option("normalize PRESET", &r.normalize,
             "Of uint8: imagenet, cifar or none, (p / 255 - mean) / deviation")
          .about_files(),
      Option("mean X", &r.mean, "Of uint8: mean, or one for each channel: 0.5/0.5/0.5")
          .about_files(),
      Option("deviation X", &r.deviation, "Of uint8: deviation, as --mean").about_files(),
      Option("metrics NAME...", &r.metrics,
             "Of the first output against float32: cosine, sqnr; others need targets (eval)")
          .called("--metric"),
      Option("noise", &r.noise, "No noise of layers").called("--outputs-only"),
      Option("predictions", &r.predictions, "Measure the noise only").called("--no-predictions"),
      Option("fold_batch_norm", &r.fold_batch_norm, kFold),
      Option("batch N", &r.batch, "Samples per batch").from(1, 65536).shown(),
  };
}

std::vector<Option> options_of(TrainRequest& r) {
  std::vector<Option> all = {
      Option("net NAME|FILE", &r.net, "Reference network, ONNX file or checkpoint").shown(),
      Option("data SET", &r.data, kDataSet).needed(),
      Option("out DIR", &r.out, "Folder for the checkpoint, metrics.jsonl and the state").shown(),
      Option("recipe NAME|R.json", &r.recipe, "Recipe: the numerics of training").or_json(),
      Option("store", &r.store, "Type of the stored weights")
          .one_of({"f32", "f16", "bf16"})
          .shown(),
      Option("save_every N", &r.save_every, "Store the state every N steps and after each epoch")
          .from(1, kMostSteps),
      Option("fresh", &r.fresh, "Ignore the state in the folder and start over"),
  };
  std::ranges::move(optimizer_options(r), std::back_inserter(all));
  std::ranges::move(loop_options(r), std::back_inserter(all));
  return all;
}

std::vector<Option> options_of(SweepRequest& r) {
  return {
      Option("config CONFIG.json", &r.config, "Sweep file").called("config").or_json(),
      Option("out DIR", &r.out, "Folder for rows and report (default out/<name of the sweep>)"),
      Option("calibrate_on SET", &r.calibrate_on, kOtherSet),
      Option("metrics NAME...", &r.metrics, metric_help()).called("--metric"),
      Option("shard i/n", &r.shard, "Run only the points i, i+n, i+2n, ..."),
      existing_option(r.existing, Existing::fresh, "fresh",
                      "Delete existing rows (with --shard: this shard's) and compute the float32 "
                      "baseline again, ignoring the cache"),
      existing_option(r.existing, Existing::keep_old, "keep_old",
                      "Keep rows of other numerics versions as well"),
      Option("predictions", &r.predictions, kMeasureOnly).called("--no-predictions"),
      gate_option(r.gate),
      figures_option(r.figures),
  };
}

std::vector<Option> options_of(ExperimentRequest& r) {
  return {
      Option("name NAME", &r.name, "Experiment").called("name"),
      Option("settings key=value", &r.settings, "Change a setting (repeatable)").called("--set"),
      Option("size SIZE", &r.size, "smoke (20 s), default (10 minutes) or full (longer)").shown(),
      Option("seed", &r.seed, "Seed of all random draws").from(0, kMostSeed).shown(),
      Option("out DIR", &r.out, "Folder for rows and report (default out/NAME-SIZE)"),
      existing_option(r.existing, Existing::fresh, "fresh",
                      "Delete existing rows and compute the float32 baseline again, ignoring the "
                      "cache"),
      Option("shard i/n", &r.shard, "Run only the trials i, i+n, i+2n, ... and conclude nothing"),
      figures_option(r.figures),
  };
}

}  // namespace numemu::api
