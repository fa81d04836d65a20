// Mask diversity: how many masks a pattern admits, which of them magnitudes give, and whether
// accuracy follows (Hubara et al., NeurIPS 2021, arXiv 2102.08124).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/entropy.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/mask_diversity/pieces.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {

namespace {

/// log10 of the masks of a network's evenly masked weights. Pieces that a tensor fills in part
/// count in part.
double log10_of(const DiversityPattern& pattern, const net::Graph& graph) {
  double sum = 0;
  for (const std::string& layer : evenly_masked_layers(graph)) {
    const std::int64_t size = net::weight_of(graph, layer).size();
    sum += pattern.structured() ? pattern.masks().log10 * static_cast<double>(size) /
                                      static_cast<double>(pattern.piece())
                                : mask_diversity(pattern.family, pattern.pattern, size).log10;
  }
  return sum;
}

/// Every digit where 64 elements are whole pieces.
std::string digits(const DiversityPattern& pattern) {
  if (pattern.structured() && kReferenceBlock % pattern.piece() != 0) return "-";
  return mask_diversity(pattern.family, pattern.pattern, kReferenceBlock).decimal;
}

/// How many masks each pattern admits, per 8 x 8 elements and for the masked weights of each
/// network.
void add_counts(const std::vector<LabelledNet>& nets, Conclusion& conclusion) {
  ResultTable table{"Masks of 8 x 8 elements at density 50 %, the most diverse pattern first",
                    {"pattern", "exact count", "log10", "log10, published upper bound"},
                    {}};
  for (const LabelledNet& net : nets)
    table.header.push_back(fmt::format("log10, masked weights of {}", net.label));
  for (const DiversityPattern& pattern : half_density_patterns()) {
    const bool bounded = pattern.family == MaskFamily::transposable;
    std::vector<std::string> row = {pattern.name, digits(pattern),
                                    fmt::format("{:.5f}", pattern.log10_exact()),
                                    bounded ? fmt::format("{:.5f}", pattern.log10_bound()) : "-"};
    for (const LabelledNet& net : nets)
      row.push_back(fmt::format("{:.0f}", log10_of(pattern, *net.graph)));
    table.rows.push_back(row);
  }
  conclusion.tables.push_back(table);
  const DiversityPattern &groups = diversity_pattern("2:4"), &tiles = diversity_pattern("4:8-T");
  conclusion.sentences.push_back(fmt::format(
      "Counted exactly, 4:8-T has fewer masks than 2:4 (10^{:.2f} against 10^{:.2f} per 8 x 8 "
      "elements); the published upper bound, 10^{:.2f}, has them the other way round.",
      tiles.log10_exact(), groups.log10_exact(), tiles.log10_bound()));
}

// Measured masks of magnitude pruning: their entropy beside the logarithm of the count.

/// Below this coverage many masks were never seen and Shannon's entropy cannot be estimated;
/// collisions bound it from below.
constexpr double kCovered = 0.95;

struct Census {
  const DiversityPattern* pattern = nullptr;
  CensusFigures figures = {};

  bool covered() const { return figures.coverage >= kCovered; }
  /// Where the masks were not seen often enough, but their kinds were.
  const KindFigures* by_kinds() const {
    const bool kinds = !covered() && figures.kinds && figures.kinds->coverage >= kCovered;
    return kinds ? &*figures.kinds : nullptr;
  }
  bool known() const { return covered() || by_kinds() != nullptr; }

