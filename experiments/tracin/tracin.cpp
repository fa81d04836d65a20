// TracIn: the influence of training samples by gradients at checkpoints, mislabelled samples that
// it finds, and what few bits and stochastic rounding make of it (Pruthi et al., Estimating
// Training Data Influence by Tracing Gradient Descent, NeurIPS 2020, arXiv 2002.08484).
#include "experiments/tracin/tracin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/per_sample/gradients.hpp"
#include "emu/net/per_sample/laws.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/resampling.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::tracin {

// Influences of a trained network beside closed forms, under repeated draws of their operands.
namespace {

const Format& element_format(const std::string& name) {
  return *at("--set: formats: expected element formats", ErrorKind::usage,
             [&] { return &find_format(name); });
}

}  // namespace

Rounding stochastic() { return {.mode = RoundingMode::sr, .random_bits = 16}; }

std::vector<std::string> Plan::methods() const {
  std::vector<std::string> names = {"float32"};
  for (const Format* format : formats) {
    for (const char* how : {"nearest", "one draw", "two draws"})
      names.push_back(format->name + ", " + how);
  }
  return names;
}

Json Plan::point() const {
  std::vector<std::string> names;
  for (const Format* format : formats) names.push_back(format->name);
  return {{"formats", names}, {"rounding", to_string(stochastic())}, {"flipped", flipped}};
}

Plan plan_of(const Settings& settings) {
  constexpr int kMostBits = 16;  // of formats whose outcomes are listed
  Plan plan;
  for (const std::string& name : settings.list("formats")) {
    const Format& format = element_format(name);
    if (format.bits > kMostBits || !format.is_signed || !format.has_zero())
      throw usage_error(
          fmt::format("--set: formats: expected signed formats of at most {} bits with "
                      "a zero, not {}",
                      kMostBits, name));
    plan.formats.push_back(&format);
  }
  plan.flipped = settings.number("flipped");
  plan.checkpoints = settings.integer("checkpoints");
  plan.ranked = settings.integer("ranked");
  plan.targets = settings.integer("targets");
  plan.probes = settings.integer("probes");
  plan.draws = settings.integer("draws");
  return plan;
}

net::Dataset with_flips(const net::Dataset& data, const Plan& plan, std::uint64_t seed) {
  return net::view_of(data, {.label_noise = plan.flipped, .seed = seed});
}

namespace {

using net::per_sample::Influences;

constexpr double kPerCent = 100;

void conclude(const Influences& influences, const std::vector<std::uint8_t>& marked,
              Traced& traced) {
  const auto samples = static_cast<double>(marked.size());
  const auto& exact = influences.scores()[0].targets;
  for (std::size_t m = 0; m < influences.scores().size(); ++m) {
    const net::per_sample::Scores& scores = influences.scores()[m];
    const net::per_sample::ScoreLaws& laws = influences.laws()[m];
    for (const double top : kTop) {
      const auto count = static_cast<std::int64_t>(std::llround(top * samples));
      traced.found.push_back(kPerCent * stats::share_of_top(scores.self, marked, count));
      traced.expected.push_back(
          laws.self.empty() ? NAN : kPerCent * stats::expected_share(laws.self, marked, count));
    }
    double rank = 0, expected = 0;
    for (std::size_t t = 0; t < scores.targets.size(); ++t) {
      rank += stats::spearman(exact[t], scores.targets[t]);
      if (!laws.targets.empty()) expected += stats::expected_correlation(exact[t], laws.targets[t]);
    }
    const auto targets = static_cast<double>(exact.size());
    traced.ranks.push_back(scores.targets.empty() ? NAN : rank / targets);
    traced.expected_ranks.push_back(laws.targets.empty() ? NAN : expected / targets);
  }
}

}  // namespace

