// Learned gradient compression: what workers' gradients share, beside formulas of their
// correlation, what an autoencoder makes of it, and networks that four workers train with it
// (Abrahamyan et al., IEEE TNNLS 2021, arXiv 2103.08870).
#include "experiments/learned_compression/learned_compression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "emu/stats/entropy.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "formats/portable/math.hpp"
#include "policies/exchange/base/autoencoder.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::experiments::learned_compression {

namespace {

/// Which of the equally likely bins each number lies in.
std::vector<std::size_t> bins_of(const std::vector<float>& x, std::int64_t bins) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
  std::vector<std::size_t> bin(x.size());
  for (std::size_t r = 0; r < order.size(); ++r)
    bin[order[r]] = r * static_cast<std::size_t>(bins) / order.size();
  return bin;
}

}  // namespace

double information(double rho) { return -0.5 * portable::log2(1 - rho * rho); }

double mean_error(double rho, std::int64_t count) {
  return (1 - rho) * (1 - 1 / static_cast<double>(count));
}

double correlation(const Vectors& all) {
  const auto n = static_cast<double>(all.size());
  double squares = 0, of_sums = 0;
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& own : all) {
      sum += own[i];
      squares += double{own[i]} * own[i];
    }
    of_sums += sum * sum;
  }
  return squares > 0 ? (of_sums - squares) / ((n - 1) * squares) : 0;
}

double mean_error(const Vectors& all) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    double mean = 0;
    for (const std::vector<float>& own : all) mean += own[i] / static_cast<double>(all.size());
    for (const std::vector<float>& own : all) {
      error += (own[i] - mean) * (own[i] - mean);
      power += double{own[i]} * own[i];
    }
  }
  return error / power;
}

double binned_information(const std::vector<float>& x, const std::vector<float>& y,
                          std::int64_t bins) {
  const std::vector<std::size_t> a = bins_of(x, bins), b = bins_of(y, bins);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins * bins));
  for (std::size_t i = 0; i < a.size(); ++i) ++counts[a[i] * static_cast<std::size_t>(bins) + b[i]];
  return 2 * portable::log2(static_cast<double>(bins)) - stats::entropy(counts).corrected;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& decoded) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - decoded[i]) * (double{x[i]} - decoded[i]);
    power += double{x[i]} * x[i];
  }
  return error / power;
}

double component_error(const std::vector<float>& x, std::int64_t window) {
  constexpr int kIterations = 1000;
  const auto s = static_cast<std::size_t>(window);
  std::vector<double> moments(s * s), v(s);
  for (std::size_t first = 0; first + s <= x.size(); first += s) {
    for (std::size_t i = 0; i < s; ++i)
      for (std::size_t j = 0; j < s; ++j) moments[i * s + j] += double{x[first + i]} * x[first + j];
  }
  double trace = 0, largest = 0;
  for (std::size_t i = 0; i < s; ++i) {
    trace += moments[i * s + i];
    v[i] = 1 + static_cast<double>(i) / static_cast<double>(s);  // orthogonal to no usual component
  }
  // Power iteration: |M v| / |v|.
  for (int k = 0; k < kIterations && trace > 0; ++k) {
    std::vector<double> next(s);
    double norm = 0;
    for (std::size_t i = 0; i < s; ++i) {
      for (std::size_t j = 0; j < s; ++j) next[i] += moments[i * s + j] * v[j];
      norm += next[i] * next[i];
    }
    largest = std::sqrt(norm);
    for (std::size_t i = 0; i < s; ++i) v[i] = next[i] / largest;
  }
  return trace > 0 ? 1 - largest / trace : 0;
}

