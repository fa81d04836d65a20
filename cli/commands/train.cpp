// numemu train: a network from scratch to a checkpoint, the same bytes for the same options
// anywhere, interrupted or not.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "api/networks.hpp"
#include "api/cluster/ranks.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {
namespace {

struct TrainCommand {
  api::TrainRequest asked;
  std::optional<std::string> augment, image_sizes, objective;
  bool profile = false, quiet = false, json = false;
};

constexpr std::int64_t kMostTrainPixels = 4096;

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
    if (!known || error != std::errc() || stop != last || pixels < 1 || pixels > kMostTrainPixels) {
      throw usage_error(fmt::format(
          "--augment: expected shift=PIXELS, crop=PIXELS or flip, separated by commas, not '{}'",
          part));
    }
    (name == "shift" ? augment.shift : augment.crop) = pixels;
  }
  return augment;
}

void add_files(Command& command, TrainCommand& options) {
  command.option("--net NAME|FILE", options.asked.net, "Reference network, ONNX file or checkpoint")
      .show_default();
  add_data_set(command, options.asked.data);
  command
      .option("--out DIR", options.asked.out,
              "Folder for the checkpoint, metrics.jsonl and the state")
      .show_default();
  add_recipe(command, options.asked.recipe, "Recipe: the numerics of training", /*training=*/true);
  command.option("--store", options.asked.store, "Type of the stored weights")
      .show_default()
      .one_of({"f32", "f16", "bf16"});
  command
      .option("--save-every N", options.asked.save_every,
              "Store the state every N steps and after each epoch")
      .whole(1, 1'000'000'000);
  command.flag("--fresh", options.asked.fresh, "Ignore the state in the folder and start over");
}

void add_optimizer(Command& command, TrainCommand& options) {
  net::TrainOptions& train = options.asked.train;
  command.option(
      "--optimizer NAME", options.asked.optimizer,
      joined(net::optimizer_names(), ", ") + " (default: the recipe's, else the network's)");
  command.option("--objective LIST", options.objective,
                 joined(net::objective_names(), ", ") +
                     ", in turn within a step, separated by commas (default: the recipe's, else "
                     "cross_entropy)");
  command.option("--schedule NAME", train.schedule, joined(net::schedule_names(), ", "))
      .show_default();
  command
      .option("--lr", options.asked.learning_rate,
              "Learning rate (default: depends on network and optimizer)")
      .positive();
  command
      .option("--warmup", options.asked.warmup,
              "Warm-up steps of the learning rate (default: as for --lr)")
      .whole(0, 1'000'000'000);
  command
      .option("--weight-decay", options.asked.weight_decay, "Weight decay (default: as for --lr)")
      .non_negative();
  command
      .option("--clip", options.asked.clip,
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
  net::TrainOptions& train = options.asked.train;
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
  command
      .option("--local-steps H", train.local_steps,
              "Steps that each worker takes on weights of its own between two exchanges (default: "
              "gradients are exchanged in every step)")
      .whole(1, 1'000'000'000);
  command.option("--augment LIST", options.augment,
                 "Augment training images: shift=PIXELS, crop=PIXELS, flip, separated by commas");
  command
      .option("--copies M", train.copies,
              "Augmented copies of each sample in a step, which has batch x M rows")
      .show_default()
      .whole(1, 1024);
  command
      .option("--image-size S", options.asked.view.image_size,
              "Resize images to S x S pixels (default: as stored)")
      .whole(1, kMostTrainPixels);
  command.option("--image-sizes LIST", options.image_sizes,
                 "SIZE:SHARE, separated by commas: each step draws the size of its images");
  command
      .option("--size-changes WHAT", train.sizes.change,
              "What keeps the cost of a step at another size, by the square of the ratio or, for "
              "both, by the ratio each")
      .show_default()
      .one_of({"batch", "copies", "both", "none"});
  command
      .option("--size-smoothing K", train.sizes.smoothing,
              "Every K steps compare the gradient with that of one copy, and scale the loss to its "
              "norm (default: never)")
      .whole(1, 1'000'000'000);
  command
      .option("--label-noise P", options.asked.view.label_noise,
              "Replace this share of the training labels by other classes")
      .fraction();
  command
      .option("--seed", options.asked.seed,
              "Seed of weights, order, dropout, augmentation and label noise (the recipe's is for "
              "rounding)")
      .show_default()
      .whole(0, std::int64_t{1} << 53);
}

/// "epoch   3  loss 0.0512  train 98.41 %  validation loss 0.0601  98.12 %"
std::string epoch_line(const net::EpochMetrics& epoch, const net::Dataset& data,
                       std::optional<std::size_t> stage) {
  const bool validated = data.validation_count() > 0;
  std::string line = fmt::format("epoch {:3}  loss {}  train {} %", epoch.epoch,
                                 experiments::decimal_text(epoch.train_loss, 4),
                                 experiments::percent_text(epoch.train_top1));
  line += validated ? fmt::format("  validation loss {}  {} %",
                                  experiments::decimal_text(epoch.validation_loss, 4),
                                  experiments::percent_text(epoch.validation_top1))
                    : "  no validation samples";
  if (validated && data.kind() == net::DataKind::text) {
    line += fmt::format("  perplexity {:.3f}  {:.3f} bits per {}",
                        net::perplexity(epoch.validation_loss),
                        net::bits_per_character(epoch.validation_loss), data.text_unit());
  }
  if (epoch.skipped > 0)
    line += fmt::format("  {} steps skipped, loss scale {}", epoch.skipped, epoch.loss_scale);
  if (stage) line += fmt::format("  stage {}", *stage);
  return line;
}

void print(const api::Trained& trained, const std::string& recipe) {
  const net::Evaluation& tested = trained.tested;
  const bool interval = std::isfinite(trained.top1.low);
  std::string text = fmt::format(
      "test {} % of {}, {}, loss {}", experiments::percent_text(trained.accuracy()),
      experiments::targets_text(trained.dataset, tested),
      interval
          ? "95 % interval " + experiments::percent_interval(trained.top1.low, trained.top1.high)
          : "no interval",
      experiments::decimal_text(tested.loss, 4));
  if (trained.dataset.kind() == net::DataKind::text) {
    text += fmt::format(", perplexity {:.3f}, {:.4f} bits per {}", net::perplexity(tested.loss),
                        net::bits_per_character(tested.loss), trained.dataset.text_unit());
  }
  text +=
      recipe.empty() ? ", float32 on neutral.f32.sequential" : ", numerics of " + harmless(recipe);
  if (trained.stage) text += fmt::format(", stage {}", trained.stages);
  if (trained.kept)
    text += fmt::format("\nkept for backward: {:.0f} bytes per sample, float32 {:.0f}",
                        trained.kept->per_sample(), trained.kept->float32_per_sample());
  if (trained.stored)
    text += fmt::format(
        "\nstored of each parameter: {:.2f} bytes of master weights, {:.2f} of optimizer state; "
        "float32 {:.2f}, {:.2f}",
        trained.stored->master, trained.stored->state, trained.stored_float32.master,
        trained.stored_float32.state);
  fmt::print("{}\n{}\n", text, harmless(trained.checkpoint));
}

int run_alone(const TrainCommand& options, api::TrainRequest asked) {
  const ProfiledRun profiled(options.profile);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  std::unique_ptr<Progress> progress;
  std::int64_t behind = 0;
  api::Context context = program_context(options.quiet);
  context.on_checked = [&] {
    if (!asked.recipe.empty() && !options.quiet) note_short_names_in(asked.recipe);
  };
  api::TrainHooks hooks;
  hooks.on_start = [&](const net::RunState& state, std::int64_t steps) {
    behind = state.step;
    if (behind > 0 && !options.quiet) {
      say("{} after {}, {} (--fresh starts over)", state.finished ? "finished" : "resumed",
          counted(behind, "step"), counted(state.epoch, "epoch"));
    }
    progress = std::make_unique<Progress>("train", steps, "steps", options.quiet);
  };
  hooks.on_step = [&](std::int64_t step, double loss) {
    progress->show(step + 1, "loss " + experiments::decimal_text(loss, 4), behind);
  };
  hooks.on_epoch = [&](const net::EpochMetrics& epoch, const net::Dataset& data,
                       std::optional<std::size_t> stage) {
    if (options.quiet) return;
    if (terminal) write_talk("\r\033[K");
    say_line(epoch_line(epoch, data, stage));
  };
  hooks.on_end = [&] { progress.reset(); };
  const api::Trained trained = api::train(asked, context, hooks);
  if (options.json) {
    fmt::print("{}\n", json_of(trained).dump(2));
  } else {
    print(trained, asked.recipe);
  }
  return kFine;
}

/// As one of the processes of a job, if it is one. Rank 0 prints; the others speak of what goes
/// wrong with them alone.
int run_train(TrainCommand options) {
  api::TrainRequest asked = options.asked;
  // The list is the arguments of a call.
  if (options.objective)
    asked.train.objectives = parse_call("objectives(" + *options.objective + ")").arguments;
  if (options.augment) asked.augment = parse_augmentation(*options.augment);
  if (options.image_sizes) asked.train.sizes.shares = net::parse_image_sizes(*options.image_sizes);
  const std::unique_ptr<api::Job> job = api::open_job();
  asked.ranks = job.get();
  if (job == nullptr || job->rank() == 0) {
    if (job == nullptr) return run_alone(options, std::move(asked));
    try {
      return run_alone(options, std::move(asked));
    } catch (const Error& error) {
      say("numemu: {}", error.what());
      job->end_all(kBadUsage);
      throw;
    }
  }
  options.quiet = true;
  try {
    api::train(asked, program_context(true));
    return kFine;
  } catch (const Error& error) {
    // What all ranks find wrong, rank 0 says.
    constexpr unsigned kPatience = 2;  // seconds
    ::sleep(kPatience);
    say("numemu: rank {}: {}", job->rank(), error.what());
    job->end_all(kBadUsage);
    throw;
  }
}

}  // namespace

void add_train(Program& program) {
  auto [command, options] = program.command<TrainCommand>("train", run_train);
  add_files(command, options);
  add_optimizer(command, options);
  add_loop(command, options);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_profile(command, options.profile);
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