  /// In bits per piece, or what is known from below.
  double entropy() const {
    return by_kinds() != nullptr ? by_kinds()->entropy
           : covered()           ? figures.corrected
                                 : figures.collision_low;
  }
  double low() const { return by_kinds() != nullptr ? by_kinds()->low : figures.low; }
  double high() const { return by_kinds() != nullptr ? by_kinds()->high : figures.high; }
  /// Of the test that all masks are equally likely.
  double p() const { return by_kinds() != nullptr ? by_kinds()->p : figures.p; }
  double of_count() const { return entropy() / pattern->masks().log2; }
};

ResultTable census_table(const std::string& title, const std::vector<Census>& censuses) {
  ResultTable table{title,
                    {"pattern", "pieces", "masks seen", "expected if equally likely", "exact count",
                     "entropy, bits", "log2 count", "ratio", "effective number", "bits per weight",
                     "p, equally likely"},
                    {}};
  for (const Census& census : censuses) {
    const std::int64_t pieces = census.figures.pieces;
    const MaskCount& masks = census.pattern->masks();
    const char* least = census.known() ? "" : ">= ";
    const double bits = census.entropy();
    table.rows.push_back(
        {census.pattern->name, fmt::format("{}", pieces),
         fmt::format("{}", census.figures.distinct),
         fmt::format("{:.1f}", stats::expected_distinct(portable::exp2(masks.log2), pieces)),
         masks.decimal.size() <= 12 ? masks.decimal : fmt::format("10^{:.4f}", masks.log10),
         fmt::format("{}{:.4f}", least, bits), fmt::format("{:.4f}", masks.log2),
         fmt::format("{}{:.6f}", least, census.of_count()),
         fmt::format("{}{:.6g}", least, portable::exp2(bits)),
         fmt::format("{}{:.4f}", least, bits / static_cast<double>(census.pattern->piece())),
         std::isnan(census.p()) ? "-" : fmt::format("{:.3g}", census.p())});
  }
  return table;
}

ChartSeries series_of(const std::string& name, const std::vector<Census>& censuses) {
  ChartSeries series{.name = name};
  for (const Census& census : censuses) {
    if (!census.known()) continue;
    const auto piece = static_cast<double>(census.pattern->piece());
    series.points.push_back({.name = census.pattern->name,
                             .y = census.entropy() / piece,
                             .low = census.low() / piece,
                             .high = census.high() / piece});
  }
  return series;
}

/// A finding and the p-value of its prediction.
struct Tested {
  Finding finding;
  double p = 1;
};

Finding entropy_finding(const Census& census, const std::string& of, const char* claim) {
  Finding finding{fmt::format("entropy of a {} mask of {}, bits", census.pattern->name, of),
                  census.pattern->masks().log2, census.entropy(), census.low(), census.high()};
  finding.claim = claim;
  return finding;
}

/// Groups: every mask is equally likely under any exchangeable law without ties. Tiles: the ratio
/// of entropies is measured; masks of one kind are known to be equally likely.
std::vector<Tested> normal_findings(const std::vector<Census>& censuses) {
  std::vector<Tested> tested;
  for (const Census& census : censuses) {
    const MaskFamily family = census.pattern->family;
    if (std::isnan(census.p())) continue;
    if (family == MaskFamily::group)
      tested.push_back({entropy_finding(census, "normal weights", "groups"), census.p()});
    if (family != MaskFamily::transposable) continue;
    const double log2 = census.pattern->masks().log2;
    tested.push_back(
        {{fmt::format("entropy / log2 count of {} masks of normal weights", census.pattern->name),
          1, census.of_count(), census.low() / log2, census.high() / log2},
         census.p()});
    tested.back().finding.claim = "tiles";
    const Member<KindFigures>& kinds = census.figures.kinds;
    if (census.covered() && kinds && !std::isnan(kinds->within_p) && kinds->distinct > 1) {
      Tested within{entropy_finding(census, "normal weights", "kinds"), kinds->within_p};
      within.finding.what += " (masks that permutations map to each other equally likely)";
      within.finding.predicted = kinds->entropy;
      tested.push_back(within);
    }
  }
  return tested;
}

std::vector<Tested> weight_findings(const std::vector<Census>& censuses, const std::string& net) {
  std::vector<Tested> tested;
  for (const Census& census : censuses) {
    if (census.pattern->family == MaskFamily::group && !std::isnan(census.p()))
      tested.push_back({entropy_finding(census, "the weights of " + net, "weights"), census.p()});
  }
  return tested;
}

/// Deviation from a prediction that a census must be able to detect, as a share of it.
constexpr double kEntropyHolds = 0.001;

/// A test that does not reject may have seen too little to: what holds, holds to kEntropyHolds.
void judge(const std::vector<Tested>& tested, Conclusion& conclusion) {
  Judged judged;
  for (const Tested& one : tested)
    judged.add(one.finding, kEntropyHolds * one.finding.predicted, one.p);
  conclusion.add(judged.findings());
}

std::vector<Census> of_normal(const ExperimentRun& run) {
  const std::int64_t blocks = run.settings.integer("blocks"), tiles = run.settings.integer("tiles");
  std::vector<TypedTrial<CensusFigures>> trials;
  std::vector<Census> censuses;
  for (const DiversityPattern& pattern : half_density_patterns()) {
    if (!pattern.structured()) continue;
    constexpr std::int64_t kSmall = 64;
    const std::int64_t pieces = pattern.piece() > kSmall ? tiles : blocks;
    const std::uint64_t seed = run.seed;
    trials.push_back(
        {{{"part", "normal"}, {"mask", pattern.mask}, {"pieces", pieces}, {"seed", seed}},
         fmt::format("{} of {} normal pieces", pattern.name, pieces),
         [&pattern, pieces, seed] {
           return figures_of(normal_census(pattern, pieces, seed), pattern, true);
         }});
    censuses.push_back({&pattern});
  }
  const std::vector<CensusFigures> results = run_typed(run, std::move(trials));
  for (std::size_t i = 0; i < censuses.size(); ++i) censuses[i].figures = results[i];
  return censuses;
}

std::vector<Census> of_weights(const net::Graph& graph) {
  std::vector<Census> censuses;
  for (const DiversityPattern& pattern : half_density_patterns()) {
    if (!pattern.structured()) continue;
    MaskCensus census(pattern.piece());
    for (const std::string& layer : evenly_masked_layers(graph)) {
      const std::vector<float> pieces = pieces_of(net::weight_of(graph, layer), pattern);
      census.add(masks_of(pieces, pattern).data(),
                 static_cast<std::int64_t>(pieces.size()) / pattern.piece());
    }
    if (census.pieces() > 0) censuses.push_back({&pattern, figures_of(census, pattern, false)});
  }
  return censuses;
}

Chart census_chart(const std::vector<Census>& normal) {
  ChartSeries count{.name = "log2 of the exact count", .points = {}, .predicted = true};
  for (const Census& census : normal)
    count.points.push_back(
        {.name = census.pattern->name,
         .y = census.pattern->masks().log2 / static_cast<double>(census.pattern->piece())});
  return {.kind = Chart::Kind::bars,
          .title = "Empirical mask diversity",
          .caption =
              "Entropy of the masks that magnitudes give (Miller-Madow), per weight, beside "
              "the count. Density 50 %; T: transposable, seq: sequential. Patterns whose "
              "masks were not seen often enough have no bar.",
          .x = "pattern",
          .y = "bits per weight",
          .series = {count, series_of("independent normal weights", normal)}};
}

/// Which masks magnitudes really give: of normal deviates (settings blocks, tiles), and of trained
/// weights.
void add_censuses(const ExperimentRun& run, const std::vector<LabelledNet>& nets,
                  Conclusion& conclusion) {
  const std::vector<Census> normal = of_normal(run);
  std::vector<Tested> tested = normal_findings(normal);
  Chart chart = census_chart(normal);
  conclusion.tables.push_back(census_table(
      "Masks of independent normal weights (4:8-T: entropy from that of kinds of masks, "
      "see text; >=: from collisions, where most masks were seen once)",
      normal));
  for (const LabelledNet& net : nets) {
    const std::vector<Census> weights = of_weights(*net.graph);
    conclusion.tables.push_back(
        census_table(fmt::format("Masks of the trained weights of {}", net.label), weights));
    chart.series.push_back(series_of("weights of " + net.label, weights));
    const std::vector<Tested> more = weight_findings(weights, net.label);
    tested.insert(tested.end(), more.begin(), more.end());
  }
  conclusion.charts.push_back(chart);
  judge(tested, conclusion);
  std::string ratios;
  for (const Census& census : normal) {
    if (census.pattern->family != MaskFamily::transposable || !census.known()) continue;
    ratios += fmt::format("{}{} {:.4f}", ratios.empty() ? "" : ", ", census.pattern->name,
                          census.of_count());
  }
  conclusion.sentences.push_back(
      "Entropy of the exact transposable masks of independent normal weights, as a share of the "
      "logarithm of their number: " +
      ratios +
      ". Masks that permuting rows and columns maps to each other are equally likely there, so "
      "that the entropy of 4:8-T follows from the shares of those kinds.");
}

Conclusion run_mask_diversity(const ExperimentRun& run) {
  const net::Dataset data = load_data(run);
  require_one_class(data, "experiment mask-diversity");
  std::list<TrainedNet> trained;
  std::vector<LabelledNet> nets;
  for (const std::string& name : run.settings.list("nets")) {
    trained.push_back(load_trained_net(name, data, run.folders));
    nets.push_back({name, &trained.back().graph});
  }
  training_under_masks(run, data);  // refused before the long work, not after it
  Conclusion conclusion;
  run.say("counting masks");
  add_counts(nets, conclusion);
  add_censuses(run, nets, conclusion);
  add_training(run, data, conclusion);
  add_one_shot(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mask_diversity = {
    "mask-diversity",
    "how many masks does a sparsity pattern allow, which of them occur, and does accuracy rise "
    "with their number",
    "Hubara et al. (NeurIPS 2021, arXiv 2102.08124) claim that at equal density accuracy rises "
    "with mask diversity, the number of masks that a pattern admits.",
    {{"accuracy",
      "One-shot accuracy rises with mask diversity, counted by the published upper bound: their "
      "rank correlation is above 0 (published)."},
     {"accuracy, exact count", "So it does with the exact number of masks (derived here)."},
     {"accuracy, magnitude", "So it does with the magnitude that is kept (a contrast)."},
     {"groups",
      "Of normal weights, all masks of a group are equally likely: entropy = log2 of their "
      "number, within 0.1 % (derived here)."},
     {"tiles",
      "Of normal weights, all transposable masks are as likely, within 0.1 % of the entropy (an "
      "open question)."},
     {"kinds",
      "Transposable masks that permutations map to each other are as likely, within 0.1 % (derived "
      "here)."},
     {"weights",
      "All masks of a group of trained weights are as likely, within 0.1 % (a contrast)."}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "trained networks or files to prune",
      takes_networks()},
     data_setting(),
     {"blocks", "100000", "1000000", "10000000", "normal pieces of up to 64 elements per pattern",
      whole(100, 1'000'000'000)},
     {"tiles", "1000", "100000", "1000000", "normal tiles of 16 x 16", whole(100, 1'000'000'000)},
     {"images", "500", "2000", "10000", "test samples", whole(1, 100'000'000)},
     {"resamples", "999", "9999", "9999", "of the bootstrap", whole(39, 1'000'000)},
     {"trained", "0", "0", "5",
      "networks of each kind trained from scratch, besides the shipped one", whole(0, 1000)},
     {"train_net", "mlp", "lenet", "lenet", "network trained under masks", takes_network()},
     {"train_samples", "2000", "10000", "0", "training samples, 0: all", whole(0, 1'000'000'000)},
     {"epochs", "1", "4", "12", "of training", whole(1, 10'000)},
     {"refresh", "2", "10", "40", "training steps per mask", whole(1, 1'000'000)}},
    run_mask_diversity};

}  // namespace numemu::experiments
