// numemu eval: the accuracy of a trained network under a recipe, predicted noise beside measured.
#include <fmt/format.h>

#include <optional>

#include "api/networks.hpp"
#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
#include "cli/score_table.hpp"
#include "cli/talk.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"

namespace numemu::cli {
namespace {

struct EvalOptions {
  api::OpenRequest names;
  api::EvaluateRequest asked;
  GateOption gate;
  bool profile = false, json = false, quiet = false;
};

/// `apart`: the data set has calibration samples, which noise is measured on.
void print_row(const experiments::Row& row, bool apart) {
  fmt::print("{}\n", summary_table({row}));
  const experiments::RowMetrics& metrics = row.metrics;
  // What is the baseline itself would be compared with itself.
  const bool baseline = experiments::report_rows({row}).at(0).is_baseline();
  const std::int64_t compared = baseline ? 0 : row.point.eval_images.value();
  const experiments::RowScore* const top1 = row.score("top1");
  const bool counted = metrics.gained.written();
  const std::string alike = top1 && !counted ? experiments::none_differs(*top1, compared) : "";
  const std::string& drawn = counted || row.scores.empty() ? "" : row.scores[0].resampled;
  const std::string difference =
      baseline || !metrics.top1.written() ? "-"
      : !alike.empty()                    ? alike
                                          : fmt::format("{} points, 95 % interval {} paired by {}",
                                                        number_text(metrics.difference, "{:+.2f}", 100),
                                                        interval_text(metrics.difference_ci95, "{:+.2f}", 100),
                                     counted || row.scores.empty() ? "image"
                                                        : drawn.empty()               ? "samples"
                                                                                      : drawn);
  if (metrics.top1.written()) {
    fmt::print("float32 {} %, difference {}, loss {}\n\n",
               number_text(metrics.baseline_top1, "{:.2f}", 100), difference,
               metrics.loss ? experiments::decimal_text(*metrics.loss, 4) : "-");
  }
  if (!row.scores.empty()) print_scores(row.scores, compared);
  print_noise(row, apart ? "calibration samples" : "the first test samples", "test samples");
  fmt::print("\n");
  const auto words = [](const experiments::Member<Verdict>& verdict) {
    return verdict ? to_string(*verdict) : "";
  };
  std::vector<std::vector<std::string>> tensors;
  for (const experiments::RowTensor& tensor : row.predicted.tensors) {
    const auto& fit = tensor.fitted;
    tensors.push_back({tensor.layer, tensor.role, tensor.format, decibels(tensor.measured_db),
                       decibels(tensor.empirical_db), words(tensor.verdict),
                       fit ? fit->family : "-", fit ? number_text(fit->ks, "{:.3f}") : "-",
                       fit ? decibels(fit->db) : "-", fit ? words(fit->verdict) : "-"});
  }
  if (!tensors.empty()) {
    fmt::print("{}", api::text_table({"layer", "tensor", "format", "SQNR dB", "empirical",
                                      "verdict", "fit", "KS", "fitted", "verdict"},
                                     tensors));
  }
}

int run_eval(const EvalOptions& options) {
  const ProfiledRun profiled(options.profile);
  api::EvaluateRequest asked = options.asked;
  asked.gate = options.gate.gate();
  api::Context context = program_context(options.quiet);
  std::optional<Progress> progress;
  context.on_checked = [&] {
    if (options.quiet) return;
    if (!options.names.recipe.empty()) note_short_names_in(options.names.recipe);
    say("evaluating {} on {}", options.names.net, options.names.data);
  };
  context.on_work = [&](const api::WorkState& at) {
    if (!progress) progress.emplace("eval", static_cast<std::int64_t>(at.total), "", options.quiet);
    progress->show(at.done, std::string(at.phase), at.free);
  };
  const api::Evaluated evaluated = api::evaluate(options.names, asked, context);
  progress.reset();
  if (options.json) {
    fmt::print("{}\n", to_json(evaluated.row).dump(2));
  } else {
    print_row(evaluated.row, evaluated.apart);
  }
  return gate_code({evaluated.row}, options.gate.strict);
}

}  // namespace

void add_eval(Program& program) {
  auto [command, options] = program.command<EvalOptions>("eval", run_eval);
  const std::vector<api::Option> names = api::options_of(options.names);
  const std::vector<api::Option> asked = api::options_of(options.asked);
  add_options(command, names, {"net", "data", "calibrate_on"});
  add_options(command, asked, {"metrics"});
  add_options(command, names, {"recipe"});
  add_options(command, asked, {"images"});
  add_options(command, names, {"image_size", "fold_batch_norm"});
  add_options(command, asked, {"predictions"});
  add_gate(command, options.gate);
  add_options(command, asked, {"fresh"});
  add_profile(command, options.profile);
  command.flag("--json", options.json, "Print the row as JSON");
  command.flag("--quiet", options.quiet, "Print nothing on stderr");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
