// numemu train: a network from scratch to a checkpoint, the same bytes for the same options
// anywhere, interrupted or not.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <memory>

#include "api/cluster/ranks.hpp"
#include "api/networks.hpp"
#include "api/task_metrics.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {
namespace {

struct TrainCommand {
  api::TrainRequest asked;
  bool profile = false, quiet = false, json = false;
};

/// "epoch   3  loss 0.0512  train 98.41 %  validation loss 0.0601  98.12 %"
std::string epoch_line(const net::EpochMetrics& epoch, const net::Dataset& data,
                       std::optional<std::size_t> stage) {
  const bool validated = data.validation_count() > 0;
  const bool classes = data.target() == net::TargetKind::classes;
  const auto share = [&](const char* before, double top1) {
    return classes ? fmt::format("  {}{} %", before, experiments::percent_text(top1)) : "";
  };
  std::string line = fmt::format("epoch {:3}  loss {}{}", epoch.epoch,
                                 experiments::decimal_text(epoch.train_loss, 4),
                                 share("train ", epoch.train_top1));
  line += validated ? fmt::format("  validation loss {}{}",
                                  experiments::decimal_text(epoch.validation_loss, 4),
                                  share("", epoch.validation_top1))
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
  std::string text =
      trained.figure
          ? fmt::format("test {} {} of {}", trained.figure->measure->words,
                        experiments::figure_text(*trained.figure->measure, trained.figure->value),
                        experiments::targets_text(trained.dataset, tested))
          : fmt::format("test {} % of {}, {}", experiments::percent_text(trained.accuracy()),
                        experiments::targets_text(trained.dataset, tested),
                        interval ? "95 % interval " + experiments::percent_interval(
                                                          trained.top1.low, trained.top1.high)
                                 : "no interval");
  text += fmt::format(", loss {}", experiments::decimal_text(tested.loss, 4));
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
  if (trained.compared) {
    const api::Trained::Compared& compared = *trained.compared;
    text += fmt::format("\n\nchanges from the original network in float32 are paired\n{}{}\n",
                        api::metrics_table({{"original", &compared.original},
                                            {"before", &compared.before},
                                            {"after", &compared.after}}),
                        api::gain_text("training", compared.gain));
  }
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
  add_options(command, api::options_of(options.asked),
              {"net",
               "data",
               "out",
               "recipe",
               "store",
               "save_every",
               "fresh",
               "optimizer",
               "objectives",
               "schedule",
               "learning_rate",
               "warmup",
               "weight_decay",
               "clip",
               "momentum",
               "nesterov",
               "beta1",
               "beta2",
               "epsilon",
               "epochs",
               "patience",
               "batch",
               "workers",
               "micro_batches",
               "local_steps",
               "augment",
               "copies",
               "image_size",
               "image_sizes",
               "size_changes",
               "size_smoothing",
               "label_noise",
               "seed"},
              /*training=*/true);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_profile(command, options.profile);
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
