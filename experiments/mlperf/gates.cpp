#include "experiments/mlperf/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/weights.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/gate.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/engine/trials.hpp"
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
