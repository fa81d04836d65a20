// A training whose checkpoints give the influence of training samples on themselves and on test
// samples, in float32 and with operands in few bits.
#include "experiments/tracin/traced.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/samples/gradients.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/stats/spearman.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::tracin {
namespace {

const Format& element_format(const std::string& name) {
  try {
    return find_format(name);
  } catch (const Error& error) {
    throw usage_error(fmt::format("--set: formats: expected element formats: {}", error.what()));
  }
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

using net::samples::Influences;

constexpr double kPerCent = 100;

void conclude(const Influences& influences, const std::vector<std::uint8_t>& marked,
              Traced& traced) {
  const auto samples = static_cast<double>(marked.size());
  const auto& exact = influences.scores()[0].targets;
  for (std::size_t m = 0; m < influences.scores().size(); ++m) {
    const net::samples::Scores& scores = influences.scores()[m];
    const net::samples::ScoreLaws& laws = influences.laws()[m];
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
  Batch training = net::samples::first_of_training(flipped, samples);
  const Batch before = net::samples::first_of_training(clean, samples);
  std::vector<std::uint8_t> marked;
  for (std::size_t i = 0; i < before.labels.size(); ++i)
    marked.push_back(training.labels[i] != before.labels[i] ? 1 : 0);
  Influences influences(plan.formats, stochastic(), std::move(training),
                        net::samples::first_of_test(flipped, plan.targets), plan.ranked,
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

}  // namespace numemu::experiments::tracin
