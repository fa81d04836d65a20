// AdaComp: what it sends of noise alone beside the published rates, and networks that four workers
// train with it (Chen et al., AAAI 2018, arXiv 1712.02679).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "emu/stats/mean.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/adacomp_law.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments::adacomp {

namespace {

/// Published rates, and those of a simulation of the rule on noise.
struct Bin {
  std::int64_t bin;
  double published, simulated;
};

constexpr Bin kConvolution{50, 40, 40.2}, kMatrix{500, 200, 169.8};

constexpr double kSimulated = 0.02;  // relative: the simulation's size is not known
constexpr double kMeanField = 0.1;   // relative: what it neglects, steady_state()
constexpr double kHeadline = 0.1;    // relative, of published rates, which have one digit
constexpr double kAbout = 1.25;      // factor below published rates of networks, ours
// Full bins of the longest tensor: with fewer the rate is that of a few maxima and a short last
// bin, not that of the rule.
constexpr std::int64_t kLeastBins = 10;

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

/// Normal gradients of one worker over many steps, beside their laws (settings bins, elements,
/// warm, steps, repeats).
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

using workers::Group;
using workers::TrainedNetwork;

void judge_rates(const TrainedNetwork& trained, std::size_t method, Conclusion& conclusion) {
  const auto judge = [&](const char* of, std::int64_t least, std::int64_t most, const Bin& bin) {
    const stats::PairedInterval rates = trained.rates(method, least, most);
    if (std::isnan(rates.mean)) return;  // the network has none
    std::int64_t longest = 0;
    for (const workers::SentParameter& p : trained.study.runs[method][0].parameters)
      if (p.axes >= least && p.axes <= most) longest = std::max(longest, p.elements);
    const bool short_bins = longest < kLeastBins * bin.bin;
    const auto add = [&](const std::string& what, double predicted, const Allowed& allowed,
                         const char* claim) {
      Finding finding =
          interval_finding(fmt::format("{}: compression of {}, {}", trained.name, of, what),
                           predicted, rates, allowed);
      if (short_bins) {
        finding.what += fmt::format("; no verdict: {} elements, {:.2g} bins", longest,
                                    static_cast<double>(longest) / static_cast<double>(bin.bin));
        finding.verdict = Verdict::none;
      }
      conclusion.add(std::move(finding), claim);
    };
    add(fmt::format("about {:g} (at least {:g})", bin.published, bin.published / kAbout),
        bin.published, at_least(bin.published / kAbout), "published");
    add("at least that of noise", bin.simulated, at_least(bin.simulated), "above noise");
  };
  judge("convolutions", 3, 8, kConvolution);
  judge("matrices", 2, 2, kMatrix);
}

void add_networks(const ExperimentRun& run, Conclusion& conclusion) {
  std::vector<workers::Method> methods = {
      workers::dense(),
      workers::exchanged({{"rule", "adacomp"}, {"bin", kConvolution.bin}, {"matrix", kMatrix.bin}}),
      workers::exchanged("adacomp(50)"),
      workers::exchanged("topk(0.01)", ""),
      workers::exchanged("randomk(0.01)", ""),
  };
  methods[1].name = "adacomp, published bins";
  for (const Group group : {Group::images, Group::fine_tuning, Group::text}) {
    for (const TrainedNetwork& trained : workers::add_training(run, group, methods, conclusion))
      judge_rates(trained, 1, conclusion);
  }
}

Conclusion run_adacomp(const ExperimentRun& run) {
  Conclusion conclusion;
  add_noise(run, conclusion);
  add_networks(run, conclusion);
  const auto elements = static_cast<std::int64_t>(link_setup(run.settings).elements);
  add_exchange_figure(
      {wire::adacomp(kConvolution.bin, elements), wire::adacomp(kMatrix.bin, elements)},
      run.settings, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::adacomp

namespace numemu::experiments {

extern const Experiment experiment_adacomp = {
    "adacomp",
    "how far does AdaComp compress gradients that are noise, how far those of networks, and what "
    "does training lose",
    "Chen et al. (AAAI 2018, arXiv 1712.02679) claim that gradients of convolutions are compressed "
    "about 40 times and those of fully connected and recurrent layers about 200 times without "
    "noticeable loss, with SGD and Adam.",
    {{"first",
      "The first step on noise sends what the law of a bin's largest element says (derived here)."},
     {"noise",
      "Noise alone is compressed 40.2 times in bins of 50 and 169.8 times in bins of 500, within 2 "
      "% (derived here)."},
     {"mean field",
      "A mean field of independent elements predicts compression and residual of noise within "
      "10 % (derived here)."},
     {"headline", "The published 40 and 200 are what noise alone gives, within 10 % (a contrast)."},
     {"published",
      "Networks reach about 40 in convolutions and about 200 in fully connected and recurrent "
      "layers, or more: at least four fifths of it (published; the margin is ours).",
      "seeds"},
     {"above noise",
      "Gradients of networks, whose scales differ, are compressed further than noise (a contrast).",
      "seeds"},
     {"accuracy",
      "Training loses at most 0.5 points of top-1, or 1 % of the bits per character, to the dense "
      "mean (published; the margin is ours).",
      "seeds"}},
    with_links(workers::with_training(
        {{"bins", "50,500", "10,50,200,500", "10,20,50,100,200,500,1000", "elements of a bin",
          wholes(2, 16384)},
         {"elements", "20000", "100000", "200000", "of the gradients that are noise",
          whole(16384, 100'000'000)},
         {"warm", "300", "500", "1000", "steps before what is sent counts", whole(1, 1'000'000)},
         {"steps", "50", "100", "500", "steps that count", whole(1, 1'000'000)},
         {"repeats", "2", "5", "10", "draws of the noise", whole(1, 1000)}},
        {workers::Group::images, workers::Group::fine_tuning, workers::Group::text},
        {"sgd", "sgd,adam", "sgd,adam"})),
    adacomp::run_adacomp,
    workers::check_training};

}  // namespace numemu::experiments
