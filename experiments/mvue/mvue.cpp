// Unbiased pruning of gradients: is its noise what the closed forms say, does it average out, and
// does that help training?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/mvue/pruning.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::mvue {

// Gradients of networks, layer by layer.

namespace {

constexpr const char* kLayerRules[] = {"mvue(1:2)",        "mvue(2:4)",
                                       "mvue-approx(2:4)", "random-unbiased(2:4)",
                                       "greedy(1:2)",      "greedy(2:4)"};

/// Share of zeros, and the standard deviation of ln |x| over the others.
std::pair<double, double> shape_of(const std::vector<float>& x) {
  std::vector<double> logs;
  for (const float v : x) {
    if (v != 0) logs.push_back(portable::log(std::fabs(v)));
  }
  const auto n = static_cast<std::int64_t>(logs.size());
  if (n == 0) return {1, 0};
  const double mean = pairwise_sum(n, [&](std::int64_t i) { return logs[i]; }) / n;
  const double variance =
      pairwise_sum(n, [&](std::int64_t i) { return (logs[i] - mean) * (logs[i] - mean); }) /
      static_cast<double>(n);
  return {1 - static_cast<double>(n) / static_cast<double>(x.size()), std::sqrt(variance)};
}

/// A figure over the layers where enough groups carry it.
struct LayerMean {
  double sum = 0, squares = 0, layers = 0;
  void add(const Estimate& e, double effective) {
    if (effective < kFewestGroups || !std::isfinite(e.error)) return;
    sum += e.value;
    squares += e.error * e.error;
    ++layers;
  }
  void judge_as(const std::string& what, Conclusion& conclusion, double tolerance = NAN) const {
    if (layers > 0)
      conclusion.add(
          judged(what, 1, {sum / layers, std::sqrt(squares) / layers}, kFewestGroups, tolerance),
          "gradients");
  }
};

void add_network(const std::string& name, const net::Dataset& data, const ExperimentRun& run,
                 Conclusion& conclusion) {
  const std::int64_t batch = run.settings.integer("gradient_batch");
  const std::int64_t draws = run.settings.integer("draws");
  const std::int64_t samples = run.settings.integer("gradient_train", 32, data.train_count());
  run.say(fmt::format("gradients of {}", name));
  const net::Graph graph = briefly_trained(name, data, samples, run.seed);
  ResultTable table{
      fmt::format("gradients of {} on {} (batch {}, after {} training samples), {} draws", name,
                  data.name(), batch, samples, draws),
      {"layer", "zeros", "std of ln|g|", "rule", "NSR closed form", "error / closed form",
       "error of the mean x draws / closed form", "projection"},
      {}};
  RandomSource random;
  random.seed = run.seed;
  random.stream = Stream::mask;
  struct Means {
    LayerMean variance, mean, projection;
  };
  std::map<std::string, Means> means;
  double least = 1, most = 0;     // projection under greedy(1:2)
  std::vector<std::string> free;  // layers that mvue(2:4) prunes without error
  for (const LayerGradient& layer : layer_gradients(graph, data, batch, 1, run.seed)) {
    if (layer.g.empty()) continue;
    const std::vector<float> x = along_rows(layer);
    const auto [zeros, sigma] = shape_of(x);
    ++random.tensor;
    for (const char* rule : kLayerRules) {
      const policies::MaskPolicy policy = policies::parse_mask(rule);
      const PrunedSample s = prune_and_measure(policy, x, draws, random);
      const bool unbiased = policy.rule->unbiased;
      table.rows.push_back({layer.layer, fmt::format("{:.1f} %", 100 * zeros),
                            fmt::format("{:.2f}", sigma), rule, fmt::format("{:.4f}", s.closed_nsr),
                            unbiased ? shown(s.variance) : "-", unbiased ? shown(s.mean) : "-",
                            shown(s.projection)});
      if (std::string_view(rule) == "greedy(1:2)") {
        least = std::min(least, s.projection.value);
        most = std::max(most, s.projection.value);
      }
      if (std::string_view(rule) == "mvue(2:4)" && s.closed_nsr == 0) free.push_back(layer.layer);
      if (!unbiased) continue;
      Means& of_rule = means[rule];
      of_rule.variance.add(s.variance, s.effective_error);
      of_rule.mean.add(s.mean, s.effective_error);
      of_rule.projection.add(s.projection, s.effective_error);
    }
  }
  for (const auto& [rule, of_rule] : means) {
    const std::string where = fmt::format("{}, mean over layers of {}", rule, name);
    of_rule.variance.judge_as("squared error over its closed form, " + where, conclusion);
    of_rule.mean.judge_as("squared error of the mean times draws, " + where, conclusion,
                          bias_tolerance(static_cast<double>(draws)));
    of_rule.projection.judge_as("projection on the unpruned, " + where, conclusion);
  }
  conclusion.sentences.push_back(fmt::format(
      "Gradients of {}: greedy 1:2 keeps between {:.1f} % and {:.1f} % of a layer's gradient "
      "(projection); the unbiased rules all of it on average.",
      name, 100 * least, 100 * most));
  if (!free.empty())
    conclusion.sentences.push_back(fmt::format(
        "In {} of {} no four neighbours along space have more than two non-zeros: 2:4 pruning "
        "costs nothing there (max-pooling passes a gradient to one of its inputs).",
        joined(free, ", "), name));
  conclusion.tables.push_back(std::move(table));
}

}  // namespace

