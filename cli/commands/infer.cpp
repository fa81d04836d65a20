// numemu infer: a model on the user's own arrays, in float32 or under a recipe.
#include <fmt/format.h>

#include <optional>

#include "api/machine_memory.hpp"
#include "api/networks.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/score_table.hpp"
#include "cli/talk.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {
namespace {

struct InferOptions {
  api::InferRequest asked;
  bool quiet = false, json = false, profile = false;
};

/// "3 of 5 samples of y are NaN or infinite (30 of 50 numbers)", and in which layer they first
/// arise.
std::vector<std::string> not_finite_sentences(const api::Inferred::Output& output) {
  const experiments::LostCounts& numbers = output.not_finite->outputs;
  std::vector<std::string> out = {
      numbers.lost() == 0
          ? fmt::format("{} is finite, but results of layers are not", output.name)
          : fmt::format("{} of {} of {} have NaN or infinite numbers (NaN {}, infinite {} of {})",
                        output.samples_not_finite, counted(output.not_finite->samples, "sample"),
                        output.name, numbers.nan, numbers.infinite, numbers.of)};
  for (const experiments::LostLayer& layer : output.not_finite->layers) {
    if (layer.lost() <= layer.inherited) continue;
    out.push_back(fmt::format("they first occur in layer {}: {} of {} results: {}", layer.name,
                              layer.lost(), layer.of,
                              layer.causes.empty() ? "" : layer.causes.front()));
    break;
  }
  return out;
}

int run_infer(const InferOptions& options) {
  api::give_memory_back();
  api::InferRequest asked = options.asked;
  asked.digests = options.json;
  const ProfiledRun profiled(options.profile);
  std::optional<Progress> progress;
  api::Context context = program_context(options.quiet);
  context.on_checked = [&] {
    if (!options.quiet) note_short_names_in(asked.recipe);
  };
  context.on_work = [&](const api::WorkState& at) {
    if (!progress)
      progress.emplace("infer", static_cast<std::int64_t>(at.total), "samples", options.quiet);
    if (at.done > 0) progress->show(at.done);
  };
  const api::Inferred inferred = api::infer(asked, context);
  for (const api::Inferred::Output& output : inferred.outputs) {
    if (output.not_finite) {
      for (const std::string& sentence : not_finite_sentences(output)) say("note: {}", sentence);
    }
    if (!options.json)
      fmt::print("{}\n",
                 harmless(fmt::format("{} {} -> {}, {}", output.name, net::to_string(output.shape),
                                      output.file,
                                      asked.recipe.empty() ? "float32 on neutral.f32.sequential"
                                                           : "numerics of " + asked.recipe)));
  }
  if (inferred.nan.hidden > 0) {
    say("note: the inputs hold {} NaN, and {} of the {} samples with NaN have outputs without: a "
        "format without NaN turns them into numbers",
        inferred.nan.elements, inferred.nan.hidden, inferred.nan.samples);
  }
  if (options.json) {
    fmt::print("{}\n", json_of(inferred).dump(2));
    return kFine;
  }
  if (inferred.noise) {
    fmt::print("\n");
    print_noise(inferred.noise->row,
                fmt::format("the first {}", counted(inferred.noise->samples, "sample")),
                fmt::format("all {}", counted(inferred.samples, "sample")));
  }
  if (!inferred.scores.empty()) {
    fmt::print("\n");
    print_scores(inferred.scores, inferred.samples);
  }
  return kFine;
}

}  // namespace

void add_infer(Program& program) {
  auto [command, options] = program.command<InferOptions>("infer", run_infer);
  add_options(command, api::options_of(options.asked),
              {"model", "in", "out", "recipe", "calibrate_on", "normalize", "mean", "deviation",
               "metrics", "noise", "predictions", "fold_batch_norm", "batch"});
  add_profile(command, options.profile);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
