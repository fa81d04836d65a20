#include "experiments/predict/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/predict/injected_network.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments {
namespace {

/// Passes steps on with numbers behind the probes of predict_layers(), whose draws are others.
class BehindProbes final : public net::Forwarding {
 public:
  using Forwarding::Forwarding;
  void begin_step(const net::Step& step) override { Forwarding::begin_step(behind(step)); }
  void end_step(const net::Step& step) override { Forwarding::end_step(behind(step)); }
  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(behind(step), p);
  }
  net::SharedTensor table(const net::Step& step, std::string_view node,
                          const net::Tensor& parameter) override {
    return Forwarding::table(behind(step), node, parameter);
  }
  void vector_result(const net::Step& step, std::string_view layer, std::string_view op,
                     net::Tensor& x) override {
    Forwarding::vector_result(behind(step), layer, op, x);
  }
  net::NormRule norm(const net::Step& step, std::string_view layer) override {
    return Forwarding::norm(behind(step), layer);
  }

 private:
  static net::Step behind(net::Step step) {
    step.index += kProbes;
    return step;
  }
};

/// Of the variance of whether an answer changes, the part of the noise itself; the rest is that of
/// the samples' margins. For normal noise and margins m of even density about 0, the mean of
/// p (1 - p) over that of p, p = Phi(-m).
constexpr double kOfNoise = 0.70710678118654752;
/// Changes that are added to what was seen, so that no interval is empty.
constexpr double kUnseen = 2;

/// Means over the samples, the variance of one, and the standard deviation of the means of draws
/// beyond what their samples explain, where it is certain at 99 %; else 0.
struct Change {
  double mean = 0, variance = 0, floor = 0;
};

/// By the chi-square law of the variance of the draws' means (Wilson and Hilferty 1931).
double floor_of(const std::vector<double>& changes, double variance) {
  constexpr double kSurely = 2.3263478740408408;  // the 99 % point of the normal law
  constexpr std::int64_t kSize = net::kEvaluationBatch;
  const std::int64_t draws = std::ssize(changes) / kSize;
  if (draws < 2) return 0;
  const auto freedom = static_cast<double>(draws - 1);
  const stats::Mean means = stats::mean_of(draws, [&](std::int64_t d) {
    return pairwise_sum(kSize, [&](std::int64_t i) { return changes[d * kSize + i]; }) /
           static_cast<double>(kSize);
  });
  const double between = means.error * means.error * static_cast<double>(draws),
               within = variance / static_cast<double>(kSize);
  const double root = 1 - 2 / (9 * freedom) + kSurely * std::sqrt(2 / (9 * freedom));
  return between > root * root * root * within ? std::sqrt(between - within) : 0;
}

/// Of changes of samples, at least `unseen` of which squared are added.
Change change_of(const std::vector<double>& changes, double unseen) {
  const auto n = static_cast<std::int64_t>(changes.size());
  if (n == 0) return {};
  const auto count = static_cast<double>(n);
  const double mean = pairwise_sum(n, [&](std::int64_t i) { return changes[i]; }) / count;
  const double squares =
      pairwise_sum(n, [&](std::int64_t i) { return (changes[i] - mean) * (changes[i] - mean); });
  const double variance = (squares + unseen) / count;
  return {mean, variance, floor_of(changes, variance)};
}

double error_of(const Change& change, std::int64_t n, std::int64_t all, double floor) {
  const double own = measured_too(n, all) * std::sqrt(change.variance / static_cast<double>(n));
  return portable::hypot(own, std::max(floor, change.floor));
}

/// Mean of column 0 over column 1 of each sample.
double loss_of(const net::ScoreTable& table, std::int64_t sample) {
  const double* const sums = table.sums.data() + sample * table.columns;
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

}  // namespace

std::int64_t predicted_samples(double macs_of_a_sample, std::int64_t evaluated) {
  const double affordable = kAccuracyMacs / std::max(1.0, macs_of_a_sample);
  const double most = std::clamp(affordable, double{kFewestPredicted}, double{kMostPredicted});
  return std::min(static_cast<std::int64_t>(most), evaluated);
}

// Variances: that of the noise is in both means; that of the samples' margins is that of the n in
// place of all.
double measured_too(std::int64_t n, std::int64_t all) {
  return std::sqrt(1 + (2 * kOfNoise - 1) * static_cast<double>(n) / static_cast<double>(all));
}

std::optional<AccuracyReference> accuracy_reference(const net::Graph& graph,
                                                    const net::Dataset& data,
                                                    std::vector<net::OutputScore> scores,
                                                    std::int64_t evaluated) {
  if (data.target() == net::TargetKind::none || evaluated == 0) return std::nullopt;
  scores.emplace_back(
      &net::find_score(data.target() == net::TargetKind::classes ? "log_loss" : "mse"));
  net::Targets targets;
  const double macs = net::multiply_adds(graph, data.inputs_of(data.test_batch(0, 1, targets)));
  AccuracyReference out{
      net::spread_test(data, evaluated, predicted_samples(macs, evaluated)), std::move(scores), {}};
  net::Numerics float32;
  out.float32 = net::evaluate(graph, out.samples, net::Split::test, 0, float32, out.scores);
  return out;
}

stats::Interval Expected::interval() const {
  return {value - stats::kNormal95 * error, value + stats::kNormal95 * error};
}

AccuracyPrediction predict_accuracy(InjectedNetwork& noise, const AccuracyReference& reference,
                                    const net::Evaluation& baseline) {
  noise.lend_unit_errors();
  BehindProbes behind(noise);
  AccuracyPrediction out;
  out.noisy = net::evaluate(noise.recipe().graph(), reference.samples, net::Split::test, 0, behind,
                            reference.scores);
  const net::Evaluation& noisy = out.noisy;
  const net::Evaluation& float32 = reference.float32;
  const std::int64_t n = noisy.samples, all = baseline.samples;
  std::vector<double> losses(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    losses[i] = loss_of(noisy.tables.back(), i) - loss_of(float32.tables.back(), i);
  const Change loss = change_of(losses, 0);
  out.loss = {baseline.loss + loss.mean,
              error_of(loss, n, all, kChangeFloor * std::fabs(loss.mean))};
  if (reference.samples.target() != net::TargetKind::classes) return out;

  const std::int64_t each = reference.samples.targets_per_sample();
  std::vector<double> right(losses.size()), changed(losses.size());
  // Labels of a sample, in the mean; answers that change from right to wrong or back.
  const double targets = static_cast<double>(float32.n) / static_cast<double>(n);
  double moved = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t t = i * each; t < (i + 1) * each; ++t) {
      const int change = int{noisy.right[t]} - int{float32.right[t]};
      right[i] += change / targets;
      changed[i] += (noisy.answers[t] != float32.answers[t]) / targets;
      moved += std::abs(change);
    }
  }
  const Change accuracy = change_of(right, kUnseen / (targets * targets)),
               answers = change_of(changed, kUnseen / (targets * targets));
  const double floor = kWeightFloor * moved / static_cast<double>(float32.n);
  out.top1 = Expected{
      static_cast<double>(baseline.correct) / static_cast<double>(baseline.n) + accuracy.mean,
      error_of(accuracy, n, all, floor)};
  out.changed = Expected{answers.mean, error_of(answers, n, all, kWeightFloor * answers.mean)};
  return out;
}

}  // namespace numemu::experiments
