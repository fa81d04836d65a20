// Precision that rises during training: what it saves and what it costs (FracTrain, Fu et al.,
// NeurIPS 2020, arXiv 2012.13113).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/fractrain/gates.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::fractrain {

namespace {

constexpr double kProgressiveMargin = 0.5;  // points of top-1 that progressive precision may lose
constexpr double kAccounting =
    0.03;  // of the cost: what products that the network lacks may change
constexpr int kFloat32 = 32;

std::vector<Precision> precisions(const Settings& settings, const std::string& key) {
  std::vector<Precision> all;
  for (const std::string& text : settings.list(key)) all.push_back(Precision::parse(text));
  return all;
}

/// The last epoch before stage i + 1 of `count`, plus one.
std::int64_t end_of(std::size_t i, std::size_t count, std::int64_t epochs) {
  return static_cast<std::int64_t>(i + 1) * epochs / static_cast<std::int64_t>(count);
}

/// A training, and what the products of its epochs cost at the precision in force.
struct ProgressiveRun {
  TrainOutcome outcome;
  double cost = 0;
  double inner = 1;  ///< share of the forward multiply-adds in layers that follow the stages
  std::vector<std::size_t> stages;  ///< by epoch
  std::vector<double> losses;       ///< by epoch

  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("cost", self.cost);
    visit("inner", self.inner);
    visit("stages", self.stages);
    visit("losses", self.losses);
  }
};

bool is_float32(const Method& method) { return method.precisions.front().weight == kFloat32; }

ProgressiveRun train_progressive(TrainTrial trial, const net::Dataset& data, const Method& method,
                                 const Setup& setup) {
  ProgressiveRun measured;
  MultiplyAdds inner, ends;  // of the current epoch
  trial.before = [&](const net::Product& p, std::int64_t) {
    MultiplyAdds& macs = std::ranges::find(setup.ends, p.layer) == setup.ends.end() ? inner : ends;
    double& sum = p.kind == net::GemmKind::fprop   ? macs.fprop
                  : p.kind == net::GemmKind::dgrad ? macs.dgrad
                                                   : macs.wgrad;
    sum += net::multiply_adds(p);
  };
  trial.on_epoch = [&](const net::EpochMetrics& epoch, std::size_t stage) {
    const Precision& bits = method.precisions.at(stage);
    measured.inner = inner.fprop / (inner.fprop + ends.fprop);
    measured.cost += cost(bits, std::exchange(inner, {})) +
                     cost(is_float32(method) ? bits : setup.rest, std::exchange(ends, {}));
    measured.stages.push_back(stage);
    measured.losses.push_back(epoch.train_loss);
  };
  measured.outcome = run_train_trial(trial, data);
  return measured;
}

/// What the seeds of every method say beside the first one.
struct Compared {
  const Setup& setup;
  const std::vector<Method>& methods;
  const Study<ProgressiveRun>& study;
  SeedFigures top1, costs, published;  ///< per cent; over those of the first method, as counted and
                                       ///< by the epochs of the stages

