// Training that alternates between cross-entropy and the entropy of the wrong classes: its
// gradient, its numbers in few bits, accuracy, and robustness to one step along the gradient (Chen
// et al., Complement Objective Training, ICLR 2019, arXiv 1903.01182).
#include "experiments/complement/complement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::complement {

double rounded(double x, const Format& format) {
  auto y = static_cast<float>(x);
  if (format.name != "float32") quantize_values({.format = &format}, &y, 1, 1, &y);
  return double{y};
}

double unit_of(const Format& format) { return std::ldexp(0.5, -format.mantissa_bits); }

namespace {

double rounded_entropy(const std::vector<double>& q, const Format& format) {
  double sum = 0;
  for (const double one : q)
    if (one > 0) sum -= rounded(one * rounded(portable::log(one), format), format);
  return sum;
}

}  // namespace

std::vector<double> Row::slope() const {
  std::vector<double> slopes;
  for (const double one : q) slopes.push_back(one > 0 ? -one * (portable::log(one) + entropy) : 0);
  return slopes;
}

Row complement_row(std::span<const float> logits, std::size_t label) {
  double largest = -HUGE_VAL;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (c != label) largest = std::max(largest, double{logits[c]});
  Row row{.q = std::vector<double>(logits.size())};
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (c != label) sum += row.q[c] = portable::exp(logits[c] - largest);
  for (double& one : row.q) {
    one /= sum;
    row.entropy -= one > 0 ? one * portable::log(one) : 0;
  }
  row.rest = sum / (sum + portable::exp(logits[label] - largest));
  return row;
}

double denominator(const Row& row, const Format& format, double guard) {
  return rounded(rounded(1 - rounded(1 - row.rest, format), format) + guard, format);
}

double entropy_by_division(const Row& row, const Format& format, double guard) {
  const double below = denominator(row, format, guard);
  std::vector<double> q;
  for (const double one : row.q)
    q.push_back(rounded(rounded(one * row.rest, format) / below, format));
  return rounded_entropy(q, format);
}

double entropy_by_logits(const Row& row, const Format& format) {
  std::vector<double> q;
  for (const double one : row.q) q.push_back(rounded(one, format));
  return rounded_entropy(q, format);
}

double predicted_by_division(const Row& row, double below) {
  const double large = row.rest / below;
  return large * (row.entropy - portable::log(large));
}

double rounding_bound(const Row& row, const Format& format, double below, int roundings) {
  // A term S q ln(S q): `roundings` of its factor, one of its logarithm and one of itself; the
  // relative error of S q moves its logarithm, too. Below the normal range half a step is absolute.
  const double u = unit_of(format), large = row.rest / below;
  const double least = std::ldexp(1.0, -format.bias - format.mantissa_bits);
  double bound = 0;
  for (const double one : row.q) {
    if (one <= 0) continue;
    const double factor = roundings * u + least / (roundings > 1 ? one * row.rest : one);
    const double term = large * one * std::fabs(portable::log(large * one));
    bound += (factor + 2 * u) * term + factor * large * one;
  }
  return bound * (1 + 8 * u);  // products of errors
}

namespace {

constexpr std::int64_t kAtOnce = 100;
constexpr double kLost = 0x1p-11;  // 1 - p_g of at most this becomes 0: p_g is rounded to 1

double sum_of(const std::vector<double>& loss) {
  double sum = 0;
  for (const double one : loss) sum += one;
  return sum;
}

}  // namespace

