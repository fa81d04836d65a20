// Influences of a trained network beside closed forms: to first order, factored, and under repeated
// draws of their operands.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/ops/losses.hpp"
#include "emu/stats/bootstrap.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/tracin/questions.hpp"
#include "experiments/tracin/samples.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::tracin {
namespace {

constexpr double kStep = 0.05;  // share of its loss that a step on a sample takes, to first order
constexpr double kOrder = 2;    // of what first order leaves
constexpr double kOrderOff = 0.25;

/// Self-influence over that of float32, and squared errors over the variance, by format.
struct Draws {
  std::vector<MeanError> once, twice, spread;
  std::vector<double> once_expected;

  static void fields(auto& self, const auto& visit) {
    visit("once", self.once);
    visit("twice", self.twice);
    visit("spread", self.spread);
    visit("once_expected", self.once_expected);
  }
};

struct Probed {
  double apart = 0;    ///< dot products, factored and of whole gradients, over the lengths
  double allowed = 0;  ///< of that by float32 sums
  double left = 0;     ///< of the change of loss, beside the influence, over the change
  double order = 0, low = 0, high = 0;  ///< power of the rate with which that falls
  Draws draws;

  static void fields(auto& self, const auto& visit) {
    visit("apart", self.apart);
    visit("allowed", self.allowed);
    visit("left", self.left);
    visit("order", self.order);
    visit("low", self.low);
    visit("high", self.high);
    visit("draws", self.draws);
  }
};

net::Tensor sample_of(const Batch& batch, std::int64_t i) {
  net::Shape shape = batch.x.shape;
  shape.front() = 1;
  net::Tensor x(shape);
  std::copy_n(batch.x.data.begin() + i * x.size(), x.size(), x.data.begin());
  return x;
}

double loss_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  const net::Tensor logits = net::forward(graph, sample_of(batch, i), float32);
  return net::cross_entropy(logits, {batch.labels[static_cast<std::size_t>(i)]}).loss[0];
}

using Whole = std::vector<net::Tensor>;  // of parameters

Whole gradient_of(const net::Graph& graph, const Batch& batch, std::int64_t i) {
  net::Numerics float32;
  return training_pass(graph, sample_of(batch, i), {batch.labels[static_cast<std::size_t>(i)]},
                       float32, 0, 0)
      .gradients;
}

double dot(const Whole& a, const Whole& b) {
  double all = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::size_t i = 0; i < a[p].data.size(); ++i)
      all += double{a[p].data[i]} * double{b[p].data[i]};
  }
  return all;
}

/// The loss of sample `on` after a step along the gradient of another.
double loss_after(net::Graph& graph, const Batch& batch, const Whole& gradient, double rate,
                  std::int64_t on) {
  const std::vector<net::Parameter*> parameters = graph.parameters();
  std::vector<std::vector<float>> before;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::vector<float>& w = parameters[p]->value.data;
    before.push_back(w);
    for (std::size_t i = 0; i < gradient[p].data.size(); ++i)
      w[i] = static_cast<float>(double{w[i]} - rate * double{gradient[p].data[i]});
  }
  const double loss = loss_of(graph, batch, on);
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p]->value.data = before[p];
  return loss;
}

void probe_gradients(net::Graph& graph, const Batch& batch,
                     const std::vector<LayerOperands>& operands, Probed& probed) {
  const std::int64_t pairs = batch.x.dim(0) / 2;
  const SampleGradients factored(operands, {});
  std::int64_t positions = 0;
  for (const LayerOperands& layer : operands) positions = std::max(positions, layer.g.positions());
  // An element of a whole gradient has so many roundings; both sides have such elements.
  probed.allowed = 2 * static_cast<double>(positions) * 0x1p-24;
  std::vector<double> at_rate, at_half;
  double changes = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t j = i + pairs;
    const Whole g = gradient_of(graph, batch, i), h = gradient_of(graph, batch, j);
    const double square = dot(g, g), influence = dot(g, h);
    if (!(square > 0) || !(dot(h, h) > 0)) continue;
    probed.apart = std::max(probed.apart, std::fabs(influence - factored.dot(i, factored, j)) /
                                              std::sqrt(square * dot(h, h)));
    const double before = loss_of(graph, batch, j),
                 rate = kStep * loss_of(graph, batch, i) / square;
    const auto left = [&](double by) {
      const double change = before - loss_after(graph, batch, g, by, j);
      if (by == rate) changes += change * change;
      return (change - by * influence) * (change - by * influence);
    };
    at_rate.push_back(left(rate));
    at_half.push_back(left(rate / 2));
  }
  const auto sum_of = [](const std::vector<double>& terms, const std::vector<std::int64_t>& drawn) {
    return pairwise_sum(std::ssize(drawn), [&](std::int64_t i) {
      return terms[static_cast<std::size_t>(drawn[static_cast<std::size_t>(i)])];
    });
  };
  const auto order = [&](const std::vector<std::int64_t>& drawn) {
    return portable::log2(sum_of(at_rate, drawn) / sum_of(at_half, drawn)) / 2;
  };
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < std::ssize(at_rate); ++i) all.push_back(i);
  constexpr std::int64_t kResamples = 999;
  probed.left = std::sqrt(sum_of(at_rate, all) / changes);
  probed.order = order(all);
  const stats::Interval interval = stats::bootstrap_interval(std::ssize(all), kResamples, 0, order);
  probed.low = interval.low;
  probed.high = interval.high;
}

