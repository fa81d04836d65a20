#include "experiments/predict/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "experiments/predict/injected_network.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/spread.hpp"

namespace numemu::experiments {
namespace {

/// Passes steps on with numbers behind those of others, whose draws differ.
class BehindProbes final : public net::Forwarding {
 public:
  BehindProbes(net::Numerics& inner, std::int64_t by) : Forwarding(inner), by_(by) {}
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
  net::Step behind(net::Step step) const {
    step.index += by_;
    return step;
  }
  std::int64_t by_;
};

/// Of the variance of whether an answer changes, the part of the noise itself; the rest is that of
/// the samples' margins. For normal noise and margins m of even density about 0, the mean of
/// p (1 - p) over that of p, p = Phi(-m).
constexpr double kOfNoise = 0.70710678118654752;
/// Changes that are added to what was seen, so that no interval is empty.
constexpr double kUnseen = 2;
/// A margin counts as at most so many standard deviations of the noise: how often answers of larger
/// ones change, and how much oftener under louder noise, no normal law tells.
constexpr double kFarthest = 4;
/// The share of unseen changes that may be at any margin, so that they count as samples do that are
/// seldom drawn.
constexpr double kElsewhere = 0.25;

/// Which samples run: of every evaluated one how often, over how often if all were alike.
class Choice {
 public:
  /// `most` of them, spread evenly: a set may be in the order of its classes. Those that share a
  /// draw are spread, too, unless they are to be `in_order`.
  Choice(std::int64_t all, std::int64_t most, bool in_order) {
    const std::int64_t apart =
        in_order ? 1 : (most + net::kEvaluationBatch - 1) / net::kEvaluationBatch;
    for (std::int64_t first = 0; first < apart; ++first)
      for (std::int64_t k = first; k < most; k += apart) even_.push_back(k * all / most);
  }

  /// Likelier those whose margin is small beside the noise. An answer changes with probability p =
  /// Phi(-margin / noise): the mean of changes is nearest where samples are drawn by sqrt(p) and
  /// count inversely (Neyman 1934). A quarter is drawn evenly, so that none counts more than 4.
  Choice(std::span<const double> margins, double noise) {
    constexpr double kEven = 0.25, kRootHalf = 0.70710678118654752;
    const auto all = static_cast<double>(margins.size());
    const double louder = noise * portable::pow(10, kModelError / 20);
    double sum = 0, changes = 0, more = 0;
    std::vector<double> likely;
    for (const double margin : margins) {
      const auto changed = [&](double by) {
        const double p = 0.5 * portable::erfc(kRootHalf * std::min(margin, kFarthest * noise) / by);
        return std::isnan(p) ? 0.5 : p;
      };
      likely.push_back(changed(noise));
      sum += std::sqrt(likely.back());
      changes += likely.back();
      more += changed(louder);
    }
    if (changes > 0) louder_ = more / changes;
    const double scale = sum > 0 ? all * (1 - kEven) / sum : 0;
    double drawn = 0, counted = 0;
    for (const double p : likely) {
      density_.push_back(sum > 0 ? kEven + scale * std::sqrt(p) : 1);
      cumulative_.push_back(density_.back() + (cumulative_.empty() ? 0 : cumulative_.back()));
      const double seen = (1 - kElsewhere) * p + kElsewhere * changes / all;
      drawn += density_.back() * seen;
      counted += seen / density_.back();
    }
    if (drawn > 0) unseen_ = std::sqrt(counted / drawn);
  }

  /// Numbers [first, end) of the samples that run: any of these neighbours are spread over all.
  std::vector<std::int64_t> samples(std::int64_t first, std::int64_t end) const {
    if (even()) return {even_.begin() + first, even_.begin() + end};
    std::vector<std::int64_t> out;
    for (std::int64_t k = first; k < end; ++k) {
      const double at = (static_cast<double>(k) + 0.5) * kGolden;
      const auto found =
          std::ranges::upper_bound(cumulative_, (at - std::floor(at)) * cumulative_.back());
      out.push_back(std::min<std::int64_t>(found - cumulative_.begin(), std::ssize(density_) - 1));
    }
    return out;
  }
  /// What a sample counts.
  double weight(std::int64_t sample) const {
    return even() ? 1 : 1 / density_[static_cast<std::size_t>(sample)];
  }
  bool even() const { return density_.empty(); }
  /// How many times as many answers change where noise is kModelError larger.
  double louder() const { return louder_; }
  /// The root mean square of what samples count whose answer changes, by the probabilities.
  double unseen() const { return unseen_; }