  Compared(const Setup& net, const std::vector<Method>& all, const Study<ProgressiveRun>& measured)
      : setup(net),
        methods(all),
        study(measured),
        top1(measured.figures([](const ProgressiveRun& m) { return m.outcome.top1(); })) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      costs.emplace_back();
      published.emplace_back();
      for (std::size_t s = 0; s < study.seeds(); ++s) {
        const ProgressiveRun &run = study.runs[m][s], &first = study.runs[0][s];
        std::vector<Precision> epochs;
        for (const std::size_t stage : run.stages)
          epochs.push_back(methods[m].precisions.at(stage));
        costs[m].push_back(run.cost / first.cost);
        const double share = published_share(epochs, methods[0].precisions[0]);
        published[m].push_back(
            (is_float32(methods[m]) ? share : run.inner * share + 1 - run.inner) *
            static_cast<double>(epochs.size()) / static_cast<double>(first.stages.size()));
      }
    }
  }

  const std::string& name(std::size_t m) const { return methods[m].name; }
  bool is(std::size_t m, Method::Stages kind) const { return methods[m].kind == kind; }
  bool float32(std::size_t m) const { return is_float32(methods[m]); }
  double cost(std::size_t m) const { return stats::paired_interval(costs[m]).mean; }
  double published_cost(std::size_t m) const { return stats::paired_interval(published[m]).mean; }
  /// Epochs with which the stages began: "5, 10" of each seed, of a schedule of the first.
  std::string turns(std::size_t m) const {
    std::string all;
    for (const ProgressiveRun& run : study.runs[m]) {
      if (!methods[m].progressive() || (!all.empty() && is(m, Method::Stages::schedule))) break;
      std::string turns;
      for (std::size_t e = 0; e < run.stages.size(); ++e) {
        if (run.stages[e] != (e == 0 ? 0 : run.stages[e - 1]))
          turns += fmt::format("{}{}", turns.empty() ? "" : ", ", e);
      }
      all += (all.empty() ? "" : "; ") + (turns.empty() ? std::string("none") : turns);
    }
    return all.empty() ? "-" : all;
  }
};

void judge_progressive(const Compared& c, const Precision& first_stage, Conclusion& conclusion) {
  for (std::size_t m = 1; m < c.methods.size(); ++m) {
    if (c.float32(m)) continue;
    conclusion.add(exact_finding(fmt::format("{}, {}: cost over that of {}", c.setup.net, c.name(m),
                                             c.name(0)),
                                 c.published_cost(m), c.cost(m),
                                 std::fabs(c.cost(m) - c.published_cost(m)) <= kAccounting,
                                 near(c.published_cost(m), kAccounting)),
                   "cost");
  }
  PairedClaims claims;
  const std::size_t paid = c.methods.size() - 1;
  for (std::size_t m = 0; m < c.methods.size(); ++m) {
    if (c.methods[m].progressive()) {
      claims.add(fmt::format("{}: points gained by {} on {}, at least -{}", c.setup.net, c.name(m),
                             c.name(0), kProgressiveMargin),
                 gain(c.top1, m), -kProgressiveMargin,
                 c.setup.published ? "progressive" : "progressive, all layers");
    } else if (c.methods[m].precisions.front() == first_stage) {
      claims.add(fmt::format("{}: points lost by {} to {}, at least {}", c.setup.net, c.name(m),
                             c.name(0), kProgressiveMargin),
                 negated(gain(c.top1, m)), kProgressiveMargin,
                 c.is(m, Method::Stages::tested) ? "tested" : "static");
    }
    if (c.is(m, Method::Stages::schedule)) {
      claims.add(fmt::format("{}: points gained by {} on {}, which costs as much", c.setup.net,
                             c.name(m), c.name(paid)),
                 gain(c.top1, m, paid), 0, "shorter");
    }
  }
  conclusion.add(claims.judged());
}

/// "First and last layer in 8/8, weights by channel"
std::string setup_words(const Setup& setup) {
  return setup.published ? fmt::format("First and last layer in {}, ranges of weights by channel",
                                       setup.rest.text())
                         : "All layers alike, ranges by tensor";
}