Draws draw(const std::vector<LayerOperands>& operands, const Plan& plan, std::uint64_t seed) {
  Draws found;
  const SampleGradients exact(operands, {});
  const std::int64_t samples = exact.samples(), pairs = samples / 2;
  double squares = 0;
  for (std::int64_t i = 0; i < samples; ++i) squares += exact.dot(i, exact, i);
  for (const Format* format : plan.formats) {
    double bias = 0;
    for (std::int64_t i = 0; i < samples; ++i)
      bias += one_draw_bias(operands, *format, stochastic(), i);
    std::vector<double> variances;
    if (all_factored(operands)) {
      const FactoredLaw law(operands, *format, stochastic(), samples);
      for (std::int64_t i = 0; i < pairs; ++i)
        variances.push_back(law.two(i, law, i + pairs).variance);
    }
    std::vector<double> once, twice, spread;
    for (std::int64_t d = 0; d < plan.draws; ++d) {
      const auto number = static_cast<std::uint16_t>(2 * d);
      const SampleGradients a(operands, {format, stochastic(), seed, 0, number}),
          b(operands, {format, stochastic(), seed, 0, static_cast<std::uint16_t>(number + 1)});
      double one = 0, two = 0;
      for (std::int64_t i = 0; i < samples; ++i) {
        one += a.dot(i, a, i);
        two += a.dot(i, b, i);
      }
      once.push_back(one / squares);
      twice.push_back(two / squares);
      for (std::size_t i = 0; i < variances.size(); ++i) {
        if (!(variances[i] > 0)) continue;
        const auto sample = static_cast<std::int64_t>(i);
        const double off =
            a.dot(sample, b, sample + pairs) - exact.dot(sample, exact, sample + pairs);
        spread.push_back(off * off / variances[i]);
      }
    }
    const auto mean = [](const std::vector<double>& numbers) -> MeanError {
      if (numbers.empty()) return {NAN, NAN};
      const stats::Mean all = stats::mean_of(numbers);
      return {all.value, all.error};
    };
    found.once.push_back(mean(once));
    found.twice.push_back(mean(twice));
    found.spread.push_back(mean(spread));
    found.once_expected.push_back(1 + bias / squares);
  }
  return found;
}

}  // namespace

void add_probes(const ExperimentRun& run, const net::Dataset& clean, const Plan& plan,
                const TrainTrial& trial, Conclusion& conclusion) {
  const net::Dataset flipped = with_flips(clean, plan, trial.seed);
  Json point = plan.point();
  point["training"] = point_of(trial, flipped);
  point["watched"] = "influences of probes";
  const std::vector<Probed> all =
      run_cases<Probed>(run, std::vector<int>{0}, [&](int) -> TypedTrial<Probed> {
        return {point, trial.net + ", influences of probes", [&] {
                  net::Graph graph = trained_in_float32(trial, flipped);
                  const Batch batch = first_of_training(flipped, plan.probes);
                  const std::vector<LayerOperands> operands = operands_of(graph, batch);
                  Probed probed;
                  probe_gradients(graph, batch, operands, probed);
                  probed.draws = draw(operands, plan, trial.seed);
                  return probed;
                }};
      });
  const Probed& probed = all.front();
  const std::string of = trial.net + ": ";
  conclusion.add(
      exact_finding(of + "dot products of layers' gradients, factored and whole, over the lengths",
                    0, probed.apart, probed.apart <= probed.allowed, at_most(probed.allowed)),
      "factored");
  conclusion.add(
      interval_finding(of + "power of the rate with which falls what influence misses of the "
                            "change of a loss",
                       kOrder, probed.order, {probed.low, probed.high}, near(kOrder, kOrderOff)),
      "first order");
  conclusion.sentences.push_back(fmt::format(
      "{}a step on a sample that takes {:.0f} % of its loss, to first order, changes the "
      "loss of another by what its influence says within {:.1f} % (root mean square).",
      of, 100 * kStep, 100 * probed.left));
  ResultTable table{fmt::format("{}operands of {} samples' gradients rounded at random, {} draws",
                                of, plan.probes, plan.draws),
                    {"format", "self-influence over float32, one draw", "predicted", "two draws",
                     "predicted", "squared error over its variance"},
                    {}};
  for (std::size_t f = 0; f < plan.formats.size(); ++f) {
    const Draws& d = probed.draws;
    const std::string what = of + plan.formats[f]->name + ": ";
    conclusion.add(closed_form(what + "self-influence by one draw, over that of float32",
                               d.once_expected[f], d.once[f].mean, d.once[f].error),
                   "one draw");
    conclusion.add(closed_form(what + "self-influence by two draws, over that of float32", 1,
                               d.twice[f].mean, d.twice[f].error),
                   "two draws");
    const bool spread = std::isfinite(d.spread[f].mean);
    if (spread)
      conclusion.add(closed_form(what + "squared error of an influence over its variance", 1,
                                 d.spread[f].mean, d.spread[f].error),
                     "variance");
    table.rows.push_back({plan.formats[f]->name, half_text(d.once[f].mean, 2 * d.once[f].error, 5),
                          fmt::format("{:.5f}", d.once_expected[f]),
                          half_text(d.twice[f].mean, 2 * d.twice[f].error, 5), "1",
                          spread ? half_text(d.spread[f].mean, 2 * d.spread[f].error, 3) : "-"});
  }
  conclusion.tables.push_back(std::move(table));
}

}  // namespace numemu::experiments::tracin
