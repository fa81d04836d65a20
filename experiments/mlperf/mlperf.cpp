// MLPerf Inference without its hardware: quality targets of shipped recipes, and what the load
// generator's scenarios measure of simulated machines (Reddi et al., ISCA 2020, arXiv 1911.02549).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/weights.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/gate.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/mlperf/scenarios.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::mlperf {

namespace {

constexpr double kEightBits = 8;  // of an element at least, without scales
// The score test has the variance of the likeliest answers whose margin is 0, which lies between
// those of the planning figure.
constexpr double kPlanHolds = 0.1;
/// Below, the ends of the interval move in steps of whole images.
constexpr std::int64_t kFewImages = 1000;

/// What a trial remembers of a row.
struct Judgement {
  RowBits bits;
  RowMetrics metrics;
  std::vector<RowGate> gates;

  static void fields(auto& self, const auto& visit) {
    visit("bits", self.bits);
    visit("metrics", self.metrics);
    visit("gates", self.gates);
  }
  /// What both make of the images; the counts of a row are exact.
  stats::PairedAnswers answers() const {
    stats::PairedAnswers a;
    a.n = metrics.n.value_or(0);
    a.only1 = metrics.gained.value_or(0);
    a.only2 = metrics.lost.value_or(0);
    a.both = std::llround(metrics.top1.value_or(0) * static_cast<double>(a.n)) - a.only1;
    return a;
  }
};

std::vector<Gate> gates_of(const Settings& settings) {
  std::vector<Gate> gates;
  for (const std::string& text : settings.list("gates")) gates.push_back(parse_gate(text));
  return gates;
}

/// A network whose weights numemu ships, a file, or one of the setting `trained`.
TrainedNet network_of(const ExperimentRun& run, const std::string& name, bool train,
                      const net::Dataset& data) {
  if (!train) {
    TrainedNet trained = load_trained_net(name, data, run.folders);
    fold_batch_norm(trained);
    return trained;
  }
  run.say("training " + name);
  TrainTrial trial = training_of(run.settings, name);
  trial.seed = run.seed;
  TrainedNet trained{trained_in_float32(trial, data), name, ""};
  fold_batch_norm(trained);
  return trained;
}

/// A network under a recipe.
struct GatedCase {
  std::string net, recipe;
  Judgement judgement;

  std::string name() const { return net + " under " + recipe; }
};

std::vector<GatedCase> judge_network(const ExperimentRun& run, const std::string& name, bool train,
                                     const std::vector<Gate>& gates) {
  const std::string& data = run.settings.text("data");
  net::Dataset dataset = net::load_dataset(data, run.folders.cache);
  TrainedNet trained = network_of(run, name, train, dataset);
  std::vector<std::string> recipes = run.settings.list("recipes");
  if (recipes == std::vector<std::string>{"shipped"})
    recipes = shipped_recipes(run.folders.data, false);
  const std::int64_t asked = run.settings.integer("eval_samples");
  const Json sweep = {{"numemu_sweep", 1},
                      {"net", name},
                      {"data", data},
                      {"eval_images", asked > 0 ? asked : dataset.test_count()},
                      {"seeds", Json::array({run.seed})},
                      {"predictions", false},
                      {"grid", {{"recipe", recipes}}}};
  const SweepConfig config = parse_sweep(sweep.dump(), "--set: recipes", run.folders.data);
  if (config.repeated > 0)
    throw usage_error("--set: recipes: expected every recipe once, found some repeated");
  dataset = with_reference(std::move(dataset), trained, config.points);
  run.say("float32 of " + name);
  const Workbench bench(std::move(dataset), std::move(trained), config.eval_images,
                        {run.folders.cache, run.existing == Existing::fresh, run.on_bench});
  PointCache cache(true);
  std::vector<TypedTrial<Judgement>> trials;
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    const Point& point = config.points[i];
    Json key = json_of(identify(point, bench));
    for (const Gate& gate : gates) key["gates"].push_back(gate.text);
    trials.push_back({std::move(key), fmt::format("{}, {}", name, recipes[i]), [&] {
                        Row row = run_point(point, bench, cache);
                        Judgement judgement{row.bits, row.metrics, {}};
                        for (const Gate& gate : gates) {
                          judge_gate(gate, row);
                          judgement.gates.push_back(*row.gate);
                        }
                        return judgement;
                      }});
  }
  std::vector<GatedCase> all;
  std::vector<Judgement> results = run_typed(run, std::move(trials));
  for (std::size_t i = 0; i < results.size(); ++i)
    all.push_back({name, recipe_name(recipes[i]), std::move(results[i])});
  return all;
}

/// z^2 variance / margin^2. The variance is that of the observed answers, but at least that of
/// answers whose margin is 0: what the gate allows to be lost, d, differs in them, d - d^2.
double planned(const GatedCase& one, const Gate& gate, const RowGate& judged) {
  const stats::PairedAnswers answers = one.judgement.answers();
  const double lost = (1 - gate.bound) * static_cast<double>(answers.both + answers.only2) /
                      static_cast<double>(answers.n);
  return stats::images_needed(
      std::max(stats::paired_share_variance(answers, gate.bound), lost * (1 - lost)),
      judged.margin.value_or(NAN), stats::kNormal99);
}