namespace {

constexpr std::int64_t kSteps = 64;

/// The errors of windows that come in turn from `windows(step)`: those of the last step, after the
/// autoencoder learnt from all others.
template <class Windows>
void learn(const Windows& windows, std::int64_t steps, std::uint64_t seed, Shared& shared) {
  policies::Autoencoder autoencoder(kWindow, 1, seed);
  for (std::int64_t step = 0; step < steps; ++step) autoencoder.train(windows(step));
  const std::vector<float> x = windows(steps);
  std::vector<float> decoded = x;
  autoencoder.reconstruct(decoded);
  shared.autoencoder = relative_error(x, decoded);
  shared.component = component_error(x, kWindow);
}

}  // namespace

Shared measure_normal(std::int64_t count, double rho, std::int64_t elements, std::uint64_t seed) {
  const workers::Gradients all = workers::correlated_normals(count, elements, rho, seed, 0);
  Shared shared{.correlation = rho,
                .information = binned_information(all[0], all[1], 64),
                .mean = mean_error(all)};
  // Values of a window have that correlation: those of neighbours are those of workers.
  const auto windows = [&](std::int64_t step) {
    const workers::Gradients columns = workers::correlated_normals(
        kWindow, std::min<std::int64_t>(elements, 2000), rho, seed, step + 1);
    std::vector<float> x;
    for (std::size_t i = 0; i < columns[0].size(); ++i)
      for (const std::vector<float>& column : columns) x.push_back(column[i]);
    return x;
  };
  learn(windows, kSteps, seed, shared);
  return shared;
}

Shared measure_network(const net::Dataset& data, const std::string& name, std::int64_t count,
                       double share, std::uint64_t seed) {
  constexpr std::int64_t kEach = 32, kNetSteps = 16;
  const std::int64_t samples = std::min<std::int64_t>(1024, data.train_count());
  const net::Graph graph = briefly_trained(name, data, samples, seed);
  net::Numerics float32;
  std::vector<std::vector<float>> windows;
  workers::Gradients even(static_cast<std::size_t>(count)), odd(even.size());
  for (std::int64_t step = 0; step < kNetSteps; ++step) {
    workers::Gradients own;
    for (std::int64_t w = 0; w < count; ++w) {
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < kEach; ++i)
        ids.push_back(((step * count + w) * kEach + i) % data.train_count());
      net::Targets targets;
      const net::Tensor x = data.train_batch(ids, targets);
      std::vector<net::Tensor> all =
          training_pass(graph, x, targets.classes, float32, step, seed).gradients;
      own.push_back(std::ranges::max(all, {}, [](const net::Tensor& t) { return t.size(); }).data);
    }
    const std::vector<float>& lead = own[static_cast<std::size_t>(step % count)];
    std::vector<std::size_t> places =
        policies::largest(lead, policies::sent_elements(share, lead.size()));
    policies::sort_by_value(places, lead);
    windows.emplace_back();
    for (const std::size_t i : places) windows.back().push_back(lead[i]);
    for (std::size_t w = 0; w < own.size(); ++w) {
      std::vector<float>& sum = (step % 2 == 0 ? even : odd)[w];
      sum.insert(sum.end(), own[w].begin(), own[w].end());
    }
  }
  Shared shared{.correlation = correlation(even),
                .information = binned_information(odd[0], odd[1], 16),
                .mean = mean_error(odd)};
  learn([&](std::int64_t step) { return windows[static_cast<std::size_t>(step)]; }, kNetSteps - 1,
        seed, shared);
  return shared;
}