Traced trace(TrainTrial trial, const net::Dataset& clean, const net::Dataset& flipped,
             const Plan& plan) {
  const std::int64_t samples = trial.train_samples > 0 ? trial.train_samples : clean.train_count();
  Batch training = net::per_sample::first_of_training(flipped, samples);
  const Batch before = net::per_sample::first_of_training(clean, samples);
  std::vector<std::uint8_t> marked;
  for (std::size_t i = 0; i < before.labels.size(); ++i)
    marked.push_back(training.labels[i] != before.labels[i] ? 1 : 0);
  Influences influences(plan.formats, stochastic(), std::move(training),
                        net::per_sample::first_of_test(flipped, plan.targets), plan.ranked,
                        trial.seed);
  const std::int64_t in_epoch = (samples + trial.options.batch - 1) / trial.options.batch,
                     steps = in_epoch * trial.options.epochs;
  const net::Schedule schedule = net::find_schedule(trial.options.schedule);
  Traced traced;
  std::int64_t checkpoint = 0;
  std::optional<std::int64_t> infinite;  // the update behind which a gradient is not finite
  trial.on_step = [&](const net::Graph& graph, std::int64_t step) {
    // After equal parts of the updates; the last one ends the training.
    if (infinite || step + 1 != steps * (checkpoint + 1) / plan.checkpoints) return;
    ++checkpoint;
    const double rate =
        trial.options.learning_rate *
        net::rate_factor(schedule, {step, steps, step / in_epoch, trial.options.epochs},
                         trial.options.warmup);
    influences.add(graph, rate);
    if (!influences.finite()) infinite = step + 1;
  };
  traced.outcome = run_train_trial(trial, flipped);
  if (!traced.outcome.diverged) traced.outcome.diverged = infinite;
  if (!traced.outcome.diverged) {
    conclude(influences, marked, traced);
  } else {
    traced.found = traced.expected = std::vector<double>(plan.methods().size() * kTop.size(), NAN);
    traced.ranks = traced.expected_ranks = std::vector<double>(plan.methods().size(), NAN);
  }
  return traced;
}
namespace {

net::Tensor sample_of(const Batch& batch, std::int64_t i) {
  net::Shape shape = batch.x.shape;
  shape.front() = 1;
  net::Tensor x(shape);
  std::copy_n(batch.x.data.begin() + i * x.size(), x.size(), x.data.begin());
  return x;
}

double loss_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  const net::Tensor logits = net::forward(graph, sample_of(batch, i), float32);
  return net::cross_entropy(logits, {batch.labels[static_cast<std::size_t>(i)]}).loss[0];
}

using Whole = std::vector<net::Tensor>;  // of parameters

Whole gradient_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  return training_pass(graph, sample_of(batch, i), {batch.labels[static_cast<std::size_t>(i)]},
                       float32, 0, 0)
      .gradients;
}

double dot(const Whole& a, const Whole& b) {
  double all = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::size_t i = 0; i < a[p].data.size(); ++i)
      all += double{a[p].data[i]} * double{b[p].data[i]};
  }
  return all;
}

/// The network's weights less `rate` times a gradient, until the end of this.
class Moved {
 public:
  Moved(net::Graph& graph, const Whole& gradient, double rate) : parameters_(graph.parameters()) {
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      net::Elements& w = parameters_[p]->value.data;
      before_.push_back(w);
      for (std::size_t i = 0; i < gradient[p].data.size(); ++i)
        w[i] = static_cast<float>(double{w[i]} - rate * double{gradient[p].data[i]});
    }
    net::follow_tied(graph);
  }
  ~Moved() {
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      parameters_[p]->value.data = std::move(before_[p]);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

 private:
  std::vector<net::Parameter*> parameters_;
  std::vector<net::Elements> before_;
};

double median(std::vector<double> x) {
  const std::size_t half = x.size() / 2;
  std::sort(x.begin(), x.end());
  return x.size() % 2 == 1 ? x[half] : (x[half - 1] + x[half]) / 2;
}

}  // namespace