Robust robustness(const net::Graph& graph, const net::Dataset& data, std::int64_t images,
                  const std::vector<double>& epsilons) {
  const FloatGuard guard;
  net::Numerics float32;
  const net::Step step{.phase = net::Phase::training};
  const std::int64_t all = images == 0 ? data.test_count() : std::min(images, data.test_count());
  const std::vector<std::string> want{graph.inputs.at(0).name};
  Robust robust{.top1 = std::vector<double>(epsilons.size())};
  for (std::int64_t first = 0; first < all; first += kAtOnce) {
    net::Targets targets;
    const net::Tensor x = data.test_batch(first, std::min(kAtOnce, all - first), targets);
    const auto rows = static_cast<float>(x.dim(0));
    double before = 0;
    const net::Injection injection{graph.nodes.back().name, [&](const net::Tensor& logits) {
                                     net::Tensor gradient;
                                     net::cross_entropy(logits, targets.classes, &gradient, rows);
                                     return gradient;
                                   }};
    const net::Tensor g =
        net::gradients(graph, {&x, 1}, float32, step, want, {&injection, 1}).values.at(0);
    const net::Tensor logits = net::forward(graph, x, float32);
    before = sum_of(net::cross_entropy(logits, targets.classes).loss);
    for (std::int64_t i = 0; i < x.dim(0); ++i) {
      const auto classes = static_cast<std::size_t>(logits.dim(-1));
      const std::span<const float> row(logits.data.data() + i * logits.dim(-1), classes);
      robust.lost +=
          complement_row(row, static_cast<std::size_t>(targets.classes[i])).rest <= kLost;
    }
    double slope = 0;
    for (const float one : g.data) slope += std::fabs(double{one});
    robust.predicted_rise += epsilons.at(0) * slope;
    for (std::size_t e = 0; e < epsilons.size(); ++e) {
      net::Tensor moved = x;
      const auto epsilon = static_cast<float>(epsilons[e]);
      for (std::size_t i = 0; i < moved.data.size(); ++i) {
        const float one = g.data[i];
        moved.data[i] += one > 0 ? epsilon : one < 0 ? -epsilon : 0;
      }
      const net::Classified seen =
          net::cross_entropy(net::forward(graph, moved, float32), targets.classes);
      robust.top1[e] += static_cast<double>(std::ranges::count(seen.right, 1));
      if (e == 0) robust.rise += sum_of(seen.loss) - before;
    }
  }
  const auto count = static_cast<double>(all);
  for (double& one : robust.top1) one *= 100 / count;
  robust.rise /= count;
  robust.predicted_rise /= count;
  robust.lost /= count;
  return robust;
}

namespace {

// The objective's float32 exp and ln have relative errors of at most 2^-22; all else is float64.
constexpr double kRoundings = 8 * 0x1p-22;
constexpr double kStep = 0x1p-10;      // of central differences
constexpr double kDifferences = 1e-6;  // their truncation, kStep^2 / 6 times a third derivative

/// Normal logits, the label's `margin` above the largest of the others where it is a number.
struct Draw {
  std::vector<float> logits;
  std::size_t label = 0;
};

constexpr float kDeviation = 2;  // of logits

std::vector<Draw> draws(std::uint64_t seed, std::int64_t classes, std::int64_t rows,
                        double margin) {
  const RandomSource random{seed, Stream::data, static_cast<std::uint32_t>(classes)};
  const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(classes * rows), 31);
  std::vector<Draw> all;
  for (std::int64_t r = 0; r < rows; ++r) {
    Draw row{{x.begin() + r * classes, x.begin() + (r + 1) * classes},
             static_cast<std::size_t>(r % classes)};
    for (float& z : row.logits) z *= kDeviation;
    if (std::isfinite(margin)) {
      float& own = row.logits[row.label];
      own = -HUGE_VALF;
      own = *std::ranges::max_element(row.logits) + static_cast<float>(margin);
    }
    all.push_back(std::move(row));
  }
  return all;
}

constexpr int kByDivision = 2, kByLogits = 1;  // roundings of q

/// What a question found, over rows of logits.
struct Worst {
  double closed = 0, differences = 0;  ///< errors of the gradient over their bounds

  static void fields(auto& self, const auto& visit) {
    visit("closed", self.closed);
    visit("differences", self.differences);
  }
};

