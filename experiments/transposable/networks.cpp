// Trained networks pruned once under each pattern, with and without repair, image by image.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/transposable/patterns.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace {

// What the method is expected to reach (docs/experiments/transposable.md).
constexpr double kLeastGain = 2;  // of the squared error of a layer's outputs, by AdaPrune
constexpr double kMostLost = 1;   // points of top-1, after AdaPrune

struct Network {
  std::string label;
  std::vector<PrunedNetwork> results;  ///< the unpruned network, then every variant
};

/// Of top-1 as a share, paired by image.
stats::PairedInterval difference(const PrunedNetwork& a, const PrunedNetwork& b) {
  const auto right = [](const std::string& answers) {
    return [&](std::int64_t i) { return answers[static_cast<std::size_t>(i)] == '1'; };
  };
  const std::int64_t n = std::ssize(a.right);
  const stats::PairedAnswers answers = stats::count_answers(n, right(a.right), right(b.right));
  const stats::Interval ends = stats::paired_share(answers, 1, stats::kNormal95);
  return {static_cast<double>(answers.only1 - answers.only2) / static_cast<double>(n), ends.low,
          ends.high, n};
}

std::string points(const PrunedNetwork& a, const PrunedNetwork& b) {
  return mean_text(in_points(difference(a, b)));
}

double top1(const PrunedNetwork& result) {
  return static_cast<double>(std::ranges::count(result.right, '1')) /
         static_cast<double>(result.right.size());
}

double mean_output_error(const PrunedNetwork& result) {
  double sum = 0;
  for (const auto& [layer, error] : result.outputs) sum += error;
  return sum / static_cast<double>(result.outputs.size());
}

const char* name_of(const std::string& repair) {
  return repair == "none" ? "no repair" : repair == "absorb" ? "absorb mean" : "AdaPrune";
}

ResultTable accuracy_table(const Network& network, const std::vector<Variant>& all) {
  const PrunedNetwork& dense = network.results[0];
  ResultTable table{fmt::format("{}: one-shot pruning to 50 %, {:.2f} % top-1 unpruned (95 % "
                                "intervals paired by image)",
                                network.label, 100 * top1(dense)),
                    {"pattern", "repair", "kept", "magnitude pruned", "error of layer outputs",
                     "top-1, %", "to unpruned, points", "to no repair, points"},
                    {}};
  std::size_t bare = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const PrunedNetwork& result = network.results[v + 1];
    if (all[v].repair == "none") bare = v + 1;
    table.rows.push_back({all[v].pattern->name, name_of(all[v].repair),
                          fmt::format("{:.4f}", result.kept), fmt::format("{:.4f}", result.pruned),
                          fmt::format("{:.5f}", mean_output_error(result)),
                          fmt::format("{:.2f}", 100 * top1(result)), points(result, dense),
                          all[v].repair == "none" ? "" : points(result, network.results[bare])});
  }
  return table;
}

ResultTable layer_table(const Network& network, const std::vector<Variant>& all) {
  ResultTable table{network.label +
                        ": squared error of each layer's outputs over their squares, "
                        "inputs of the unpruned network: test (calibration) images",
                    {"pattern", "repair"},
                    {}};
  for (const auto& [layer, error] : network.results[0].outputs) table.header.push_back(layer);
  for (std::size_t v = 0; v < all.size(); ++v) {
    const PrunedNetwork& result = network.results[v + 1];
    table.rows.push_back({all[v].pattern->name, name_of(all[v].repair)});
    for (std::size_t l = 0; l < result.outputs.size(); ++l)
      table.rows.back().push_back(
          fmt::format("{:.5f} ({:.5f})", result.outputs[l].second, result.fitted[l].second));
  }
  return table;
}

/// Layers whose solved weights fit the calibration images much better than others.
std::string overfitted(const Network& network, const std::vector<Variant>& all) {
  constexpr double kMuch = 2;
  std::vector<std::string> names;
  for (std::size_t l = 0; l < network.results[0].outputs.size(); ++l) {
    std::int64_t worse = 0, solved = 0;
    for (std::size_t v = 0; v < all.size(); ++v) {
      if (all[v].repair != "adaprune") continue;
      const PrunedNetwork& result = network.results[v + 1];
      ++solved;
      worse += result.outputs[l].second > kMuch * result.fitted[l].second;
    }
    if (solved > 0 && worse == solved) names.push_back(network.results[0].outputs[l].first);
  }
  return names.empty() ? "none" : joined(names, ", ");
}

Chart accuracy_chart(const Network& network, const std::vector<Variant>& all) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = network.label + ": accuracy lost by one-shot pruning to 50 %",
              .caption =
                  "Layers whose channels are a multiple of 8, weights in float32, no "
                  "training; T: transposable. 95 % intervals paired by image.",
              .x = "pattern",
              .y = "top-1 to the unpruned network, points"};
  for (const char* repair : {"none", "absorb", "adaprune"}) {
    ChartSeries series{.name = name_of(repair)};
    for (std::size_t v = 0; v < all.size(); ++v) {
      if (all[v].repair != repair) continue;
      series.points.push_back(
          gain_point(0, all[v].pattern->name,
                     in_points(difference(network.results[v + 1], network.results[0]))));
    }
    chart.series.push_back(series);
  }
  return chart;
}

