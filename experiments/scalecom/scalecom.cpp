// ScaleCom: what places chosen by one worker lose and send by the correlation of workers, and
// networks that four workers train with them (Chen et al., NeurIPS 2020, arXiv 2104.11125).
#include "experiments/scalecom/scalecom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emu/stats/mean.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::scalecom {

namespace {

double threshold_of(double share) { return normal::quantile(1 - share / 2); }

/// E[z^2; |z| > t], t the threshold of the share.
double square_in_largest(double share) {
  const double t = threshold_of(share);
  return 2 * (t * normal::pdf(t) + normal::cdf(-t));
}

}  // namespace

double contraction(double share, const Workers& workers) {
  const double rho = workers.correlation, r2 = rho + (1 - rho) / static_cast<double>(workers.count);
  return 1 - (r2 * square_in_largest(share) + (1 - r2) * share);
}

double least_contraction(double share) { return 1 - square_in_largest(share); }

double union_of_places(double share, const Workers& workers) {
  if (workers.correlation >= 1) return 1;
  constexpr double kEnd = 9;  // beyond, less than 1e-18 of the law of c
  const double t = threshold_of(share), common = std::sqrt(workers.correlation),
               own = std::sqrt(1 - workers.correlation);
  // The trapezoidal rule converges faster than any power of a step below what p(c) rises over.
  const double step = std::min(0x1p-5, own / 8);
  const auto nodes = static_cast<std::int64_t>(kEnd / step);
  double sum = 0;
  for (std::int64_t i = -nodes; i <= nodes; ++i) {
    const double c = static_cast<double>(i) * step;
    const double p = normal::cdf((-t - common * c) / own) + normal::cdf((-t + common * c) / own);
    sum +=
        step * normal::pdf(c) *
        -portable::expm1(static_cast<double>(workers.count) * portable::log1p(-std::min(p, 1.0)));
  }
  return sum / share;
}

namespace {

/// |mean - received|^2 / |mean|^2 by what is exchanged, and how many places are sent.
struct Chosen {
  double one = 0, mean = 0, random = 0;  ///< one worker's, the mean's own largest, random places
  double places = 0;                     ///< of each worker's own largest, over those of one

  static void fields(auto& self, const auto& visit) {
    visit("one", self.one);
    visit("mean", self.mean);
    visit("random", self.random);
    visit("places", self.places);
  }
};

double lost(const std::vector<float>& mean, const std::vector<float>& received) {
  double rest = 0, whole = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double missing = double{mean[i]} - double{received[i]};
    rest += missing * missing;
    whole += double{mean[i]} * double{mean[i]};
  }
  return rest / whole;
}

/// The first step of each rule, without residuals.
Chosen measure(const Workers& law, double share, std::int64_t elements, std::uint64_t seed) {
  constexpr std::int64_t kRows = 16;
  const std::int64_t columns = elements / kRows, n = kRows * columns;
  const workers::Gradients gradients =
      workers::correlated_normals(law.count, n, law.correlation, seed, 0);
  const std::vector<float> mean = workers::mean_of(gradients);
  const auto received = [&](const char* rule, const workers::Gradients& given) {
    workers::SyntheticWorkers all({{"rule", rule}, {"share", share}}, kRows, columns, seed);
    return all.exchange(0, given).mean;
  };
  const std::vector<float> own = received("topk", gradients);
  return {lost(mean, received("scalecom", gradients)), lost(mean, received("topk", {mean})),
          lost(mean, received("randomk", gradients)),
          static_cast<double>(n - std::ranges::count(own, 0.0f)) /
              std::round(share * static_cast<double>(n))};
}

/// What is predicted of a figure under a law.
struct Figure {
  const char *name, *claim;
  double Chosen::*measured;
  double (*predicted)(double share, const Workers&);
};
constexpr Figure kFigures[] = {
    {"contraction of places chosen by one worker", "contraction", &Chosen::one, contraction},
    {"contraction of the mean's own places", "contraction", &Chosen::mean,
     [](double share, const Workers&) { return least_contraction(share); }},
    {"contraction of random places", "contraction", &Chosen::random,
     [](double share, const Workers&) { return 1 - share; }},
    {"places of all workers over those of one", "union", &Chosen::places, union_of_places}};