double change_of_loss(net::Graph& graph, const Batch& batch, std::int64_t by, std::int64_t on,
                      double rate) {
  const Whole gradient = gradient_of(graph, batch, by);
  const double root = std::sqrt(0.6);
  constexpr std::array<double, 3> kWeights = {5.0 / 18, 8.0 / 18, 5.0 / 18};
  const std::array<double, 3> nodes = {(1 - root) / 2, 0.5, (1 + root) / 2};
  double change = 0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Moved there(graph, gradient, nodes[k] * rate);
    change += kWeights[k] * rate * dot(gradient, gradient_of(graph, batch, on));
  }
  return change;
}

FirstOrder first_order(net::Graph& graph, const Batch& batch,
                       const std::vector<LayerOperands>& operands) {
  FirstOrder found;
  const std::int64_t pairs = batch.x.dim(0) / 2;
  const SampleGradients factored(operands, {});
  std::int64_t positions = 0;
  for (const LayerOperands& layer : operands) positions = std::max(positions, layer.g.positions());
  // An element of a whole gradient has so many roundings; both sides have such elements.
  found.allowed = 2 * static_cast<double>(positions) * 0x1p-24;
  std::vector<double> powers;
  double left = 0, changes = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t j = i + pairs;
    const Whole g = gradient_of(graph, batch, i), h = gradient_of(graph, batch, j);
    const double square = dot(g, g), influence = dot(g, h);
    if (!(square > 0) || !(dot(h, h) > 0)) continue;
    found.apart = std::max(found.apart, std::fabs(influence - factored.dot(i, factored, j)) /
                                            std::sqrt(square * dot(h, h)));
    const double whole = loss_of(graph, batch, i) / square;  // takes all of its loss
    const auto change = [&](double share) {
      return change_of_loss(graph, batch, i, j, share * whole);
    };
    const auto missed = [&](double share) {
      return std::fabs(change(share) - share * whole * influence);
    };
    left += missed(kLargeStep);
    changes += std::fabs(change(kLargeStep));
    const double power = portable::log2(missed(kSmallStep) / missed(kSmallStep / 2));
    if (std::isfinite(power)) powers.push_back(power);
  }
  found.left = left / changes;
  found.pairs = std::ssize(powers);
  if (powers.empty()) {
    found.order = found.low = found.high = NAN;
    return found;
  }
  constexpr std::int64_t kResamples = 999;
  found.order = median(powers);
  const stats::Interval interval = stats::bootstrap_interval(
      found.pairs, kResamples, 0, [&](const std::vector<std::int64_t>& drawn) {
        std::vector<double> some;
        for (const std::int64_t i : drawn) some.push_back(powers[static_cast<std::size_t>(i)]);
        return median(std::move(some));
      });
  found.low = interval.low;
  found.high = interval.high;
  return found;
}

namespace {

constexpr double kOrder = 2;  // of what first order leaves
constexpr double kOrderOff = 0.25;

/// Self-influence over that of float32, and squared errors of pairs over their variances, by
/// format.
struct Draws {
  std::vector<MeanError> once, twice, spread;
  std::vector<double> once_expected;

  static void fields(auto& self, const auto& visit) {
    visit("once", self.once);
    visit("twice", self.twice);
    visit("spread", self.spread);
    visit("once_expected", self.once_expected);
  }
};

struct Probed {
  FirstOrder first;
  Draws draws;

