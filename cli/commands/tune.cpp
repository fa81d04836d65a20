// numemu tune: a trained network made fit for a recipe by a chain of steps; a checkpoint with
// ranges, the same bytes anywhere, interrupted or not.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "api/networks.hpp"
#include "api/task_metrics.hpp"
#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"

namespace numemu::cli {
namespace {

struct TuneOptions {
  api::TuneRequest asked;
  bool quiet = false, json = false;
};

std::string decibel_text(double db) { return std::isfinite(db) ? fmt::format("{:.2f}", db) : "-"; }

/// The table of the metrics, and what the steps changed.
std::string metrics_text(const api::Tuned& tuned) {
  return fmt::format(
      "\n{} validation samples{}; changes from float32 are paired\n{}{}\n", tuned.samples,
      tuned.unread ? ", which no step read" : "",
      api::metrics_table(
          {{"float32", &*tuned.float32}, {"before", &*tuned.before}, {"after", &*tuned.after}}),
      api::gain_text("the steps", *tuned.gain));
}

std::string text_of(const api::Tuned& tuned) {
  std::string text;
  for (const auto& [step, summary] : tuned.steps)
    text += fmt::format("{}: {}\n", harmless(step), harmless(summary));
  for (const std::string& note : tuned.notes) text += fmt::format("note: {}\n", harmless(note));
  std::vector<std::vector<std::string>> rows;
  for (const api::Tuned::Decibels& of : tuned.layers)
    rows.push_back({of.layer, decibel_text(of.before), decibel_text(of.after)});
  rows.push_back(
      {tuned.output.layer, decibel_text(tuned.output.before), decibel_text(tuned.output.after)});
  text += fmt::format("\nSQNR in dB on {} {} samples{}\n{}", tuned.noise_samples,
                      tuned.validation ? "validation" : "calibration",
                      tuned.validation
                          ? ""
                          : ", which the steps read: the data set keeps none for validation "
                            "(npy: validation=N), so there is no accuracy either",
                      api::text_table({"layer", "before", "after"}, rows));
  if (tuned.gain) text += metrics_text(tuned);
  return text + "\n";
}

int run_tune(const TuneOptions& options) {
  api::Context context = program_context(options.quiet);
  std::optional<Progress> progress;
  context.on_checked = [&] {
    if (!options.quiet) note_short_names_in(options.asked.recipe);
  };
  context.on_work = [&](const api::WorkState& at) {
    if (!progress) progress.emplace("tune", static_cast<std::int64_t>(at.total), "", options.quiet);
    progress->show(at.done, std::string(at.phase), at.free);
  };
  context.say = [&, say = context.say](const std::string& text) {
    progress.reset();  // ends the line of the bar
    say(text);
  };
  const api::Tuned tuned = api::tune(options.asked, context);
  if (options.json) {
    fmt::print("{}\n", json_of(tuned).dump(2));
  } else {
    fmt::print("{}{}\n", text_of(tuned), harmless(tuned.checkpoint));
  }
  return kFine;
}

}  // namespace

void add_tune(Program& program) {
  auto [command, options] = program.command<TuneOptions>("tune", run_tune);
  add_options(command, api::options_of(options.asked),
              {"net", "data", "calibrate_on", "recipe", "steps", "out", "samples", "images", "seed",
               "keep_batch_norm", "fresh"});
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