Chart accuracy_chart(const std::string& net, const std::string& data, const Compared& c) {
  Chart chart{
      .kind = Chart::Kind::points,
      .title = fmt::format("Accuracy of {} on {} against the cost of its training", net, data),
      .caption = fmt::format(
          "Difference of top-1 to {} over {}, with its 95 % interval by Student's t "
          "law paired by seed, against the bit operations of all products over those of {}. "
          "{}; gradients with stochastic rounding, unit f32.sequential.",
          c.name(0), counted(c.study.seeds(), "seed"), c.name(0), setup_words(c.setup)),
      .x = "cost, % of " + c.name(0),
      .y = "top-1 difference, points"};
  for (const bool progressive : {false, true}) {
    ChartSeries series{progressive ? "progressive" : "static", {}, false};
    for (std::size_t m = 0; m < c.methods.size(); ++m) {
      if (c.methods[m].progressive() != progressive || c.float32(m)) continue;
      series.points.push_back(gain_point(100 * c.cost(m), c.name(m), gain(c.top1, m)));
      if (m == 0) series.points.back().low = series.points.back().high = NAN;
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart loss_chart(const std::string& net, const Compared& c) {
  Chart chart{
      .title = fmt::format("Training loss of {} by epoch", net),
      .caption = "Means over the seeds. Losses of progressive precision fall at its stages.",
      .x = "epoch",
      .y = "training loss",
      .log_y = true};
  for (std::size_t m = 0; m < c.methods.size(); ++m) {
    ChartSeries series{c.name(m), {}, false};
    for (std::size_t e = 0; e < c.study.runs[m][0].losses.size(); ++e) {
      double mean = 0;
      for (const ProgressiveRun& run : c.study.runs[m])
        mean += run.losses[e] / static_cast<double>(c.study.seeds());
      series.points.push_back({.x = static_cast<double>(e), .y = mean});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

Precision Precision::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto bits = [&](const std::string& part) { return whole_argument(part, 2, 8); };
  const auto forward = bits(text.substr(0, slash));
  const auto backward = slash == std::string::npos ? std::nullopt : bits(text.substr(slash + 1));
  if (!forward || !backward) {
    throw Error(fmt::format(
        "precision '{}': expected FORWARD/BACKWARD with bits from 2 to 8, as in 3/6", text));
  }
  return {static_cast<int>(*forward), static_cast<int>(*forward), static_cast<int>(*backward)};
}

std::string Precision::text() const { return fmt::format("{}/{}", activation, gradient); }

double cost(const Precision& bits, const MultiplyAdds& macs) {
  return (bits.weight * bits.activation * macs.fprop + bits.weight * bits.gradient * macs.dgrad +
          bits.activation * bits.gradient * macs.wgrad) /
         (32.0 * 32.0);
}

double published_cost(const Precision& bits) { return cost(bits, {1, 1, 1}) / 3; }

double published_share(const std::vector<Precision>& epochs, const Precision& whole) {
  double sum = 0;
  for (const Precision& bits : epochs) sum += published_cost(bits);
  return sum / static_cast<double>(epochs.size()) / published_cost(whole);
}

Setup setup_of(const std::string& net, bool published, const net::Dataset& data,
               const std::vector<Method>& methods) {
  Setup setup{net, published, {}, methods.front().precisions.front()};
  if (!published) return setup;
  const std::vector<std::string> layers = net::gemm_layer_names(net::build_net(net, data));
  setup.ends = {layers.front(), layers.back()};
  return setup;
}

Json roles_of(const Precision& bits, bool channels) {
  if (bits.weight == kFloat32) return Json::object();
  const auto role = [](int b, const char* span) {
    return Json{{"format", fmt::format("group(uint{},{},float32,min)", b, span)}};
  };
  Json gradient = role(bits.gradient, "tensor");
  gradient["rounding"] = "sr(16)";
  return {{"weight", role(bits.weight, channels ? "channel" : "tensor")},
          {"activation", role(bits.activation, "tensor")},
          {"gradient", std::move(gradient)}};
}

Json recipe_of(const Method& method, const Indicator& indicator, const Setup& setup) {
  Json recipe = {{"roles", roles_of(method.precisions.front(), setup.published)}};
  if (!is_float32(method)) {
    for (const std::string& end : setup.ends)
      recipe["layers"].push_back({{"match", end}, {"roles", roles_of(setup.rest, true)}});
  }
  double eps = indicator.eps;
  for (std::size_t i = 1; i < method.precisions.size(); ++i) {
    const std::int64_t epoch = method.kind == Method::Stages::tested
                                   ? method.epochs
                                   : end_of(i - 1, method.precisions.size(), method.epochs);
    const Json from = method.kind == Method::Stages::indicator ? Json{{"turning_point", eps}}
                                                               : Json{{"epoch", epoch}};
    recipe["stages"].push_back(
        {{"from", from}, {"patch", {{"roles", roles_of(method.precisions[i], setup.published)}}}});
    if (i <= 2) eps *= indicator.alpha;
  }
  return recipe;
}

std::vector<Method> methods_of(const Settings& settings) {
  const std::vector<Precision> stages = precisions(settings, "stages");
  const std::int64_t epochs = settings.integer("epochs");
  if (static_cast<std::int64_t>(stages.size()) > epochs)
    throw usage_error(
        fmt::format("--set: epochs: expected at least one for each of {} stages, not {}",
                    stages.size(), epochs));
  const Precision whole = stages.back();
  using Stages = Method::Stages;
  std::vector<Method> methods = {
      {Stages::one, "static " + whole.text(), {whole}, epochs},
      {Stages::one, "float32", {{kFloat32, kFloat32, kFloat32}}, epochs}};
  for (const Precision& bits : precisions(settings, "static")) {
    if (bits != whole) methods.push_back({Stages::one, "static " + bits.text(), {bits}, epochs});
  }
  methods.push_back({Stages::tested,
                     fmt::format("static {}, tested at {}", stages.front().text(), whole.text()),
                     {stages.front(), whole},
                     epochs});
  methods.push_back({Stages::schedule, "progressive, schedule", stages, epochs});
  methods.push_back({Stages::indicator, "progressive, indicator", stages, epochs});
  const std::int64_t paid = std::max<std::int64_t>(
      1, std::llround(published_share(stages, whole) * static_cast<double>(epochs)));
  methods.push_back(
      {Stages::one, fmt::format("static {}, {} epochs", whole.text(), paid), {whole}, paid});
  return methods;
}

namespace {

void add_setup(const ExperimentRun& run, const net::Dataset& data, const std::string& net,
               bool published, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<Method> methods = methods_of(settings);
  const Setup setup = setup_of(net, published, data, methods);
  const Indicator indicator{settings.number("eps"), settings.number("alpha")};
  TrainingPlan plan{.trial = training_of(settings, net),
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .at_once = true,
                    .prefix = net + ", "};
  for (const Method& method : methods)
    plan.methods.push_back(
        {.name = method.name,
         .recipe = recipe_of(method, indicator, setup),
         .change = [epochs = method.epochs](TrainTrial& one) { one.options.epochs = epochs; },
         .counted = {{"counted", "bit operations"}}});
  const auto study = run_training_study<ProgressiveRun>(
      run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return train_progressive(trial, data, methods[m], setup);
      });
  say_diverged(study, plan.seeds, plan.prefix, conclusion);
  const Compared compared(setup, methods, study);
  judge_progressive(compared, methods[methods.size() - 3].precisions.front(), conclusion);
  for (std::size_t m = 0; m < methods.size(); ++m) {
    if (!methods[m].progressive()) continue;
    const stats::PairedInterval difference = gain(compared.top1, m);
    conclusion.sentences.push_back(fmt::format(
        "{}, {}: {:+.2f} points {} against {} at {:.0f} % of its cost.", net, methods[m].name,
        difference.mean, interval_text(difference), methods[0].name, 100 * compared.cost(m)));
  }
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {} epochs, {}, paired by seed. {}", plan.trial.net, data.name(),
                  methods[0].epochs, counted(study.seeds(), "seed"), setup_words(setup)),
      methods.size(),
      {name_column("method", study.methods),
       {"cost as published, %", [&](std::size_t m) { return percent(compared.published_cost(m)); }},
       {"cost counted, %", [&](std::size_t m) { return percent(compared.cost(m)); }},
       mean_column("top-1, %", compared.top1),
       difference_column("difference, points", compared.top1),
       interval_column(compared.top1),
       {"stages begin with epoch", [&](std::size_t m) { return compared.turns(m); }}}));
  conclusion.charts.push_back(accuracy_chart(plan.trial.net, data.name(), compared));
  conclusion.charts.push_back(loss_chart(plan.trial.net, compared));
}

}  // namespace

void add_progressive(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  add_setup(run, data, run.settings.text("net"), true, conclusion);
  if (const std::string& net = run.settings.text("contrast_net"); net != "-")
    add_setup(run, data, net, false, conclusion);
}

}  // namespace numemu::experiments::fractrain