  static void fields(auto& self, const auto& visit) {
    visit("first", self.first);
    visit("draws", self.draws);
  }
};

Draws draw(const std::vector<LayerOperands>& operands, const Plan& plan, std::uint64_t seed) {
  Draws found;
  const SampleGradients exact(operands, {});
  const std::int64_t samples = exact.samples(), pairs = samples / 2;
  double squares = 0;
  for (std::int64_t i = 0; i < samples; ++i) squares += exact.dot(i, exact, i);
  for (const Format* format : plan.formats) {
    double bias = 0;
    for (std::int64_t i = 0; i < samples; ++i)
      bias += net::per_sample::one_draw_bias(operands, *format, stochastic(), i);
    std::vector<double> variances;  // of pairs
    if (net::per_sample::all_factored(operands)) {
      const net::per_sample::GradientLaws law(operands, *format, stochastic(), samples);
      for (std::int64_t i = 0; i < pairs; ++i)
        variances.push_back(law.two(i, law, i + pairs).variance);
    }
    std::vector<double> once, twice, spread;
    for (std::int64_t d = 0; d < plan.draws; ++d) {
      const auto number = static_cast<std::uint16_t>(2 * d);
      const SampleGradients a(operands, {format, stochastic(), seed, 0, number}),
          b(operands, {format, stochastic(), seed, 0, static_cast<std::uint16_t>(number + 1)});
      double one = 0, two = 0;
      for (std::int64_t i = 0; i < samples; ++i) {
        one += a.dot(i, a, i);
        two += a.dot(i, b, i);
      }
      once.push_back(one / squares);
      twice.push_back(two / squares);
      // Of all pairs together: where a pair's gradients are far below the scale, a draw is rarely
      // other than 0, and its squared error over its own variance has no mean of so few draws.
      double errors = 0;
      for (std::int64_t i = 0; i < std::ssize(variances); ++i) {
        const double off = a.dot(i, b, i + pairs) - exact.dot(i, exact, i + pairs);
        errors += off * off;
      }
      if (!variances.empty())
        spread.push_back(errors / std::accumulate(variances.begin(), variances.end(), 0.0));
    }
    const auto mean = [](const std::vector<double>& numbers) -> MeanError {
      if (numbers.empty()) return {NAN, NAN};
      const stats::Mean all = stats::mean_of(numbers);
      return {all.value, all.error};
    };
    found.once.push_back(mean(once));
    found.twice.push_back(mean(twice));
    found.spread.push_back(mean(spread));
    found.once_expected.push_back(1 + bias / squares);
  }
  return found;
}

}  // namespace

void add_probes(const ExperimentRun& run, const net::Dataset& clean, const Plan& plan,
                const TrainTrial& trial, Conclusion& conclusion) {
  const net::Dataset flipped = with_flips(clean, plan, trial.seed);
  Json point = plan.point();
  point["training"] = point_of(trial, flipped);
  point["watched"] = "influences of probes";
  point["steps"] = {kLargeStep, kSmallStep};
  point["order"] = "median power of pairs, changes of losses as integrals";
  point["probes"] = plan.probes;
  point["draws"] = plan.draws;
  const std::vector<Probed> all =
      run_cases<Probed>(run, std::vector<int>{0}, [&](int) -> TypedTrial<Probed> {
        return {
            point, trial.net + ", influences of probes", [&] {
              net::Graph graph = trained_in_float32(trial, flipped);
              const Batch batch = net::per_sample::first_of_training(flipped, plan.probes);
              const std::vector<LayerOperands> operands =
                  net::per_sample::operands_of(graph, batch);
              return Probed{first_order(graph, batch, operands), draw(operands, plan, trial.seed)};
            }};
      });
  const FirstOrder& first = all.front().first;
  const Draws& d = all.front().draws;
  const std::string of = trial.net + ": ";
  conclusion.add(
      exact_finding(of + "dot products of layers' gradients, factored and whole, over the lengths",
                    0, first.apart, first.apart <= first.allowed, at_most(first.allowed)),
      "factored");
  conclusion.add(
      interval_finding(
          fmt::format("{}power of the rate with which falls what influence misses of the "
                      "change of a loss, median of {} pairs",
                      of, first.pairs),
          kOrder, first.order, {first.low, first.high}, near(kOrder, kOrderOff)),
      "first order");
  conclusion.sentences.push_back(fmt::format(
      "{}a step on a sample that takes {:.0f} % of its loss, to first order, changes the "
      "loss of another by what its influence says within {:.1f} % (mean magnitudes).",
      of, 100 * kLargeStep, 100 * first.left));
  ResultTable table{fmt::format("{}operands of {} samples' gradients rounded at random, {} draws",
                                of, plan.probes, plan.draws),
                    {"format", "self-influence over float32, one draw", "predicted", "two draws",
                     "predicted", "squared errors over their variances"},
                    {}};
  for (std::size_t f = 0; f < plan.formats.size(); ++f) {
    const std::string what = of + plan.formats[f]->name + ": ";
    conclusion.add(closed_form(what + "self-influence by one draw, over that of float32",
                               d.once_expected[f], d.once[f].mean, d.once[f].error),
                   "one draw");
    conclusion.add(closed_form(what + "self-influence by two draws, over that of float32", 1,
                               d.twice[f].mean, d.twice[f].error),
                   "two draws");
    const bool spread = std::isfinite(d.spread[f].mean);
    if (spread)
      conclusion.add(closed_form(what + "squared errors of influences over their variances", 1,
                                 d.spread[f].mean, d.spread[f].error),
                     "variance");
    table.rows.push_back({plan.formats[f]->name, half_text(d.once[f].mean, 2 * d.once[f].error, 5),
                          fmt::format("{:.5f}", d.once_expected[f]),
                          half_text(d.twice[f].mean, 2 * d.twice[f].error, 5), "1",
                          spread ? half_text(d.spread[f].mean, 2 * d.spread[f].error, 3) : "-"});
  }
  conclusion.tables.push_back(std::move(table));
}