void add_correlations(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t count = settings.integer("noise_workers"),
                     elements = settings.integer("elements");
  const double share = settings.number("share");
  const std::vector<std::uint64_t> seeds = seeds_of(run, "repeats");
  const std::vector<double> rhos = settings.numbers("correlations");
  StudyPlan plan{{}, seeds, /*at_once=*/true};
  for (const double rho : rhos) plan.methods.push_back(fmt::format("{}", rho));
  const auto study =
      run_study<Chosen>(run, plan, [&](std::size_t r, std::uint64_t seed) -> StudyRun<Chosen> {
        return {{{"noise", "correlated normal"},
                 {"workers", count},
                 {"correlation", rhos[r]},
                 {"share", share},
                 {"elements", elements},
                 {"seed", seed}},
                [=] {
                  return measure({count, rhos[r]}, share, elements, seed);
                }};
      });
  const std::string title = fmt::format("{} workers, {} normal numbers each, {} % sent, {} repeats",
                                        count, elements, 100 * share, seeds.size());
  ResultTable table{title, {"correlation"}, {}};
  Chart losses{.title = "What sparse gradients lose by the correlation of workers",
               .caption = title + ". 1: nothing of the mean arrives.",
               .x = "correlation of workers",
               .y = "|mean - received|^2 / |mean|^2"};
  Chart places{.title = "Places sent where each worker chooses its own",
               .caption = title + ". Places chosen by one worker are 1.",
               .x = "correlation of workers",
               .y = "places over those of one worker"};
  for (std::size_t r = 0; r < rhos.size(); ++r) table.rows.push_back({study.methods[r]});
  for (const Figure& figure : kFigures) {
    table.header.insert(table.header.end(), {figure.name, "predicted"});
    Chart& chart = figure.measured == &Chosen::places ? places : losses;
    for (std::size_t r = 0; r < rhos.size(); ++r) {
      const double predicted = figure.predicted(share, {count, rhos[r]});
      const stats::Mean measured = stats::mean_of(study.figures(r, figure.measured));
      conclusion.add(closed_form(fmt::format("{}, correlation {}", figure.name, rhos[r]), predicted,
                                 measured.value, measured.error),
                     figure.claim);
      table.rows[r].insert(table.rows[r].end(), {fmt::format("{:.5f}", measured.value),
                                                 fmt::format("{:.5f}", predicted)});
      chart.add(figure.name, with_error({.x = rhos[r], .y = measured.value}, measured.error),
                {.x = rhos[r], .y = predicted});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(losses));
  conclusion.charts.push_back(std::move(places));
}

/// Bits of a step, exactly: k values of each worker, and of one its k places.
double predicted_bytes(const workers::Trained& trained, double share, std::int64_t count) {
  double bits = 0;
  for (const workers::SentParameter& parameter : trained.parameters) {
    const std::int64_t n = parameter.elements;
    const double sent = std::max(1.0, std::round(share * static_cast<double>(n))),
                 place = std::bit_width(static_cast<std::uint64_t>(n - 1));
    bits += parameter.axes < 2 ? 32.0 * static_cast<double>(n)
                               : sent * (32 + place / static_cast<double>(count));
  }
  return bits / 8;
}

void add_networks(const ExperimentRun& run, Conclusion& conclusion) {
  const double share = run.settings.number("share");
  const auto rule = [&](const char* name, const char* more = "") {
    return fmt::format("{}({}{})", name, share, more);
  };
  const std::vector<workers::Method> methods = {
      workers::dense(), workers::exchanged(rule("scalecom")),
      workers::exchanged(rule("scalecom", ",0.1")), workers::exchanged(rule("topk"), ""),
      workers::exchanged(rule("randomk"), "")};
  const std::int64_t count = run.settings.integer("workers");
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning}) {
    for (const workers::TrainedNetwork& trained :
         workers::add_training(run, group, methods, conclusion)) {
      const workers::Trained& first = trained.study.runs[1][0];
      const double predicted = predicted_bytes(first, share, count);
      conclusion.add(
          exact_finding(fmt::format("{}: bytes sent by {}", trained.name, methods[1].name),
                        predicted, first.sent_bytes(),
                        std::fabs(first.sent_bytes() / predicted - 1) <= 1e-12),
          "bytes");
    }
  }
}

Conclusion run_scalecom(const ExperimentRun& run) {
  Conclusion conclusion;
  add_correlations(run, conclusion);
  add_networks(run, conclusion);
  const double share = run.settings.number("share");
  const auto elements = static_cast<std::int64_t>(link_setup(run.settings).elements);
  add_exchange_figure({wire::scalecom(share, elements), wire::topk(share, elements),
                       wire::randomk(share, elements)},
                      run.settings, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::scalecom

namespace numemu::experiments {

extern const Experiment experiment_scalecom = {
    "scalecom",
    "how close does one worker's choice of places come to the best one as workers correlate, what "
    "does it save on the wire, and what does training lose",
    "Chen et al. (NeurIPS 2020, arXiv 2104.11125) claim that workers' gradients with error "
    "feedback correlate, so that the places of one serve all, and that training with gradients "
    "compressed 65 to 400 times loses little, also at 64 workers.",
    {{"contraction",
      "What the chosen, the best and random places lose follows the closed forms (derived here)."},
     {"union",
      "Places of workers that choose their own add up as the closed form says (derived here)."},
     {"bytes",
      "Bytes on the wire are those that share and number of workers give, with vectors sent whole "
      "(derived here)."},
     {"accuracy",
      "Training loses at most 0.5 points of top-1 to the dense mean (published; the margin and the "
      "share are ours).",
      "seeds"}},
    with_links(workers::with_training(
        {{"share", "0.01", "part of the elements that is sent", real(1e-3, 0.5)},
         {"correlations", "0,0.5,0.9", "0,0.25,0.5,0.75,0.9", "0,0.1,0.25,0.5,0.75,0.9,0.99",
          "of the workers' normal numbers", reals(0, 1)},
         {"noise_workers", "8", "workers that draw them", whole(2, 1024)},
         {"elements", "100000", "400000", "2000000", "numbers of each", whole(1600, 100'000'000)},
         {"repeats", "5", "10", "10", "draws of them", whole(2, 1000)}},
        {workers::Group::images, workers::Group::fine_tuning})),
    scalecom::run_scalecom,
    workers::check_training};

}  // namespace numemu::experiments
