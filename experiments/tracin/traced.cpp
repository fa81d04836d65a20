// A training whose checkpoints give the influence of training samples on themselves and on test
// samples, in float32 and with operands in few bits.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/train/schedule.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/tracin/questions.hpp"
#include "experiments/tracin/samples.hpp"

namespace numemu::experiments::tracin {
namespace {

constexpr std::uint32_t kTensors = 1000;  // numbers of random tensors of a checkpoint's operands
constexpr double kPerCent = 100;

/// Influences of one way to store operands, summed over checkpoints.
struct Scores {
  std::vector<double> self;                  ///< [sample]
  std::vector<std::vector<double>> targets;  ///< [target][ranked sample]; empty: not ranked
};
/// Their laws.
struct ScoreLaws {
  std::vector<Moments> self;
  std::vector<std::vector<Moments>> targets;
};

class Tracing {
 public:
  Tracing(const Plan& plan, Batch training, Batch test, std::vector<std::uint8_t> marked,
          std::uint64_t seed)
      : plan_(plan),
        training_(std::move(training)),
        test_(std::move(test)),
        marked_(std::move(marked)),
        seed_(seed),
        scores_(plan.methods().size()),
        laws_(plan.methods().size()) {}

  void add(const net::Graph& graph, double rate) {
    const std::vector<LayerOperands> operands = operands_of(graph, training_),
                                     targets = operands_of(graph, test_);
    const std::uint32_t first = checkpoint_++ * 2 * kTensors;
    const auto stored = [&](const Format* format, bool drawn, std::uint16_t draw) -> Stored {
      return {format, drawn ? stochastic() : Rounding{}, seed_, first, draw};
    };
    const auto of_targets = [&](Stored how) {
      how.first_tensor += kTensors;
      return SampleGradients(targets, how);
    };
    const SampleGradients exact(operands, {});
    add(rate, exact, exact, of_targets({}), scores_[0]);
    std::size_t method = 1;
    for (const Format* format : plan_.formats) {
      const SampleGradients nearest(operands, stored(format, false, 0));
      add(rate, nearest, nearest, of_targets(stored(format, false, 0)), scores_[method]);
      const SampleGradients once(operands, stored(format, true, 0)),
          again(operands, stored(format, true, 1));
      add(rate, once, once, of_targets(stored(format, true, 0)), scores_[method + 1]);
      add(rate, once, again, {}, scores_[method + 2]);
      add_laws(rate, operands, targets, *format, method);
      method += 3;
    }
  }

  bool finite() const {
    return std::all_of(scores_[0].self.begin(), scores_[0].self.end(),
                       [](double s) { return std::isfinite(s); });
  }

  void conclude(Traced& traced) const {
    const auto samples = static_cast<double>(marked_.size());
    for (std::size_t m = 0; m < scores_.size(); ++m) {
      for (const double top : kTop) {
        const auto count = static_cast<std::int64_t>(std::llround(top * samples));
        traced.found.push_back(kPerCent * share_of_top(scores_[m].self, marked_, count));
        traced.expected.push_back(
            laws_[m].self.empty() ? NAN : kPerCent * expected_share(laws_[m].self, marked_, count));
      }
      double rank = 0, expected = 0;
      for (std::size_t t = 0; t < scores_[m].targets.size(); ++t) {
        rank += stats::spearman(scores_[0].targets[t], scores_[m].targets[t]);
        if (!laws_[m].targets.empty())
          expected += expected_correlation(scores_[0].targets[t], laws_[m].targets[t]);
      }
      const auto targets = static_cast<double>(scores_[0].targets.size());
      traced.ranks.push_back(scores_[m].targets.empty() ? NAN : rank / targets);
      traced.expected_ranks.push_back(laws_[m].targets.empty() ? NAN : expected / targets);
    }
  }

 private:
  std::size_t ranked() const { return static_cast<std::size_t>(plan_.ranked); }

  /// Self-influence by `a` and `b`, influence on the targets by `a`; no targets: none.
  void add(double rate, const SampleGradients& a, const SampleGradients& b,
           const std::optional<SampleGradients>& targets, Scores& scores) const {
    scores.self.resize(marked_.size());
    for (std::size_t i = 0; i < marked_.size(); ++i) {
      const auto sample = static_cast<std::int64_t>(i);
      scores.self[i] += rate * a.dot(sample, b, sample);
    }
    if (!targets) return;
    scores.targets.resize(static_cast<std::size_t>(targets->samples()),
                          std::vector<double>(ranked()));
    for (std::size_t t = 0; t < scores.targets.size(); ++t) {
      for (std::size_t i = 0; i < ranked(); ++i)
        scores.targets[t][i] +=
            rate * a.dot(static_cast<std::int64_t>(i), *targets, static_cast<std::int64_t>(t));
    }
  }

  /// Of one draw and of two.
  void add_laws(double rate, const std::vector<LayerOperands>& operands,
                const std::vector<LayerOperands>& targets, const Format& format,
                std::size_t nearest) {
    const auto samples = static_cast<std::int64_t>(marked_.size());
    const GradientLaws law(operands, format, stochastic(), samples);
    ScoreLaws &one = laws_[nearest + 1], &two = laws_[nearest + 2];
    one.self.resize(marked_.size());
    two.self.resize(marked_.size());
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const SelfLaw self = law.self(i);
      one.self[at] = sum(one.self[at], self.one, rate);
      two.self[at] = sum(two.self[at], self.two, rate);
    }
    if (!all_factored(operands)) return;
    const GradientLaws of_targets(targets, format, stochastic(), plan_.targets);
    one.targets.resize(static_cast<std::size_t>(plan_.targets), std::vector<Moments>(ranked()));
    for (std::size_t t = 0; t < one.targets.size(); ++t) {
      for (std::size_t i = 0; i < ranked(); ++i) {
        Moments& all = one.targets[t][i];
        all = sum(all,
                  law.two(static_cast<std::int64_t>(i), of_targets, static_cast<std::int64_t>(t)),
                  rate);
      }
    }
  }

  const Plan& plan_;
  Batch training_, test_;
  std::vector<std::uint8_t> marked_;
  std::uint64_t seed_;
  std::uint32_t checkpoint_ = 0;
  std::vector<Scores> scores_;   ///< [method]
  std::vector<ScoreLaws> laws_;  ///< the same, empty without a closed form
};

}  // namespace

Traced trace(TrainTrial trial, const net::Dataset& clean, const net::Dataset& flipped,
             const Plan& plan) {
  const std::int64_t samples = trial.train_samples > 0 ? trial.train_samples : clean.train_count();
  Batch training = first_of_training(flipped, samples);
  const Batch before = first_of_training(clean, samples);
  std::vector<std::uint8_t> marked;
  for (std::size_t i = 0; i < before.labels.size(); ++i)
    marked.push_back(training.labels[i] != before.labels[i] ? 1 : 0);
  Tracing tracing(plan, std::move(training), first_of_test(flipped, plan.targets),
                  std::move(marked), trial.seed);
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
    tracing.add(graph, rate);
    if (!tracing.finite()) infinite = step + 1;
  };
  traced.outcome = run_train_trial(trial, flipped);
  if (!traced.outcome.diverged) traced.outcome.diverged = infinite;
  if (!traced.outcome.diverged) {
    tracing.conclude(traced);
  } else {
    traced.found = traced.expected = std::vector<double>(plan.methods().size() * kTop.size(), NAN);
    traced.ranks = traced.expected_ranks = std::vector<double>(plan.methods().size(), NAN);
  }
  return traced;
}

}  // namespace numemu::experiments::tracin
