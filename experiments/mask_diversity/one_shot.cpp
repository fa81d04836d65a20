// Accuracy of networks pruned once, and diversity over training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "emu/net/nets.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/resampling.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/mask_diversity/pieces.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {

namespace {

/// Something that might rank accuracy: one value per pattern and network.
struct Ranking {
  const char *name, *claim;
  std::function<double(const DiversityPattern&, const Pruned&)> value;
};

const std::vector<Ranking>& rankings() {
  static const std::vector<Ranking> all = {
      {"log10 exact diversity", "accuracy, exact count",
       [](const DiversityPattern& p, const Pruned&) { return p.log10_exact(); }},
      {"log10 diversity with the published upper bound", "accuracy",
       [](const DiversityPattern& p, const Pruned&) { return p.log10_bound(); }},
      {"share of the sum of magnitudes that is kept", "accuracy, magnitude",
       [](const DiversityPattern&, const Pruned& pruned) { return pruned.retained; }}};
  return all;
}

std::vector<double> values_of(const Ranking& ranking, const PrunedNet& net) {
  std::vector<double> values;
  for (std::size_t i = 0; i < net.patterns.size(); ++i)
    values.push_back(ranking.value(half_density_patterns()[i], net.patterns[i]));
  return values;
}

template <class Of>
std::vector<double> of_patterns(const PrunedNet& net, Of&& of) {
  std::vector<double> values;
  for (const Pruned& pruned : net.patterns) values.push_back(of(pruned));
  return values;
}

struct Correlation {
  double top1 = 0, loss = 0;  ///< with top-1; with minus the loss
  stats::Interval images = {0, 0}, patterns = {0, 0};
  double p_above = 1, p_below = 1;  ///< one-sided, over images, that it is not above (below) 0
};

/// The mean over networks of the rank correlations within each. Its interval over images is the
/// bootstrap's. That over patterns is Fisher's of as many pairs as there are patterns, which a
/// bootstrap of so few would make too narrow, and of no width where all agree; of a mean it is no
/// narrower than that of one network, as all have the same patterns.
Correlation correlate(const Ranking& ranking, const std::vector<const PrunedNet*>& nets,
                      std::uint64_t seed, std::int64_t resamples) {
  std::vector<std::vector<double>> values;
  for (const PrunedNet* net : nets) values.push_back(values_of(ranking, *net));
  const auto mean = [&](auto&& metric) {
    double sum = 0;
    for (std::size_t k = 0; k < nets.size(); ++k)
      sum += stats::spearman(of_patterns(*nets[k], metric), values[k]);
    return sum / static_cast<double>(nets.size());
  };
  Correlation found;
  found.top1 = mean([](const Pruned& pruned) { return pruned.top1(); });
  found.loss = mean([](const Pruned& pruned) { return -pruned.loss; });
  std::int64_t above = 0, below = 0;
  const auto over_images = [&](const std::vector<std::int64_t>& drawn) {
    const double rho = mean([&](const Pruned& pruned) {
      std::int64_t correct = 0;
      for (const std::int64_t image : drawn) correct += pruned.right[image] == '1';
      return static_cast<double>(correct);
    });
    above += rho > 0;
    below += rho < 0;
    return rho;
  };
  found.images = stats::bootstrap_interval(static_cast<std::int64_t>(nets[0]->dense.right.size()),
                                           resamples, seed, over_images);
  const auto chance = [&](std::int64_t agreeing) {
    return static_cast<double>(resamples - agreeing + 1) / static_cast<double>(resamples + 1);
  };
  found.p_above = chance(above);
  found.p_below = chance(below);
  found.patterns =
      stats::spearman_interval(found.top1, static_cast<std::int64_t>(values[0].size()));
  return found;
}

/// Points of top-1 that `a` gains on `b`, by their answers.
stats::PairedInterval gain(const Pruned& a, const Pruned& b) {
  const auto right = [](const Pruned& of) {
    return [&](std::int64_t i) { return of.right[static_cast<std::size_t>(i)] == '1'; };
  };
  const std::int64_t n = std::ssize(a.right);
  const stats::Interval interval =
      stats::paired_share(stats::count_answers(n, right(a), right(b)), 1, stats::kNormal95);
  return {100 * (a.top1() - b.top1()), 100 * interval.low, 100 * interval.high, n};
}

ResultTable table_of(const PrunedNet& net) {
  ResultTable table{fmt::format("One-shot magnitude pruning of {}: {:.2f} % top-1 unpruned",
                                net.label, 100 * net.dense.top1()),
                    {"pattern", "log10 exact", "log10 upper bound", "density", "magnitude kept",
                     "top-1, %", "difference, points", "95 % interval", "loss"},
                    {}};
  for (std::size_t i = 0; i < net.patterns.size(); ++i) {
    const DiversityPattern& pattern = half_density_patterns()[i];
    const Pruned& pruned = net.patterns[i];
    const stats::PairedInterval gained = gain(pruned, net.dense);
    table.rows.push_back(
        {pattern.name, fmt::format("{:.3f}", pattern.log10_exact()),
         fmt::format("{:.3f}", pattern.log10_bound()), fmt::format("{:.4f}", pruned.kept),
         fmt::format("{:.4f}", pruned.retained), fmt::format("{:.2f}", 100 * pruned.top1()),
         fmt::format("{:+.2f}", gained.mean), interval_text(gained),
         fmt::format("{:.4f}", pruned.loss)});
  }
  return table;
}

Chart chart_of(const std::vector<PrunedNet>& nets) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "One-shot accuracy against mask diversity",
              .caption =
                  "Magnitude pruning to density 50 % of all layers whose channels are a "
                  "multiple of 16, no retraining; the diversity is counted exactly. Wilson "
                  "intervals over test images.",
              .x = "log10 of the masks of 8 x 8 elements",
              .y = "top-1, %",
              .series = {}};
  for (const PrunedNet& net : nets) {
    ChartSeries series{.name = net.label};
    for (std::size_t i = 0; i < net.patterns.size(); ++i) {
      const Pruned& pruned = net.patterns[i];
      const stats::Interval interval =
          stats::wilson(pruned.correct(), static_cast<std::int64_t>(pruned.right.size()));
      series.points.push_back({.x = half_density_patterns()[i].log10_exact(),
                               .name = half_density_patterns()[i].name,
                               .y = 100 * pruned.top1(),
                               .low = 100 * interval.low,
                               .high = 100 * interval.high});
    }
    chart.series.push_back(series);
  }
  return chart;
}

