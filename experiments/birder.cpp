// Birder: the noise of directions that travel as one random sign, by the number of workers, and
// networks that four workers train with it (Peng et al., NeurIPS 2023).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/stats/mean.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments {
namespace birder {
namespace {

/// Mean squares of what comes back less the mean of the directions, predicted from these and
/// measured; the largest |m| / b of all steps; the bits that a worker sends for an element.
struct Noise {
  double one = 0, one_predicted = 0, two = 0, two_predicted = 0, largest = 0, bits = 0;

  static void fields(auto& self, const auto& visit) {
    visit("one", self.one);
    visit("one_predicted", self.one_predicted);
    visit("two", self.two);
    visit("two_predicted", self.two_predicted);
    visit("largest", self.largest);
    visit("bits", self.bits);
  }
};

/// Moving means of one worker, by the definition.
struct Means {
  std::vector<float> m, b;

  double direction(std::size_t i) const { return b[i] == 0 ? 0 : double{m[i] / b[i]}; }
};

Noise measure(std::int64_t count, double beta, std::int64_t elements, std::uint64_t seed) {
  constexpr std::int64_t kRows = 16, kSteps = 12;
  constexpr double kCorrelation = 0.3;
  const std::int64_t columns = elements / kRows, n = kRows * columns;
  const auto rule = [&](int stages) {
    return Json{{"rule", "birder"}, {"beta", beta}, {"stages", stages}};
  };
  workers::SyntheticWorkers one(rule(1), kRows, columns, seed), two(rule(2), kRows, columns, seed);
  const auto size = static_cast<std::size_t>(n);
  std::vector<Means> means(static_cast<std::size_t>(count),
                           {std::vector<float>(size), std::vector<float>(size)});
  const auto decay = static_cast<float>(beta), rest = static_cast<float>(1 - beta);
  Noise noise;
  workers::SyntheticWorkers::Result mean, back;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const workers::Gradients gradients =
        workers::correlated_normals(count, n, kCorrelation, seed, step);
    mean = one.exchange(step, gradients);
    back = two.exchange(step, gradients);
    for (std::size_t w = 0; w < means.size(); ++w) {
      for (std::size_t i = 0; i < size; ++i) {
        float &m = means[w].m[i], &b = means[w].b[i];
        m = decay * m + rest * gradients[w][i];
        b = decay * b + rest * std::fabs(gradients[w][i]);
        noise.largest = std::max(noise.largest, std::fabs(double{m}) / double{b});
      }
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0, variances = 0;
    for (const Means& own : means) {
      const double u = own.direction(i);
      sum += u;
      variances += 1 - u * u;
    }
    const double direction = sum / static_cast<double>(count);
    const auto square = [&](double x) { return (x - direction) * (x - direction) / double(n); };
    noise.one += square(mean.mean[i]);
    noise.two += square(back.mean[i]);
    noise.one_predicted += variances / static_cast<double>(count * count * n);
    noise.two_predicted += (1 - direction * direction) / static_cast<double>(n);
  }
  noise.bits = back.bits.sent / static_cast<double>(n);
  return noise;
}

void add_noise(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t elements = settings.integer("elements");
  const double beta = settings.number("beta");
  const auto counts = settings.whole_numbers("noise_workers");
  double bits = 0;  // the most that a worker sends for an element
  StudyPlan plan{{}, seeds_of(run, "repeats"), /*at_once=*/true};
  for (const std::int64_t count : counts) plan.methods.push_back(fmt::format("{}", count));
  const auto study =
      run_study<Noise>(run, plan, [&](std::size_t c, std::uint64_t seed) -> StudyRun<Noise> {
        return {{{"noise", "birder"},
                 {"workers", counts[c]},
                 {"beta", beta},
                 {"elements", elements},
                 {"seed", seed}},
                [=, count = counts[c]] { return measure(count, beta, elements, seed); }};
      });
  const std::string title =
      fmt::format("Directions of {} elements, {} repeats", elements, plan.seeds.size());
  ResultTable table{
      title, {"workers", "one stage", "predicted", "two stages", "predicted", "|m| / b"}, {}};
  Chart chart{.title = "Noise of what comes back by the number of workers",
              .caption = title + ". Mean square about the mean of the directions.",
              .x = "workers",
              .y = "variance"};
  for (std::size_t c = 0; c < counts.size(); ++c) {
    std::vector<std::string> row = {study.methods[c]};
    const auto add = [&](const char* name, double Noise::*measured, double Noise::*predicted,
                         const char* claim) {
      const double expected = study.mean(c, predicted), found = study.mean(c, measured);
      // Directions differ between repeats, on both sides.
      const stats::Mean off = stats::mean_of(
          study.figures(c, [&](const Noise& noise) { return noise.*measured - noise.*predicted; }));
      conclusion.add(closed_form(fmt::format("variance of {}, {} workers", name, counts[c]),
                                 expected, found, off.error),
                     claim);
      row.insert(row.end(), {fmt::format("{:.5f}", found), fmt::format("{:.5f}", expected)});
      const auto x = static_cast<double>(counts[c]);
      chart.add(name, with_error({.x = x, .y = found}, off.error), {.x = x, .y = expected});
    };
    add("one stage", &Noise::one, &Noise::one_predicted, "one stage");
    add("two stages", &Noise::two, &Noise::two_predicted, "two stages");
    const std::vector<double> bounds = study.figures(c, &Noise::largest);
    const double largest = *std::ranges::max_element(bounds);
    conclusion.add(exact_finding(fmt::format("largest |m| / b, {} workers", counts[c]), 1, largest,
                                 largest <= 1, at_most(1)),
                   "bound");
    // One worker alone has nobody to send to.
    if (counts[c] > 1) bits = std::max(bits, study.mean(c, &Noise::bits));
    row.push_back(fmt::format("{:.6f}", largest));
    table.rows.push_back(std::move(row));
  }
  if (bits > 0)
    conclusion.add(exact_finding("most bits sent for an element, 2 workers and more", 1, bits,
                                 bits == 1, at_most(1)),
                   "bits");
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

/// Adam on dense gradients first; what comes back of the others is the step itself.
std::vector<workers::Method> methods_of(const Settings& settings, workers::Group group) {
  const double rate = settings.number(workers::key(group, "sign_lr")),
               beta = settings.number("beta");
  const auto signs = [&](const std::string& rule, const char* claim) {
    workers::Method method = workers::exchanged(Json(rule), claim);
    if (*claim != '\0') {
      method.only_under = "adam";  // the publication compares with no other
      method.else_claim = "other optimizers";
    }
    method.name += fmt::format(", sgd at {:g}", rate);
    method.recipe["update"]["optimizer"] = "sgd";
    method.change = [rate](TrainTrial& trial) {
      trial.options.optimizer = "sgd";
      trial.options.momentum = 0;
      trial.options.learning_rate = rate;
    };
    return method;
  };
  return {workers::dense(), signs(fmt::format("birder({})", beta), "accuracy"),
          signs(fmt::format("birder({},1)", beta), ""), signs("majority", "")};
}

Conclusion run_birder(const ExperimentRun& run) {
  Conclusion conclusion;
  add_noise(run, conclusion);
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning})
    workers::add_training(run, group, methods_of(run.settings, group), conclusion);
  add_exchange_figure({wire::birder_flat(), wire::birder_nodes(), votes("majority")}, run.settings,
                      conclusion);
  return conclusion;
}

}  // namespace
}  // namespace birder

