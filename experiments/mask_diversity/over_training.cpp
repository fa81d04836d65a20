// Changes of masks while a network trains under them: flips per refresh, distinct masks per piece.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emu/net/nets.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/mask_diversity/parts.hpp"
#include "experiments/mask_diversity/patterns.hpp"
#include "experiments/mask_diversity/pieces.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kLongest = 1'000'000;  // steps that a mask serves

const std::vector<std::string> kPatterns = {"2:4", "4:8", "2:4-T", "4:8-T"};

/// The rule's text with the number of steps that a mask serves.
std::string refreshed(const DiversityPattern& pattern, std::int64_t refresh) {
  return fmt::format("{},refresh={})", pattern.mask.substr(0, pattern.mask.size() - 1), refresh);
}

/// Pools the layers: rates weighted by elements, masks by pieces.
class Histories {
 public:
  Histories(const DiversityPattern& pattern, std::vector<std::string> layers)
      : pattern_(pattern), layers_(std::move(layers)) {}

  void observe(const net::Product& product) {
    const std::string layer(product.layer);
    if (std::find(layers_.begin(), layers_.end(), layer) == layers_.end()) return;
    const std::vector<float> pieces = pieces_of(*product.b.source, pattern_);
    const auto found =
        histories_.try_emplace(layer, pattern_.piece(), static_cast<std::int64_t>(pieces.size()));
    found.first->second.add(masks_of(pieces, pattern_).data());
  }

  Json json() const {
    std::vector<double> flips;
    double pieces = 0, distinct = 0;
    for (const auto& [layer, history] : histories_) {
      const auto weight = static_cast<double>(history.pieces());
      flips.resize(history.flip_rates().size());
      for (std::size_t i = 0; i < flips.size(); ++i) flips[i] += weight * history.flip_rates()[i];
      pieces += weight;
      distinct += weight * history.distinct_per_piece();
    }
    for (double& flip : flips) flip /= pieces;
    return {{"pieces", pieces}, {"distinct_per_piece", distinct / pieces}, {"flips", flips}};
  }

 private:
  const DiversityPattern& pattern_;
  std::vector<std::string> layers_;
  std::map<std::string, MaskHistory> histories_;
};

Json run_observed(TrainTrial trial, const net::Dataset& data, const DiversityPattern& pattern,
                  std::int64_t refresh, const std::vector<std::string>& layers) {
  Histories histories(pattern, layers);
  trial.before = [&](const net::Product& product, std::int64_t step) {
    if (product.kind == net::GemmKind::fprop && step % refresh == 0) histories.observe(product);
  };
  const TrainOutcome outcome = run_train_trial(trial, data);
  Json json = histories.json();
  json["outcome"] = json_of(outcome);
  return json;
}

/// Mean of the part of a list from `from` to `to`, as shares of its length; at least one entry.
double mean_between(const std::vector<double>& list, double from, double to) {
  const auto n = static_cast<double>(list.size());
  const auto first = static_cast<std::size_t>(from * n);
  const auto last = std::max(first + 1, static_cast<std::size_t>(to * n));
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += list[i];
  return sum / static_cast<double>(last - first);
}

}  // namespace

TrainTrial training_under_masks(const ExperimentRun& run, const net::Dataset& data) {
  TrainTrial trial;
  trial.net = run.settings.text("train_net");
  trial.seed = run.seed;
  evenly_masked_layers(net::build_net(trial.net, data));
  trial.options.optimizer = net::recommended_optimizer(trial.net);
  net::use_recommended_rates(trial.options, trial.net);
  trial.options.epochs = run.settings.integer("epochs", 1, 10'000);
  trial.train_samples = run.settings.integer("train_samples", 0, data.train_count());
  trial.eval_samples = run.settings.integer("images", 1, 100'000'000);
  const std::int64_t samples = trial.train_samples == 0 ? data.train_count() : trial.train_samples;
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  const std::int64_t refresh = run.settings.integer("refresh", 1, kLongest);
  if (refresh >= steps) {
    throw Error(fmt::format("--set: refresh: expected fewer than the {} steps of training, not {}",
                            steps, refresh));
  }
  return trial;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const TrainTrial base = training_under_masks(run, data);
  const std::string& name = base.net;
  const std::int64_t refresh = run.settings.integer("refresh", 1, kLongest);
  const std::vector<std::string> layers = evenly_masked_layers(net::build_net(name, data));
  std::vector<Trial> trials;
  for (const std::string& pattern_name : kPatterns) {
    const DiversityPattern& pattern = diversity_pattern(pattern_name);
    TrainTrial trial = base;
    trial.recipe["layers"] = Json::array();
    for (const std::string& layer : layers) {
      trial.recipe["layers"].push_back(
          {{"match", layer}, {"roles", {{"weight", {{"mask", refreshed(pattern, refresh)}}}}}});
    }
    Json point = point_of(trial, data);
    point["part"] = "training";
    trials.push_back({point, fmt::format("{} under {}", name, pattern.name),
                      [&data, &pattern, trial, refresh, layers] {
                        return run_observed(trial, data, pattern, refresh, layers);
                      }});
  }
  const std::vector<Json> results = run_trials(run, trials);

  ResultTable table{
      fmt::format("Masks of {} in training, renewed every {} steps from the dense weights", name,
                  refresh),
      {"pattern", "renewals", "flips in the first tenth, %", "in the middle, %",
       "in the last tenth, %", "distinct masks per piece", "exact count", "top-1, %"},
      {}};
  Chart chart{.kind = Chart::Kind::line,
              .title = "Masks during training",
              .caption = fmt::format("Share of the decisions of {} that change at a renewal, every "
                                     "{} steps; straight-through gradients. Independent masks of "
                                     "density 50 % would differ in half of them.",
                                     name, refresh),
              .x = "training step",
              .y = "elements that change, %",
              .series = {}};
  for (std::size_t i = 0; i < kPatterns.size(); ++i) {
    const DiversityPattern& pattern = diversity_pattern(kPatterns[i]);
    const auto flips = results[i]["flips"].get<std::vector<double>>();
    ChartSeries series{.name = pattern.name};
    for (std::size_t f = 0; f < flips.size(); ++f) {
      series.points.push_back(
          {.x = static_cast<double>((static_cast<std::int64_t>(f) + 1) * refresh),
           .y = 100 * flips[f]});
    }
    chart.series.push_back(series);
    const MaskCount& masks = pattern.masks();
    table.rows.push_back(
        {pattern.name, fmt::format("{}", flips.size()),
         fmt::format("{:.3f}", 100 * mean_between(flips, 0, 0.1)),
         fmt::format("{:.3f}", 100 * mean_between(flips, 0.45, 0.55)),
         fmt::format("{:.3f}", 100 * mean_between(flips, 0.9, 1)),
         fmt::format("{:.3f}", results[i]["distinct_per_piece"].get<double>()), masks.decimal,
         fmt::format(
             "{:.2f}",
             100 * read_fields<TrainOutcome>(results[i]["outcome"], "trials.jsonl").metric)});
  }
  conclusion.tables.push_back(table);
  conclusion.charts.push_back(chart);
}

}  // namespace numemu::experiments
