// Pruned numbers of known laws: closed forms of their noise, and what averaging over batches
// leaves.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/mvue/pruning.hpp"
#include "formats/analysis/distribution.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::experiments::mvue {

namespace {

struct Rule {
  PruneMethod method;
  unit::Sparsity pattern;
};

constexpr Rule kRules[] = {{PruneMethod::exact, {1, 2}},  {PruneMethod::exact, {2, 4}},
                           {PruneMethod::exact, {4, 8}},  {PruneMethod::approx, {2, 4}},
                           {PruneMethod::random, {2, 4}}, {PruneMethod::greedy, {1, 2}},
                           {PruneMethod::greedy, {2, 4}}};
constexpr const char* kLaws[] = {"normal", "laplace", "lognormal:0.5", "lognormal:1",
                                 "lognormal:2"};

std::string name_of(const Rule& rule) {
  return fmt::format("{}({}:{})", to_string(rule.method), rule.pattern.kept, rule.pattern.group);
}

RandomSource source(std::uint64_t seed, Stream stream, std::uint32_t tensor) {
  RandomSource random;
  random.seed = seed;
  random.stream = stream;
  random.tensor = tensor;
  return random;
}

void judge(const std::string& where, const Rule& rule, const Distribution& law,
           const std::optional<double>& nsr, const PrunedSample& s, std::int64_t draws,
           Conclusion& conclusion) {
  const auto add = [&](const char* what, double predicted, const Estimate& of, double effective,
                       double tolerance = NAN) {
    conclusion.add(judged(what + where, predicted, of, effective, tolerance), "laws");
  };
  if (nsr) add("noise-to-signal of ", *nsr, s.nsr, s.effective);
  if (rule.method == PruneMethod::greedy) {
    add("shrink factor of ", greedy_shrink(rule.pattern, law), s.shrink, s.effective);
    return;
  }
  add("squared error over its closed form, ", 1, s.variance, s.effective_error);
  add("squared error of the mean times draws, ", 1, s.mean, s.effective_error,
      bias_tolerance(static_cast<double>(draws)));
}

}  // namespace

