// The gradient of the objective beside two computations of its own, and the entropy in a format by
// division and by logits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/train/objective.hpp"
#include "experiments/complement/entropy.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::complement {
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
                  "Mean absolute error by the margin of the label's logit over the largest "
                  "other; by division the remainder 1 - p is a multiple of the format's "
                  "spacing below 1.",
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

}  // namespace numemu::experiments::complement