void add_correlations(const ExperimentRun& run, const std::vector<PrunedNet>& nets,
                      Conclusion& conclusion) {
  const std::int64_t resamples = run.settings.integer("resamples");
  std::vector<std::pair<std::string, std::vector<const PrunedNet*>>> groups;
  for (const PrunedNet& net : nets) groups.push_back({net.label, {&net}});
  if (nets.size() > 1) {
    groups.push_back({fmt::format("mean of {} networks", nets.size()), {}});
    for (const PrunedNet& net : nets) groups.back().second.push_back(&net);
  }
  ResultTable table{
      "Rank correlation of one-shot accuracy with what might order it (Spearman, mid-ranks)",
      {"network", "with", "top-1", "95 %, over images", "95 %, over patterns (Fisher's z)",
       "minus the loss"},
      {}};
  std::vector<double> above, below;
  std::string sentence;
  std::vector<Finding> findings;
  for (const auto& [label, members] : groups) {
    for (const Ranking& ranking : rankings()) {
      const Correlation found = correlate(ranking, members, run.seed, resamples);
      table.rows.push_back({label, ranking.name, fmt::format("{:.3f}", found.top1),
                            ends_text(found.images.low, found.images.high, 3, false),
                            ends_text(found.patterns.low, found.patterns.high, 3, false),
                            fmt::format("{:.3f}", found.loss)});
      if (members.size() == nets.size()) {
        sentence +=
            fmt::format("{}{} {:.3f} {}", sentence.empty() ? "" : ", ", ranking.name, found.top1,
                        ends_text(found.images.low, found.images.high, 3, false));
      }
      if (members.size() > 1) continue;  // the mean tests nothing that its networks do not
      findings.push_back(
          {fmt::format("rank correlation of one-shot top-1 with {}, {} (holds above 0; 1: the same "
                       "order)",
                       ranking.name, label),
           1, found.top1, found.images.low, found.images.high});
      findings.back().claim = ranking.claim;
      above.push_back(found.p_above);
      below.push_back(found.p_below);
    }
  }
  // The claim is a sign: it holds where "not above 0" is rejected and fails where "not below" is.
  judge_signs(findings, above, below);
  conclusion.add(std::move(findings));
  conclusion.tables.push_back(table);
  conclusion.sentences.push_back(fmt::format(
      "Rank correlation of one-shot top-1 over {} patterns of density 50 % ({}) with {}.",
      half_density_patterns().size(), groups.back().first, sentence));
}

