// Stochastic pruning of gradients: predicted against measured sparsity, and what it costs training.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "emu/net/gemm_layers.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/mask/prune.hpp"

namespace numemu::experiments::stochastic_pruning {

namespace {

using policies::MaskPolicy;

Json role(const std::string& mask) {
  const Json text = mask.empty() ? Json(nullptr) : Json(mask);
  return {{"gradient", {{"format", nullptr}, {"mask", text}}}};
}

/// The masks of a plan: each layer's share of non-zeros below its threshold.
std::map<std::string, std::string> masks_of(const std::vector<ObservedLayer>& layers,
                                            const std::vector<double>& thresholds,
                                            std::int64_t history) {
  constexpr double kLeast = 1e-4;  // as many digits as the text has
  std::map<std::string, std::string> masks;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const MagnitudeLaw& law = layers[l].magnitudes.law;
    const double share = effect(Pruning::stochastic, law, thresholds[l]).below;
    if (share < kLeast) {
      masks[layers[l].layer] = "";
      continue;
    }
    masks[layers[l].layer] =
        fmt::format("stochastic({:.4f},law={},history={})", std::min(share, 1 - kLeast),
                    law.law == ThresholdLaw::normal ? "normal" : "lognormal", history);
  }
  return masks;
}

std::vector<LayerMagnitudes> magnitudes_of(const std::vector<ObservedLayer>& layers) {
  std::vector<LayerMagnitudes> magnitudes;
  for (const ObservedLayer& layer : layers) magnitudes.push_back(layer.magnitudes);
  return magnitudes;
}

/// So that errors count relative to each layer's power.
std::vector<LayerMagnitudes> relative(std::vector<LayerMagnitudes> layers) {
  for (LayerMagnitudes& layer : layers) layer.weight = 1 / second_moment(layer.law);
  return layers;
}

std::vector<double> equal_shares(const ExperimentRun& run,
                                 const std::vector<LayerMagnitudes>& layers) {
  const double share = run.settings.number("plan_share");
  std::vector<double> thresholds;
  for (const LayerMagnitudes& layer : layers)
    thresholds.push_back(threshold_below(layer.law, share));
  return thresholds;
}

/// Distance of the zeros reached from those planned under laws of one moment in training.
constexpr double kPlanHolds = 0.05;

/// Published as the largest speed-up of backpropagation, in time.
constexpr double kSpeedUp = 5.92;

/// Share of zeros in what weight gradients read, by elements, by their products' MACs, and by those
/// of both products of backpropagation, which read the same gradient.
struct Reached {
  double zeros = 0, idle_macs = 0, idle_backward = 0;

  /// Of backpropagation, where products with a zero are left out.
  double times_fewer() const { return 1 / (1 - idle_backward); }

  static void fields(auto& self, const auto& visit) {
    visit("zeros", self.zeros);
    visit("idle_macs", self.idle_macs);
    visit("idle_backward", self.idle_backward);
  }
};

struct PrunedRun {
  TrainOutcome outcome;
  Reached reached;

  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("reached", self.reached);
  }
};

/// Counts zeros once the history is full. Thresholds are those of the run; the draws are others.
class ZeroCount {
 public:
  ZeroCount(const Method& method, std::uint64_t seed) : method_(method), seed_(seed) {}

  void see(const net::Product& product, std::int64_t step) {
    constexpr std::int64_t kEvery = 4;  // steps between two that are counted
    const std::string layer(product.layer);
    if (product.kind == net::GemmKind::dgrad) dgrad_macs_[layer] = net::multiply_adds(product);
    if (product.kind != net::GemmKind::wgrad) return;
    const net::Elements& g = product.a.source->data;
    const auto n = static_cast<std::int64_t>(g.size());
    const std::string& text = method_.mask_of(layer);
    double threshold = 0;
    Pruning pruning = Pruning::stochastic;
    if (!text.empty()) {
      const MaskPolicy policy = policies::parse_mask(text);
      pruning = policy.rule->unbiased ? Pruning::stochastic : Pruning::hard;
      if (!policy.propagated) threshold = threshold_of(policy, layer, g);
      if (step < policy.history) return;
    }
    if (step % kEvery != 0) return;
    const RandomSource random{seed_, Stream::mask, static_cast<std::uint32_t>(step), 1};
    const PrunedTensor t = prune_and_measure(pruning, g.data(), n, threshold, random);
    const double macs = net::multiply_adds(product), both = macs + dgrad_macs_[layer];
    zeros_ += static_cast<double>(t.zeros);
    elements_ += static_cast<double>(n);
    idle_macs_ += macs * t.zero_share();
    macs_ += macs;
    idle_backward_ += both * t.zero_share();
    backward_ += both;
  }

