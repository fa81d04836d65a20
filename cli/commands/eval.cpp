// numemu eval: the accuracy of a trained network under a recipe, predicted noise beside measured.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/gate_option.hpp"
#include "cli/memory_option.hpp"
#include "cli/metric_option.hpp"
#include "cli/network_option.hpp"
#include "cli/noise_table.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_option.hpp"
#include "cli/report_files.hpp"
#include "cli/score_table.hpp"
#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "emu/net/data/view.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/report/decimals.hpp"
#include "experiments/report/record.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/utf8.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/recipe/silent_notes.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::cli {
namespace {

struct EvalOptions {
  std::string net, data, recipe, calibrate_on;
  std::vector<std::string> metrics;
  GateOption gate;
  std::int64_t images = 0, image_size = 0;
  bool fold = false, no_predictions = false, fresh = false, profile = false, json = false,
       quiet = false;
};

constexpr std::int64_t kMostImages = 100000000, kMostPixels = 4096;

/// `apart`: the data set has calibration samples, which noise is measured on.
void print_row(const Json& row, bool apart) {
  fmt::print("{}\n", summary_table({row}));
  const Json& metrics = row["metrics"];
  // What is the baseline itself would be compared with itself.
  const bool baseline = experiments::read_records({row}).at(0).is_baseline();
  const std::int64_t compared = baseline ? 0 : row["point"]["eval_images"].get<std::int64_t>();
  std::string alike;
  for (const Json& score : row.value("scores", Json(Json::array()))) {
    if (score["name"] == "top1" && !metrics.contains("gained"))
      alike = none_differs(score, compared);
  }
  const std::string difference =
      baseline || !metrics.contains("top1") ? "-"
      : !alike.empty()                      ? alike
                       : fmt::format("{} points, 95 % interval {} paired by {}",
                                     number_text(metrics["difference"], "{:+.2f}", 100),
                                     interval_text(metrics["difference_ci95"], "{:+.2f}", 100),
                                     row.contains("scores") && !metrics.contains("gained")
                                         ? row["scores"][0].value("resampled", "samples")
                                         : "image");
  if (metrics.contains("top1")) {
    fmt::print("float32 {} %, difference {}, loss {}\n\n",
               number_text(metrics["baseline_top1"], "{:.2f}", 100), difference,
               metrics["loss"].is_number()
                   ? experiments::decimal_text(metrics["loss"].get<double>(), 4)
                   : "-");
  }
  if (row.contains("scores")) print_scores(row["scores"], compared);
  print_noise(row, apart ? "calibration samples" : "the first test samples", "test samples");
  fmt::print("\n");
  std::vector<std::vector<std::string>> tensors;
  for (const Json& tensor : row["predicted"]["tensors"]) {
    const Json& fitted = tensor["fitted"];
    tensors.push_back({tensor["layer"], tensor["role"], tensor["format"],
                       decibels(tensor["measured_db"]), decibels(tensor["empirical_db"]),
                       tensor["verdict"], fitted.is_null() ? "-" : fitted["family"],
                       fitted.is_null() ? "-" : number_text(fitted["ks"], "{:.3f}"),
                       fitted.is_null() ? "-" : decibels(fitted["db"]),
                       fitted.is_null() ? "-" : fitted["verdict"]});
  }
  if (!tensors.empty()) {
    fmt::print("{}", text_table({"layer", "tensor", "format", "SQNR dB", "empirical", "verdict",
                                 "fit", "KS", "fitted", "verdict"},
                                tensors));
  }
}

/// Those asked for, and the gate's, which else might be none of the data set's own.
std::vector<std::string> metrics_of(const EvalOptions& options,
                                    const std::optional<experiments::Gate>& gate,
                                    const net::Dataset& dataset) {
  std::vector<std::string> metrics = options.metrics;
  if (!gate || gate->metric == "top1") return metrics;
  if (metrics.empty()) metrics = net::default_scores(dataset);
  if (std::ranges::find(metrics, gate->metric) == metrics.end()) metrics.push_back(gate->metric);
  return metrics;
}

int run_eval(const EvalOptions& options) {
  const ProfiledRun profiled(options.profile);
  const std::optional<experiments::Gate> gate = options.gate.gate();
  const Json recipe = options.recipe.empty()
                          ? Json{{"numemu_recipe", 1}}
                          : parse_json(read_text(options.recipe), options.recipe);
  const policies::Recipe whole =
      policies::Recipe::parse(recipe, options.recipe.empty() ? "recipe" : options.recipe);
  experiments::Point point;
  point.net = utf8_text(options.net);
  point.data = utf8_text(options.data);
  point.where = options.recipe;
  if (!options.recipe.empty()) point.recipe_name = experiments::recipe_name(options.recipe);
  const experiments::Folders folders{data_folder(), cache_folder()};
  net::Dataset dataset = net::view_of(net::load_dataset(options.data, folders.cache),
                                      {.image_size = options.image_size});
  if (!options.calibrate_on.empty()) {
    dataset = net::calibrated_on(
        dataset, net::view_of(net::load_dataset(options.calibrate_on, folders.cache),
                              {.image_size = options.image_size}));
  }
  if (!options.quiet && !dataset.note().empty()) say("{}", dataset.note());
  const std::vector<std::string> metrics = metrics_of(options, gate, dataset);
  net::scores_for(dataset, metrics);
  if (options.images > dataset.test_count()) {
    throw Error(fmt::format("--images: expected at most {}, the test images of {}, not {}",
                            dataset.test_count(), options.data, options.images));
  }
  experiments::TrainedNet trained = experiments::load_trained_net(options.net, dataset, folders);
  if (options.fold) experiments::fold_batch_norm(trained);
  if (gate)
    experiments::require_float32(*gate, policies::own_quantizers(trained.graph, trained.path));
  // Every mistake before the work, so that it is the only line on stderr.
  policies::RecipeNumerics(whole.last_stage(), trained.graph, point.where);
  const policies::Recipe used =
      policies::with_checkpoint_ranges(whole.last_stage(), trained.path, point.where);
  const bool apart = dataset.calibration_count() > 0;
  dataset = experiments::with_reference(std::move(dataset), trained.graph, {used});
  if (!options.quiet && !options.recipe.empty()) note_short_names_in(options.recipe);
  if (!options.quiet) say("evaluating {} on {}", options.net, options.data);
  const std::int64_t images = options.images == 0 ? dataset.test_count() : options.images;
  experiments::require_bench_memory(trained.graph, experiments::baseline_graph(trained), dataset,
                                    images, experiments::calibration_elements(used, trained.graph));
  const std::int64_t reference = experiments::reference_count(trained.graph, dataset);
  const double shared = experiments::bench_cost(images, reference);
  const std::int64_t calibration =
      experiments::calibration_samples(used, trained.graph, dataset.calibration_count());
  const double own =
      experiments::point_cost(images, reference, calibration, !options.no_predictions);
  std::optional<Progress> progress;
  progress.emplace("eval", static_cast<std::int64_t>(shared + own), "", options.quiet);
  double before = 0, free = 0, latest = 0;  // done and free by the workbench
  const experiments::OnWork on_work = [&](const experiments::WorkState& at) {
    progress->show(before + at.done, std::string(at.phase), free + at.free);
    latest = at.free;
  };
  experiments::Workbench bench(std::move(dataset), std::move(trained), images,
                               {folders.cache, options.fresh, on_work, metrics});
  before = shared;
  free = latest;
  point.json = {{"net", point.net}, {"data", point.data}, {"eval_images", bench.eval_images}};
  if (!metrics.empty()) point.json["metrics"] = metrics;
  experiments::set_recipe(point, whole);
  if (options.no_predictions) experiments::turn_predictions_off(point);
  Json row = experiments::run_point(point, bench, on_work);
  if (gate) experiments::judge_gate(*gate, row);
  progress.reset();
  if (options.json) {
    fmt::print("{}\n", row.dump(2));
  } else {
    print_row(row, apart);
  }
  return gate_code({row}, options.gate.strict);
}

}  // namespace

void add_eval(Program& program) {
  auto options = std::make_shared<EvalOptions>();
  Command& command = program.command("eval", [options] { return run_eval(*options); });
  add_trained_net(command, options->net);
  add_data_set(command, options->data);
  command.option("--calibrate-on SET", options->calibrate_on,
                 "Calibrate on the samples of another data set");
  command.option("--metric NAME...", options->metrics, metric_help());
  add_recipe(command, options->recipe, "Recipe");
  command.option("--images N", options->images, "Use only the first N test images")
      .whole(1, kMostImages);
  command
      .option("--image-size S", options->image_size,
              "Resize images to S x S pixels (default: as stored)")
      .whole(1, kMostPixels);
  command.flag("--fold-batch-norm", options->fold,
               "Fold batch normalisation into the weights before it");
  command.flag("--no-predictions", options->no_predictions, "Measure only");
  add_gate(command, options->gate);
  command.flag("--fresh", options->fresh, "Compute the float32 baseline again, ignoring the cache");
  add_profile(command, options->profile);
  command.flag("--json", options->json, "Print the row as JSON");
  command.flag("--quiet", options->quiet, "Print nothing on stderr");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
