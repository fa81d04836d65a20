#include "api/networks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/net/run_context.hpp"
#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/run_point.hpp"
#include "formats/error.hpp"
#include "formats/storage/utf8.hpp"
#include "policies/notes/notes.hpp"

namespace numemu::api {
namespace {

/// Those asked for, and the gate's, which else might be none of the data set's own.
std::vector<std::string> metrics_of(const EvaluateRequest& asked, const Dataset& dataset) {
  std::vector<std::string> metrics = asked.metrics;
  if (!asked.gate || asked.gate->metric == "top1") return metrics;
  if (metrics.empty()) metrics = net::default_scores(dataset);
  if (std::ranges::find(metrics, asked.gate->metric) == metrics.end())
    metrics.push_back(asked.gate->metric);
  return metrics;
}

/// Throws Error for metrics and a number of images that the data set has not.
void require_fits(const EvaluateRequest& asked, const OpenRequest& names, const Dataset& dataset) {
  net::scores_for(dataset, metrics_of(asked, dataset));
  if (asked.images > dataset.test_count()) {
    throw usage_error(fmt::format("--images: expected at most {}, the test images of {}, not {}",
                                  dataset.test_count(), names.data, asked.images));
  }
}

void require_gate_fits(const EvaluateRequest& asked, const TrainedNet& trained) {
  if (asked.gate)
    experiments::require_float32(*asked.gate,
                                 policies::own_quantizers(trained.graph, trained.path));
}

/// With the file of the recipe, beside which it may name others.
OpenRequest resolved(OpenRequest names, const Context& context) {
  names.recipe = recipe_path(names.recipe, context.folders);
  return names;
}

}  // namespace

Dataset open_data(const OpenRequest& names, const Context& context) {
  const net::RunScope scope(context.run);
  const auto load = [&](const std::string& name) {
    return net::view_of(net::load_dataset(name, context.folders.cache),
                        {.image_size = names.image_size});
  };
  Dataset dataset = load(names.data);
  if (!names.calibrate_on.empty()) dataset = net::calibrated_on(dataset, load(names.calibrate_on));
  return dataset;
}

TrainedNet open_network(const OpenRequest& names, const Dataset& dataset, const Context& context) {
  const net::RunScope scope(context.run);
  TrainedNet trained = experiments::load_trained_net(names.net, dataset, context.folders);
  if (names.fold_batch_norm) experiments::fold_batch_norm(trained);
  return trained;
}

Session open(const OpenRequest& given, const Context& context) {
  const OpenRequest names = resolved(given, context);
  Recipe whole = open_recipe(names.recipe, context.folders);
  Dataset dataset = open_data(names, context);
  TrainedNet trained = open_network(names, dataset, context);
  dataset = experiments::at_outputs_of(trained.graph, dataset);
  Recipe bound = bind_recipe(whole, trained, names.where());
  return {names, std::move(dataset), std::move(trained), std::move(whole), std::move(bound)};
}

Evaluated evaluate(const OpenRequest& given, const EvaluateRequest& asked, const Context& context) {
  const OpenRequest names = resolved(given, context);
  // Every mistake before the work, so that it is all that is told.
  Recipe whole = open_recipe(names.recipe, context.folders);
  Dataset dataset = open_data(names, context);
  if (!dataset.note().empty()) context.say(dataset.note());
  require_fits(asked, names, dataset);
  TrainedNet trained = open_network(names, dataset, context);
  dataset = experiments::at_outputs_of(trained.graph, dataset);
  require_gate_fits(asked, trained);
  Recipe bound = bind_recipe(whole, trained, names.where());
  Session session{names, std::move(dataset), std::move(trained), std::move(whole),
                  std::move(bound)};
  return evaluate(session, asked, context);
}

Evaluated evaluate(Session& session, const EvaluateRequest& asked, const Context& context) {
  const net::RunScope scope(context.run);
  const OpenRequest& names = session.names;
  require_fits(asked, names, session.dataset);
  require_gate_fits(asked, session.trained);
  const TrainedNet& trained = session.trained;
  const Graph& graph = trained.graph;
  const std::vector<std::string> metrics = metrics_of(asked, session.dataset);
  Evaluated out;
  out.apart = session.dataset.calibration_count() > 0;
  const policies::BoundRecipe recipe(session.recipe, graph, names.where());
  Dataset dataset = experiments::with_reference(session.dataset, recipe);
  context.on_checked();
  const std::int64_t images = asked.images == 0 ? dataset.test_count() : asked.images;
  experiments::require_bench_memory(graph, experiments::baseline_graph(trained), dataset, images,
                                    experiments::calibration_elements(recipe));
  const std::int64_t reference = experiments::reference_count(graph, dataset);
  const double shared = experiments::bench_cost(images, reference);
  const double own = experiments::point_cost(
      images, reference, experiments::calibration_samples(recipe, dataset.calibration_count()),
      asked.predictions);
  double before = 0, free = 0, latest = 0;  // done and free by the workbench
  const OnWork on_work = [&](const WorkState& at) {
    if (context.on_work)
      context.on_work({at.phase, before + at.done, shared + own, free + at.free});
    latest = at.free;
  };
  experiments::Workbench bench(std::move(dataset), std::move(session.trained), images,
                               {context.folders.cache, asked.fresh, on_work, metrics});
  before = shared;
  free = latest;
  experiments::Point point;
  point.row.net = utf8_text(names.net);
  point.row.data = utf8_text(names.data);
  point.row.eval_images = bench.eval_images;
  point.row.metrics = metrics;
  point.row.metrics_first = true;
  point.where = recipe_where(names.recipe);
  if (!names.recipe.empty())
    point.recipe_name = experiments::recipe_name(recipe_where(names.recipe));
  experiments::set_recipe(point, session.whole);
  if (!asked.predictions) experiments::turn_predictions_off(point);
  out.row = experiments::run_point(point, bench, on_work);
  session.trained = std::move(bench.trained);
  if (asked.gate) experiments::judge_gate(*asked.gate, out.row);
  return out;
}

}  // namespace numemu::api