struct Ways {
  double rest = 0, lost = 0, expected_lost = 0;    ///< means: 1 - p_g, rows where it becomes 0
  double division = 0, predicted = 0, logits = 0;  ///< mean absolute errors of the entropy
  double division_over = 0, logits_over = 0;       ///< largest distances over their bounds

  static void fields(auto& self, const auto& visit) {
    visit("rest", self.rest);
    visit("lost", self.lost);
    visit("expected_lost", self.expected_lost);
    visit("division", self.division);
    visit("predicted", self.predicted);
    visit("logits", self.logits);
    visit("division_over", self.division_over);
    visit("logits_over", self.logits_over);
  }
};

Worst gradients(std::uint64_t seed, std::int64_t classes, std::int64_t rows) {
  Worst worst;
  const net::Objective objective = net::find_objective("complement");
  const auto k = static_cast<double>(classes);
  for (const Draw& row : draws(seed, classes, rows, NAN)) {
    net::Tensor logits({1, classes}), gradient;
    logits.data = row.logits;
    objective.evaluate(logits, {{static_cast<std::int32_t>(row.label)}, {}}, &gradient, 1);
    const std::vector<double> slope = complement_row(row.logits, row.label).slope();
    for (std::size_t c = 0; c < slope.size(); ++c) {
      const double measured = double{gradient.data[c]};
      worst.closed = std::max(worst.closed, std::fabs(measured + slope[c] / k) / (kRoundings / k));
      std::vector<float> up = row.logits, down = row.logits;
      up[c] += kStep;
      down[c] -= kStep;
      // The step in float32 is what the logits moved.
      const double moved = double{up[c]} - double{down[c]};
      const double difference =
          (complement_row(up, row.label).entropy - complement_row(down, row.label).entropy) / moved;
      worst.differences = std::max(worst.differences, std::fabs(measured + difference / k) /
                                                          ((kRoundings + kDifferences) / k));
    }
  }
  return worst;
}

Ways compare_ways(std::uint64_t seed, const Format& format, std::int64_t classes, std::int64_t rows,
                  double margin, double guard) {
  Ways ways;
  const double each = 1 / static_cast<double>(rows), u = unit_of(format);
  for (const Draw& one : draws(seed, classes, rows, margin)) {
    const Row row = complement_row(one.logits, one.label);
    const double below = denominator(row, format, guard);
    const double division = entropy_by_division(row, format, guard),
                 logits = entropy_by_logits(row, format),
                 predicted = predicted_by_division(row, below);
    ways.rest += each * row.rest;
    ways.lost += each * (rounded(1 - rounded(1 - row.rest, format), format) == 0);
    // p is a float32 number before the format rounds it.
    const double p = static_cast<float>(1 - row.rest);
    ways.expected_lost += each * (1 - p <= u / 2);
    ways.division += each * std::fabs(division - row.entropy);
    ways.predicted += each * std::fabs(predicted - row.entropy);
    ways.logits += each * std::fabs(logits - row.entropy);
    ways.division_over =
        std::max(ways.division_over,
                 std::fabs(division - predicted) / rounding_bound(row, format, below, kByDivision));
    ways.logits_over =
        std::max(ways.logits_over, std::fabs(logits - row.entropy) /
                                       rounding_bound(row, format, row.rest, kByLogits));
  }
  return ways;
}

void add_gradients(const ExperimentRun& run, std::int64_t rows, Conclusion& conclusion) {
  const auto classes = run.settings.whole_numbers("classes");
  const std::vector<Worst> all = run_cases<Worst>(run, classes, [&](std::int64_t k) {
    return TypedTrial<Worst>{
        {{"question", "gradient"}, {"classes", k}, {"rows", rows}, {"seed", run.seed}},
        fmt::format("gradient, {} classes", k),
        [&run, k, rows] { return gradients(run.seed, k, rows); }};
  });
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto add = [&](const char* what, double measured) {
      conclusion.add(
          exact_finding(fmt::format("{} classes: largest error of the gradient beside {} "
                                    "over its bound",
                                    classes[i], what),
                        1, measured, measured <= 1, at_most(1)),
          "gradient");
    };
    add("the closed form", all[i].closed);
    add("central differences", all[i].differences);
  }
}