namespace numemu::experiments {

extern const Experiment experiment_fractrain = {
    "fractrain",
    "does training keep its accuracy when it begins with few bits and gets more at plateaus of its "
    "loss, and what does that save",
    "Fu et al. (NeurIPS 2020, arXiv 2012.13113) claim that progressive precision in the forward "
    "and the backward pass saves more than half of the bit operations of training without loss of "
    "accuracy.",
    {{"cost",
      "The products' bit operations, as counted, are the published cost within 3 points: three "
      "equal products for every layer, though the first has no dgrad (a contrast)."},
     {"progressive",
      "Training that begins with few bits and ends with the last stage's loses at most 0.5 points "
      "of top-1 to the last stage's precision from the start, first and last layers at that all "
      "along (published; the margin is ours).",
      "seeds"},
     {"progressive, all layers",
      "So it does where the first and the last layer follow too and weights share a range (a "
      "contrast).",
      "seeds"},
     {"static", "The first stage's precision throughout loses more than 0.5 points (a contrast).",
      "seeds"},
     {"tested",
      "Trained at the first stage's precision throughout and tested at the last stage's, a network "
      "loses more than 0.5 points (a contrast).",
      "seeds"},
     {"shorter",
      "Progressive precision gains on the last stage's precision for fewer epochs at the same "
      "cost (a contrast).",
      "seeds"},
     {"target",
      "Gates of two dense blocks, whatever the network of the run, bring the mean cost of a block "
      "to within 0.25 percentage points of 32 x 32 bits of its target (published; the margin is "
      "ours).",
      "seeds"},
     {"gates",
      "Two dense blocks whose gates choose the precision of each sample lose at most 0.5 points to "
      "the largest choice for all (published; the margin is ours).",
      "seeds"}},
    {{"net", "lenet-bn",
      "network to train, the first and the last layer at the last stage's precision",
      takes_network()},
     {"contrast_net", "-", "mlp", "lenet", "network to train with all layers alike; -: none",
      takes_network_or_none()},
     data_setting(),
     {"stages", "3/6,8/8", "3/6,4/6,6/8,8/8", "3/6,4/6,6/8,8/8",
      "forward/backward bits of the stages"},
     {"static", "3/6", "6/8,4/6,3/6,2/4", "6/8,4/6,3/6,2/4",
      "forward/backward bits that stay, beside those of the last stage"},
     {"eps", "0.5", "0.15", "0.15",
      "of the indicator: relative change of the loss at the first turning point", real(0, 1)},
     {"alpha", "0.4", "its factor after the first and the second", real(0, 1)},
     {"targets", "2.5", "2,2.5,3", "2,2.5,3", "of gates: mean cost, % of 32 x 32 bits",
      reals(0, 100)},
     {"staged_targets", "2,3", "2,2.33,2.67,3", "2,2.33,2.67,3", "of gates, by stage",
      reals(0, 100)},
     {"beta", "0.001", "of gates: weight of the cost in the loss", real(0, 1e6)},
     {"optimizer", "sgd", "optimizer", takes_optimizer()},
     training_settings({"6", "20", "20"}, "128", {"512", "2048", "2048"}, {"500", "0", "0"}),
     seeds_setting({"1", "5", "10"})},
    conclude<fractrain::add_progressive, fractrain::add_dynamic>};

}  // namespace numemu::experiments