extern const Experiment experiment_birder = {
    "birder",
    "how noisy is an update whose direction every worker sends as one random sign, does the noise "
    "fall with the number of workers, and what does training lose",
    "Peng et al. (NeurIPS 2023) claim that an adaptive optimizer whose workers send one random "
    "sign of the direction, without error feedback or warm-up, trains as well as Adam.",
    {{"bound", "The direction m / b lies in [-1, 1] in float32, too (derived here)."},
     {"one stage",
      "The mean of n workers' signs has the variance sum(1 - u^2) / n^2 about the mean "
      "direction (derived here)."},
     {"two stages",
      "What comes back as one sign has the variance 1 - ubar^2, whatever the number of workers is "
      "(derived here)."},
     {"bits", "A worker sends one bit for each element (published)."},
     {"accuracy",
      "Training loses at most 0.5 points of top-1 to dense Adam (published; the margin is ours).",
      "seeds"},
     {"other optimizers", "So it does to dense SGD and other optimizers (a contrast).", "seeds"}},
    with_links(workers::with_training(
        {{"beta", "0.95", "of the moving means", real(0, 0.999999)},
         {"sign_lr", "0.004", "size of the steps of birder and majority", real(1e-9, 1)},
         {"tuned_sign_lr", "0.0005", "the same in fine-tuning", real(1e-9, 1)},
         {"noise_workers", "1,4,8", "1,2,4,8,16,64", "1,2,4,8,16,64,256",
          "workers whose noise is measured", wholes(1, 1024)},
         {"elements", "20000", "100000", "400000", "numbers of each", whole(1600, 10'000'000)},
         {"repeats", "5", "10", "10", "draws of them", whole(2, 1000)}},
        {workers::Group::images, workers::Group::fine_tuning}, "adam")),
    birder::run_birder,
    workers::check_training};

}  // namespace numemu::experiments
