// Whether the accuracy of one-shot magnitude pruning rises with mask diversity at density 50 %.
#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "emu/stats/bootstrap.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/mask_diversity/parts.hpp"
#include "experiments/mask_diversity/patterns.hpp"
#include "experiments/mask_diversity/pruned_nets.hpp"

namespace numemu::experiments {
namespace {

/// Something that might rank accuracy: one value per pattern and network.
struct Ranking {
  const char* name;
  std::function<double(const DiversityPattern&, const Pruned&)> value;
};

const std::vector<Ranking>& rankings() {
  static const std::vector<Ranking> all = {
      {"log10 exact diversity",
       [](const DiversityPattern& p, const Pruned&) { return p.log10_exact(); }},
      {"log10 diversity with the published upper bound",
       [](const DiversityPattern& p, const Pruned&) { return p.log10_bound(); }},
      {"share of the sum of magnitudes that is kept",
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
      for (const std::int64_t image : drawn) correct += pruned.right[image];
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

std::string points(double share) { return fmt::format("{:+.2f}", 100 * share); }

stats::Interval paired(const Pruned& a, const Pruned& b) {
  const auto right = [](const Pruned& of) {
    return [&](std::int64_t i) { return of.right[static_cast<std::size_t>(i)] != 0; };
  };
  return stats::paired_share(
      stats::count_answers(static_cast<std::int64_t>(a.right.size()), right(a), right(b)), 1,
      stats::kNormal95);
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
    const stats::Interval interval = paired(pruned, net.dense);
    table.rows.push_back(
        {pattern.name, fmt::format("{:.3f}", pattern.log10_exact()),
         fmt::format("{:.3f}", pattern.log10_bound()), fmt::format("{:.4f}", pruned.kept),
         fmt::format("{:.4f}", pruned.retained), fmt::format("{:.2f}", 100 * pruned.top1()),
         points(pruned.top1() - net.dense.top1()),
         fmt::format("[{}, {}]", points(interval.low), points(interval.high)),
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
  const std::int64_t resamples = run.settings.integer("resamples", 39, 1'000'000);
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
  const std::size_t first = conclusion.findings.size();
  for (const auto& [label, members] : groups) {
    for (const Ranking& ranking : rankings()) {
      const Correlation found = correlate(ranking, members, run.seed, resamples);
      table.rows.push_back(
          {label, ranking.name, fmt::format("{:.3f}", found.top1),
           fmt::format("[{:.3f}, {:.3f}]", found.images.low, found.images.high),
           fmt::format("[{:.3f}, {:.3f}]", found.patterns.low, found.patterns.high),
           fmt::format("{:.3f}", found.loss)});
      conclusion.findings.push_back(
          {fmt::format("rank correlation of one-shot top-1 with {}, {} (holds above 0; 1: the same "
                       "order)",
                       ranking.name, label),
           1, found.top1, found.images.low, found.images.high});
      if (members.size() == nets.size()) {
        sentence += fmt::format("{}{} {:.3f} [{:.3f}, {:.3f}]", sentence.empty() ? "" : ", ",
                                ranking.name, found.top1, found.images.low, found.images.high);
      }
      above.push_back(found.p_above);
      below.push_back(found.p_below);
    }
  }
  // The claim is a sign: it holds where "not above 0" is rejected and fails where "not below" is.
  judge_signs(std::span(conclusion.findings).subspan(first), above, below);
  conclusion.about("accuracy");
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
    const stats::Interval interval = paired(tiles, groups);
    conclusion.sentences.push_back(fmt::format(
        "{}: 4:8-T against 2:4, which the exact count and the published bound order differently: "
        "{} points of one-shot top-1 [{}, {}].",
        net.label, points(tiles.top1() - groups.top1()), points(interval.low),
        points(interval.high)));
  }
  add_correlations(run, nets, conclusion);
  conclusion.charts.push_back(chart_of(nets));
}

}  // namespace numemu::experiments
