// Which layer breaks first, when one layer at a time has a format and all else is as in a recipe.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/run_points.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/notes/notes.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {
namespace {

const char* const kAllLayers = "all layers";

/// The recipe that layers are changed from; float32 without one.
struct Base {
  std::string file;  ///< or name
  Json recipe = {{"numemu_recipe", 1}};
  std::string granularity;  ///< of the weights of a tried format
};

/// A format with its own scale rule: that of the recipe's format may not serve it.
Json role(const char* name, const std::string& format, const Base& base) {
  Json role = {{"format", format}};
  set_weight_granularity(role, name, base.granularity, "--set: formats");
  if (base.file.empty()) return role;
  const JsonReader reader(role, "--set: formats");
  if (policies::stays_float32(reader)) return nullptr;
  const policies::RolePolicy policy = policies::read_role(reader, policies::role_row(name));
  role["scale"] = policies::role_json(policy)["scale"];
  return role;
}

/// The recipe's layers, and after them this format in this layer (or in all): later entries win.
Json layers_of(const std::string& layer, const std::string& format, const std::string& roles,
               const Base& base) {
  Json patch = Json::object(), layers = base.recipe.value("layers", Json::array());
  if (roles != "activation") patch["weight"] = role("weight", format, base);
  if (roles != "weight") patch["activation"] = role("activation", format, base);
  layers.push_back({{"match", layer == kAllLayers ? "*" : layer}, {"roles", patch}});
  return layers;
}

Base base_of(const Settings& settings, const std::string& data) {
  const std::string& given = settings.text("recipe");
  Base base{.file = given, .granularity = weight_granularity(settings)};
  if (!given.empty()) base.recipe = read_recipe(given, data, "--set: recipe");
  return base;
}

/// ", weights per channel" where the setting decides it.
std::string granularity_text(const std::string& format, const std::string& roles,
                             const Base& base) {
  Json weight = {{"format", format}};
  if (roles == "activation" ||
      !set_weight_granularity(weight, "weight", base.granularity, "--set: formats"))
    return "";
  return ", weights per " + base.granularity;
}

/// One point: a layer at a format, or (no format) the recipe as it is.
struct SensitivityCell {
  std::string format, layer;
  const ReportRow* record = nullptr;
};

std::vector<Finding> judge(const std::vector<SensitivityCell>& cells) {
  Judged judged;
  std::vector<Finding> lost;  // whose outputs are not finite
  for (const SensitivityCell& cell : cells) {
    const std::optional<double>&measured = cell.record->sqnr_db,
          &predicted = cell.record->predicted_sqnr_db;
    const std::string what = cell.format.empty() ? "output SQNR in dB of the recipe as it is"
                                                 : fmt::format("output SQNR in dB with {} in {}",
                                                               cell.format, cell.layer);
    if (!predicted) continue;
    if (measured) {
      const double error = cell.record->sqnr_error_db.value_or(0);  // infinite: not known
      judged.add(what, *predicted, *measured, error > 0 ? error : HUGE_VAL, kLayerHolds);
    } else if (loses_numbers(*cell.record)) {
      lost.push_back(exact_finding(what, *predicted, NAN, false));
    }
  }
  const std::vector<Finding> findings = judged.findings();
  lost.insert(lost.end(), findings.begin(), findings.end());
  return lost;
}

/// The change of the figure that rows of this data are judged by; of a measure without small losses
/// the figure itself. The header, then the cells of a record.
std::string change_title(const Measure& measure, bool tuned) {
  if (measure.small == 0) return value_title(measure);
  const std::string title = difference_title(measure);
  const std::string difference = "difference";
  return tuned ? std::string(title).insert(title.find(difference) + difference.size(),
                                           " from before tuning")
               : title;
}

std::vector<std::string> change_of(const JudgedFigure& of) {
  const Measure& measure = *of.measure;
  if (measure.small == 0)
    return {figure_text(measure, of.value), interval_text(measure, of.low, of.high)};
  return {figure_text(measure, of.difference, true),
          interval_text(measure, of.difference_low, of.difference_high, true)};
}

std::string decibel_text(const std::optional<double>& db) {
  return db ? fmt::format("{:.1f}", *db) : "-";
}

/// The first score of each further output.
std::vector<const RowScore*> further_scores(const Row& row) {
  std::vector<const RowScore*> scores;
  std::string last;
  for (const RowScore& score : row.scores) {
    const std::size_t end = score.name.rfind('/');
    if (end == score.name.npos || score.name.substr(0, end) == last) continue;
    last = score.name.substr(0, end);
    scores.push_back(&score);
  }
  return scores;
}

ResultTable table_of(const std::string& title, const std::vector<SensitivityCell>& cells,
                     bool tuned) {
  ResultTable table{title,
                    {"layer", change_title(*cells.front().record->judged.measure, tuned),
                     "95 % interval", "output SQNR dB", "predicted", "overflow", "underflow"},
                    {}};
  if (tuned) table.header[3] = "output SQNR dB against the tuned weights";
  for (const RowScore* score : further_scores(*cells.front().record->row))
    table.header.push_back(score->name);
  for (const SensitivityCell& cell : cells) {
    const ReportRow& r = *cell.record;
    double overflow = 0, underflow = 0;
    for (const RowLayer& layer : r.row->layers) {
      overflow = std::max(overflow, layer.overflow.value_or(0));
      underflow = std::max(underflow, layer.underflow.value_or(0));
    }
    const std::vector<std::string> change = change_of(r.judged);
    table.rows.push_back({cell.layer, change[0], change[1],
                          loses_numbers(r) ? "NaN" : decibel_text(r.sqnr_db),
                          decibel_text(r.predicted_sqnr_db), fmt::format("{:.1e}", overflow),
                          fmt::format("{:.1e}", underflow)});
    for (const RowScore* score : further_scores(*r.row))
      table.rows.back().push_back(score->value ? fmt::format("{:.4g}", *score->value) : "-");
  }
  return table;
}

Conclusion run_sensitivity(const ExperimentRun& run) {
  const std::string& roles = run.settings.text("roles");
  if (roles != "both" && roles != "weight" && roles != "activation")
    throw usage_error("--set: roles: expected both, weight or activation, not '" + roles + "'");
  const std::string &net = run.settings.text("net"), &data = run.settings.text("data");
  const Base base = base_of(run.settings, run.folders.data);
  net::Dataset dataset = net::load_dataset(data, run.folders.cache);
  TrainedNet trained = load_with_data(net, dataset, run.folders);

  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(trained.graph)) {
    // Of two activations there is no weight to quantize.
    if (roles != "weight" || layer.weight != nullptr) layers.push_back(layer.name);
  }
  layers.emplace_back(kAllLayers);
  BuiltSweep built{.experiment = "sensitivity",
                   .net = net,
                   .data = data,
                   .images = run.settings.integer("images"),
                   .more = {{"seeds", Json::array({run.seed})}, {"base", base.recipe}},
                   .repeated = "--set: formats: expected every format once, found some repeated"};
  std::vector<SensitivityCell> cells;
  const std::string& unit = run.settings.text("unit");
  const auto add = [&](const std::string& format, const std::string& layer, const Json& patches) {
    Json settings = {{"layers", patches}};
    if (!unit.empty()) settings["gemms.*.unit"] = unit;
    built.points.push_back({.settings = std::move(settings),
                            .name = format.empty() ? layer : format + " in " + layer});
    cells.push_back({format, layer});
  };
  for (const std::string& format : run.settings.list("formats")) {
    for (const std::string& layer : layers)
      add(format, layer, layers_of(layer, format, roles, base));
  }
  if (!base.file.empty()) add("", "the recipe as it is", base.recipe["layers"]);
  PointRun points(run, built, run.out);
  dataset = with_reference(std::move(dataset), trained, points.points());
  points.open(dataset, trained);
  const Workbench bench =
      open_bench(run, net, std::move(dataset), std::move(trained), built.images);
  const std::vector<Row> rows = points.rows(bench);
  const std::vector<ReportRow> records = report_rows(rows);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].record = &records.at(i);

  Conclusion conclusion;
  conclusion.add(judge(cells), "noise");
  const std::size_t whole = base.file.empty() ? cells.size() : cells.size() - 1;
  for (std::size_t first = 0; first < whole; first += layers.size()) {
    std::vector<SensitivityCell> of_format(cells.begin() + first,
                                           cells.begin() + first + layers.size());
    const std::string format = of_format[0].format;
    const bool wide = !base.file.empty() && role("weight", format, base).is_null();
    // The last is "all layers", which stays there: it is no layer.
    std::stable_sort(of_format.begin(), of_format.end() - 1,
                     [&](const SensitivityCell& a, const SensitivityCell& b) {
                       return comes_first(*a.record, *b.record, wide);
                     });
    const char* order = wide                                  ? "the highest"
                        : loses_numbers(*of_format[0].record) ? "NaN outputs and then the lowest"
                                                              : "the lowest";
    if (!base.file.empty()) of_format.insert(of_format.end() - 1, cells.back());
    const std::string in = base.file.empty() ? "" : " of " + base.file;
    conclusion.tables.push_back(
        table_of(fmt::format("{} in one layer{}{}, {} SQNR first", format, in,
                             granularity_text(format, roles, base), order),
                 of_format, bench.trained.before.has_value()));
  }
  // What SQNR and accuracy compare with, which differs for a tuned network.
  std::ranges::move(baseline_notes(bench.trained), std::back_inserter(conclusion.sentences));
  std::ranges::move(policies::notes_on_outputs(
                        bench.trained.graph,
                        "layers are ranked by that one, and the last columns show the others"),
                    std::back_inserter(conclusion.sentences));
  std::ranges::move(ranking_sentences(rank_layers(records)),
                    std::back_inserter(conclusion.sentences));
  return conclusion;
}

}  // namespace