namespace {

constexpr double kMostLost = 5;     // points that formats are allowed to lose
constexpr double kShareOff = 3;     // points that the expected share may be off
constexpr double kRankOff = 0.02;   // that the expected rank correlation may be off
constexpr std::size_t kMiddle = 1;  // of kTop: where formats are compared

/// The training of a network, whose rate stays, so that checkpoints count alike.
TrainTrial trial_of(const ExperimentRun& run, const Plan& plan, const std::string& net) {
  TrainTrial trial = training_of(run.settings, net, {.optimizer = "sgd"});
  trial.options.schedule = "constant";
  trial.seed = run.seed;
  const std::int64_t samples = trial.train_samples;
  if (samples < std::max(plan.ranked, plan.probes))
    throw usage_error(
        fmt::format("--set: train_samples: expected at least ranked = {} and probes = {}, not {}",
                    plan.ranked, plan.probes, samples));
  const std::int64_t steps =
      trial.options.epochs * ((samples + trial.options.batch - 1) / trial.options.batch);
  if (steps < plan.checkpoints)
    throw usage_error(fmt::format("--set: checkpoints: expected at most the {} updates, not {}",
                                  steps, plan.checkpoints));
  return trial;
}

/// What a random order and one with all flipped labels first find, per cent.
double by_chance(double top) { return 100 * top; }
double at_best(double top, double flipped) { return 100 * std::min(1.0, top / flipped); }

void add_training(const ExperimentRun& run, const net::Dataset& data, const Plan& plan,
                  const TrainTrial& trial, Conclusion& conclusion) {
  const StudyPlan seeds{{"training"}, seeds_of(run), true, trial.net + ", "};
  const auto study =
      run_study<Traced>(run, seeds, [&](std::size_t, std::uint64_t seed) -> StudyRun<Traced> {
        TrainTrial one = trial;
        one.seed = seed;
        const net::Dataset flipped = with_flips(data, plan, seed);
        Json point = plan.point();
        point["training"] = point_of(one, flipped);
        point["checkpoints"] = plan.checkpoints;
        point["ranked"] = plan.ranked;
        point["targets"] = plan.targets;
        return {point, [=, &data, &plan] { return trace(one, data, flipped, plan); }};
      });
  say_diverged(study, seeds.seeds, seeds.prefix, conclusion);
  const std::vector<std::string> methods = plan.methods();
  // Of every seed: a member's element `at` of each method.
  const auto figures = [&](std::vector<double> Traced::*member, std::size_t each, std::size_t at) {
    SeedFigures all;
    for (std::size_t m = 0; m < methods.size(); ++m)
      all.push_back(study.figures(0, [&](const Traced& t) { return (t.*member)[m * each + at]; }));
    return all;
  };
  const SeedFigures ranks = figures(&Traced::ranks, 1, 0),
                    expected_ranks = figures(&Traced::expected_ranks, 1, 0);
  std::vector<StudyColumn> columns = {name_column("operands", methods)};
  Chart chart{.title = trial.net + ": flipped labels found by self-influence",
              .caption =
                  "Training samples in the order of their self-influence over the checkpoints; "
                  "means over the seeds. Operands of gradients are rounded to nearest.",
              .x = "samples looked at, %",
              .y = "flipped labels among them, %"};
  std::vector<PairedGain> above_chance;
  PairedClaims kept;
  const std::string of = trial.net + ": ";
  for (std::size_t k = 0; k < kTop.size(); ++k) {
    const double x = 100 * kTop[k];
    const SeedFigures found = figures(&Traced::found, kTop.size(), k),
                      expected = figures(&Traced::expected, kTop.size(), k);
    const std::vector<double> chance(found[0].size(), by_chance(kTop[k]));
    above_chance.push_back({fmt::format("{}points of the flipped labels found in the top {:.0f} % "
                                        "beyond the {:.0f} of chance",
                                        of, x, chance[0]),
                            stats::paired_interval(found[0], chance), "mislabelled"});
    columns.push_back(mean_column(fmt::format("found in the top {:.0f} %, %", x), found, 1));
    columns.push_back(mean_column("predicted", expected, 1));
    chart.of("float32 measured")
        .points.push_back({.x = x, .y = stats::paired_interval(found[0]).mean});
    for (std::size_t m = 1; m < methods.size(); ++m) {
      const stats::PairedInterval off = stats::paired_interval(found[m], expected[m]);
      if (std::isfinite(off.mean))
        conclusion.add(
            interval_finding(fmt::format("{}{}: found in the top {:.0f} % beyond what is "
                                         "expected, points",
                                         of, methods[m], x),
                             0, off, near(0, kShareOff)),
            "expected shares");
      if (m % 3 != 1) continue;  // nearest
      chart.of(methods[m] + " measured")
          .points.push_back({.x = x, .y = stats::paired_interval(found[m]).mean});
      if (k == kMiddle)
        kept.add(fmt::format("{}{}: points of the flipped labels found in the top {:.0f} % against "
                             "float32, at least -{:.0f}",
                             of, methods[m], x, kMostLost),
                 gain(found, m), -kMostLost, "few bits");
    }
    chart.of("perfect order", true).points.push_back({.x = x, .y = at_best(kTop[k], plan.flipped)});
    chart.of("chance", true).points.push_back({.x = x, .y = by_chance(kTop[k])});
  }
  for (std::size_t m = 1; m < methods.size(); ++m) {
    const stats::PairedInterval off = stats::paired_interval(ranks[m], expected_ranks[m]);
    if (std::isfinite(off.mean))
      conclusion.add(interval_finding(fmt::format("{}{}: rank correlation with float32 beyond what "
                                                  "is expected",
                                                  of, methods[m]),
                                      0, off, near(0, kRankOff)),
                     "expected ranks");
  }
  conclusion.add(judge_gains(above_chance));
  conclusion.add(kept.judged());
  columns.push_back(mean_column("rank correlation", ranks, 4));
  columns.push_back(mean_column("predicted", expected_ranks, 4));
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {:g} % of the labels flipped, {}, {}; chance finds "
                  "10, 20, 30 %, a perfect order {:.0f} %",
                  trial.net, data.name(), 100 * plan.flipped,
                  counted(plan.checkpoints, "checkpoint"), counted(std::ssize(seeds.seeds), "seed"),
                  at_best(kTop[0], plan.flipped)),
      methods.size(), columns));
  conclusion.charts.push_back(std::move(chart));
}