namespace {

// What a finite table of quantiles loses of the information, relative and in bits; what few steps
// leave to learn; what a correlation of one half of the steps says of the other.
constexpr double kBinned = 0.03, kBinnedBits = 0.01, kUnlearned = 0.02, kOtherSteps = 0.05;

void add_normal(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::int64_t elements = settings.integer("elements"), count = settings.integer("workers");
  const std::vector<double> rhos = settings.numbers("correlations");
  StudyPlan plan{{}, seeds_of(run, "repeats"), /*at_once=*/true};
  for (const double rho : rhos) plan.methods.push_back(fmt::format("{}", rho));
  const auto study =
      run_study<Shared>(run, plan, [&](std::size_t r, std::uint64_t seed) -> StudyRun<Shared> {
        return {{{"shared", "normal"},
                 {"workers", count},
                 {"correlation", rhos[r]},
                 {"elements", elements},
                 {"seed", seed}},
                [=, rho = rhos[r]] { return measure_normal(count, rho, elements, seed); }};
      });
  ResultTable table{fmt::format("{} workers, {} normal numbers each", count, elements),
                    {"correlation", "bits shared", "predicted", "error of the mean", "predicted",
                     "of the autoencoder", "of the first component", "predicted"},
                    {}};
  Chart chart{.title = "What the mean loses in place of each worker's numbers",
              .caption = table.title,
              .x = "correlation of workers",
              .y = "error / power"};
  for (std::size_t r = 0; r < rhos.size(); ++r) {
    const double rho = rhos[r], bits = information(rho), mean = mean_error(rho, count),
                 window = mean_error(rho, kWindow);
    const auto found = [&](double Shared::*figure) {
      return stats::mean_of(study.figures(r, figure));
    };
    const stats::Mean shared = found(&Shared::information), lost = found(&Shared::mean),
                      learnt = found(&Shared::autoencoder), component = found(&Shared::component);
    const auto of = [&](const char* what) { return fmt::format("{}, correlation {}", what, rho); };
    conclusion.add(model_finding(of("bits that two workers share"), bits, shared.value,
                                 shared.error, kBinned * bits + kBinnedBits),
                   "information");
    conclusion.add(closed_form(of("error of the mean"), mean, lost.value, lost.error), "mean");
    conclusion.add(model_finding(of("error of the first component of windows"), window,
                                 component.value, component.error, kUnlearned),
                   "component");
    conclusion.add(model_finding(of("error of the autoencoder"), window, learnt.value, learnt.error,
                                 kUnlearned),
                   "autoencoder");
    const auto text = [](double value) { return fmt::format("{:.4f}", value); };
    table.rows.push_back({study.methods[r], text(shared.value), text(bits), text(lost.value),
                          text(mean), text(learnt.value), text(component.value), text(window)});
    chart.add("mean of the workers", with_error({.x = rho, .y = lost.value}, lost.error),
              {.x = rho, .y = mean});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

void add_gradients(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string& name = settings.text("net");
  if (name == "-") return;
  const std::int64_t count = settings.integer("workers");
  const double share = settings.number("share");
  const net::Dataset data = net::load_dataset(settings.text("data"), run.folders.cache);
  const auto study = run_study<Shared>(
      run, {{name}, seeds_of(run)}, [&](std::size_t, std::uint64_t seed) -> StudyRun<Shared> {
        return {{{"shared", name},
                 {"samples", data.digest()},
                 {"workers", count},
                 {"share", share},
                 {"seed", seed}},
                [&, seed] { return measure_network(data, name, count, share, seed); }};
      });
  const auto found = [&](const auto& figure) {
    return stats::paired_interval(study.figures(0, figure));
  };
  const double rho = study.mean(0, &Shared::correlation), mean = mean_error(rho, count);
  const stats::PairedInterval bits = found(&Shared::information), lost = found(&Shared::mean),
                              beyond =
                                  found([](const Shared&s) { return s.autoencoder - s.component; });
  conclusion.add(
      interval_finding(name + ": error of the mean", mean, lost, near(mean, kOtherSteps)),
      "gradients");
  conclusion.add(interval_finding(name + ": bits that two workers share", information(rho), bits,
                                  near(information(rho), kOtherSteps)),
                 "gradients");
  conclusion.add(interval_finding(name + ": error of the autoencoder beyond the first component", 0,
                                  beyond, at_most(kUnlearned)),
                 "gradients");
  conclusion.sentences.push_back(fmt::format(
      "Gradients of {}'s largest weight correlate by {:.3f} between {} workers: two share {} bits "
      "per value, the mean in place of each loses {} of the power. Of the largest values in their "
      "order, an autoencoder of 4 to 1 loses {:.3f}, the first component {:.3f}.",
      name, rho, count, mean_text(bits, 3), mean_text(lost, 3), study.mean(0, &Shared::autoencoder),
      study.mean(0, &Shared::component)));
}

Conclusion run_learned_compression(const ExperimentRun& run) {
  Conclusion conclusion;
  add_normal(run, conclusion);
  add_gradients(run, conclusion);
  const double share = run.settings.number("share");
  const auto rule = [&](const char* order, const char* claim) {
    const std::int64_t dense = run.settings.integer("dense"),
                       training = run.settings.integer("training");
    workers::Method method = workers::exchanged({{"rule", "learned"},
                                                 {"share", share},
                                                 {"dense", dense},
                                                 {"training", training},
                                                 {"order", order}},
                                                claim);
    // Bytes are means over all steps, those before the codes too.
    method.name = fmt::format("learned({}), {}, after {} dense and {} training steps", share, order,
                              dense, training);
    return method;
  };
  const std::vector<workers::Method> methods = {
      workers::dense(), rule("ring", "accuracy"), rule("server", "accuracy"),
      workers::exchanged(fmt::format("topk({})", share), ""), workers::exchanged("sign", "")};
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning})
    workers::add_training(run, group, methods, conclusion);
  const auto elements = static_cast<std::int64_t>(link_setup(run.settings).elements);
  add_exchange_figure({wire::learned(share, kWindow, elements), wire::topk(share, elements)},
                      run.settings, conclusion);
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::learned_compression

namespace numemu::experiments {

extern const Experiment experiment_learned_compression = {
    "learned-compression",
    "how much do the gradients of workers share, what does an autoencoder make of it, and what "
    "does training lose whose gradients it encodes",
    "Abrahamyan et al. (IEEE TNNLS 2021, arXiv 2103.08870) claim that gradients of workers are "
    "correlated, and that an autoencoder trained during the first steps encodes what they have in "
    "common at little loss of accuracy.",
    {{"information", "Two workers share -1/2 log2(1 - rho^2) bits per value (derived here)."},
     {"mean",
      "The mean in place of each worker's numbers loses (1 - rho)(1 - 1/W) of their power "
      "(derived here)."},
     {"component",
      "The first principal component of windows of s values loses (1 - rho)(1 - 1/s) "
      "(derived here)."},
     {"autoencoder",
      "An autoencoder comes within 0.02 of the first component in 64 steps (derived here)."},
     {"gradients",
      "Both formulas hold for gradients of a network, though they assume normal numbers, and the "
      "autoencoder reaches the first component (a contrast).",
      "seeds"},
     {"accuracy",
      "Training loses at most 0.5 points of top-1 to the dense mean (published; the margin, the "
      "autoencoder, the order of its values and its few steps of training are ours).",
      "seeds"}},
    with_links(workers::with_training(
        {{"share", "0.01", "part of the elements whose values are sent", real(1e-3, 0.5)},
         {"dense", "2", "16", "32", "first steps, sent whole", whole(0, 1'000'000)},
         {"training", "8", "48", "96", "steps that train the autoencoder", whole(0, 1'000'000)},
         {"correlations", "0,0.5,0.9", "0,0.25,0.5,0.75,0.9", "0,0.1,0.25,0.5,0.75,0.9,0.99",
          "of the workers' normal numbers", reals(0, 0.999)},
         {"net", "mlp", "lenet", "lenet", "network whose gradients are looked at; -: none",
          takes_network_or_none()},
         {"elements", "100000", "400000", "1000000", "normal numbers of each worker",
          whole(10'000, 100'000'000)},
         {"repeats", "4", "10", "10", "draws of them", whole(2, 1000)}},
        {workers::Group::images, workers::Group::fine_tuning})),
    learned_compression::run_learned_compression,
    workers::check_training};

}  // namespace numemu::experiments