void add_gradients(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  for (const std::string& name : run.settings.list("gradient_nets"))
    add_network(name, data, run, conclusion);
}

// A gradient that is pruned in every dgrad on its way down: bias compounds with depth, noise does
// not.

namespace {

constexpr const char* kPropagated[] = {"mvue(1:2)",        "mvue(2:4)",
                                       "mvue-approx(2:4)", "random-unbiased(1:2)",
                                       "greedy(1:2)",      "greedy(2:4)"};

using Gradients = std::map<std::string, std::vector<float>>;

/// Of one batch: what wgrad reads, before pruning. The step gives each pass its own draws.
Gradients pass(const net::Graph& graph, const net::Tensor& x,
               const std::vector<std::int32_t>& labels, std::uint64_t seed, std::int64_t step,
               net::Numerics& numerics) {
  Gradients gradients;
  net::Observing observing(numerics, {.before = [&](const net::Step&, const net::Product& p) {
                             if (p.kind == net::GemmKind::wgrad)
                               gradients[std::string(p.layer)] = p.a.source->data;
                           }});
  training_pass(graph, x, labels, observing, step, seed);
  return gradients;
}

/// <g, h> / <h, h>; NaN where h is nothing but zeros.
double projection(const std::vector<float>& g, const std::vector<float>& h) {
  const auto n = static_cast<std::int64_t>(h.size());
  return pairwise_sum(n, [&](std::int64_t i) { return double{g[i]} * h[i]; }) /
         pairwise_sum(n, [&](std::int64_t i) { return double{h[i]} * h[i]; });
}

/// With the width that Student's t law gives what 4 standard errors are of a normal one.
Finding judged_mean(std::string what, const stats::PairedInterval& t) {
  constexpr double kTail = 3.167e-5;  // of a normal law beyond kErrors
  constexpr double kTwoSided95 = 0.025;
  constexpr std::int64_t kFewest = 10;  // passes
  const auto degrees = static_cast<double>(t.n - 1);
  const double error = (t.high - t.mean) / stats::student_quantile(degrees, kTwoSided95);
  const double width = error * stats::student_quantile(degrees, kTail);
  Finding finding = judged(std::move(what), 1, {t.mean, width / kErrors}, t.n >= kFewest ? 1e9 : 0);
  finding.low = t.low;
  finding.high = t.high;
  return finding;
}

}  // namespace

