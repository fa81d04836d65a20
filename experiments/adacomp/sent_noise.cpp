// What AdaComp sends of noise, measured through the rule, beside its laws.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/stats/mean.hpp"
#include "experiments/adacomp/noise.hpp"
#include "experiments/adacomp/questions.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/synthetic_workers.hpp"

namespace numemu::experiments::adacomp {
namespace {

constexpr double kSimulated = 0.02;  // relative: the simulation's size is not known
constexpr double kMeanField = 0.1;   // relative: what it neglects, steady_state()
constexpr double kHeadline = 0.1;    // relative, of published rates, which have one digit

/// What one worker sends of normal gradients.
struct Sent {
  double first = 0, later = 0;    ///< elements of a bin: in the first step, the mean of later ones
  double residual = 0;            ///< root mean square after the last step
  double lost = 0, rounding = 0;  ///< largest |gradients - sent - residual|, and what float32 may

  static void fields(auto& self, const auto& visit) {
    visit("first", self.first);
    visit("later", self.later);
    visit("residual", self.residual);
    visit("lost", self.lost);
    visit("rounding", self.rounding);
  }
};

struct Plan {
  std::int64_t elements, warm, steps;
};

Sent measure(const Plan& plan, std::int64_t bin, std::uint64_t seed) {
  const std::int64_t bins = plan.elements / bin, n = bins * bin;
  workers::SyntheticWorkers worker({{"rule", "adacomp"}, {"bin", bin}}, bins, bin, seed);
  std::vector<double> rest(static_cast<std::size_t>(n));
  Sent sent;
  for (std::int64_t step = 0; step < plan.warm + plan.steps; ++step) {
    const workers::Gradients gradients = workers::correlated_normals(1, n, 0, seed, step);
    const auto [mean, bits] = worker.exchange(step, gradients);
    const double of_bin =
        (bits.sent - 32) / static_cast<double>(code_bits(bin)) / static_cast<double>(bins);
    if (step == 0) sent.first = of_bin;
    if (step >= plan.warm) sent.later += of_bin / static_cast<double>(plan.steps);
    double largest = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      rest[i] += double{gradients[0][i]} - double{mean[i]};
      largest = std::max({largest, std::fabs(rest[i]), std::fabs(double{mean[i]})});
    }
    // Residual + gradient and its rest are rounded once each: half an ulp of at most their size,
    // below the largest rest before sending, which is at most rest + sent.
    sent.rounding += 2 * 0x1p-24 * 2 * largest;
  }
  const std::vector<float> residual = worker.kept("recipe/exchange/adacomp", 0);
  double squares = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    squares += double{residual[i]} * residual[i];
    sent.lost = std::max(sent.lost, std::fabs(rest[i] - residual[i]));
  }
  sent.residual = std::sqrt(squares / static_cast<double>(n));
  return sent;
}

void judge(const Bin* known, std::int64_t bin, const SteadyState& predicted,
           const std::vector<Sent>& runs, Conclusion& conclusion) {
  const auto over = [&](double Sent::*figure) {
    std::vector<double> values;
    for (const Sent& run : runs) values.push_back(run.*figure);
    return values;
  };
  const stats::Mean first = stats::mean_of(over(&Sent::first));
  conclusion.add(closed_form(fmt::format("elements sent of a bin of {}, first step", bin),
                             first_sent(bin), first.value, first.error),
                 "first");
  std::vector<double> rates = over(&Sent::later);
  for (double& value : rates) value = rate(bin, value);
  const stats::PairedInterval reached = stats::paired_interval(rates);
  const auto relative = [&](const char* what, double value, double tolerance, const char* claim) {
    conclusion.add(interval_finding(fmt::format("{}, bins of {}", what, bin), value, reached,
                                    near(value, tolerance * value)),
                   claim);
  };
  relative("compression of noise", rate(bin, predicted.sent), kMeanField, "mean field");
  conclusion.add(interval_finding(fmt::format("residual over the gradient, bins of {}", bin),
                                  predicted.residual, stats::paired_interval(over(&Sent::residual)),
                                  near(predicted.residual, kMeanField * predicted.residual)),
                 "mean field");
  if (known != nullptr) {
    relative("compression of noise, simulated", known->simulated, kSimulated, "noise");
    relative("compression of noise as published", known->published, kHeadline, "headline");
    conclusion.sentences.push_back(fmt::format(
        "Noise alone is compressed {:.1f} times in bins of {}: {:.0f} is published for networks.",
        reached.mean, bin, known->published));
  }
  const auto worst = std::ranges::max_element(runs, {}, &Sent::lost);
  conclusion.add(self_check(
      fmt::format("largest |gradients - sent - residual| over all steps, bins of {}", bin), 0,
      worst->lost, worst->lost <= worst->rounding));
}

}  // namespace