void add_ways(const ExperimentRun& run, std::int64_t rows, Conclusion& conclusion) {
  const std::int64_t classes = run.settings.whole_numbers("classes").front();
  const double guard = run.settings.number("guard");
  const Format& format = find_format(run.settings.text("format"));
  const std::vector<double> margins = run.settings.numbers("margins");
  const std::vector<Ways> all = run_cases<Ways>(run, margins, [&](double margin) {
    return TypedTrial<Ways>{{{"question", "ways"},
                             {"classes", classes},
                             {"rows", rows},
                             {"margin", margin},
                             {"guard", guard},
                             {"format", format.name},
                             {"seed", run.seed}},
                            fmt::format("{}, margin {}", format.name, margin),
                            [&run, &format, classes, rows, margin, guard] {
                              return compare_ways(run.seed, format, classes, rows, margin, guard);
                            }};
  });
  Chart chart{.title = fmt::format("Error of the complement entropy in {}, {} classes", format.name,
                                   classes),
              .caption =
                  "Mean absolute error by the margin of the label's logit over the largest other; "
                  "by division the remainder 1 - p is a multiple of the format's spacing below 1.",
              .x = "margin",
              .y = "error, nats",
              .log_y = true};
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const Ways& ways = all[i];
    const std::string at = fmt::format("margin {}: ", margins[i]);
    conclusion.add(exact_finding(at + "entropy by division, distance from the formula over the "
                                      "bound of roundings",
                                 1, ways.division_over, ways.division_over <= 1, at_most(1)),
                   "division");
    conclusion.add(exact_finding(at + "entropy by logits, error over the bound of roundings", 1,
                                 ways.logits_over, ways.logits_over <= 1, at_most(1)),
                   "logits");
    conclusion.add(exact_finding(at + "share of rows whose remainder is 0", ways.expected_lost,
                                 ways.lost, std::fabs(ways.expected_lost - ways.lost) < 1e-9),
                   "division");
    chart.add("by division", {.x = margins[i], .y = ways.division},
              {.x = margins[i], .y = ways.predicted});
    chart.of("by logits measured").points.push_back({.x = margins[i], .y = ways.logits});
  }
  const auto column = [&](const char* header, double Ways::*figure) {
    return StudyColumn{
        header, [&all, figure](std::size_t i) { return fmt::format("{:.3g}", all[i].*figure); }};
  };
  conclusion.tables.push_back(study_table(
      fmt::format("Complement entropy in {}, {} classes, {} rows, guard {}: mean absolute errors",
                  format.name, classes, rows, guard),
      margins.size(),
      {{"margin", [&](std::size_t i) { return fmt::format("{}", margins[i]); }},
       column("1 - p", &Ways::rest),
       column("share of 0", &Ways::lost),
       column("by division", &Ways::division),
       column("predicted", &Ways::predicted),
       column("by logits", &Ways::logits)}));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace

void check_format(const std::string& name) {
  const Format& format = find_format(name);
  if (format.kind != Kind::floating || format.bits > 16 ||
      format.field_zero != FieldZero::subnormal)
    throw Error("expected a floating format of at most 16 bits with subnormals, not " +
                format.name);
}

void check_guard(const Settings& settings) {
  const Format& format = find_format(settings.text("format"));
  if (rounded(settings.number("guard"), format) > 0) return;
  throw usage_error(fmt::format(
      "--set: guard: expected at least {:.3g}, as {} rounds {} to 0, by which it would divide",
      std::ldexp(1.0, 1 - format.bias - format.mantissa_bits), format.name,
      settings.text("guard")));
}

void add_closed_forms(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t rows = run.settings.integer("rows");
  add_gradients(run, rows, conclusion);
  add_ways(run, rows, conclusion);
}