 private:
  std::vector<std::int64_t> even_;
  std::vector<double> density_, cumulative_;
  double unseen_ = 1;
  double louder_ = portable::pow(10, kModelError / 10);  // as the power of the noise
};

/// The largest logit less the next one: what noise has to bridge before the answer changes. NaN
/// where a logit is NaN.
void add_margin(const net::Outcome& o, double* sums) {
  double first = -INFINITY, second = -INFINITY;
  for (const float z : o.output.first(static_cast<std::size_t>(o.width))) {
    if (std::isnan(z)) first = NAN;
    second = std::max(second, std::min(first, double{z}));
    first = std::max(first, double{z});
  }
  sums[0] = first - second;
}

/// No metric: it has a table alone.
const net::Score kMargin{.name = "margin",
                         .summary = "the largest logit less the next one",
                         .fits =
                             [](const net::Dataset& d) {
                               return d.target() == net::TargetKind::classes &&
                                      d.targets_per_sample() == 1;
                             },
                         .columns = [](const net::Dataset&) { return std::int64_t{1}; },
                         .add = add_margin,
                         .figure = nullptr,
                         .shown = {}};

/// Samples that ran, and how much each counts.
struct Ran {
  std::vector<std::int64_t> samples;
  std::vector<double> weights;
};

/// Mean of a figure's change over all evaluated samples and of its magnitude, and variances: of one
/// weighted sample that ran, and of one of all.
struct Change {
  double mean = 0, magnitude = 0, variance = 0, of_all = 0;
  double sampling() const { return std::sqrt(variance / samples); }  ///< standard error
  double samples = 1;
  std::vector<double> draws;  ///< means of samples that share one
};

/// `unseen` squared changes are added.
Change change_of(const std::vector<double>& changes, const Ran& ran, double unseen,
                 double unseen_weight) {
  constexpr std::int64_t kSize = net::kEvaluationBatch;
  const auto n = static_cast<std::int64_t>(changes.size());
  if (n == 0) return {};
  Change out;
  out.samples = static_cast<double>(n);
  const double weights = pairwise_sum(n, [&](std::int64_t i) { return ran.weights[i]; });
  const auto count = [&](std::int64_t i) { return ran.weights[i] * out.samples / weights; };
  out.mean = pairwise_sum(n, [&](std::int64_t i) { return count(i) * changes[i]; }) / out.samples;
  out.magnitude =
      pairwise_sum(n, [&](std::int64_t i) { return count(i) * std::fabs(changes[i]); }) /
      out.samples;
  const auto apart = [&](std::int64_t i) { return count(i) * (changes[i] - out.mean); };
  const double squares = pairwise_sum(n, [&](std::int64_t i) { return apart(i) * apart(i); });
  const double alike =
      pairwise_sum(n, [&](std::int64_t i) { return apart(i) * (changes[i] - out.mean); });
  out.variance = (squares + unseen * unseen_weight * unseen_weight) / out.samples;
  out.of_all = (alike + unseen * unseen_weight) / out.samples;
  for (std::int64_t first = 0; first + kSize <= n; first += kSize)
    out.draws.push_back(
        out.mean + pairwise_sum(kSize, [&](std::int64_t i) { return apart(first + i); }) / kSize);
  return out;
}

/// Standard deviation over draws.
double floor_of(const Change& change, double prior) {
  return draws_deviation(change.draws, change.variance / net::kEvaluationBatch, prior);
}

/// Of the measured figure about the predicted one: samples that ran, the noise that the measured
/// side has of its own on all, one draw of the weights' errors against the mean of some (`floor`),
/// and noise that is larger or smaller than predicted.
/// Samples that are chosen evenly are among those that are measured.
double error_of(const Change& change, const Choice& choice, std::int64_t all, double floor) {
  const double own = choice.even() ? 2 * kOfNoise - 1 : kOfNoise;
  const double draws = std::max(1.0, static_cast<double>(change.draws.size()));
  const double model = change.mean * (choice.louder() - 1);
  return std::sqrt(change.variance / change.samples +
                   own * change.of_all / static_cast<double>(all) +
                   floor * floor * (1 + 1 / draws) + model * model);
}

/// Mean of column 0 over column 1 of each sample.
double loss_of(const net::ScoreTable& table, std::int64_t sample) {
  const double* const sums = table.sums.data() + sample * table.columns;
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

/// An evaluation of some of its samples, but for the counts of numbers that are not finite.
net::Evaluation part_of(const net::Evaluation& whole, const std::vector<std::int64_t>& samples) {
  net::Evaluation out;
  out.samples = std::ssize(samples);
  const auto each = static_cast<std::int64_t>(whole.right.size()) / whole.samples;
  const auto take = [&samples](const auto& from, std::int64_t width, auto& to) {
    for (const std::int64_t s : samples)
      to.insert(to.end(), from.begin() + s * width, from.begin() + (s + 1) * width);
  };
  take(whole.right, each, out.right);
  take(whole.answers, each, out.answers);
  for (const net::ScoreTable& table : whole.tables) {
    out.tables.push_back({table.columns, {}});
    take(table.sums, table.columns, out.tables.back().sums);
  }
  return out;
}

void append(net::Evaluation& to, const net::Evaluation& more) {
  const auto add = [](auto& all, const auto& part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  to.samples += more.samples;
  to.n += more.n;
  to.correct += more.correct;
  to.outputs += more.outputs;
  add(to.right, more.right);
  add(to.answers, more.answers);
  if (to.tables.empty()) {
    to.tables = more.tables;
  } else {
    for (std::size_t t = 0; t < to.tables.size(); ++t) add(to.tables[t].sums, more.tables[t].sums);
  }
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

// The sum of squares S of the D means has (D - 1)/2 log(v) + S / (2 v) as its negative log
// likelihood, v = s^2 + within. Sums over s in steps of a sixteenth of an octave.
double draws_deviation(const std::vector<double>& means, double within, double prior) {
  constexpr std::size_t kFewestDraws = 4;
  if (means.size() < kFewestDraws || !(prior > 0)) return prior;
  const auto count = static_cast<double>(means.size());
  const double mean =
      pairwise_sum(std::ssize(means), [&](std::int64_t i) { return means[i]; }) / count;
  const double squares = pairwise_sum(
      std::ssize(means), [&](std::int64_t i) { return (means[i] - mean) * (means[i] - mean); });
  if (!(squares > 0) || !std::isfinite(squares)) return prior;
  const double likeliest = squares / (count - 1);
  const auto log_likelihood = [&](double v) {
    return -0.5 * ((count - 1) * portable::log(v) + squares / v);
  };
  const double best = log_likelihood(std::max(likeliest, within));
  double sum = 0, moment = 0;
  const double step = portable::exp2(0.0625);
  const double least = 1e-3 * prior, most = 1e2 * std::max(prior, std::sqrt(likeliest));
  for (double s = least; s < most; s *= step) {
    const double share = s / prior;  // d s is s times the step
    const double p = s / (1 + share * share) * portable::exp(log_likelihood(s * s + within) - best);
    sum += p;
    moment += p * s * s;
  }
  return sum > 0 ? std::sqrt(moment / sum) : std::sqrt(likeliest);
}

std::vector<net::OutputScore> float32_scores(const net::Dataset& data) {
  if (data.target() == net::TargetKind::none) return {};
  std::vector<net::OutputScore> scores = {
      &net::find_score(data.target() == net::TargetKind::classes ? "log_loss" : "mse")};
  if (kMargin.fits(data)) scores.push_back(&kMargin);
  return scores;
}

std::optional<AccuracyReference> accuracy_reference(const net::Graph& graph,
                                                    const net::Dataset& data,
                                                    const std::vector<net::OutputScore>& scores,
                                                    const net::Evaluation& baseline) {
  if (data.target() == net::TargetKind::none || baseline.samples == 0) return std::nullopt;
  net::Targets targets;
  const double macs = net::multiply_adds(graph, data.inputs_of(data.test_batch(0, 1, targets)));
  AccuracyReference out{data, {}, baseline, predicted_samples(macs, baseline.samples), {}};
  out.float32.tables.clear();
  for (std::size_t s = 0; s < scores.size(); ++s) {
    if (scores[s]->reference) continue;
    out.scores.push_back(scores[s]);
    out.float32.tables.push_back(baseline.tables.at(s));
  }
  out.scores.push_back(float32_scores(data)[0]);
  out.float32.tables.push_back(baseline.tables.at(scores.size()));
  if (kMargin.fits(data)) out.margins = baseline.tables.at(scores.size() + 1).sums;
  return out;
}

stats::Interval Expected::interval() const {
  return {value - stats::kNormal95 * error, value + stats::kNormal95 * error};
}

namespace {

Choice choice_of(const AccuracyReference& reference, double logit_noise) {
  const net::Evaluation& float32 = reference.float32;
  const bool apart = reference.scores.size() == 1 && reference.most > kFirstPredicted &&
                     !reference.margins.empty();
  if (!apart || !(logit_noise > 0) || !std::isfinite(logit_noise))
    return {float32.samples, reference.most, reference.data.kind() == net::DataKind::text};
  return {reference.margins, std::sqrt(2.0) * logit_noise};  // of a difference of two
}

}  // namespace

AccuracyPrediction predict_accuracy(InjectedNetwork& noise, const AccuracyReference& reference,
                                    double logit_noise) {
  noise.begin_evaluation();
  const net::Evaluation& baseline = reference.float32;
  const bool classes = reference.data.target() == net::TargetKind::classes;
  const std::int64_t all = baseline.samples;
  const Choice choice = choice_of(reference, logit_noise);
  AccuracyPrediction out;
  Ran ran;
  std::vector<double> losses, right, changed;
  // Labels of a sample, in the mean; answers that change from right to wrong or back.
  const double targets = static_cast<double>(baseline.n) / static_cast<double>(all);
  double moved = 0;
  const auto run = [&](std::int64_t end) {
    const std::int64_t first = std::ssize(ran.samples);
    const std::vector<std::int64_t> samples = choice.samples(first, end);
    BehindProbes behind(noise, kProbes + first / net::kEvaluationBatch);
    append(out.noisy,
           net::evaluate(noise.recipe().graph(), net::chosen_test(reference.data, samples),
                         net::Split::test, 0, behind, reference.scores));
    append(out.float32, part_of(baseline, samples));
    for (std::int64_t i = first; i < end; ++i) {
      ran.samples.push_back(samples[i - first]);
      ran.weights.push_back(choice.weight(samples[i - first]));
      losses.push_back(loss_of(out.noisy.tables.back(), i) - loss_of(out.float32.tables.back(), i));
      if (!classes) continue;
      const std::int64_t each = reference.data.targets_per_sample();
      right.push_back(0);
      changed.push_back(0);
      for (std::int64_t t = i * each; t < (i + 1) * each; ++t) {
        const int change = int{out.noisy.right[t]} - int{out.float32.right[t]};
        right.back() += change / targets;
        changed.back() += (out.noisy.answers[t] != out.float32.answers[t]) / targets;
        moved += ran.weights.back() * std::abs(change);
      }
    }
  };
  const double unseen = kUnseen / (targets * targets);
  run(choice.even() ? reference.most : kFirstPredicted);
  const auto change = [&](const std::vector<double>& changes) {
    return change_of(changes, ran, unseen, choice.unseen());
  };
  while (std::ssize(ran.samples) < reference.most &&
         std::max(change(right).sampling(), change(changed).sampling()) > kFineError)
    run(std::min(reference.most, 2 * std::ssize(ran.samples)));
  const Change loss = change_of(losses, ran, 0, 1);
  const double prior = std::max(kChangeFloor * std::fabs(loss.mean), kWeightFloor * loss.magnitude);
  out.loss = {baseline.loss + loss.mean, error_of(loss, choice, all, floor_of(loss, prior))};
  if (!classes) return out;
  const Change accuracy = change(right), answers = change(changed);
  // Changed answers are more than those that turn right or wrong, and all count alike: they show
  // how far draws differ where top-1 hides it behind its samples.
  const double of_changed = floor_of(answers, kWeightFloor * answers.mean);
  const double share =
      answers.mean > 0 ? std::max(kWeightFloor, of_changed / answers.mean) : kWeightFloor;
  const double turned = moved / (static_cast<double>(ran.samples.size()) * targets);
  out.top1 = Expected{
      static_cast<double>(baseline.correct) / static_cast<double>(baseline.n) + accuracy.mean,
      error_of(accuracy, choice, all, floor_of(accuracy, share * turned))};
  out.changed = Expected{answers.mean, error_of(answers, choice, all, of_changed)};
  return out;
}

}  // namespace numemu::experiments