void add_propagation(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::string& name = run.settings.text("propagation_net");
  const std::int64_t batch = run.settings.integer("gradient_batch");
  const std::int64_t passes = run.settings.integer("passes");
  run.say(fmt::format("gradients of {} pruned on their way down", name));
  net::Graph graph = net::build_net(name, data);
  net::initialize(graph, run.seed);
  const std::vector<std::string> layers = net::gemm_layer_names(graph);
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), run.seed, 0);
  ids.resize(static_cast<std::size_t>(std::min(batch, data.train_count())));
  net::Targets targets;
  const net::Tensor x = data.train_batch(ids, targets);
  policies::RecipeNumerics float32(policies::Recipe(), graph);
  const Gradients dense = pass(graph, x, targets.classes, run.seed, 0, float32);

  ResultTable table{fmt::format("gradients of {} (initial weights) pruned in every dgrad but that "
                                "of the output layer: projection on the dense gradient, {} passes",
                                name, passes),
                    {"layer"},
                    {}};
  for (auto l = layers.rbegin(); l != layers.rend(); ++l) table.rows.push_back({*l});
  Chart chart{
      .title = fmt::format("What is left of the gradients of {} on their way down", name),
      .caption = fmt::format(
          "Projection <pruned, dense> / <dense, dense> of the gradient that reaches a layer, "
          "pruned in every dgrad above it but that of the output layer; initial weights, one "
          "batch, {} passes, 95 % intervals. Predicted without bias: 1.",
          passes),
      .x = "layer, counted from the output",
      .y = "projection on the dense gradient"};
  for (const char* rule : kPropagated) {
    policies::RecipeNumerics numerics(
        policies::Recipe::make(recipe_of({rule, "", ""}, graph), "recipe of mvue", run.seed),
        graph);
    const bool unbiased = policies::parse_mask(rule).rule->unbiased;
    std::map<std::string, std::vector<double>> projections;
    for (std::int64_t p = 0; p < passes; ++p) {
      for (const auto& [layer, g] : pass(graph, x, targets.classes, run.seed, p, numerics))
        projections[layer].push_back(projection(g, dense.at(layer)));
    }
    table.header.emplace_back(rule);
    ChartSeries series{rule, {}, false};
    for (std::size_t depth = 0; depth < layers.size(); ++depth) {
      const std::string& layer = layers[layers.size() - 1 - depth];
      const stats::PairedInterval t = stats::paired_interval(projections[layer]);
      table.rows[depth].push_back(half_text(t, 3));
      series.points.push_back(gain_point(static_cast<double>(depth), layer, t));
      if (unbiased && depth + 1 == layers.size())
        conclusion.add(judged_mean(fmt::format("projection of the gradient at {} of {} after {}",
                                               layer, name, rule),
                                   t),
                       "propagation");
    }
    if (std::string_view(rule) == "greedy(1:2)")
      conclusion.sentences.push_back(fmt::format(
          "Pruned by greedy 1:2 in every dgrad, {:.1f} % of the gradient (projection) is left at "
          "{}, {} layers below the output of {}.",
          100 * series.points.back().y, series.points.back().name, layers.size() - 1, name));
    chart.series.push_back(std::move(series));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

// Networks trained with pruned gradients, in the update alone and in backward too.

namespace {

struct TrainedRule {
  const char *name, *mask;
  bool predicted;  ///< to be no worse than dense
};
constexpr TrainedRule kTrainedRules[] = {{"greedy 1:2", "greedy(1:2)", false},
                                         {"greedy 2:4", "greedy(2:4)", false},
                                         {"random unbiased 1:2", "random-unbiased(1:2)", false},
                                         {"MVUE 1:2", "mvue(1:2)", true},
                                         {"MVUE 2:4", "mvue(2:4)", true},
                                         {"approximate MVUE 2:4", "mvue-approx(2:4)", true}};
/// What counts as no worse: points of top-1, or bits per character.
constexpr double kMargin = 1, kMarginBits = 0.02;
constexpr std::uint64_t kTuningSeeds = 1000;  // behind the run's, beyond all that are judged

struct TrainedMethod {
  std::string name;
  Pruning pruning;
  const char* claim = nullptr;  ///< that it is no worse than dense
};

constexpr const char *kInUpdate = "update", *kInBoth = "backward + update";

std::string method_name(const char* rule, const char* where) {
  return fmt::format("{}, {}", rule, where);
}

/// Every rule in the update alone, then in both; then sparse activations, sparse weights, and these
/// with gradients.
std::vector<TrainedMethod> methods() {
  std::vector<TrainedMethod> all;
  const auto claim_of = [](const TrainedRule& rule) {
    return rule.predicted ? "each rule" : nullptr;
  };
  for (const TrainedRule& rule : kTrainedRules)
    all.push_back({method_name(rule.name, kInUpdate), {"", rule.mask}, claim_of(rule)});
  for (const TrainedRule& rule : kTrainedRules)
    all.push_back({method_name(rule.name, kInBoth), {rule.mask, rule.mask}, claim_of(rule)});
  const char* const weight = "transposable(2:4,refresh=40)";
  all.push_back({"greedy 2:4 activations", {"", "", "", "greedy(2:4)"}, "activations"});
  all.push_back({"transposable 2:4 weights", {"", "", weight}, "weights"});
  all.push_back({"transposable 2:4 weights + MVUE 2:4, all products sparse",
                 {"", "mvue(2:4)", weight},
                 "all products"});
  return all;
}

TrainingPlan plan_of(const ExperimentRun& run, const net::Dataset& data,
                     const std::vector<TrainedMethod>& compared) {
  const Settings& settings = run.settings;
  TrainingPlan plan;
  plan.trial = training_of(settings, settings.text("net"), {.least_batch = 4});
  plan.data = settings.text("data");
  plan.seeds = seeds_of(run);
  plan.at_once = true;
  const net::Graph graph = initial_network(plan.trial, data);
  plan.methods.push_back({"dense", Json::object()});
  for (const TrainedMethod& method : compared)
    plan.methods.push_back({method.name, recipe_of(method.pruning, graph)});
  plan.trial.tests = settings.integer("tests");
  return plan;
}

/// Of the methods that the paper compares: dense, greedy and MVUE in backward and update, all
/// products sparse.
Chart curves_of(Chart all, bool tuned) {
  std::erase_if(all.series, [](const ChartSeries& series) {
    const std::string& name = series.name;
    const bool both =
        name.ends_with(kInBoth) && (name.starts_with("greedy") || name.starts_with("MVUE"));
    return name != "dense" && !both && !name.ends_with("all products sparse");
  });
  all.title = "Training with pruned gradients beside dense training, by update";
  all.caption += tuned ? " Each method has the best of its learning rates."
                       : " All methods have the same learning rate.";
  return all;
}

/// How much worse than another one, dense by default, seed by seed: points, or bits per character.
stats::PairedInterval loss_of(const Study<TrainOutcome>& study, std::size_t method,
                              std::size_t other = 0) {
  std::vector<double> losses;
  for (std::size_t s = 0; s < study.seeds(); ++s) {
    const double difference = study.runs[other][s].metric - study.runs[method][s].metric;
    losses.push_back(study.runs[0][s].accuracy ? 100 * difference : -difference);
  }
  return stats::paired_interval(losses);
}

/// Of a method in the study, whose first is dense.
std::size_t place_of(const std::vector<TrainedMethod>& compared, const std::string& name) {
  const auto found = std::ranges::find(compared, name, &TrainedMethod::name);
  return static_cast<std::size_t>(found - compared.begin()) + 1;
}

/// What MVUE spares of the loss of greedy pruning to the same pattern, in backward and update.
std::vector<PairedGain> gains_on_greedy(const Study<TrainOutcome>& study,
                                        const std::vector<TrainedMethod>& compared) {
  const auto place = [&](const std::string& name) { return place_of(compared, name); };
  std::vector<PairedGain> gains;
  for (const char* pattern : {"1:2", "2:4"}) {
    const std::string mvue = fmt::format("MVUE {}", pattern),
                      greedy = fmt::format("greedy {}", pattern);
    gains.push_back(
        {fmt::format("{} gained by {} on {}, {}",
                     study.runs[0][0].accuracy ? "points of top-1" : "bits per character", mvue,
                     greedy, kInBoth),
         loss_of(study, place(method_name(greedy.c_str(), kInBoth)),
                 place(method_name(mvue.c_str(), kInBoth)))});
  }
  return gains;
}

/// What the last third of its training gained a method, in the unit of its loss: mean over seeds
/// that were tested then; NaN without.
double late_gain(const Study<TrainOutcome>& study, std::size_t method) {
  double sum = 0, seeds = 0;
  for (const TrainOutcome& run : study.runs[method]) {
    if (run.diverged || run.reached.size() < 3) continue;
    const double gained = run.reached.back() - run.reached[run.reached.size() * 2 / 3 - 1];
    sum += run.accuracy ? 100 * gained : -gained;
    ++seeds;
  }
  return seeds > 0 ? sum / seeds : NAN;
}

double margin_of(bool accuracy) { return accuracy ? kMargin : kMarginBits; }

/// No worse than dense at the end of training, by the margin. Without a verdict where a method
/// gains more than the margin at its end, or no test on its way tells: its training may not have
/// ended.
Finding judged_loss(const std::string& name, bool accuracy, const stats::PairedInterval& loss,
                    double late) {
  const double margin = margin_of(accuracy);
  Finding finding = interval_finding(
      fmt::format("{} lost to dense by {} (at most {} predicted)",
                  accuracy ? "points of top-1" : "bits per character", name, margin),
      0, loss, at_most(margin));
  if (!(late <= margin)) {
    finding.verdict = Verdict::none;
    finding.what += std::isnan(late)
                        ? "; no tests on its way tell whether its training had ended"
                        : fmt::format("; it gained {:.2g} in the last third of its training", late);
  }
  if (loss.left_out > 0) judge_diverged(finding);
  return finding;
}

/// Of MVUE 1:2 and 2:4 in these products the one that the test shows more clearly to be no worse
/// than dense. It is chosen among two, so that it holds where Holm's procedure over both rejects
/// that it is worse, and fails where the other one fails, too.
Finding better_of_two(const char* where, const Study<TrainOutcome>& study,
                      const std::vector<TrainedMethod>& compared) {
  constexpr const char* kPatterns[] = {"1:2", "2:4"};
  const bool accuracy = study.runs[0][0].accuracy;
  std::vector<Finding> findings;
  std::vector<double> p;  // that it loses more than the margin, twice as intervals have two sides
  for (const char* pattern : kPatterns) {
    const std::size_t method =
        place_of(compared, method_name(fmt::format("MVUE {}", pattern).c_str(), where));
    const stats::PairedInterval loss = loss_of(study, method);
    findings.push_back(
        judged_loss(fmt::format("the better of MVUE 1:2 and 2:4, {}: {}", where, pattern), accuracy,
                    loss, late_gain(study, method)));
    p.push_back(loss.left_out > 0 ? 1 : 2 * tails(loss, margin_of(accuracy)).below);
  }
  const std::size_t better = p[1] < p[0] ? 1 : 0;
  Finding finding = findings[better];
  if (finding.verdict == Verdict::holds && !stats::holm(p)[better]) {
    finding.verdict = Verdict::undecided;
    finding.what += kAfterHolm;
  }
  if (finding.verdict == Verdict::fails && findings[1 - better].verdict != Verdict::fails)
    finding.verdict = Verdict::undecided;
  return finding;
}

/// What a method loses to dense as the difference people read, with its interval: points of top-1
/// fall, bits per character rise.
std::string difference_text(const stats::PairedInterval& loss, bool accuracy) {
  const double sign = accuracy ? -1 : 1;
  const int digits = accuracy ? 2 : 4;
  const auto end = [&](double x) { return 0 + sign * x; };  // no -0
  return fmt::format("{:+.{}f} {}{}", end(loss.mean), digits,
                     accuracy ? "points" : "bits per character",
                     loss.n < 2 ? ""
                                : " " + ends_text(end(accuracy ? loss.high : loss.low),
                                                  end(accuracy ? loss.low : loss.high), digits));
}

/// The least and the most that the methods with that ending lose. One seed cannot tell chance from
/// a better method, so that it names none.
std::string sentence_on(const std::string& where, const std::vector<TrainedMethod>& compared,
                        const std::vector<stats::PairedInterval>& loss, bool accuracy) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    if (compared[m].name.ends_with(", " + where)) order.emplace_back(loss[m].mean, m);
  }
  std::sort(order.begin(), order.end());
  const std::size_t best = order.front().second, worst = order.back().second;
  const auto name = [&](std::size_t m) {
    return compared[m].name.substr(0, compared[m].name.size() - where.size() - 2);
  };
  if (loss[best].n < 2) {
    return fmt::format(
        "Gradients pruned in {}: between {} and {} against dense over {} rules; one seed does not "
        "tell which rule is best.",
        where, difference_text(loss[worst], accuracy), difference_text(loss[best], accuracy),
        order.size());
  }
  return fmt::format("Gradients pruned in {}: {} loses least ({} against dense), {} most ({}).",
                     where, name(best), difference_text(loss[best], accuracy), name(worst),
                     difference_text(loss[worst], accuracy));
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::vector<TrainedMethod> compared = methods();
  TrainingPlan plan = plan_of(run, data, compared);
  const std::vector<double> factors = run.settings.numbers("rate_factors");
  std::vector<std::uint64_t> others = seeds_of(run, "tuning_seeds");
  for (std::uint64_t& seed : others) seed += kTuningSeeds;
  tune_rates(run, data, factors, others, plan, conclusion);
  TrainingTable training = run_training(run, data, plan);
  const bool accuracy = training.study.runs[0][0].accuracy;
  std::vector<stats::PairedInterval> loss;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    loss.push_back(loss_of(training.study, m + 1));
    if (compared[m].claim == nullptr) continue;
    std::vector<Finding> found{
        judged_loss(compared[m].name, accuracy, loss.back(), late_gain(training.study, m + 1))};
    if (compared[m].claim == std::string_view("weights") && has_weights(plan.trial, data))
      found = without_verdict(std::move(found), "the network is a trained one");
    conclusion.add(std::move(found), compared[m].claim);
  }
  for (const char* where : {kInUpdate, kInBoth})
    conclusion.add(better_of_two(where, training.study, compared), "training");
  conclusion.add(judge_gains(gains_on_greedy(training.study, compared)), "bias");
  for (const char* where : {kInUpdate, kInBoth})
    conclusion.sentences.push_back(sentence_on(where, compared, loss, accuracy));
  conclusion.sentences.push_back(fmt::format(
      "With transposable 2:4 weights, MVUE 2:4 gradients in the update make all three "
      "products of a layer sparse: {} against dense, {} for the weights alone.",
      difference_text(loss.back(), accuracy), difference_text(loss[loss.size() - 2], accuracy)));
  conclusion.tables.push_back(std::move(training.table));
  if (!training.curves.series.empty())
    conclusion.charts.push_back(curves_of(std::move(training.curves), factors.size() > 1));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace numemu::experiments::mvue

