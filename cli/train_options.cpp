#include "cli/train_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/command.hpp"
#include "cli/memory_option.hpp"
#include "cli/network_option.hpp"
#include "cli/profile_table.hpp"
#include "cli/recipe_option.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/objectives.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kMostPixels = 4096;

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
      throw Error(fmt::format(
          "--augment: expected shift=PIXELS, crop=PIXELS or flip, separated by commas, not '{}'",
          part));
    }
    (name == "shift" ? augment.shift : augment.crop) = pixels;
  }
  return augment;
}

void add_files(Command& command, TrainCommand& options) {
  command.option("--net NAME|FILE", options.net, "Reference network, ONNX file or checkpoint")
      .show_default();
  add_data_set(command, options.data);
  command.option("--out DIR", options.out, "Folder for the checkpoint, metrics.jsonl and the state")
      .show_default();
  add_recipe(command, options.recipe, "Recipe: the numerics of training", /*training=*/true);
  command.option("--store", options.store, "Type of the stored weights")
      .show_default()
      .one_of({"f32", "f16", "bf16"});
  command
      .option("--save-every N", options.save_every,
              "Store the state every N steps and after each epoch")
      .whole(1, 1'000'000'000);
  command.flag("--fresh", options.fresh, "Ignore the state in the folder and start over");
}

void add_optimizer(Command& command, TrainCommand& options) {
  net::TrainOptions& train = options.train;
  command.option(
      "--optimizer NAME", options.optimizer,
      joined(net::optimizer_names(), ", ") + " (default: the recipe's, else the network's)");
  command.option("--schedule NAME", train.schedule, joined(net::schedule_names(), ", "))
      .show_default();
  command
      .option("--lr", options.learning_rate,
              "Learning rate (default: depends on network and optimizer)")
      .positive();
  command
      .option("--warmup", options.warmup,
              "Warm-up steps of the learning rate (default: as for --lr)")
      .whole(0, 1'000'000'000);
  command.option("--weight-decay", options.weight_decay, "Weight decay (default: as for --lr)")
      .non_negative();
  command
      .option("--clip", options.clip,
              "Maximum global norm of the gradients, 0: no limit (default: as for --lr)")
      .non_negative();
  command.option("--momentum", train.momentum, "Momentum of sgd").show_default().fraction();
  command.flag("--nesterov", train.nesterov, "Use Nesterov momentum for sgd");
  command.option("--beta1", train.beta1, "Decay of the first moment of adam and adamax")
      .show_default()
      .fraction();
  command
      .option("--beta2", train.beta2,
              "Decay of the second moment of adam, or of the largest gradient of adamax")
      .show_default()
      .fraction();
  command.option("--epsilon", train.epsilon, "Added to the root of adam's second moment")
      .show_default()
      .positive();
}

void add_loop(Command& command, TrainCommand& options) {
  net::TrainOptions& train = options.train;
  command.option("--epochs", train.epochs, "Passes over the training samples")
      .show_default()
      .whole(1, 100000);
  command
      .option("--patience E", train.patience,
              "End after E epochs without a lower validation loss, with the best weights "
              "(default: all epochs, the last weights)")
      .whole(1, 100000);
  command.option("--batch", train.batch, "Samples per step").show_default().whole(1, 65536);
  command
      .option("--workers N", train.workers,
              "Simulated workers that share the samples of a step and exchange gradients")
      .show_default()
      .whole(1, 65536);
  command
      .option("--micro-batches M", train.micro_batches,
              "Parts that each worker cuts its samples into")
      .show_default()
      .whole(1, 65536);
  command.option("--augment LIST", options.augment,
                 "Augment training images: shift=PIXELS, crop=PIXELS, flip, separated by commas");
  command
      .option("--copies M", train.copies,
              "Augmented copies of each sample in a step, which has batch x M rows")
      .show_default()
      .whole(1, 1024);
  command
      .option("--image-size S", options.view.image_size,
              "Resize images to S x S pixels (default: as stored)")
      .whole(1, kMostPixels);
  command
      .option("--label-noise P", options.view.label_noise,
              "Replace this share of the training labels by other classes")
      .fraction();
  command
      .option("--seed", options.seed,
              "Seed of weights, order, dropout, augmentation and label noise (the recipe's is for "
              "rounding)")
      .show_default()
      .whole(0, std::int64_t{1} << 53);
}

}  // namespace

void add_train_options(Command& command, TrainCommand& options) {
  add_files(command, options);
  add_optimizer(command, options);
  add_loop(command, options);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_profile(command, options.profile);
  add_threads(command);
  add_memory(command);
}

void settle(TrainCommand& options) {
  net::TrainOptions& train = options.train;
  train.optimizer = net::recommended_optimizer(options.net);
  if (!options.recipe.empty()) {
    Json recipe = parse_json(read_text(options.recipe), options.recipe);
    // A recipe that names no optimizer has the command's.
    if (options.optimizer && recipe.is_object()) {
      const Json* const update = recipe.find_path("/update");
      if (update == nullptr || update->is_null()) recipe["update"] = Json::object();
      if (recipe["update"].is_object() && !recipe["update"].contains("optimizer"))
        recipe["update"]["optimizer"] = *options.optimizer;
    }
    options.numerics = policies::Recipe::parse(recipe, options.recipe);
    const std::string named = options.numerics.update().optimizer;
    if (options.optimizer && *options.optimizer != named) {
      throw Error(fmt::format("{}: update.optimizer: '{}' contradicts --optimizer {}",
                              options.recipe, named, *options.optimizer));
    }
    train.optimizer = named;
  }
  if (options.optimizer) train.optimizer = *options.optimizer;
  net::use_recommended_rates(train, options.net);
  if (options.learning_rate) train.learning_rate = *options.learning_rate;
  if (options.weight_decay) train.weight_decay = *options.weight_decay;
  if (options.warmup) train.warmup = *options.warmup;
  if (options.clip) train.clip = *options.clip;
  if (options.augment) train.augment = parse_augmentation(*options.augment);
  if (!options.recipe.empty()) policies::use_objectives(options.numerics, options.recipe, train);
  train.seed = static_cast<std::uint64_t>(options.seed);
  options.view.seed = train.seed;
  net::check(train);
}

std::string training_text(const net::TrainOptions& t) {
  const net::TrainOptions usual;
  std::string text = fmt::format("{} {} lr {} ", t.optimizer, t.schedule, t.learning_rate);
  if (t.optimizer == "sgd")
    text += fmt::format("{}momentum {} ", t.nesterov ? "nesterov " : "", t.momentum);
  text += fmt::format("weight decay {} epochs {} batch {} seed {}", t.weight_decay, t.epochs,
                      t.batch, t.seed);
  if (t.optimizer != "sgd" &&
      (t.beta1 != usual.beta1 || t.beta2 != usual.beta2 || t.epsilon != usual.epsilon))
    text += fmt::format(" betas {} {} epsilon {}", t.beta1, t.beta2, t.epsilon);
  if (t.warmup > 0) text += fmt::format(" warmup {}", t.warmup);
  if (t.clip > 0) text += fmt::format(" clip {}", t.clip);
  if (t.objectives != usual.objectives)
    text += fmt::format(" objectives {}", joined(t.objectives, " "));
  for (const auto& [objective, optimizer] : t.objective_optimizers)
    text += fmt::format(" {} of {}", optimizer, objective);
  if (t.workers > 1) text += fmt::format(" workers {}", t.workers);
  if (t.micro_batches > 1) text += fmt::format(" micro-batches {}", t.micro_batches);
  if (t.copies > 1) text += fmt::format(" copies {}", t.copies);
  if (t.patience > 0) text += fmt::format(" patience {}", t.patience);
  if (t.augment.shift > 0) text += fmt::format(" shift {}", t.augment.shift);
  if (t.augment.crop > 0) text += fmt::format(" crop {}", t.augment.crop);
  if (t.augment.flip) text += " flip";
  return text;
}

}  // namespace numemu::cli