std::size_t index_of(const std::string& name) {
  return static_cast<std::size_t>(&diversity_pattern(name) - half_density_patterns().data());
}

}  // namespace

void add_one_shot(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::vector<PrunedNet> nets = pruned_nets(run, data);
  for (const PrunedNet& net : nets) {
    conclusion.tables.push_back(table_of(net));
    const Pruned &tiles = net.patterns[index_of("4:8-T")], &groups = net.patterns[index_of("2:4")];
    const stats::PairedInterval gained = gain(tiles, groups);
    conclusion.sentences.push_back(fmt::format(
        "{}: 4:8-T against 2:4, which the exact count and the published bound order differently: "
        "{:+.2f} points of one-shot top-1 {}.",
        net.label, gained.mean, interval_text(gained)));
  }
  add_correlations(run, nets, conclusion);
  conclusion.charts.push_back(chart_of(nets));
}

// Changes of masks while a network trains under them: flips per refresh, distinct masks per piece.

namespace {

constexpr std::int64_t kLongest = 1'000'000;  // steps that a mask serves

const std::vector<std::string> kPatterns = {"2:4", "4:8", "2:4-T", "4:8-T"};

/// The rule's text with the number of steps that a mask serves.
std::string refreshed(const DiversityPattern& pattern, std::int64_t refresh) {
  return fmt::format("{},refresh={})", pattern.mask.substr(0, pattern.mask.size() - 1), refresh);
}

/// How the masks of all layers change: rates weighted by elements, masks by pieces.
struct MaskChanges {
  double pieces = 0, distinct_per_piece = 0;
  std::vector<double> flips = {};  ///< at each renewal
  TrainOutcome outcome = {};