namespace numemu::experiments {

namespace {

Conclusion run_mvue(const ExperimentRun& run) {
  Conclusion conclusion;
  mvue::add_laws(run, conclusion);
  mvue::add_averaging(run, conclusion);
  const net::Dataset data = load_data(run);
  if (data.kind() == net::DataKind::images) {
    mvue::add_gradients(run, data, conclusion);
    mvue::add_propagation(run, data, conclusion);
  }
  mvue::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mvue = {
    "mvue",
    "does unbiased N:M pruning of gradients follow its closed forms, average out over batches, and "
    "leave training unaffected",
    "Chmiel et al. (ICLR 2023, arXiv 2203.10991) claim that N:M pruning of gradients without bias "
    "and of minimum variance (MVUE) averages out over batches and steps, so that training ends as "
    "accurate as dense, while the bias of greedy pruning stays.",
    {{"laws",
      "On numbers of known laws the noise and the bias of N:M pruning equal their closed forms "
      "(derived here)."},
     {"averaging",
      "Averaged over batches, the error of dW falls as variance over batches plus "
      "bias squared: to zero under MVUE, not under greedy pruning (published)."},
     {"gradients",
      "On gradients of networks MVUE has no bias and the variance of its closed "
      "form (derived here)."},
     {"propagation",
      "If every dgrad is pruned without bias, the projection of a gradient on the dense one stays "
      "1 (derived here)."},
     {"training",
      "A network trained with MVUE gradients, by the better of 1:2 and 2:4 in the update and in "
      "backward and update, loses at most 1 point of top-1, or 0.02 bits per character (published; "
      "the margin is ours).",
      "seeds"},
     {"each rule",
      "So does one trained with 1:2, with 2:4 and with the approximation of 2:4, each by itself (a "
      "contrast).",
      "seeds"},
     {"bias",
      "Gradients pruned with least squared error (greedy) in backward and update train worse than "
      "with MVUE (published).",
      "seeds"},
     {"activations",
      "Activations pruned to 2:4 with least squared error lose as little (published; the margin is "
      "ours).",
      "seeds"},
     {"weights",
      "Transposable 2:4 weights lose as little from scratch (published; the margin is ours).",
      "seeds"},
     {"all products",
      "So they do with MVUE 2:4 in the update, which makes all three products sparse (published; "
      "the margin is ours).",
      "seeds"}},
    {{"net", "mlp", "mlp", "lenet", "network to train", takes_network()},
     data_setting(),
     {"samples", "16000", "200000", "2000000", "numbers of each law", whole(800, 100'000'000)},
     {"draws", "16", "64", "256", "times that each tensor is pruned", whole(2, 100'000)},
     {"batches", "4", "64", "256", "batches that dW is averaged over", whole(1, 1 << 15)},
     {"repeats", "16", "32", "64", "repeats of the average", whole(2, 1 << 15)},
     {"gradient_nets", "lenet", "lenet,resnet20", "lenet,resnet20",
      "networks whose gradients are pruned (image data)", takes_networks()},
     {"propagation_net", "mlp", "lenet", "vgg-small",
      "network whose gradients are pruned during backpropagation (image data)", takes_network()},
     {"gradient_train", "256", "1024", "8192", "samples they were trained with, once",
      whole(32, 1'000'000'000)},
     {"gradient_batch", "64", "64", "128", "samples that these gradients come from",
      whole(4, 65536)},
     {"passes", "12", "40", "100", "backward passes of each rule", whole(2, 1'000'000)},
     {"optimizer", "sgd", "optimizer", takes_optimizer()},
     rate_settings(),
     {"rate_factors", "1", "1", "0.5,1,2",
      "factors on the learning rate, of which each method has the best", reals(1e-6, 1e6)},
     {"tuning_seeds", "1", "1", "2", "seeds that they are chosen by", whole(1, 1000)},
     {"tests", "2", "8", "24", "tests on the way of a training, evenly", whole(0, 10'000)},
     training_settings({"2", "4", "12"}, {"64", "128", "128"}, {"1536", "8192", "0"},
                       {"500", "4000", "0"}, {.of = "sample"}),
     seeds_setting({"1", "3", "5"})},
    run_mvue};

}  // namespace numemu::experiments