Conclusion run_tracin(const ExperimentRun& run) {
  const Plan plan = plan_of(run.settings);
  std::vector<TrainTrial> trials;
  for (const std::string& net : run.settings.list("nets"))
    trials.push_back(trial_of(run, plan, net));
  const net::Dataset data = load_data(run);
  if (plan.targets > data.test_count())
    throw usage_error(
        fmt::format("--set: targets: expected at most the {} test samples of {}, not {}",
                    data.test_count(), data.name(), plan.targets));
  for (const TrainTrial& trial : trials) {
    restricted(data, trial.train_samples, false);  // refuses more than there are
    net::per_sample::require_separable(initial_network(trial, data), "--set: nets");
  }
  Conclusion conclusion;
  for (const TrainTrial& trial : trials) {
    add_probes(run, data, plan, trial, conclusion);
    add_training(run, data, plan, trial, conclusion);
  }
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::tracin

namespace numemu::experiments {

extern const Experiment experiment_tracin = {
    "tracin",
    "which training samples a network learnt from, which labels are wrong, and what few bits make "
    "of the answer",
    "Pruthi et al. (NeurIPS 2020, arXiv 2002.08484) estimate the influence of a training sample by "
    "dot products of gradients at checkpoints, to first order the change of a loss by a step on "
    "the sample, and claim that samples with wrong labels stand out by their influence on "
    "themselves.",
    {{"first order",
      "What the influence misses of the change of a loss by one step falls with the square of the "
      "rate (published)."},
     {"factored",
      "A layer's part of the dot product is one of gradients along outputs times one of inputs "
      "(derived here)."},
     {"mislabelled", "Self-influence finds flipped labels better than chance (published).",
      "seeds"},
     {"few bits",
      "Operands rounded to nearest find at most 5 points fewer of them in the top 20 % than "
      "float32 (a contrast).",
      "seeds"},
     {"one draw",
      "Stochastic rounding by one draw adds the closed form to self-influence (derived here)."},
     {"two draws", "Two independent draws add nothing (derived here)."},
     {"variance", "Influences of independent draws have the closed variance (derived here)."},
     {"expected shares",
      "Flipped labels found by drawn operands are those that closed moments under a normal law "
      "expect within 3 points (derived here).",
      "seeds"},
     {"expected ranks",
      "Ranks of drawn influences agree with those of float32 as closed moments expect within 0.02 "
      "(derived here).",
      "seeds"}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks without normalisation", takes_networks()},
     data_setting("of images"),
     {"formats", "float8_e5m2,int4", "float8_e5m2,int8,float4_e2m1fn,int4",
      "float8_e5m2,int8,float4_e2m1fn,int4", "of the operands of gradients", list_of()},
     {"flipped", "0.1", "share of the training labels that are replaced", real(0.001, 0.5)},
     {"checkpoints", "5", "after equal parts of the updates", whole(1, 1000)},
     {"ranked", "100", "400", "400", "training samples ranked by influence on each target",
      whole(4, 100'000)},
     {"targets", "10", "20", "20", "test samples that are influenced", whole(1, 10'000)},
     {"probes", "32", "64", "64", "training samples whose operands are drawn repeatedly",
      whole(4, 10'000)},
     {"draws", "50", "200", "200", "repeated draws", whole(2, 30'000)},
     {"epochs", "5", "10", "10", "epochs of training", whole(1, 10'000)},
     {"batch", "32", "samples of an update", whole(1, 100'000)},
     {"train_samples", "512", "1024", "1024", "training images", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "2000", "2000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "3", "6", "seeds of weights, flips and draws", whole(1, 1000)}},
    tracin::run_tracin};

}  // namespace numemu::experiments