namespace {

constexpr double kRiseTolerance = 0.05;  // relative
constexpr const char* kNoText = "-";
enum : std::size_t { kPlain, kTwice, kComplement, kOwn };

std::vector<TrainingMethod> methods(const std::string& own) {
  const auto with = [](std::vector<std::string> objectives) {
    return [objectives](TrainTrial& trial) { trial.options.objectives = objectives; };
  };
  return {{.name = "cross-entropy", .change = with({"cross_entropy"})},
          // The same loss by another name, as objectives of a step differ in their names.
          {.name = "cross-entropy twice", .change = with({"cross_entropy", "label_smoothing(0)"})},
          {.name = "complement", .change = with({"cross_entropy", "complement"})},
          {.name = "complement by " + own, .change = [own](TrainTrial& trial) {
             trial.options.objectives = {"cross_entropy", "complement"};
             trial.options.objective_optimizers = {{"complement", own}};
           }}};
}

/// Robust as RecipeComparison::after has it.
struct Figures {
  std::size_t epsilons;

  std::vector<double> of(const Robust& robust) const {
    std::vector<double> all = robust.top1;
    all.insert(all.end(), {robust.rise / robust.predicted_rise, robust.lost});
    return all;
  }
  static double at(const ComparedRun& run, std::size_t place) {
    return run.outcome.diverged || place >= run.after.size() ? NAN : run.after[place];
  }
  double ratio(const ComparedRun& run) const { return at(run, epsilons); }
  double lost(const ComparedRun& run) const { return at(run, epsilons + 1); }
};

/// What the methods gain, judged together but for trainings that have not come to their end, which
/// is where the paper compares them.
class Gains {
 public:
  void add(PairedGain gain, const std::string& unended = "") {
    if (unended.empty())
      ended_.push_back(std::move(gain));
    else
      unended_.push_back({std::move(gain), unended});
  }
  void judge(Conclusion& conclusion) const {
    conclusion.add(judge_gains(ended_));
    for (const auto& [gain, why] : unended_)
      conclusion.add(without_verdict(judge_gains({gain}), why));
  }