void add_noise(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<std::int64_t> bins = settings.whole_numbers("bins");
  const Plan plan{settings.integer("elements"), settings.integer("warm"),
                  settings.integer("steps")};
  const std::vector<std::uint64_t> seeds = seeds_of(run, "repeats");
  StudyPlan study_plan{{}, seeds, /*at_once=*/true};
  for (const std::int64_t bin : bins) study_plan.methods.push_back(fmt::format("bins of {}", bin));
  const auto study =
      run_study<Sent>(run, study_plan, [&](std::size_t b, std::uint64_t seed) -> StudyRun<Sent> {
        return {{{"noise", "normal"},
                 {"bin", bins[b]},
                 {"elements", plan.elements},
                 {"warm", plan.warm},
                 {"steps", plan.steps},
                 {"seed", seed}},
                [=] { return measure(plan, bins[b], seed); }};
      });
  Chart chart{.title = "Compression of independent normal gradients by AdaComp",
              .caption = fmt::format(
                  "Float32 bits over bits sent, of {} elements after {} steps, over {} repeats; "
                  "predicted by a mean field of independent elements.",
                  plan.elements, plan.warm, seeds.size()),
              .x = "elements of a bin",
              .y = "compression",
              .log_x = true,
              .log_y = true};
  std::vector<SteadyState> predicted;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    predicted.push_back(steady_state(bins[b]));
    const Bin* known = nullptr;
    for (const Bin* one : {&kConvolution, &kMatrix})
      if (one->bin == bins[b]) known = one;
    judge(known, bins[b], predicted[b], study.runs[b], conclusion);
    const auto x = static_cast<double>(bins[b]);
    const stats::PairedInterval reached = stats::paired_interval(
        study.figures(b, [&](const Sent& sent) { return rate(bins[b], sent.later); }));
    chart.add("steady state", gain_point(x, "", reached),
              {.x = x, .y = rate(bins[b], predicted[b].sent)});
    chart.add("first step", {.x = x, .y = rate(bins[b], study.mean(b, &Sent::first))},
              {.x = x, .y = rate(bins[b], first_sent(bins[b]))});
  }
  const auto mean = [&](double Sent::*figure) {
    return [&study, figure](std::size_t b) { return fmt::format("{:.2f}", study.mean(b, figure)); };
  };
  conclusion.tables.push_back(study_table(
      fmt::format("Elements sent of {} independent normal gradients, {} repeats", plan.elements,
                  seeds.size()),
      bins.size(),
      {name_column("bins", study.methods),
       {"first step", mean(&Sent::first)},
       {"predicted", [&](std::size_t b) { return fmt::format("{:.2f}", first_sent(bins[b])); }},
       {"steady state", mean(&Sent::later)},
       {"predicted", [&](std::size_t b) { return fmt::format("{:.2f}", predicted[b].sent); }},
       {"residual / gradient", mean(&Sent::residual)},
       {"predicted", [&](std::size_t b) { return fmt::format("{:.2f}", predicted[b].residual); }},
       {"compression", [&](std::size_t b) {
          return fmt::format("{:.1f}", rate(bins[b], study.mean(b, &Sent::later)));
        }}}));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::adacomp