  Reached reached() const {
    return {elements_ > 0 ? zeros_ / elements_ : 0, macs_ > 0 ? idle_macs_ / macs_ : 0,
            backward_ > 0 ? idle_backward_ / backward_ : 0};
  }

 private:
  double threshold_of(const MaskPolicy& policy, const std::string& layer,
                      std::span<const float> g) {
    const double own =
        policy.rule->threshold(policy, g.data(), static_cast<std::int64_t>(g.size()));
    if (policy.history == 0) return own;
    policies::ThresholdHistory& history = histories_[layer];
    const double predicted = history.prediction(policy.history).value_or(0);
    history.push(own, policy.history);
    return predicted;
  }

  const Method& method_;
  std::uint64_t seed_;
  std::map<std::string, policies::ThresholdHistory> histories_;
  std::map<std::string, double> dgrad_macs_;  ///< of a step; the first layer has none
  double zeros_ = 0, elements_ = 0, idle_macs_ = 0, macs_ = 0, idle_backward_ = 0, backward_ = 0;
};

PrunedRun train(TrainTrial trial, const net::Dataset& data, const Method& method) {
  ZeroCount count(method, trial.seed);
  trial.before = [&](const net::Product& product, std::int64_t step) { count.see(product, step); };
  PrunedRun measured{run_train_trial(trial, data), {}};
  measured.reached = count.reached();
  return measured;
}

/// What the seeds of every method say.
struct Compared {
  const std::string& net;
  const std::vector<Method>& methods;
  SeedFigures top1, zeros_of, fewer;  ///< per cent; shares; times fewer MACs of backpropagation
  std::vector<double> zeros, idle;    ///< mean shares

  Compared(const std::string& name, const std::vector<Method>& all, const Study<PrunedRun>& study)
      : net(name),
        methods(all),
        top1(study.figures([](const PrunedRun& m) { return m.outcome.top1(); })),
        zeros_of(study.figures([](const PrunedRun& m) { return m.reached.zeros; })),
        fewer(study.figures([](const PrunedRun& m) { return m.reached.times_fewer(); })) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      zeros.push_back(stats::paired_interval(zeros_of[m]).mean);
      idle.push_back(0);
      for (const PrunedRun& run : study.runs[m])
        idle[m] += run.reached.idle_macs / static_cast<double>(study.seeds());
    }
  }

  const std::string& name(std::size_t m) const { return methods[m].name; }
  /// Methods of a series, in their order.
  std::vector<std::size_t> of(const char* series) const {
    std::vector<std::size_t> all;
    for (std::size_t m = 0; m < methods.size(); ++m)
      if (methods[m].series == series) all.push_back(m);
    return all;
  }
};

/// Without bias little is lost (Ye et al.); with bias more is; sharing zeros between
/// layers may gain on equal p; plans reach the zeros that they were made for.
void judge_accuracy(const Compared& c, double planned, Conclusion& conclusion) {
  constexpr double kSmallLoss = 0.5;  // points
  PairedClaims claims;
  const auto gains = [&](std::size_t m, std::size_t on, const char* claim) {
    claims.add(fmt::format("{}: {} gains on {}", c.net, c.name(m), c.name(on)), gain(c.top1, m, on),
               0, claim);
  };
  for (const std::size_t m : c.of(kStochastic)) {
    claims.add(
        fmt::format("{}: {} loses less than {} points to dense", c.net, c.name(m), kSmallLoss),
        gain(c.top1, m), -kSmallLoss, "accuracy");
    for (const std::size_t hard : c.of(kHard))
      if (c.methods[hard].share == c.methods[m].share) gains(m, hard, "bias");
  }
  const std::vector<std::size_t> unbiased = c.of(kStochastic);
  const std::size_t sparsest =
      *std::ranges::max_element(unbiased, {}, [&](std::size_t m) { return c.methods[m].share; });
  conclusion.add(
      interval_finding(fmt::format("{}: times fewer multiply-adds of backpropagation, {} ({} times "
                                   "as fast published)",
                                   c.net, c.name(sparsest), kSpeedUp),
                       kSpeedUp, stats::paired_interval(c.fewer[sparsest]), at_least(kSpeedUp)),
      "operations");
  const std::vector<std::size_t> plans = c.of(kShared);
  for (const std::size_t m : plans)
    if (m != plans.front()) gains(m, plans.front(), "sharing");
  conclusion.add(claims.judged());
  for (const std::size_t m : plans) {
    const stats::PairedInterval reached = stats::paired_interval(c.zeros_of[m]);
    conclusion.add(interval_finding(fmt::format("{}: zeros reached with {}", c.net, c.name(m)),
                                    planned, reached, near(planned, kPlanHolds)),
                   "plans");
  }
}

