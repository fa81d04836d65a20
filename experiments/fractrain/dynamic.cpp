// Gates that choose the precision of two layers for each sample, against static choices.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_settings.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/fractrain/gated_net.hpp"
#include "experiments/fractrain/parts.hpp"
#include "policies/numerics/staged_numerics.hpp"

namespace numemu::experiments::fractrain {
namespace {

constexpr double kMargin = 0.5;  // points of top-1
constexpr double kNear = 0.25;   // of the cost in per cent of 32 x 32 bits
const Precision kRest{8, 8, 8};

/// A way to choose: one of the precisions for all, or gates with targets by stage.
struct Gating {
  std::string name;
  std::vector<Precision> choices;
  std::vector<double> targets;  ///< stages of equal length; none: one choice
};

std::vector<Gating> gatings(const Settings& settings) {
  std::vector<Gating> all;
  const std::vector<Precision> choices = gate_choices();
  for (auto bits = choices.rbegin(); bits != choices.rend(); ++bits)
    all.push_back({"static " + bits->text(), {*bits}, {}});
  for (const double target : settings.numbers("targets", 0, 100))
    all.push_back({fmt::format("gates, {} %", target), choices, {target}});
  const std::vector<double> staged = settings.numbers("staged_targets", 0, 100);
  all.push_back({fmt::format("gates, {} to {} %", staged.front(), staged.back()), choices, staged});
  return all;
}

Json train(const TrainTrial& trial, const net::Dataset& data, const Gating& gating, double beta) {
  GatedNet net = gated_net(data.input_shape(), data.classes(), gating.choices, beta);
  net::initialize(net.graph, trial.seed);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  Json recipe = trial.recipe;
  recipe["numemu_recipe"] = 1;
  recipe["seed"] = trial.seed;
  policies::StagedNumerics numerics(policies::Recipe::parse(recipe, "fractrain"), net.graph);
  const auto aim = [&](std::int64_t epoch) {
    const auto stages = static_cast<std::int64_t>(gating.targets.size());
    for (GatedDense* block : net.blocks)
      block->target = stages == 0
                          ? 0
                          : gating.targets.at(static_cast<std::size_t>(
                                std::min(epoch, options.epochs - 1) * stages / options.epochs));
  };
  aim(0);
  net::TrainHooks hooks;
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) { aim(epoch.epoch + 1); };
  net::train(net.graph, restricted(data, trial.train_samples, false), options, numerics, hooks);
  const net::Evaluation tested =
      net::evaluate(net.graph, data, net::Split::test, trial.eval_samples, numerics);
  double cost = 0, rows = 0;
  Json taken = Json::array();
  for (std::size_t k = 0; k < gating.choices.size(); ++k) {
    double of_choice = 0;
    for (const GatedDense* block : net.blocks) of_choice += static_cast<double>(block->taken()[k]);
    cost += 100 * published_cost(gating.choices[k]) * of_choice;
    rows += of_choice;
    taken.push_back(of_choice);
  }
  return {{"top1", static_cast<double>(tested.correct) / static_cast<double>(tested.n)},
          {"cost", cost / rows},
          {"taken", std::move(taken)}};
}

struct Row {
  const Gating* gating = nullptr;
  std::vector<double> top1, cost;    ///< per cent
  std::vector<double> shares;        ///< of the choices, mean over the seeds
  stats::PairedInterval difference;  ///< to the first
};

void judge(const std::vector<Row>& rows, Conclusion& conclusion) {
  PairedClaims claims;
  for (const Row& row : rows) {
    if (row.gating->targets.empty()) continue;
    double target = 0;
    for (const double t : row.gating->targets)
      target += t / static_cast<double>(row.gating->targets.size());
    const stats::PairedInterval cost = stats::paired_interval(row.cost);
    conclusion.findings.push_back(
        interval_finding(fmt::format("{}: mean cost of the choices", row.gating->name), target,
                         cost.mean, {cost.low, cost.high}, near(target, kNear)));
    claims.add(fmt::format("points gained by {} on {}, at least -{}", row.gating->name,
                           rows[0].gating->name, kMargin),
               row.difference, -kMargin, "gates");
  }
  conclusion.about("target");
  for (Finding& finding : claims.judged()) conclusion.findings.push_back(std::move(finding));
}

}  // namespace

void add_dynamic(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<Gating> compared = gatings(settings);
  const double beta = settings.number("beta", 0, 1e6);
  const TrainTrial trial = training_of(settings, "mlp");  // whose rates the gated network has
  const auto seeds = static_cast<std::size_t>(settings.integer("seeds", 1, 1000));
  std::vector<Trial> trials;
  for (const Gating& gating : compared) {
    for (std::size_t s = 0; s < seeds; ++s) {
      TrainTrial one = trial;
      one.seed = run.seed + s;
      one.recipe = gated_recipe(gating.choices, kRest);
      Json point = point_of(one, data);
      point["gates"] = {{"targets", gating.targets}, {"beta", beta}};
      trials.push_back({std::move(point), fmt::format("{}, seed {}", gating.name, one.seed),
                        [one, beta, &data, &gating] { return train(one, data, gating, beta); }});
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  std::vector<Row> rows;
  ResultTable table{
      fmt::format(
          "two gated layers on {}, {} epochs, {} seeds, paired by seed: cost and choices of "
          "training",
          data.name(), trial.options.epochs, seeds),
      {"precision", "cost, % of 32 x 32 bits", "top-1, %", "difference, points", "95 % interval",
       "choices, %"},
      {}};
  for (std::size_t g = 0; g < compared.size(); ++g) {
    Row row;
    row.gating = &compared[g];
    row.shares.resize(compared[g].choices.size());
    for (std::size_t s = 0; s < seeds; ++s) {
      const Json& result = results[g * seeds + s];
      row.top1.push_back(100 * result.at("top1").get<double>());
      row.cost.push_back(result.at("cost"));
      double all = 0;
      for (const Json& taken : result.at("taken")) all += taken.get<double>();
      for (std::size_t k = 0; k < row.shares.size(); ++k)
        row.shares[k] += result.at("taken").at(k).get<double>() / all / static_cast<double>(seeds);
    }
    row.difference = stats::paired_interval(row.top1, g == 0 ? row.top1 : rows[0].top1);
    std::string shares;
    for (std::size_t k = 0; k < row.shares.size() && row.shares.size() > 1; ++k)
      shares += fmt::format("{}{} {:.0f}", k == 0 ? "" : ", ", compared[g].choices[k].text(),
                            100 * row.shares[k]);
    const stats::PairedInterval& d = row.difference;
    table.rows.push_back(
        {compared[g].name, fmt::format("{:.2f}", stats::paired_interval(row.cost).mean),
         fmt::format("{:.2f}", stats::paired_interval(row.top1).mean),
         g == 0 ? "-" : fmt::format("{:+.2f}", d.mean),
         g == 0 || d.n < 2 ? "-" : fmt::format("[{:+.2f}, {:+.2f}]", d.low, d.high),
         shares.empty() ? "-" : shares});
    rows.push_back(std::move(row));
  }
  judge(rows, conclusion);
  conclusion.tables.push_back(std::move(table));
}

}  // namespace numemu::experiments::fractrain