extern const Experiment experiment_sensitivity = {
    "sensitivity",
    "which layer breaks first if one layer at a time is in the format",
    "numemu's own claim: rounding acts on a network as noise of random phase, so that the "
    "output's SQNR is known from the float32 network before anything is quantized.",
    {{"noise", "The output's SQNR is within 1 dB of its prediction (derived here)."}},
    {{"net", "lenet", "network or file", takes_network()},
     data_setting(),
     {"formats", "float8_e4m3fn,int4", "float8_e4m3fn,float8_e5m2,int8,int4,mxfp4",
      "float8_e4m3fn,float8_e5m2,float8_e3m4,float6_e2m3fn,float6_e3m2fn,float4_e2m1fn,int8,int6,"
      "int4,int3,mxint8,mxfp8_e4m3,mxfp6_e2m3,mxfp4,nvfp4",
      "formats or block formats to try"},
     {"roles", "both", "both, weight or activation"},
     granularity_setting(),
     {"recipe", "",
      "recipe that one layer at a time is changed in, a file or the name of a shipped one; "
      "float32"},
     {"unit", "", "unit of every GEMM; the recipe's, f32.sequential without one"},
     {"images", "500", "2000", "10000", "test samples", whole(1, 100'000'000)}},
    run_sensitivity};

}  // namespace numemu::experiments