std::string interval_over_seeds(const stats::PairedInterval& d) {
  return interval_text(d,
                       d.n > 1 ? "(equal in all seeds, no interval)" : "(one seed, no interval)");
}

/// The share below the threshold that each plan sets for each layer.
ResultTable plan_table(const std::string& net, const std::vector<Method>& methods,
                       const std::vector<ObservedLayer>& layers) {
  ResultTable table{
      fmt::format("{}: share of the non-zero elements below each layer's threshold", net),
      {"layer"},
      {}};
  for (const ObservedLayer& layer : layers) table.rows.push_back({layer.layer});
  for (const Method& method : methods) {
    if (method.layers.empty()) continue;
    table.header.push_back(method.name);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string& mask = method.layers.at(layers[l].layer);
      table.rows[l].push_back(
          mask.empty() ? "dense" : fmt::format("{:.4f}", policies::parse_mask(mask).share));
    }
  }
  return table;
}

Chart chart_of(const std::string& data, const Compared& c) {
  Chart chart{
      .title = fmt::format("Accuracy of {} on {} against gradient sparsity", c.net, data),
      .caption = fmt::format(
          "Difference of top-1 to dense training over {}, with its 95 % interval by Student's t "
          "law paired by seed, against the share of zeros in what weight gradients read. "
          "Thresholds are means of those of the last steps, by the normal law (plans: by the law "
          "that they are made under); everything else float32.",
          counted(std::ssize(c.top1[0]), "seed")),
      .x = "zeros, %",
      .y = "top-1 difference to dense, points"};
  for (const char* const series : {kDense, kStochastic, kHard, kInput, kShared}) {
    ChartSeries drawn{series, {}, false};
    for (const std::size_t m : c.of(series)) {
      drawn.points.push_back(gain_point(100 * c.zeros[m], c.name(m), gain(c.top1, m)));
      if (m == 0) drawn.points.back().low = drawn.points.back().high = NAN;
    }
    std::sort(drawn.points.begin(), drawn.points.end(),
              [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    chart.series.push_back(std::move(drawn));
  }
  return chart;
}

void describe_accuracy(const Compared& c, Conclusion& conclusion) {
  for (const char* const series : {kStochastic, kHard}) {
    const std::vector<std::size_t> all = c.of(series);
    if (all.empty()) continue;
    const std::size_t sparsest =
        *std::max_element(all.begin(), all.end(),
                          [&](std::size_t a, std::size_t b) { return c.zeros[a] < c.zeros[b]; });
    const stats::PairedInterval difference = gain(c.top1, sparsest);
    conclusion.sentences.push_back(fmt::format(
        "{}: {} leaves {:.0f} % of the gradient zero (dense: {:.0f} %) at {:+.2f} points of top-1 "
        "{}.",
        c.net, c.name(sparsest), 100 * c.zeros[sparsest], 100 * c.zeros[0], difference.mean,
        interval_over_seeds(difference)));
  }
  const std::vector<std::size_t> plans = c.of(kShared);
  if (plans.empty()) return;
  const std::size_t equal = plans.front();
  if (c.top1[equal].size() < 2) {
    conclusion.sentences.push_back(c.net + ": one seed does not tell which plan is best.");
    return;
  }
  const std::size_t best = *std::max_element(
      plans.begin(), plans.end(),
      [&](std::size_t a, std::size_t b) { return gain(c.top1, a).mean < gain(c.top1, b).mean; });
  const stats::PairedInterval more = gain(c.top1, best, equal);
  conclusion.sentences.push_back(
      best == equal
          ? fmt::format("{}: no other plan does better than {}.", c.net, c.name(equal))
          : fmt::format("{}: of the plans, {} does best: {:+.2f} points against {} {}.", c.net,
                        c.name(best), more.mean, c.name(equal), interval_over_seeds(more)));
}

/// Accuracy against the sparsity reached: without bias, with bias, and shared between layers in
/// several ways (settings shares, share, plan_share, seeds).
void add_accuracy(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
                  const std::vector<ObservedLayer>& layers, Conclusion& conclusion) {
  const std::vector<std::uint64_t> seeds = seeds_of(run);
  const std::vector<Method> methods = methods_of(run, layers);
  TrainingPlan plan{.trial = training_of(run.settings, net),
                    .data = run.settings.text("data"),
                    .seeds = seeds,
                    .prefix = net + ": "};
  for (const Method& method : methods)
    plan.methods.push_back(
        {.name = method.name, .recipe = recipe_of(method), .counted = {{"counted", "zeros"}}});
  const auto study = run_training_study<PrunedRun>(
      run, data, plan,
      [&](const TrainTrial& trial, std::size_t m) { return train(trial, data, methods[m]); });
  const Compared c(net, methods, study);
  judge_accuracy(c, planned_zeros(run, layers), conclusion);
  const auto percent = [](const std::vector<double>& shares) {
    return [&shares](std::size_t m) { return fmt::format("{:.1f}", 100 * shares[m]); };
  };
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {}, {}: gradients pruned for dgrad and wgrad", net, plan.data,
                  plan.trial.options.optimizer, counted(std::ssize(seeds), "seed")),
      methods.size(),
      {name_column("method", study.methods),
       {"zeros, %", percent(c.zeros)},
       {"idle wgrad MACs, %", percent(c.idle)},
       mean_column("times fewer MACs of backpropagation", c.fewer),
       mean_column("top-1, %", c.top1),
       {"difference, points",
        [&](std::size_t m) { return fmt::format("{:+.2f}", gain(c.top1, m).mean); }},
       {"95 % interval", [&](std::size_t m) { return interval_over_seeds(gain(c.top1, m)); }}}));
  conclusion.tables.push_back(plan_table(net, methods, layers));
  conclusion.charts.push_back(chart_of(plan.data, c));
  describe_accuracy(c, conclusion);
}

}  // namespace

