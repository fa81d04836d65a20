// Transposable N:M masks: what they cost beside other patterns of the same density, in magnitude,
// layer outputs and accuracy, and what repairs them (Hubara et al., NeurIPS 2021,
// arXiv 2102.08124).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/transposable/patterns.hpp"
#include "formats/digest.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/rules/unstructured.hpp"

namespace numemu::experiments {

namespace {

struct Shape {
  int kept, group;
};
constexpr Shape kShapes[] = {{2, 4}, {4, 8}};
constexpr double kZeros[] = {0.5, 0.6, 0.7, 0.8, 0.9};
// Of shares of groups and of elements, in either direction.
constexpr double kShareHolds = 0.005;

/// Mean of independent values and its standard error.
Estimate mean_of(const std::vector<double>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  const auto at = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  const double mean = pairwise_sum(n, at) / static_cast<double>(n);
  const double squares =
      pairwise_sum(n, [&](std::int64_t i) { return (at(i) - mean) * (at(i) - mean); });
  return {mean, n > 1 ? std::sqrt(squares / static_cast<double>(n) / static_cast<double>(n - 1))
                      : HUGE_VAL};
}

/// Violations and extra pruning, as one value for each independent part of a tensor.
struct Counts {
  std::vector<double> broken, extra;

  void add(Shape shape, int nonzero) {
    broken.push_back(nonzero > shape.kept);
    extra.push_back(double(std::max(0, nonzero - shape.kept)) / shape.group);
  }
};

/// Shares of groups that break N:M and of elements that go besides.
struct Shares {
  Estimate broken = {}, extra = {};