  static void fields(auto& self, const auto& visit) {
    visit("pieces", self.pieces);
    visit("distinct_per_piece", self.distinct_per_piece);
    visit("flips", self.flips);
    visit("outcome", self.outcome);
  }
};

MaskChanges run_observed(TrainTrial trial, const net::Dataset& data,
                         const DiversityPattern& pattern, std::int64_t refresh,
                         const std::vector<std::string>& layers) {
  std::map<std::string, MaskHistory> histories;
  trial.before = [&](const net::Product& product, std::int64_t step) {
    const std::string layer(product.layer);
    if (product.kind != net::GemmKind::fprop || step % refresh != 0 ||
        std::find(layers.begin(), layers.end(), layer) == layers.end())
      return;
    const std::vector<float> pieces = pieces_of(*product.b.source, pattern);
    histories.try_emplace(layer, pattern.piece(), std::ssize(pieces))
        .first->second.add(masks_of(pieces, pattern).data());
  };
  const TrainOutcome outcome = run_train_trial(trial, data);
  MaskChanges changes{.outcome = outcome};
  double distinct = 0;
  for (const auto& [layer, history] : histories) {
    const auto weight = static_cast<double>(history.pieces());
    changes.flips.resize(history.flip_rates().size());
    for (std::size_t i = 0; i < changes.flips.size(); ++i)
      changes.flips[i] += weight * history.flip_rates()[i];
    changes.pieces += weight;
    distinct += weight * history.distinct_per_piece();
  }
  for (double& flip : changes.flips) flip /= changes.pieces;
  changes.distinct_per_piece = distinct / changes.pieces;
  return changes;
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

TrainTrial training_of_masks(const ExperimentRun& run, const net::Dataset& data,
                             const std::string& net) {
  TrainTrial trial;
  trial.net = net;
  trial.seed = run.seed;
  trial.options.optimizer = net::recommended_optimizer(net);
  net::use_recommended_rates(trial.options, net);
  trial.options.epochs = run.settings.integer("epochs");
  trial.train_samples = run.settings.integer("train_samples", 0, data.train_count());
  trial.eval_samples = run.settings.integer("images");
  return trial;
}

TrainTrial training_under_masks(const ExperimentRun& run, const net::Dataset& data) {
  const std::string& net = run.settings.text("train_net");
  evenly_masked_layers(net::build_net(net, data));
  const TrainTrial trial = training_of_masks(run, data, net);
  const std::int64_t samples = trial.train_samples == 0 ? data.train_count() : trial.train_samples;
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  const std::int64_t refresh = run.settings.integer("refresh");
  if (refresh >= steps) {
    throw usage_error(fmt::format(
        "--set: refresh: expected fewer than the {} steps of training, not {}", steps, refresh));
  }
  return trial;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const TrainTrial base = training_under_masks(run, data);
  const std::string& name = base.net;
  const std::int64_t refresh = run.settings.integer("refresh");
  const std::vector<std::string> layers = evenly_masked_layers(net::build_net(name, data));
  const auto results = run_cases<MaskChanges>(
      run, kPatterns, [&](const std::string& pattern_name) -> TypedTrial<MaskChanges> {
        const DiversityPattern& pattern = diversity_pattern(pattern_name);
        TrainTrial trial = base;
        trial.recipe["layers"] = Json::array();
        for (const std::string& layer : layers) {
          trial.recipe["layers"].push_back(
              {{"match", layer}, {"roles", {{"weight", {{"mask", refreshed(pattern, refresh)}}}}}});
        }
        Json point = point_of(trial, data);
        point["part"] = "training";
        return {std::move(point), fmt::format("{} under {}", name, pattern.name),
                [&, trial] { return run_observed(trial, data, pattern, refresh, layers); }};
      });

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
    const std::vector<double>& flips = results[i].flips;
    ChartSeries series{.name = pattern.name};
    for (std::size_t f = 0; f < flips.size(); ++f) {
      series.points.push_back(
          {.x = static_cast<double>((static_cast<std::int64_t>(f) + 1) * refresh),
           .y = 100 * flips[f]});
    }
    chart.series.push_back(series);
    const MaskCount& masks = pattern.masks();
    table.rows.push_back({pattern.name, fmt::format("{}", flips.size()),
                          fmt::format("{:.3f}", 100 * mean_between(flips, 0, 0.1)),
                          fmt::format("{:.3f}", 100 * mean_between(flips, 0.45, 0.55)),
                          fmt::format("{:.3f}", 100 * mean_between(flips, 0.9, 1)),
                          fmt::format("{:.3f}", results[i].distinct_per_piece), masks.decimal,
                          fmt::format("{:.2f}", results[i].outcome.top1())});
  }
  conclusion.tables.push_back(table);
  conclusion.charts.push_back(chart);
}

}  // namespace numemu::experiments