double planned_zeros(const ExperimentRun& run, const std::vector<ObservedLayer>& layers) {
  const std::vector<LayerMagnitudes> magnitudes = magnitudes_of(layers);
  return total_effect(Pruning::stochastic, magnitudes, equal_shares(run, magnitudes)).zeros;
}

std::vector<Method> methods_of(const ExperimentRun& run, const std::vector<ObservedLayer>& layers) {
  const std::int64_t history = run.settings.integer("history");
  std::vector<Method> methods = {{kDense, kDense, "", {}, 0}};
  const std::vector<double> shares = run.settings.numbers("shares");
  for (const char* const rule : {kStochastic, kHard}) {
    for (const double share : shares) {
      const std::string mask = fmt::format("{}({},history={})", rule, share, history);
      methods.push_back({mask, rule, mask, {}, share});
    }
  }
  const double share = run.settings.number("share");
  const std::string input = fmt::format("stochastic({},history={},at=input)", share, history);
  methods.push_back({input, kInput, input, {}, 0});

  const std::vector<LayerMagnitudes> magnitudes = magnitudes_of(layers);
  const double zeros = planned_zeros(run, layers);
  const auto plan = [&](const std::string& name, const std::vector<double>& thresholds) {
    methods.push_back({fmt::format("{}, {:.0f} % zeros", name, 100 * zeros), kShared, "",
                       masks_of(layers, thresholds, history), 0});
  };
  plan("equal p", equal_shares(run, magnitudes));
  plan("equal cosine", thresholds_of_equal_cosine(Pruning::stochastic, magnitudes, zeros));
  plan("least relative error",
       thresholds_of_least_error(Pruning::stochastic, relative(magnitudes), zeros));
  plan("one threshold", thresholds_of_least_error(Pruning::stochastic, magnitudes, zeros));
  return methods;
}

