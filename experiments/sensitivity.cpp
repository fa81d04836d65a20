// Which layer breaks first: one layer at a time at each format, everything else float32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

const char* const kAllLayers = "all layers";

Json role(const std::string& format) { return {{"format", format}}; }

/// The settings of one point: this format in this layer (or in all), as the recipe's layers.
Json layers_of(const std::string& layer, const std::string& format, const std::string& roles) {
  Json patch = Json::object();
  if (roles != "activation") patch["weight"] = role(format);
  if (roles != "weight") patch["activation"] = role(format);
  return Json::array({{{"match", layer == kAllLayers ? "*" : layer}, {"roles", patch}}});
}

struct Cell {
  std::string format, layer;
  const Json* row = nullptr;
};

/// Standard error of a row's measured SQNR in dB, infinite where it is not known.
double error_of(const Json& row) {
  const Json& value = row["metrics"].value("sqnr_error_db", Json(nullptr));
  return value.is_number() && value.get<double>() > 0 ? value.get<double>() : HUGE_VAL;
}

Json number_at(const Json& row, const char* part, const char* key) {
  return row[part].value(key, Json(nullptr));
}

std::vector<Finding> judge(const std::vector<Cell>& cells) {
  Judged judged;
  for (const Cell& cell : cells) {
    const Json measured = number_at(*cell.row, "metrics", "sqnr_db"),
               predicted = number_at(*cell.row, "predicted", "sqnr_db");
    if (!measured.is_number() || !predicted.is_number()) continue;
    judged.add(fmt::format("output SQNR in dB with {} in {}", cell.format, cell.layer), predicted,
               measured, error_of(*cell.row), kLayerHolds);
  }
  return judged.findings();
}

std::string percent(const Json& value) {
  return value.is_number() ? fmt::format("{:+.2f}", 100 * value.get<double>()) : "-";
}

std::string decibel_text(const Json& value) {
  return value.is_number() ? fmt::format("{:.1f}", value.get<double>()) : "-";
}

ResultTable table_of(const std::string& format, std::vector<Cell> cells) {
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    const Json x = number_at(*a.row, "metrics", "sqnr_db"),
               y = number_at(*b.row, "metrics", "sqnr_db");
    return (x.is_number() ? x.get<double>() : HUGE_VAL) <
           (y.is_number() ? y.get<double>() : HUGE_VAL);
  });
  ResultTable table{format + ", the most sensitive layer first",
                    {"layer", "top-1 difference, points", "95 % interval", "output SQNR dB",
                     "predicted", "overflow", "underflow"},
                    {}};
  for (const Cell& cell : cells) {
    const Json& metrics = (*cell.row)["metrics"];
    double overflow = 0, underflow = 0;
    for (const Json& layer : (*cell.row)["layers"]) {
      overflow = std::max(overflow, layer.value("overflow", 0.0));
      underflow = std::max(underflow, layer.value("underflow", 0.0));
    }
    table.rows.push_back({cell.layer, percent(metrics["difference"]),
                          fmt::format("[{}, {}]", percent(metrics["difference_ci95"][0]),
                                      percent(metrics["difference_ci95"][1])),
                          decibel_text(metrics["sqnr_db"]),
                          decibel_text((*cell.row)["predicted"]["sqnr_db"]),
                          fmt::format("{:.1e}", overflow), fmt::format("{:.1e}", underflow)});
  }
  return table;
}

Conclusion run(const ExperimentRun& run) {
  const std::string& roles = run.settings.text("roles");
  if (roles != "both" && roles != "weight" && roles != "activation")
    throw Error("--set: roles: expected both, weight or activation, not '" + roles + "'");
  const std::string& net = run.settings.text("net");
  const std::int64_t images = run.settings.integer("images", 1, 100'000'000);
  net::Dataset dataset = net::load_dataset(run.settings.text("data"), run.folders.cache);
  TrainedNet trained = load_trained_net(net, dataset, run.folders);

  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(trained.graph)) {
    // Of two activations there is no weight to quantize.
    if (roles != "weight" || layer.weight != nullptr) layers.push_back(layer.name);
  }
  layers.emplace_back(kAllLayers);
  Json points = Json::array();
  std::vector<Cell> cells;
  for (const std::string& format : run.settings.list("formats")) {
    for (const std::string& layer : layers) {
      points.push_back({{"layers", layers_of(layer, format, roles)},
                        {"gemms.*.unit", run.settings.text("unit")}});
      cells.push_back({format, layer});
    }
  }
  const Json sweep = {
      {"numemu_sweep", 1},     {"net", net},          {"data", run.settings.text("data")},
      {"eval_images", images}, {"seeds", {run.seed}}, {"points", points}};
  const SweepConfig config = parse_sweep(sweep.dump(), "sensitivity");
  if (config.repeated > 0)
    throw Error("--set: formats: expected every format once, found some repeated");
  run.say(fmt::format("loading {} on {}: float32 baseline, noise gains", net,
                      run.settings.text("data")));
  Workbench bench(std::move(dataset), std::move(trained), images);
  run_sweep(config, bench, run.out, {}, run.existing, run.hooks);
  const std::vector<Json> rows = merge_rows(run.out);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].row = &rows.at(i);

  Conclusion conclusion;
  conclusion.findings = judge(cells);
  for (std::size_t first = 0; first < cells.size(); first += layers.size()) {
    const std::vector<Cell> of_format(cells.begin() + first, cells.begin() + first + layers.size());
    conclusion.tables.push_back(table_of(of_format[0].format, of_format));
    // The last is "all layers"; the first of the others after sorting is the weakest.
    const ResultTable alone =
        table_of(of_format[0].format, {of_format.begin(), of_format.end() - 1});
    conclusion.sentences.push_back(fmt::format(
        "{}: {} is the most sensitive layer ({} dB at the output, {} points of top-1); all layers "
        "together cost {} points.",
        of_format[0].format, alone.rows[0][0], alone.rows[0][3], alone.rows[0][1],
        percent((*of_format.back().row)["metrics"]["difference"])));
  }
  return conclusion;
}

}  // namespace

extern const Experiment experiment_sensitivity;
const Experiment experiment_sensitivity = {
    "sensitivity",
    "which layer breaks first: one layer at a time at each format",
    {{"net", "lenet", "lenet", "lenet", "network or file"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"formats", "float8_e4m3fn,int4", "float8_e4m3fn,float8_e5m2,int8,int4,mxfp4",
      "float8_e4m3fn,float8_e5m2,float8_e3m4,float6_e2m3fn,float6_e3m2fn,float4_e2m1fn,int8,int6,"
      "int4,int3,mxint8,mxfp8_e4m3,mxfp6_e2m3,mxfp4,nvfp4",
      "formats or block formats to try"},
     {"roles", "both", "both", "both", "both, weight or activation"},
     {"unit", "f32.sequential", "f32.sequential", "f32.sequential", "unit of every GEMM"},
     {"images", "500", "2000", "10000", "test samples"}},
    run};

}  // namespace numemu::experiments