/// AdaPrune against what it is expected to reach.
void judge_repair(const Network& network, const std::vector<Variant>& all, Conclusion& conclusion) {
  double bare = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const PrunedNetwork& result = network.results[v + 1];
    const std::string of = fmt::format("{} at {}", network.label, all[v].pattern->name);
    if (all[v].repair == "none") bare = mean_output_error(result);
    if (all[v].repair != "adaprune") continue;
    const double gain = bare / mean_output_error(result);
    conclusion.add(
        exact_finding("AdaPrune divides the squared error of layer outputs by 2 or more, " + of,
                      kLeastGain, gain, gain >= kLeastGain, at_least(kLeastGain)),
        "outputs");
    conclusion.add(
        interval_finding("points of top-1 against the unpruned network after AdaPrune, " + of,
                         -kMostLost, in_points(difference(result, network.results[0])),
                         at_least(-kMostLost)),
        "accuracy");
  }
}

/// Mean differences over networks of one kind, paired by network.
ResultTable seeds_table(const std::string& net, const std::vector<const Network*>& members,
                        const std::vector<Variant>& all) {
  const auto interval = [&](std::size_t a, std::size_t b) {
    std::vector<double> differences;
    for (const Network* member : members)
      differences.push_back(100 * (top1(member->results[a]) - top1(member->results[b])));
    return mean_text(stats::paired_interval(differences));
  };
  ResultTable table{fmt::format("{}: mean over {} networks, points of top-1 (95 % intervals of "
                                "Student's t, paired by network)",
                                net, members.size()),
                    {"pattern", "repair", "to unpruned", "to no repair"},
                    {}};
  std::size_t bare = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    if (all[v].repair == "none") bare = v + 1;
    table.rows.push_back({all[v].pattern->name, name_of(all[v].repair), interval(v + 1, 0),
                          all[v].repair == "none" ? "" : interval(v + 1, bare)});
  }
  return table;
}

Json masks_of(const std::vector<Variant>& all) {
  Json masks = Json::array();
  for (const Variant& variant : all) masks.push_back(variant.mask());
  return masks;
}

TypedTrial<std::vector<PrunedNetwork>> shipped(const ExperimentRun& run, const std::string& name,
                                               const net::Dataset& data,
                                               const std::vector<Variant>& all,
                                               std::int64_t images) {
  const auto trained = std::make_shared<TrainedNet>(load_trained_net(name, data, run.folders));
  Json point = {{"part", "one-shot"},
                {"images", data.digest()},
                {"eval_images", images},
                {"masks", masks_of(all)}};
  identify(point, *trained);
  return {point, name + " under every pattern", [trained, &data, all, images] {
            return prune_network(trained->graph, data, all, images);
          }};
}

TypedTrial<std::vector<PrunedNetwork>> fresh(const ExperimentRun& run, const std::string& name,
                                             std::uint64_t seed, const net::Dataset& data,
                                             const std::vector<Variant>& all, std::int64_t images) {
  TrainTrial plan;
  plan.net = name;
  plan.seed = seed;
  plan.options.optimizer = net::recommended_optimizer(name);
  net::use_recommended_rates(plan.options, name);
  plan.options.epochs = run.settings.integer("epochs");
  plan.eval_samples = images;
  Json point = point_of(plan, data);
  point["part"] = "one-shot, trained afresh";
  point["masks"] = masks_of(all);
  return {point, fmt::format("{} of seed {}, then every pattern", name, seed),
          [plan, &data, all, images] {
            net::Graph graph = trained_in_float32(plan, data);
            return prune_network(graph, data, all, images);
          }};
}

}  // namespace

void add_networks(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t images = run.settings.integer("images");
  const std::int64_t extra = run.settings.integer("trained");
  const std::vector<Variant> all = variants(run.settings.list("patterns"));
  const std::vector<std::string> names = run.settings.list("nets");
  std::vector<TypedTrial<std::vector<PrunedNetwork>>> trials;
  std::vector<Network> networks;
  for (const std::string& name : names) {
    trials.push_back(shipped(run, name, data, all, images));
    networks.push_back({name, {}});
    for (std::int64_t i = 0; i < extra; ++i) {
      const std::uint64_t seed = run.seed + static_cast<std::uint64_t>(i);
      trials.push_back(fresh(run, name, seed, data, all, images));
      networks.push_back({fmt::format("{} of seed {}", name, seed), {}});
    }
  }
  std::vector<std::vector<PrunedNetwork>> results = run_typed(run, trials);
  for (std::size_t i = 0; i < networks.size(); ++i) networks[i].results = std::move(results[i]);

  const auto each = static_cast<std::size_t>(1 + extra);
  for (std::size_t first = 0; first < networks.size(); first += each) {
    const Network& network = networks[first];
    conclusion.tables.push_back(accuracy_table(network, all));
    conclusion.tables.push_back(layer_table(network, all));
    conclusion.charts.push_back(accuracy_chart(network, all));
    judge_repair(network, all, conclusion);
    std::size_t worst = 0;
    for (std::size_t v = 0; v < all.size(); ++v)
      if (all[v].repair == "none" &&
          top1(network.results[v + 1]) < top1(network.results[worst + 1]))
        worst = v;
    conclusion.sentences.push_back(fmt::format(
        "{}: of one-shot pruning to 50 % without repair {} costs most, {} points of top-1.",
        network.label, all[worst].pattern->name,
        points(network.results[worst + 1], network.results[0])));
    conclusion.sentences.push_back(fmt::format(
        "{}: layers where AdaPrune leaves more than twice the error on test images that it leaves "
        "on its calibration images, under every pattern: {}.",
        network.label, overfitted(network, all)));
    if (extra < 2) continue;
    std::vector<const Network*> members;
    for (std::size_t i = 1; i < each; ++i) members.push_back(&networks[first + i]);
    conclusion.tables.push_back(seeds_table(network.label, members, all));
  }
}

}  // namespace numemu::experiments