  static void fields(auto& self, const auto& visit) {
    visit("broken", self.broken.value);
    visit("broken_error", self.broken.error);
    visit("extra", self.extra.value);
    visit("extra_error", self.extra.error);
  }
};

Shares shares_of(const Counts& counts) { return {mean_of(counts.broken), mean_of(counts.extra)}; }

/// Groups whose elements are zero independently.
Shares placed_at_random(Shape shape, double zeros, std::int64_t groups, std::uint64_t seed) {
  const RandomSource random{.seed = seed,
                            .stream = Stream::probe,
                            .tensor = tensor_word("transposable/placement"),
                            .draw = 0};
  Counts counts;
  for (std::int64_t g = 0; g < groups; ++g) {
    int nonzero = 0;
    for (int i = 0; i < shape.group; ++i)
      nonzero += random.uniform(static_cast<std::uint64_t>(g * shape.group + i)) >= zeros;
    counts.add(shape, nonzero);
  }
  return shares_of(counts);
}

/// 0 .. n - 1 in an order drawn by Fisher and Yates.
std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed) {
  const RandomSource random{.seed = seed,
                            .stream = Stream::probe,
                            .tensor = tensor_word("transposable/channels"),
                            .draw = 0};
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto j = static_cast<std::int64_t>(random.uniform(static_cast<std::uint64_t>(i)) *
                                             static_cast<double>(i + 1));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

/// A weight [out, taps, in] pruned to a share of zeros, its groups along channels in this order.
/// Groups of the same channels are correlated, so the sets of channels are the independent parts.
Shares converted(const net::Tensor& weight, Shape shape, double zeros,
                 const std::vector<std::int64_t>& order) {
  const std::int64_t n = weight.size(), in = weight.dim(-1), lines = n / in;
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(n));
  policies::keep_share(1 - zeros, {.x = weight.data.data(), .keep = keep.data(), .count = n});
  Counts parts;
  for (std::int64_t first = 0; first < in; first += shape.group) {
    Counts of_channels;
    for (std::int64_t line = 0; line < lines; ++line) {
      int nonzero = 0;
      for (std::int64_t i = first; i < first + shape.group; ++i)
        nonzero += keep[static_cast<std::size_t>(line * in + order[static_cast<std::size_t>(i)])];
      of_channels.add(shape, nonzero);
    }
    parts.broken.push_back(mean_of(of_channels.broken).value);
    parts.extra.push_back(mean_of(of_channels.extra).value);
  }
  Shares shares = shares_of(parts);
  // A few sets may agree by chance: the error is at least that of as many independent groups, at a
  // share with one more of either kind, which is neither 0 nor 1.
  const double groups = static_cast<double>(lines) * static_cast<double>(in / shape.group),
               share = (shares.broken.value * groups + 1) / (groups + 2);
  shares.broken.error = std::max(shares.broken.error, std::sqrt(share * (1 - share) / groups));
  return shares;
}

/// Where zeros lie, and what is claimed of it: nothing of channels as they come.
enum class Place { random, trained, permuted };

struct Series {
  std::string name;
  Place place;
  std::vector<Shares> results;  ///< by shape, then by share of zeros
};

std::string estimate_text(const Estimate& e) {
  return std::isfinite(e.error) ? fmt::format("{:.5f} ± {:.5f}", e.value, e.error)
                                : fmt::format("{:.5f}", e.value);
}

void report(const std::vector<Series>& all, Conclusion& conclusion) {
  ResultTable table{
      "Unstructured sparse to N:M: share of groups with more than N, and of all "
      "elements that go besides",
      {"pattern", "zeros", "where", "groups broken", "predicted", "extra pruned", "predicted"},
      {}};
  Judged placed, permuted;
  for (const Series& series : all) {
    std::size_t at = 0;
    for (const Shape shape : kShapes)
      for (const double zeros : kZeros) {
        const Shares& row = series.results[at++];
        const double broken = violation_share(shape.kept, shape.group, zeros),
                     extra = extra_share(shape.kept, shape.group, zeros);
        const std::string pattern = fmt::format("{}:{}", shape.kept, shape.group);
        table.rows.push_back({pattern, fmt::format("{}", zeros), series.name,
                              estimate_text(row.broken), fmt::format("{:.5f}", broken),
                              estimate_text(row.extra), fmt::format("{:.5f}", extra)});
        const std::string what = fmt::format("{} at {} and {} zeros", series.name, pattern, zeros);
        if (series.place == Place::random) {
          placed.add("groups broken, " + what, broken, row.broken, kShareHolds);
          placed.add("elements pruned besides, " + what, extra, row.extra, kShareHolds);
        } else if (series.place == Place::permuted) {
          permuted.add("groups broken, " + what, broken, row.broken, kShareHolds);
        }
      }
  }
  conclusion.tables.push_back(table);
  const std::vector<Finding> of_layers = permuted.findings();
  VerdictCounts counts;
  for (const Finding& finding : of_layers) counts.add(finding.verdict);
  const auto larger = std::count_if(of_layers.begin(), of_layers.end(), [](const Finding& finding) {
    return finding.measured > finding.predicted;
  });
  conclusion.sentences.push_back(fmt::format(
      "Groups of trained layers that break N:M after unstructured pruning, channels permuted: the "
      "binomial law holds in {} of {} cases and fails in {}; {} lie above it (rows that differ in "
      "density break more groups).",
      counts.holds, counts.compared(), counts.fails, larger));
  conclusion.add(placed.findings(), "placement");
  conclusion.add(of_layers, "layers");
}

void draw(const std::vector<Series>& all, Conclusion& conclusion) {
  std::size_t first = 0;
  for (const Shape shape : kShapes) {
    Chart chart{.kind = Chart::Kind::line,
                .title = fmt::format("Unstructured sparse weights that break {}:{}", shape.kept,
                                     shape.group),
                .caption =
                    "Share of groups with more than N non-zero elements; predicted: "
                    "binomial, zeros placed independently.",
                .x = "share of zeros",
                .y = "share of groups"};
    ChartSeries predicted{.name = "predicted", .predicted = true};
    for (const double zeros : kZeros)
      predicted.points.push_back(
          {.x = zeros, .y = violation_share(shape.kept, shape.group, zeros)});
    chart.series.push_back(predicted);
    for (const Series& series : all) {
      ChartSeries drawn{.name = series.name};
      for (std::size_t i = 0; i < std::size(kZeros); ++i) {
        const Estimate& broken = series.results[first + i].broken;
        drawn.points.push_back(with_error({.x = kZeros[i], .y = broken.value}, broken.error));
      }
      chart.series.push_back(drawn);
    }
    conclusion.charts.push_back(chart);
    first += std::size(kZeros);
  }
}

/// One trial per pattern and share of zeros.
template <class Run>
void add_trials(const std::string& name, Place place, const Json& point, Run&& run,
                std::vector<Series>& all, std::vector<TypedTrial<Shares>>& trials) {
  all.push_back({name, place, {}});
  for (const Shape shape : kShapes)
    for (const double zeros : kZeros) {
      Json full = point;
      full["pattern"] = fmt::format("{}:{}", shape.kept, shape.group);
      full["zeros"] = zeros;
      trials.push_back({full, "conversion to N:M: " + name, [=] { return run(shape, zeros); }});
    }
}

/// How many groups of an unstructured sparse tensor break N:M: of random placement (setting
/// placed), and of trained layers.
void add_conversion(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t groups = run.settings.integer("placed");
  const std::uint64_t seed = run.seed;
  std::vector<Series> all;
  std::vector<TypedTrial<Shares>> trials;
  add_trials(
      "random placement", Place::random,
      {{"part", "placement"}, {"groups", groups}, {"seed", seed}},
      [=](Shape shape, double zeros) { return placed_at_random(shape, zeros, groups, seed); }, all,
      trials);
  for (const std::string& name : run.settings.list("nets")) {
    const TrainedNet trained = load_trained_net(name, data, run.folders);
    for (const std::string& layer : even_layers(trained.graph)) {
      const net::Tensor weight = net::weight_of(trained.graph, layer);
      const std::vector<std::int64_t> drawn = permutation(weight.dim(-1), seed);
      std::vector<std::int64_t> natural = drawn;
      std::sort(natural.begin(), natural.end());
      for (const bool permuted : {false, true}) {
        const std::vector<std::int64_t>& order = permuted ? drawn : natural;
        Json point = {{"part", "conversion"}, {"layer", layer}, {"permuted", permuted}};
        identify(point, trained);
        if (permuted) point["seed"] = seed;
        add_trials(
            fmt::format("{} {}{}", trained.graph.name, layer, permuted ? ", permuted" : ""),
            permuted ? Place::permuted : Place::trained, point,
            [=](Shape shape, double zeros) { return converted(weight, shape, zeros, order); }, all,
            trials);
      }
    }
  }
  std::vector<Shares> results = run_typed(run, trials);
  for (Shares& shares : results) {  // of a single part nothing is known of the error
    for (Estimate* const e : {&shares.broken, &shares.extra})
      if (std::isnan(e->error)) e->error = HUGE_VAL;
  }
  const std::size_t each = std::size(kShapes) * std::size(kZeros);
  for (std::size_t s = 0; s < all.size(); ++s)
    all[s].results.assign(results.begin() + static_cast<std::ptrdiff_t>(s * each),
                          results.begin() + static_cast<std::ptrdiff_t>((s + 1) * each));
  report(all, conclusion);
  draw(all, conclusion);
}

/// Throws Error for names that are none, before any long work.
void require_names(const ExperimentRun& run, const net::Dataset& data) {
  variants(run.settings.list("patterns"));
  for (const std::string& name : run.settings.list("nets"))
    even_layers(load_trained_net(name, data, run.folders).graph);
}

Conclusion run_transposable(const ExperimentRun& run) {
  const net::Dataset whole = load_data(run);
  require_one_class(whole, "experiment transposable");
  const net::Dataset data =
      net::with_calibration(whole, run.settings.integer("calibration", 1, whole.train_count()));
  require_names(run, data);
  Conclusion conclusion;
  add_losses(run, conclusion);
  add_networks(run, data, conclusion);
  add_conversion(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_transposable = {
    "transposable",
    "how much do transposable N:M masks lose compared with other patterns of density 50 %, and "
    "what repairs the loss",
    "Hubara et al. (NeurIPS 2021, arXiv 2102.08124) claim that N:M masks of rows and columns at "
    "once cost little more than N:M masks of rows, and that AdaPrune, a few calibration images and "
    "no training, brings a network that was pruned once back to its accuracy.",
    {{"magnitude",
      "The share of normal magnitudes that each pattern prunes is known (derived here)."},
     {"order",
      "Unstructured, 4:8, 2:4, 4:8-T, 1:2, 2:4-T, 1:2-T: each prunes more magnitude than "
      "the one before it (derived here)."},
     {"greedy",
      "Greedy transposable masks, the lightest pruned first, prune at most twice the least "
      "magnitude (published)."},
     {"greedy, heaviest first",
      "Those that keep the heaviest first keep at least half of the most (derived here)."},
     {"placement",
      "Groups with independently placed zeros break N:M as often as the binomial law predicts "
      "(derived here)."},
     {"layers",
      "Trained layers with permuted channels break N:M as often as the binomial law predicts "
      "(derived here)."},
     {"outputs",
      "AdaPrune divides the squared error of a layer's outputs by 2 or more (derived here)."},
     {"accuracy",
      "After AdaPrune top-1 is within 1 point of the unpruned network (published; the margin is "
      "ours).",
      "images"}},
    {{"nets", "lenet", "mlp,lenet", "mlp,lenet", "trained networks or files to prune",
      takes_networks()},
     data_setting(),
     {"blocks", "10000", "200000", "2000000", "normal blocks of 8 x 8", whole(2, 1'000'000'000)},
     {"placed", "100000", "1000000", "10000000", "groups with zeros placed at random",
      whole(2, 1'000'000'000)},
     {"patterns", "unstructured,4:8,2:4,4:8-T,2:4-T", "unstructured,4:8,2:4,4:8-T,1:2,2:4-T,1:2-T",
      "unstructured,4:8,2:4,4:8-T,1:2,2:4-T,1:2-T", "patterns that networks are pruned to",
      list_of()},
     {"images", "500", "10000", "10000", "test samples", whole(1, 100'000'000)},
     {"calibration", "512", "8192", "8192",
      "training samples that AdaPrune solves for: many more than a layer has inputs",
      whole(1, 1'000'000'000)},
     {"trained", "0", "0", "5",
      "networks of each kind trained from scratch, besides the shipped one", whole(0, 1000)},
     {"epochs", "1", "4", "12", "of training those", whole(1, 10'000)}},
    run_transposable};

}  // namespace numemu::experiments