void add_laws(const ExperimentRun& run, Conclusion& conclusion) {
  // Whole groups of every pattern.
  const std::int64_t n = run.settings.integer("samples") / 8 * 8;
  const std::int64_t draws = run.settings.integer("draws");
  ResultTable table{fmt::format("pruning {} numbers {} times", n, draws),
                    {"law", "rule", "NSR predicted", "NSR", "error / closed form",
                     "error of the mean x draws / closed form", "projection"},
                    {}};
  Chart chart{
      .kind = Chart::Kind::bars,
      .title = "Noise-to-signal ratio of pruned numbers",
      .caption = fmt::format(
          "Sum of squared errors over sum of squares, {} numbers of each law, with 95 % intervals "
          "over groups; predicted by closed forms and quadrature, but for mvue(4:8), whose closed "
          "form needs the numbers themselves (table). Greedy has the least error and "
          "is the only one with bias.",
          n),
      .y = "NSR",
      .log_y = true};
  for (std::size_t l = 0; l < std::size(kLaws); ++l) {
    run.say(fmt::format("pruning {} numbers", kLaws[l]));
    const Distribution law = Distribution::parse(kLaws[l], false);
    const auto tensor = static_cast<std::uint32_t>(l);
    const RandomSource numbers = source(run.seed, Stream::data, tensor);
    std::vector<float> x(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(law.draw(numbers, static_cast<std::uint64_t>(i)));
    for (const Rule& rule : kRules) {
      const policies::MaskPolicy policy = policies::parse_mask(name_of(rule));
      const PrunedSample s =
          prune_and_measure(policy, x, draws, source(run.seed, Stream::mask, tensor));
      const std::string where = fmt::format("{}, {}", name_of(rule), kLaws[l]);
      const std::optional<double> nsr = predicted_nsr(rule.method, rule.pattern, law);
      judge(where, rule, law, nsr, s, draws, conclusion);
      const bool biased = rule.method == PruneMethod::greedy;
      table.rows.push_back({kLaws[l], name_of(rule), nsr ? fmt::format("{:.4f}", *nsr) : "-",
                            shown(s.nsr), biased ? "-" : shown(s.variance),
                            biased ? "-" : shown(s.mean), shown(s.projection)});
      const std::string series = kLaws[l];
      chart.of(series + " measured")
          .points.push_back(with_error({.name = name_of(rule), .y = s.nsr.value}, s.nsr.error));
      if (nsr)
        chart.of(series + " predicted", true).points.push_back({.name = name_of(rule), .y = *nsr});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

// Averaged over batches, the error of an unbiased dW goes to zero; that of a biased one stays.

namespace {

// dW = X^T G over a batch of B samples. G(i, k) = s_i a_ik and X(i, c) = s_i + sigma z_ic, with
// signs s, magnitudes a of the law and normal z: every element of dW has the expectation B E a, to
// which all samples add, among noise. So each element is a sum over groups of M samples, which are
// independent, and with p = y s >= 0 the pruned magnitudes and e = p - a its error is
//   sum over i of (1 + sigma s_i z_i) e_i:   mean B E e,   variance B/M (Var sum e + sigma^2 E sum
//   e^2) where sums run over one group.
constexpr std::int64_t kBatch = 256, kInputs = 16, kOutputs = 16;
constexpr double kNoise = 4;  // sigma

/// Of the sum of errors in one group: mean and variance; and the mean sum of their squares.
struct GroupError {
  double mean = 0, variance = 0, square = 0;
};

struct Method {
  const char* rule;
  const char* name;
  GroupError (*predicted)(const Distribution&);
};

double nsr(PruneMethod method, unit::Sparsity pattern, const Distribution& law) {
  return predicted_nsr(method, pattern, law).value();
}

// Whatever is drawn, the kept magnitudes of exact MVUE sum to those of the group: no variance.
GroupError exact_error(unit::Sparsity pattern, const Distribution& law) {
  const double square = magnitude_moments(law).second;
  return {0, 0, pattern.group * square * nsr(PruneMethod::exact, pattern, law)};
}

GroupError exact_pairs(const Distribution& law) { return exact_error({1, 2}, law); }
GroupError exact_quads(const Distribution& law) { return exact_error({2, 4}, law); }

// 2 a_1 or 2 a_2 in place of a_1 + a_2.
GroupError random_pairs(const Distribution& law) {
  const auto [first, second] = magnitude_moments(law);
  return {0, 2 * (second - first * first), 2 * second};
}

// The smaller one is lost.
GroupError greedy_pairs(const Distribution& law) {
  const auto [first, second] = magnitude_moments(law);
  const double square = 2 * second * nsr(PruneMethod::greedy, {1, 2}, law);
  const double mean = 2 * first * (1 - greedy_shrink({1, 2}, law));
  return {-mean, square - mean * mean, square};
}

constexpr Method kMethods[] = {{"mvue(1:2)", "MVUE 1:2", exact_pairs},
                               {"mvue(2:4)", "MVUE 2:4", exact_quads},
                               {"random-unbiased(1:2)", "random unbiased 1:2", random_pairs},
                               {"greedy(1:2)", "greedy 1:2", greedy_pairs}};
constexpr const char* kAveraged[] = {"lognormal:0.5", "lognormal:1", "lognormal:2"};

/// E of the squared relative error of an element of dW averaged over k batches.
double predicted_square(const GroupError& e, unit::Sparsity pattern, double first, std::int64_t k) {
  const double groups = static_cast<double>(kBatch) / pattern.group, scale = kBatch * first;
  const double bias = groups * e.mean / scale;
  const double variance = groups * (e.variance + kNoise * kNoise * e.square) / (scale * scale);
  return bias * bias + variance / static_cast<double>(k);
}

/// Random numbers of one batch, all below one tensor number.
struct Batch {
  std::vector<float> gradient;  ///< [kOutputs, kBatch]: groups run along the batch
  std::vector<float> inputs;    ///< [kInputs, kBatch]
};

Batch draw_batch(const Distribution& law, const RandomSource& random) {
  static const Distribution normal = Distribution::parse("normal", false);
  Batch batch;
  std::vector<float> sign;
  RandomSource next = random;
  for (std::uint64_t i = 0; i < kBatch; ++i) sign.push_back(next.bits(i, 1) != 0 ? 1.0F : -1.0F);
  next.draw = 1;
  for (std::uint64_t i = 0; i < kOutputs * kBatch; ++i)
    batch.gradient.push_back(static_cast<float>(std::fabs(law.draw(next, i))) * sign[i % kBatch]);
  next.draw = 2;
  for (std::uint64_t i = 0; i < kInputs * kBatch; ++i)
    batch.inputs.push_back(static_cast<float>(sign[i % kBatch] + kNoise * normal.draw(next, i)));
  return batch;
}

/// sums[c, k] += inputs^T (pruned - gradient).
void add_error(const Batch& batch, const std::vector<float>& pruned, std::vector<double>& sums) {
  for (std::int64_t k = 0; k < kOutputs; ++k) {
    for (std::int64_t c = 0; c < kInputs; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < kBatch; ++i)
        sum += double{batch.inputs[c * kBatch + i]} *
               (double{pruned[k * kBatch + i]} - batch.gradient[k * kBatch + i]);
      sums[c * kOutputs + k] += sum;
    }
  }
}

/// After 1, 2, 4... batches of one repeat.
struct Repeat {
  std::vector<double> squares;         ///< mean squared relative errors of dW
  std::vector<double> second, fourth;  ///< of groups so far: sums of |e|^2 and |e|^4
};

Repeat measured_squares(const Distribution& law, const policies::MaskPolicy& policy,
                        std::int64_t batches, double first, RandomSource random,
                        std::uint32_t repeat) {
  Repeat out;
  std::vector<double> sums(kInputs * kOutputs);
  double second = 0, fourth = 0;
  std::vector<float> pruned(kOutputs * kBatch);
  std::int64_t next = 1;
  for (std::int64_t b = 1; b <= batches; ++b) {
    random.tensor = repeat << 16 | static_cast<std::uint32_t>(b);
    random.stream = Stream::data;
    const Batch batch = draw_batch(law, random);
    random.stream = Stream::mask;
    policy.rule->prune(policy, random,
                       {.x = batch.gradient.data(),
                        .y = pruned.data(),
                        .keep = nullptr,
                        .count = kOutputs * kBatch / policy.pattern.group,
                        .first = 0});
    add_error(batch, pruned, sums);
    for (std::int64_t g = 0; g < kOutputs * kBatch; g += policy.pattern.group) {
      double error = 0;
      for (std::int64_t i = g; i < g + policy.pattern.group; ++i) {
        const double e = double{pruned[i]} - batch.gradient[i];
        error += e * e;
      }
      second += error;
      fourth += error * error;
    }
    if (b != next) continue;
    next *= 2;
    double square = 0;
    for (const double s : sums) square += s * s;
    const double scale = static_cast<double>(b) * kBatch * first;
    out.squares.push_back(square / static_cast<double>(sums.size()) / (scale * scale));
    out.second.push_back(second);
    out.fourth.push_back(fourth);
  }
  return out;
}

/// At one number of batches, over repeats.
struct Point {
  Estimate square;
  double low = 0, high = 0;  ///< of the square: 95 %, Student's t
  double effective = 0;      ///< groups that carry the error
};

std::vector<Point> measure(const Distribution& law, const policies::MaskPolicy& policy,
                           std::int64_t batches, std::int64_t repeats, double first,
                           const RandomSource& random) {
  std::vector<Repeat> all;
  for (std::int64_t r = 0; r < repeats; ++r)
    all.push_back(
        measured_squares(law, policy, batches, first, random, static_cast<std::uint32_t>(r)));
  std::vector<Point> points;
  for (std::size_t i = 0; i < all[0].squares.size(); ++i) {
    std::vector<double> values;
    double second = 0, fourth = 0;
    for (const Repeat& repeat : all) {
      values.push_back(repeat.squares[i]);
      second += repeat.second[i];
      fourth += repeat.fourth[i];
    }
    const stats::PairedInterval t = stats::paired_interval(values);
    points.push_back({{t.mean, stats::mean_of(values).error},
                      std::max(0.0, t.low),
                      t.high,
                      fourth > 0 ? second * second / fourth : 0});
  }
  return points;
}

/// With the width that Student's t law gives what 4 standard errors are of a normal one.
Finding judged_point(std::string what, double expected, const Point& point, std::int64_t repeats) {
  constexpr double kTail = 3.167e-5;  // of a normal law beyond kErrors
  Estimate wide = point.square;
  wide.error *= stats::student_quantile(static_cast<double>(repeats - 1), kTail) / kErrors;
  Finding finding = judged(std::move(what), expected, wide, point.effective);
  finding.low = point.low;
  finding.high = point.high;
  return finding;
}

}  // namespace

void add_averaging(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t batches = run.settings.integer("batches");
  const std::int64_t repeats = run.settings.integer("repeats");
  RandomSource random;
  random.seed = run.seed;
  for (const char* name : kAveraged) {
    run.say(fmt::format("averaging dW over {} batches, {}", batches, name));
    const Distribution law = Distribution::parse(name, false);
    const double first = magnitude_moments(law).first;
    Chart chart{
        .title = fmt::format("Relative error of dW averaged over batches, {} gradients", name),
        .caption = fmt::format(
            "Root mean square over the {} elements of dW, B = {}, {} repeats with 95 % intervals; "
            "dashed: closed forms. Without bias the error falls as 1 over the root of the batches; "
            "greedy pruning stays at 1 - shrink = {:.3f}.",
            kInputs * kOutputs, kBatch, repeats, 1 - greedy_shrink({1, 2}, law)),
        .x = "batches averaged",
        .y = "relative error of dW",
        .log_x = true,
        .log_y = true};
    ResultTable table{fmt::format("relative error of averaged dW, {}", name),
                      {"method", "batches", "predicted", "measured", "95 % interval"},
                      {}};
    std::vector<double> last;
    for (const Method& method : kMethods) {
      const policies::MaskPolicy policy = policies::parse_mask(method.rule);
      const std::vector<Point> points = measure(law, policy, batches, repeats, first, random);
      const GroupError error = method.predicted(law);
      for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& p = points[i];
        const std::int64_t k = std::int64_t{1} << i;
        const double expected = predicted_square(error, policy.pattern, first, k);
        const double root = std::sqrt(p.square.value);
        const auto x = static_cast<double>(k);
        chart.add(method.name,
                  {.x = x, .y = root, .low = std::sqrt(p.low), .high = std::sqrt(p.high)},
                  {.x = x, .y = std::sqrt(expected)});
        if (i != 0 && i + 1 != points.size()) continue;
        conclusion.add(judged_point(fmt::format("squared error of dW over {} batches, {}, {}", k,
                                                method.name, name),
                                    expected, p, repeats),
                       "averaging");
        table.rows.push_back({method.name, fmt::format("{}", k),
                              fmt::format("{:.4f}", std::sqrt(expected)),
                              fmt::format("{:.4f}", root),
                              ends_text(std::sqrt(p.low), std::sqrt(p.high), 4, false)});
      }
      last.push_back(std::sqrt(points.back().square.value));
    }
    conclusion.sentences.push_back(fmt::format(
        "dW averaged over {} batches of {} gradients is off by {:.1f} % with MVUE 1:2, {:.1f} % "
        "with MVUE 2:4 and {:.1f} % with greedy 1:2.",
        std::bit_floor(static_cast<std::uint64_t>(batches)), name, 100 * last[0], 100 * last[1],
        100 * last[3]));
    conclusion.tables.push_back(std::move(table));
    conclusion.charts.push_back(std::move(chart));
  }
}

}  // namespace numemu::experiments::mvue