Json recipe_of(const Method& method) {
  Json recipe = Json::object();
  if (!method.mask.empty()) recipe["roles"] = role(method.mask);
  for (const auto& [layer, mask] : method.layers)
    recipe["layers"].push_back({{"match", layer}, {"roles", role(mask)}});
  return recipe;
}

}  // namespace numemu::experiments::stochastic_pruning

namespace numemu::experiments {

namespace {

Conclusion run_stochastic_pruning(const ExperimentRun& run) {
  const std::string& law = run.settings.text("plan_law");
  if (law != "normal" && law != "lognormal")
    throw usage_error("--set: plan_law: expected normal or lognormal, not '" + law + "'");
  Conclusion conclusion;
  using namespace stochastic_pruning;
  run.say("samples of known laws");
  add_synthetic(run, conclusion);
  const net::Dataset data = load_data(run);
  for (const std::string& net : run.settings.list("nets")) {
    run.say(net + ": gradients in training");
    const std::vector<ObservedLayer> layers = add_gradients(run, net, data, conclusion);
    run.say(net + ": accuracy against sparsity");
    add_accuracy(run, net, data, layers, conclusion);
  }
  return conclusion;
}

}  // namespace

extern const Experiment experiment_stochastic_pruning = {
    "stochastic-pruning",
    "how many elements of a gradient does unbiased pruning below a threshold set to zero, and how "
    "much accuracy does training lose",
    "Ye et al. claim that pruning small gradients stochastically, which leaves no bias, reaches "
    "the zeros that a normal law predicts and costs training little; Chmiel et al. (ICLR 2021) "
    "claim that gradients follow a lognormal law and that layers should share zeros unequally.",
    {{"laws",
      "On numbers of its own law, a threshold's zeros, added variance and cosine equal their "
      "closed forms (derived here)."},
     {"other laws",
      "The threshold and closed forms of the normal law hold for other laws too (a contrast)."},
     {"elements",
      "Given its elements, a gradient's zeros and added variance follow from the draws "
      "alone (derived here)."},
     {"gradients",
      "A fitted law predicts a gradient's zeros and cosine within 0.02 (derived here)."},
     {"accuracy",
      "A network trained with gradients pruned without bias loses less than 0.5 points against "
      "dense (published; the margin is ours).",
      "seeds"},
     {"bias",
      "Unbiased pruning is more accurate than hard pruning at the same threshold (a contrast).",
      "seeds"},
     {"sharing",
      "Plans that distribute zeros unequally over the layers are more accurate than equal shares "
      "(published).",
      "seeds"},
     {"operations",
      "At the largest p backpropagation needs 5.92 times fewer multiply-adds (a contrast: "
      "published is a time on an accelerator).",
      "seeds"},
     {"plans",
      "Plans reach their share of zeros within 0.05, with laws fitted once (derived here).",
      "seeds"}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks", takes_networks()},
     data_setting("of images"),
     {"shares", "0.9", "0.5,0.7,0.9,0.95,0.99", "0.5,0.7,0.8,0.9,0.95,0.99,0.995",
      "p: share of the non-zero elements below the threshold", reals(1e-6, 0.999999)},
     {"share", "0.9", "p of the gradients looked at layer by layer", real(0.01, 0.999)},
     {"plan_share", "0.7", "p whose zeros the plans distribute over the layers", real(0.01, 0.999)},
     {"plan_law", "lognormal", "law that plans are made under"},
     {"history", "4", "thresholds whose mean is the next one", whole(1, 1000)},
     {"observations", "3", "8", "16", "steps whose gradients are analysed", whole(1, 1000)},
     {"samples", "200000", "2000000", "4000000", "numbers of each known law",
      whole(64 * 64, 1'000'000'000)},
     {"optimizer", "sgd", "optimizer", takes_optimizer()},
     rate_settings(),
     training_settings({"1", "3", "6"}, "128", {"2048", "8192", "0"}, {"500", "4000", "0"}),
     seeds_setting({"1", "3", "5"})},
    run_stochastic_pruning};

}  // namespace numemu::experiments
