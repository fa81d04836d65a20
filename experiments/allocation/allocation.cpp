// For each layer the cheapest format, scale rule and unit that keep a budget, as an integer program
// over a table of losses and costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "emu/stats/spearman.hpp"
#include "experiments/allocation/front.hpp"
#include "experiments/allocation/table.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/run_points.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/notes/notes.hpp"

namespace numemu::experiments {

namespace {

/// Noise of a mixture within a factor of two of the sum of its parts.
constexpr double kAdditive = 3;
constexpr double kSmallNoise = 10;  // dB of SQNR from which on the noise is a tenth of the signal
constexpr double kMostCost = 1e18, kMostDecibels = 1000;

void check_cost(const std::string& cost) {
  if (cost != "bits" && cost != "mac") throw Error(unknown_name("cost", cost, {"bits", "mac"}));
}

FrontPlan plan_of(const ExperimentRun& run) {
  FrontPlan plan;
  plan.cost = run.settings.text("cost") == "bits" ? CostKind::bits : CostKind::mac;
  plan.budgets = run.settings.numbers("budgets");
  plan.points = run.settings.integer("points");
  plan.decibels = run.settings.numbers("sqnr");
  if (!run.settings.text("other_limit").empty())
    plan.other_limit = run.settings.number("other_limit");
  plan.random = run.settings.integer("random");
  plan.seed = run.seed;
  plan.solver = run.settings.text("solver");
  return plan;
}

std::string decibels(double loss) {
  return loss > 0 ? fmt::format("{:.1f}", -10 * portable::log10(loss)) : "-";
}

ResultTable sensitivity_of(const SensitivityTable& table, const std::string& granularity) {
  const bool noise = table.kind != LossKind::cross_entropy;
  ResultTable out{
      fmt::format(
          "{} with one layer at an option (weights per {} but for block formats), the others "
          "as in the recipe",
          table.kind == LossKind::noise       ? "Output SQNR in dB"
          : table.kind == LossKind::predicted ? "Predicted output SQNR in dB"
                                              : "Increase of cross-entropy",
          granularity),
      {"layer", "weights", "multiply-adds"},
      {}};
  for (const LayerChoice& choice : table.choices) out.header.push_back(choice.name);
  for (std::size_t l = 0; l < table.layers.size(); ++l) {
    const LayerSize& layer = table.layers[l];
    std::vector<std::string> row = {layer.name, fmt::format("{:.0f}", layer.weights),
                                    fmt::format("{:.0f}", layer.multiply_adds)};
    for (const TableCell& cell : table.cells[l]) {
      row.push_back(noise ? std::isnan(cell.sqnr_db)   ? "NaN"
                            : std::isinf(cell.sqnr_db) ? "exact"
                                                       : fmt::format("{:.1f}", cell.sqnr_db)
                          : fmt::format("{:.2g}", cell.loss));
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

/// A point of the front beside its row.
struct Measured {
  const FrontPoint* point = nullptr;
  ReportRow record;
  double error_db = HUGE_VAL;  ///< standard error of the measured SQNR
};

std::vector<Measured> measured_of(const Front& front, const std::vector<Row>& rows) {
  const std::vector<ReportRow> records = report_rows(rows);
  std::vector<Measured> out;
  for (const FrontPoint& point : front.points) {
    const ReportRow& record = records.at(point.row);
    const double error = record.sqnr_error_db.value_or(0);
    out.push_back({&point, record, error > 0 ? error : HUGE_VAL});
  }
  return out;
}

/// Of the figure that rows of this data are judged by.
const Measure& measure_of(const std::vector<Measured>& all) {
  return *(all.empty() ? judged_of({}) : all.front().record.judged).measure;
}

ResultTable front_table(const SensitivityTable& table, const std::vector<Measured>& all) {
  const Measure& measure = measure_of(all);
  ResultTable out{"Mixtures: predicted from the table and measured",
                  {"mixture", "bits/weight of products", "W bits of network", "cost/MAC",
                   "predicted SQNR dB", "SQNR dB", value_title(measure),
                   measure.factor == 100 ? "change, points" : "change", "95 % interval"},
                  {}};
  const bool noise = table.kind != LossKind::cross_entropy;
  if (!noise) out.header[4] = "predicted loss";
  for (const Measured& m : all) {
    const ReportRow& r = m.record;
    const JudgedFigure& judged = r.judged;
    out.rows.push_back(
        {m.point->name, fmt::format("{:.3f}", m.point->bits),
         r.row->bits.weight ? fmt::format("{:.3f}", *r.row->bits.weight) : "-",
         fmt::format("{:.4g}", m.point->mac),
         noise ? decibels(m.point->loss) : fmt::format("{:.4g}", m.point->loss),
         r.sqnr_db ? fmt::format("{:.1f}", *r.sqnr_db) : "-", figure_text(measure, judged.value),
         figure_text(measure, judged.difference, true),
         interval_text(measure, judged.difference_low, judged.difference_high, true)});
  }
  return out;
}

/// "conv1 in int8; the other 19 layers in int4": the commonest option is that of the others.
std::string options_text(const SensitivityTable& table, const std::vector<std::size_t>& options) {
  std::map<std::size_t, std::vector<std::string>> layers;
  for (std::size_t l = 0; l < options.size(); ++l)
    layers[options[l]].push_back(table.layers[l].name);
  const auto most =
      std::ranges::max_element(layers, {}, [](const auto& option) { return option.second.size(); });
  if (layers.size() == 1) return fmt::format("all layers in {}", table.choices[most->first].name);
  std::string out;
  for (const auto& [option, names] : layers)
    if (option != most->first)
      out += fmt::format("{} in {}; ", joined(names, ", "), table.choices[option].name);
  return out + fmt::format("the other {} in {}", counted(std::ssize(most->second), "layer"),
                           table.choices[most->first].name);
}

/// What the program chose for each budget, what it costs and loses, and where its recipe is.
std::vector<std::string> chosen_sentences(const SensitivityTable& table,
                                          const std::vector<Measured>& all) {
  const Measure& measure = measure_of(all);
  std::vector<std::string> sentences;
  for (const Measured& m : all) {
    if (m.point->method != Method::optimal) continue;
    const JudgedFigure& judged = m.record.judged;
    sentences.push_back(fmt::format(
        "{}: {}. {:.3f} bits per weight, {:.4g} per MAC; {} {}{}{}, {} {}; recipe-{}.json.",
        m.point->name, options_text(table, m.point->options), m.point->bits, m.point->mac,
        measure.words, figure_text(measure, judged.value), *measure.prefix == 0 ? "" : " ",
        measure.prefix, figure_text(measure, judged.difference, true),
        interval_text(measure, judged.difference_low, judged.difference_high, true),
        m.point->file));
  }
  return sentences;
}

Chart chart_of(const SensitivityTable& table, const std::vector<Measured>& all, CostKind cost) {
  constexpr double kFloat32Bits = 32;
  const bool bits = cost == CostKind::bits;
  const Measure& measure = measure_of(all);
  Chart chart{
      .kind = Chart::Kind::points,
      .title = fmt::format("{} against {}", measure.is_top1() ? "Accuracy" : measure.words,
                           bits ? "compression" : "the cost of MACs"),
      .caption = fmt::format(
          "Each point is a mixture of {} options over {} layers, with the interval of its figure. "
          "The allocation is chosen by the sum of the losses of single layers.",
          table.choices.size(), table.layers.size()),
      .x = bits ? "stored bits of weights of products, % of float32's" : "cost per multiply-add",
      .y = *measure.prefix == 0 ? std::string(measure.words)
                                : fmt::format("{}, {}", measure.words, measure.prefix)};
  for (const Method method : {Method::optimal, Method::greedy, Method::uniform, Method::random}) {
    ChartSeries series{.name = std::string(to_string(method))};
    for (const Measured& m : all) {
      const JudgedFigure& judged = m.record.judged;
      if (m.point->method != method || !judged.value) continue;
      series.points.push_back({.x = bits ? 100 * m.point->bits / kFloat32Bits : m.point->mac,
                               .name = method == Method::uniform ? m.point->name : "",
                               .y = measure.factor * *judged.value,
                               .low = measure.factor * judged.low.value_or(NAN),
                               .high = measure.factor * judged.high.value_or(NAN)});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart additivity_of(const std::vector<Measured>& all) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "The sum of the losses of single layers, and the loss of the mixture",
              .caption = "On the line the noise of the mixture is the sum of its parts.",
              .x = "SQNR predicted from the table, dB",
              .y = "SQNR measured, dB"};
  ChartSeries measured{.name = "measured"}, predicted{.name = "predicted", .predicted = true};
  for (const Measured& m : all) {
    if (!m.record.sqnr_db || !(m.point->loss > 0)) continue;
    const double db = -10 * portable::log10(m.point->loss), error = 1.96 * m.error_db;
    const bool known = std::isfinite(error);
    measured.points.push_back({.x = db,
                               .y = *m.record.sqnr_db,
                               .low = known ? *m.record.sqnr_db - error : NAN,
                               .high = known ? *m.record.sqnr_db + error : NAN});
    predicted.points.push_back({.x = db, .y = db});
  }
  chart.series = {measured, predicted};
  return chart;
}

/// The sum of the table beside each mixture, and the order of all.
void judge_additivity(const std::vector<Measured>& all, Conclusion& out) {
  std::vector<double> predicted, measured;
  std::set<std::size_t> seen;  // a mixture counts once, by whatever methods it was found
  for (const Measured& m : all) {
    if (!m.record.sqnr_db || !(m.point->loss > 0) || !seen.insert(m.point->row).second) continue;
    const double db = -10 * portable::log10(m.point->loss);
    predicted.push_back(db);
    measured.push_back(*m.record.sqnr_db);
    out.add(model_finding(fmt::format("output SQNR in dB of {}", m.point->name), db,
                          *m.record.sqnr_db, m.error_db, kAdditive),
            db >= kSmallNoise ? "additive" : "additive, large noise");
  }
  if (predicted.size() < 4) return;
  const double rho = stats::spearman(predicted, measured);
  out.add(
      interval_finding("rank correlation of predicted and measured SQNR over all mixtures", 1, rho,
                       stats::spearman_interval(rho, static_cast<std::int64_t>(predicted.size())),
                       at_least(0.9)),
      "order");
}

/// At each budget the optimum beside mixtures that cost as much.
void judge_front(const std::vector<Measured>& all, Conclusion& out) {
  for (const Measured& best : all) {
    if (best.point->method != Method::optimal || !best.record.sqnr_db) continue;
    for (const Measured& other : all) {
      const bool rival =
          other.point->method == Method::random || other.point->method == Method::uniform;
      if (!rival || other.point->budget != best.point->budget || !other.record.sqnr_db) continue;
      const double ahead = *best.record.sqnr_db - *other.record.sqnr_db,
                   error = portable::hypot(best.error_db, other.error_db) * stats::kNormal95;
      const bool same = best.point->row == other.point->row;
      if (same) continue;
      out.add(interval_finding(
                  fmt::format("dB that {} is ahead of {}", best.point->name, other.point->name), 0,
                  ahead, {ahead - error, ahead + error}, at_least(0)),
              "front");
    }
  }
}

void write_recipes(const ExperimentRun& run, const Json& base, const SensitivityTable& table,
                   const Front& front) {
  for (const FrontPoint& point : front.points) {
    if (point.method != Method::optimal) continue;
    const Json recipe =
        policies::Recipe::parse(with_layers(base, entries_of(table, point.options)), "allocation")
            .json();
    write_atomically(fmt::format("{}/recipe-{}.json", run.out, point.file), {recipe.dump(2), "\n"});
  }
}

Conclusion run_allocation(const ExperimentRun& run) {
  const FrontPlan plan = plan_of(run);
  const LossKind kind = parse_loss(run.settings.text("loss"));
  const std::vector<LayerChoice> choices =
      read_choices(run.settings.list("options"), weight_granularity(run.settings));
  const std::string& costs_file = run.settings.text("mac_costs");
  const MacCosts costs = costs_file.empty() ? MacCosts() : MacCosts::read(costs_file);
  const std::string& file = run.settings.text("recipe");
  Json base = {{"numemu_recipe", 1}};
  if (!file.empty()) base = policies::Recipe::parse(parse_json(read_text(file), file), file).json();
  const std::string &net = run.settings.text("net"), &data = run.settings.text("data");
  const std::int64_t images = run.settings.integer("images");
  net::Dataset dataset = net::load_dataset(data, run.folders.cache);
  if (kind == LossKind::cross_entropy && dataset.target() != net::TargetKind::classes)
    throw usage_error(
        fmt::format("--set: loss: cross_entropy needs classes as targets, and the data set "
                    "{} has none; expected noise or predicted",
                    dataset.name()));
  TrainedNet trained = load_with_data(net, dataset, run.folders);
  const Workbench bench = open_bench(run, net, std::move(dataset), std::move(trained), images);
  const SensitivityTable table = measure_table(run, bench, base, choices, costs, kind,
                                               std::min(images, bench.dataset.calibration_count()));
  std::filesystem::create_directories(run.out);
  write_atomically(run.out + "/table.json",
                   {to_json(table, bench.trained.graph.name, bench.dataset.name()).dump(2), "\n"});

  Front front = make_front(table, plan);
  BuiltSweep built{
      .experiment = "allocation",
      .net = net,
      .data = data,
      .images = images,
      .more = {{"seeds", Json::array({run.seed})}, {"base", base}, {"predictions", false}},
      .repeated = "--set: options: expected different options, found some under two names"};
  for (FrontPoint& point : front.points) {
    const Json entry = {{"layers", with_layers(base, entries_of(table, point.options))["layers"]}};
    const auto same = std::ranges::find(built.points, entry, &BuiltPoint::settings);
    point.row = static_cast<std::size_t>(same - built.points.begin());
    // Tables of rows say which mixture one is.
    if (same == built.points.end())
      built.points.push_back({.settings = entry, .row_name = point.name});
  }
  write_recipes(run, base, table, front);
  PointRun points(run, built, run.out);
  points.open(bench.dataset, bench.trained);
  const std::vector<Row> rows = points.rows(bench);
  const std::vector<Measured> all = measured_of(front, rows);

  Conclusion conclusion;
  conclusion.sentences = baseline_notes(bench.trained);
  std::ranges::move(policies::notes_on_outputs(
                        bench.trained.graph,
                        kind == LossKind::cross_entropy
                            ? "mixtures are chosen by the loss of its targets"
                            : "mixtures are chosen by that one: a layer of the others alone costs "
                              "nothing and gets the cheapest option"),
                    std::back_inserter(conclusion.sentences));
  std::ranges::copy(front.sentences, std::back_inserter(conclusion.sentences));
  std::ranges::move(chosen_sentences(table, all), std::back_inserter(conclusion.sentences));
  conclusion.tables = {sensitivity_of(table, weight_granularity(run.settings)),
                       front_table(table, all)};
  if (kind != LossKind::cross_entropy) {
    judge_additivity(all, conclusion);
    conclusion.charts.push_back(additivity_of(all));
  }
  judge_front(all, conclusion);
  conclusion.charts.push_back(chart_of(table, all, CostKind::bits));
  conclusion.charts.push_back(chart_of(table, all, CostKind::mac));
  return conclusion;
}

}  // namespace

extern const Experiment experiment_allocation = {
    "allocation",
    "for each layer the cheapest format, scale rule and unit that keep a budget",
    "CalibTIP (Hubara et al. 2020, arXiv 2006.10518): the loss of a mixture is the sum of the "
    "losses of its layers, so that an integer program finds the best one.",
    {{"additive",
      "Where a tenth of the signal or less is predicted, the noise of a mixture is the sum of its "
      "layers' within a factor of two (published; the margin is ours)."},
     {"additive, large noise", "So it is where more is predicted (a contrast)."},
     {"order", "The sums rank mixtures: rank correlation above 0.9 (derived here)."},
     {"front",
      "The program's mixtures have less noise than uniform and random ones as dear (derived "
      "here)."}},
    {{"net", "lenet", "network or file", takes_network()},
     data_setting(),
     {"options", "int8,int4,int3", "int8,int6,int4,float8_e4m3fn,mxfp4",
      "int8,int6,int5,int4,int3,float8_e4m3fn,float6_e2m3fn,mxfp8_e4m3,mxfp6_e2m3,mxfp4,nvfp4",
      "WEIGHTS[/ACTIVATIONS][~SCALE][@UNIT], or a .json file with a list of them", list_of()},
     granularity_setting(),
     {"recipe", "", "file with the recipe that layers are changed in; float32"},
     {"loss", "noise", "noise (measured at the output), predicted (from float32) or cross_entropy"},
     {"cost", "bits", "what is bounded: bits (per weight of products) or mac (per MAC)",
      text_of(check_cost)},
     {"budgets", "", "limits of the mean cost; evenly from the least to the largest",
      reals(0, kMostCost).or_nothing()},
     {"points", "2", "4", "8", "how many, where no budgets are given", whole(1, 100)},
     {"other_limit", "", "a limit of the other mean cost, at every budget",
      real(0, kMostCost).or_nothing()},
     {"sqnr", "", "further points: the cheapest mixture with that predicted SQNR in dB",
      reals(-kMostDecibels, kMostDecibels).or_nothing()},
     {"mac_costs", "", "file with the cost of a MAC; bits times bits over float32's"},
     {"random", "1", "2", "8", "random mixtures beside each budget", whole(0, 1000)},
     {"solver", "exact", "exact, cbc (the program of that name) or greedy"},
     {"images", "200", "2000", "10000", "test samples of the mixtures", whole(1, 100'000'000)}},
    run_allocation};

}  // namespace numemu::experiments