 private:
  std::vector<PairedGain> ended_;
  std::vector<std::pair<PairedGain, std::string>> unended_;
};

/// That as many further steps of cross-entropy may still gain more than the margin; "" where they
/// surely do not.
std::string unended(const ComparedUnder& under) {
  constexpr double kPoints = 0.5, kShareOfBits = 0.01;
  const stats::PairedInterval further = gain(under.better, kTwice, kPlain);
  const double margin =
      under.accuracy()
          ? kPoints
          : kShareOfBits * std::fabs(stats::paired_interval(under.better[kPlain]).mean);
  if (further.high <= margin || !std::isfinite(further.high)) return "";  // one seed: no verdict
  return fmt::format(
      "training may not have ended: as many steps of cross-entropy gain up to {:.3g} {}",
      further.high, under.unit());
}

void judge(const std::string& net, const ComparedUnder& under, Gains& gains) {
  const auto gained = [&](std::size_t method, std::size_t on, const std::string& claim) {
    return PairedGain{
        fmt::format("{}, {}: {} gained on '{}' by '{}'", net, under.recipe, under.unit(),
                    under.study.methods[on], under.study.methods[method]),
        gain(under.better, method, on), claim};
  };
  gains.add(gained(kComplement, kPlain, published_in(under.recipe, "accuracy")), unended(under));
  gains.add(gained(kComplement, kTwice, "steps"));
}

/// Accuracy by epsilon, and what the sums of absolute gradients say of the first.
void add_robustness(const ComparedUnder& under, const std::string& net, const Figures& figures,
                    const std::vector<double>& epsilons, Gains& gains, Conclusion& conclusion) {
  const Study<ComparedRun>& study = under.study;
  const std::string title =
      fmt::format("{}, {}, {}", net, under.recipe, counted(study.seeds(), "seed"));
  const std::string why = unended(under);
  std::vector<StudyColumn> columns{name_column("method", study.methods)};
  Chart chart{.title = "Accuracy under FGSM: " + title,
              .caption =
                  "Test images moved by epsilon along the sign of their gradient, in the "
                  "units of the network's input; float32.",
              .x = "epsilon",
              .y = "top-1, %"};
  for (std::size_t e = 0; e < epsilons.size(); ++e) {
    const SeedFigures top1 =
        study.figures([e](const ComparedRun& run) { return Figures::at(run, e); });
    columns.push_back(mean_column(fmt::format("top-1 at {}, %", epsilons[e]), top1));
    gains.add(
        {fmt::format("{}, {}: points of top-1 at epsilon {} gained on '{}' by '{}'", net,
                     under.recipe, epsilons[e], study.methods[kPlain], study.methods[kComplement]),
         gain(top1, kComplement, kPlain), published_in(under.recipe, "robust")},
        why);
    for (std::size_t m = 0; m < study.size(); ++m)
      chart.of(study.methods[m])
          .points.push_back({.x = epsilons[e], .y = stats::paired_interval(top1[m]).mean});
  }
  const auto ratio = [&](const ComparedRun& run) { return figures.ratio(run); };
  const auto lost = [&](const ComparedRun& run) { return 100 * figures.lost(run); };
  columns.push_back(mean_column("rise of the loss / predicted", study.figures(ratio), 3));
  columns.push_back(mean_column("1 - p is 0 in 1-6-9, % of images", study.figures(lost)));
  for (const std::size_t m : {kPlain, kComplement}) {
    conclusion.add(interval_finding(fmt::format("{}, {}, {}: rise of the loss at epsilon {} over "
                                                "what the gradients predict",
                                                net, under.recipe, study.methods[m], epsilons[0]),
                                    1, stats::paired_interval(study.figures(m, ratio)),
                                    near(1, kRiseTolerance)),
                   "rise");
  }
  conclusion.tables.push_back(study_table("FGSM: " + title, study.size(), columns));
  conclusion.charts.push_back(std::move(chart));
}

RecipeComparison images_of(const Settings& settings) {
  return {.trial = training_of(settings, settings.text("net")),
          .methods = methods(settings.text("own")),
          .recipes = settings.list("recipes")};
}

RecipeComparison words_of(const Settings& settings) {
  const std::string net = settings.text("text_net"), optimizer = net::recommended_optimizer(net);
  RecipeComparison text{
      .trial = training_of(settings, net, {.optimizer = optimizer, .prefix = "text_"}),
      .methods = methods(optimizer),
      .recipes = settings.list("recipes"),
      .at_once = false};
  text.methods.resize(kOwn);  // the last has another optimizer
  return text;
}

void add_images(const ExperimentRun& run, const net::Dataset& data, Gains& gains,
                Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string net = settings.text("net");
  const std::vector<double> epsilons = settings.numbers("epsilons");
  const std::int64_t images = settings.integer("attacked");
  const Figures figures{epsilons.size()};
  std::string figured = fmt::format("FGSM on {} images at", images);
  for (const double epsilon : epsilons) figured += fmt::format(" {}", epsilon);
  RecipeComparison comparison = images_of(settings);
  comparison.after = [&](const TrainTrial&, const net::Graph& graph) {
    return figures.of(robustness(graph, data, images, epsilons));
  };
  comparison.figured = figured;
  for (const ComparedUnder& under : compare_methods(run, data, comparison, conclusion)) {
    judge(net, under, gains);
    add_robustness(under, net, figures, epsilons, gains, conclusion);
  }
}

void add_text(const ExperimentRun& run, const net::Dataset& data, Gains& gains,
              Conclusion& conclusion) {
  const RecipeComparison comparison = words_of(run.settings);
  for (const ComparedUnder& under : compare_methods(run, data, comparison, conclusion))
    judge(comparison.trial.net, under, gains);
}

Conclusion run_complement(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  Conclusion conclusion;
  check_guard(settings);
  const net::Dataset data = load_data(run);
  require_trainable(run, data, images_of(settings));
  std::optional<net::Dataset> text;
  if (settings.text("text_net") != kNoText) {
    text = load_data(run, "text_data");
    require_trainable(run, *text, words_of(settings));
  }
  add_closed_forms(run, conclusion);
  Gains gains;
  add_images(run, data, gains, conclusion);
  if (text) add_text(run, *text, gains, conclusion);
  gains.judge(conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::complement

namespace numemu::experiments {

extern const Experiment experiment_complement = {
    "complement",
    "what do steps that even out the wrong classes gain in accuracy and robustness, and what do "
    "few bits make of their gradient",
    "Chen et al. (ICLR 2019, arXiv 1903.01182) claim that a step that maximises the entropy of the "
    "wrong classes after each step of cross-entropy makes networks more accurate, and more robust "
    "to single-step attacks.",
    {{"gradient",
      "The gradient is q (ln q + H) / K, as central differences say, up to the rounding of float32 "
      "exponentials and logarithms (derived here)."},
     {"division",
      "In a format the entropy by division is S (H - ln S), S the remainder 1 - p over its "
      "rounding, up to the roundings of its terms (derived here)."},
     {"logits",
      "By logits its error stays below that of the roundings at any margin (derived here)."},
     {"rise",
      "The smallest step of FGSM raises the loss by epsilon times the sum of absolute gradients, "
      "within 5 % (derived here)."},
     {"accuracy",
      "Alternating steps gain accuracy on cross-entropy alone, where as many further steps of that "
      "gain at most 0.5 points or 1 % of the bits (published; the margin is ours).",
      "seeds"},
     {"steps", "They gain on as many steps of cross-entropy (a contrast).", "seeds"},
     {"robust", "So they gain accuracy under FGSM on cross-entropy alone (published).", "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"classes", "10", "10,100", "10,100", "classes of random logits; the first for formats",
      wholes(3, 1000)},
     {"rows", "200", "10000", "100000", "rows of them", whole(2, 10'000'000)},
     {"margins", "0,4,8", "-4,0,2,4,6,8,10,12", "-4,0,2,4,6,8,10,12",
      "of the label's logit over the largest other", reals(-50, 80)},
     {"format", "hfp16_e6m9", "of the entropy by division and by logits",
      text_of(complement::check_format)},
     {"guard", "1e-7", "that division adds to 1 - p", real(0, 1)},
     {"net", "mlp", "network to train on images", takes_network()},
     data_setting("of images"),
     {"optimizer", "sgd", "optimizer of every objective", takes_optimizer()},
     {"own", "novograd", "of the complement in the last method", takes_optimizer()},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes", list_of()},
     {"epsilons", "0.001,0.05,0.1", "0.001,0.01,0.02,0.05,0.1,0.2,0.4",
      "0.001,0.01,0.02,0.05,0.1,0.2,0.4", "steps of FGSM, in units of the network's input",
      reals(1e-6, 100)},
     {"attacked", "200", "1000", "1000", "test images under FGSM", whole(1, 1'000'000'000)},
     training_settings({"1", "4", "4"}, "64", {"1024", "4096", "4096"}, {"500", "4000", "4000"}),
     {"text_net", "char-transformer", "network to train on text; -: none", takes_network_or_none()},
     {"text_data", "chain", "text", takes_data_set()},
     {"text_lr", "0.004", "its learning rate", real(1e-9, 1e3)},
     {"text_warmup", "0", "8", "8", "steps over which that rises", whole(0, 1'000'000'000)},
     training_settings("1", {"2", "4", "4"}, {"4", "200", "200"}, {"4", "80", "80"},
                       {.of = "window", .prefix = "text_"}),
     seeds_setting({"1", "3", "8"})},
    complement::run_complement};

}  // namespace numemu::experiments