void judge(const std::vector<GatedCase>& cases, const std::vector<Gate>& gates,
           Conclusion& conclusion) {
  for (const GatedCase& one : cases) {
    for (std::size_t g = 0; g < gates.size(); ++g) {
      const RowGate& judged = one.judgement.gates[g];
      const std::string what = fmt::format("{}, {}", one.name(), gates[g].text);
      const Ends ends = judged.margin_ci99.value_or(Ends());
      if (g == 0 && one.judgement.bits.weight.value_or(0) >= kEightBits &&
          one.judgement.bits.activation.value_or(0) >= kEightBits) {
        conclusion.add(
            interval_finding("points above the target, 99 % interval: " + what, 0,
                             100 * judged.margin.value_or(NAN),
                             {100 * ends.low.value_or(NAN), 100 * ends.high.value_or(NAN)},
                             at_least(0)),
            "eight bits");
      }
      const std::int64_t needed = judged.images_needed.value_or(0);
      if (needed < kFewImages) continue;
      const double plan = planned(one, gates[g], judged);
      conclusion.add(exact_finding("images that decide: " + what, plan, static_cast<double>(needed),
                                   std::abs(static_cast<double>(needed) / plan - 1) <= kPlanHolds),
                     "images");
    }
  }
}

ResultTable verdict_table(const std::vector<GatedCase>& cases, const std::vector<Gate>& gates) {
  ResultTable table{"Shipped recipes under quality targets, paired by image, at 99 %",
                    {"network", "recipe", "bits of weights", "of activations", "top-1, %",
                     "float32, %", "answers that differ, %"},
                    {}};
  for (const Gate& gate : gates) {
    table.header.push_back(gate.text);
    table.header.push_back("images needed");
  }
  for (const GatedCase& one : cases) {
    const Judgement& j = one.judgement;
    const stats::PairedAnswers answers = j.answers();
    const double differ =
        static_cast<double>(answers.only1 + answers.only2) / static_cast<double>(answers.n);
    std::vector<std::string> row = {one.net,
                                    one.recipe,
                                    fmt::format("{:.2f}", j.bits.weight.value_or(NAN)),
                                    fmt::format("{:.2f}", j.bits.activation.value_or(NAN)),
                                    percent_text(j.metrics.top1.value_or(NAN)),
                                    percent_text(j.metrics.baseline_top1.value_or(NAN)),
                                    percent_text(differ)};
    for (const RowGate& gate : j.gates) {
      row.push_back(gate.verdict);
      row.push_back(gate.images_needed ? fmt::format("{}", *gate.images_needed) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Before any recipe is looked at: the margin of a network that loses nothing is what the target
/// allows.
ResultTable planning_table(const std::vector<GatedCase>& cases, const std::vector<Gate>& gates) {
  ResultTable table{"Images that a decision needs where a recipe loses nothing",
                    {"network", "target", "against a constant", "two independent runs",
                     "paired, 1 % of answers differ", "paired, 5 %"},
                    {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (i > 0 && cases[i].net == cases[i - 1].net) continue;
    const double top1 = cases[i].judgement.metrics.baseline_top1.value_or(NAN);
    for (const Gate& gate : gates) {
      const double allowed = (1 - gate.bound) * top1;
      const auto images = [&](double variance) {
        return fmt::format("{:.0f}", stats::images_needed(variance, allowed, stats::kNormal99));
      };
      const auto paired = [&](double differ) { return images(differ - allowed * allowed); };
      table.rows.push_back({cases[i].net, gate.text, images(top1 * (1 - top1)),
                            images(2 * top1 * (1 - top1)), paired(0.01), paired(0.05)});
    }
  }
  return table;
}

Chart margin_chart(const std::vector<GatedCase>& cases, const Gate& gate) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Distance from the target " + gate.text,
              .caption =
                  "Points of top-1 above (pass) or below (fail) the target with their 99 % "
                  "interval, paired by image; an interval that holds 0 is undecided.",
              .x = "recipe",
              .y = "points above the target"};
  for (const GatedCase& one : cases) {
    const RowGate& judged = one.judgement.gates[0];
    const Ends ends = judged.margin_ci99.value_or(Ends());
    chart.of(one.net).points.push_back({.name = one.recipe,
                                        .y = 100 * judged.margin.value_or(NAN),
                                        .low = 100 * ends.low.value_or(NAN),
                                        .high = 100 * ends.high.value_or(NAN)});
  }
  return chart;
}

}  // namespace

void check_gate(const std::string& text) {
  const Gate gate = parse_gate(text);
  if (gate.metric != "top1" || !gate.relative)
    throw Error("expected shares of float32's top-1, not '" + text + "'");
}

void check_recipes(const ExperimentRun& run) {
  for (const std::string& recipe : run.settings.list("recipes"))
    if (recipe != "shipped") read_recipe(recipe, run.folders.data, "--set: recipes");
}

void add_gates(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<Gate> gates = gates_of(run.settings);
  std::vector<GatedCase> cases;
  for (const char* const key : {"nets", "trained"}) {
    if (run.settings.text(key) == "-") continue;
    for (const std::string& net : run.settings.list(key))
      for (GatedCase& one : judge_network(run, net, key == std::string("trained"), gates))
        cases.push_back(std::move(one));
  }
  if (cases.empty()) return;
  judge(cases, gates, conclusion);
  for (std::size_t g = 0; g < gates.size(); ++g) {
    std::int64_t passed = 0, failed = 0;
    for (const GatedCase& one : cases) {
      passed += one.judgement.gates[g].verdict == "pass" ? 1 : 0;
      failed += one.judgement.gates[g].verdict == "fail" ? 1 : 0;
    }
    conclusion.sentences.push_back(fmt::format(
        "{}: of {} networks under recipes {} pass, {} fail, {} are undecided on {} images.",
        gates[g].text, cases.size(), passed, failed, std::ssize(cases) - passed - failed,
        cases.front().judgement.answers().n));
  }
  conclusion.tables.push_back(verdict_table(cases, gates));
  conclusion.tables.push_back(planning_table(cases, gates));
  conclusion.charts.push_back(margin_chart(cases, gates[0]));
}

}  // namespace numemu::experiments::mlperf

namespace numemu::experiments {

namespace {

Conclusion run_mlperf(const ExperimentRun& run) {
  mlperf::check_recipes(run);
  Conclusion conclusion;
  mlperf::add_scenarios(run, conclusion);
  mlperf::add_gates(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mlperf = {
    "mlperf",
    "which recipes pass MLPerf's quality targets on how many images, and how many queries do its "
    "scenarios need",
    "MLPerf Inference (Reddi et al., ISCA 2020, arXiv 1911.02549; inference_rules.adoc) asks for "
    "99 % of float32's accuracy, and for numbers of queries that give tail latencies with 99 % "
    "confidence.",
    {{"eight bits",
      "Shipped recipes of 8 bits and more keep 99 % of float32's top-1 (a contrast)."},
     {"images",
      "The images that decide a paired gate are z^2 variance / margin^2 within 10 %, from 1,000 "
      "images on (derived here)."},
     {"scenarios",
      "Latencies in SingleStream and MultiStream and the rate of Offline are those of the law of "
      "the service times (derived here)."},
     {"server",
      "Latencies in Server and its largest rate are those of M/M/c and M/D/1, means those of M/G/1 "
      "(derived here)."},
     {"speed",
      "A machine twice as fast serves more than twice the queries within the bound, by the ratio "
      "of the closed forms (derived here)."},
     {"independent",
      "24,576 independent queries give the 90 % tail within its margin as often as the binomial "
      "law says, 99 %, to 2 % (published; the margin is ours)."},
     {"few",
      "1,024 queries, the rules' least number in SingleStream, do so in the 40 % that the same law "
      "says (derived here)."},
     {"queue",
      "The queue of M/M/1 multiplies the variance of the share of late queries as its Poisson "
      "equation says (derived here)."},
     {"dependent",
      "270,336 queries of Server give the 99 % tail within its margin at 99 %, though the "
      "latencies of a busy queue depend on one another (published; the queue is ours)."},
     {"dependent, predicted",
      "They do so as often as that multiple of the variance says (derived here)."}},
    {{"services", "exponential(1000),constant(0.001)",
      "exponential(1000),constant(0.001),lognormal(0.001,0.0005)",
      "exponential(1000),constant(0.001),normal(0.001,0.0002),lognormal(0.001,0.0005),"
      "lognormal(0.001,0.002)",
      "laws of the seconds that a sample takes", list_of(mlperf::check_service)},
     {"servers", "1", "1,4", "1,2,4,16", "servers of the machines whose law is exponential",
      wholes(1, 1000)},
     {"bound", "0.015", "seconds within which 99 % of the queries must end", real(1e-9, 1e6)},
     {"seconds", "0", "600", "600", "least duration of a run", real(0, 1e6)},
     {"runs", "8", "40", "400", "simulated runs of every machine", whole(2, 100'000)},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks with shipped weights, or files; -: none",
      takes_networks_or_none()},
     {"trained", "-", "mlp-bn", "mobilenet-small", "networks that are trained here; -: none",
      takes_networks_or_none()},
     data_setting(),
     {"recipes", "int8-static,mxfp4", "shipped", "shipped",
      "names or files; shipped: all shipped ones of inference", list_of()},
     {"gates", "mlperf.resnet,0.999", "mlperf.resnet,mlperf.mobilenet,0.999",
      "mlperf.resnet,mlperf.mobilenet,0.999", "targets", list_of(mlperf::check_gate)},
     training_settings({"1", "2", "8"}, "64", {"512", "8192", "16384"}, {"500", "4000", "0"})},
    run_mlperf,
    mlperf::check_scenarios};

}  // namespace numemu::experiments
