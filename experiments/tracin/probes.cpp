// Influences of a trained network beside closed forms, under repeated draws of their operands.
#include "experiments/tracin/probes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "emu/net/ops/losses.hpp"
#include "emu/net/samples/laws.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/resampling.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::tracin {
namespace {

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

/// The network's weights less `rate` times a gradient, until the end of this.
class Moved {
 public:
  Moved(net::Graph& graph, const Whole& gradient, double rate) : parameters_(graph.parameters()) {
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      net::Elements& w = parameters_[p]->value.data;
      before_.push_back(w);
      for (std::size_t i = 0; i < gradient[p].data.size(); ++i)
        w[i] = static_cast<float>(double{w[i]} - rate * double{gradient[p].data[i]});
    }
  }
  ~Moved() {
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      parameters_[p]->value.data = std::move(before_[p]);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

 private:
  std::vector<net::Parameter*> parameters_;
  std::vector<net::Elements> before_;
};

double median(std::vector<double> x) {
  const std::size_t half = x.size() / 2;
  std::sort(x.begin(), x.end());
  return x.size() % 2 == 1 ? x[half] : (x[half - 1] + x[half]) / 2;
}

}  // namespace

double change_of_loss(net::Graph& graph, const Batch& batch, std::int64_t by, std::int64_t on,
                      double rate) {
  const Whole gradient = gradient_of(graph, batch, by);
  const double root = std::sqrt(0.6);
  constexpr std::array<double, 3> kWeights = {5.0 / 18, 8.0 / 18, 5.0 / 18};
  const std::array<double, 3> nodes = {(1 - root) / 2, 0.5, (1 + root) / 2};
  double change = 0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const Moved there(graph, gradient, nodes[k] * rate);
    change += kWeights[k] * rate * dot(gradient, gradient_of(graph, batch, on));
  }
  return change;
}

FirstOrder first_order(net::Graph& graph, const Batch& batch,
                       const std::vector<LayerOperands>& operands) {
  FirstOrder found;
  const std::int64_t pairs = batch.x.dim(0) / 2;
  const SampleGradients factored(operands, {});
  std::int64_t positions = 0;
  for (const LayerOperands& layer : operands) positions = std::max(positions, layer.g.positions());
  // An element of a whole gradient has so many roundings; both sides have such elements.
  found.allowed = 2 * static_cast<double>(positions) * 0x1p-24;
  std::vector<double> powers;
  double left = 0, changes = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t j = i + pairs;
    const Whole g = gradient_of(graph, batch, i), h = gradient_of(graph, batch, j);
    const double square = dot(g, g), influence = dot(g, h);
    if (!(square > 0) || !(dot(h, h) > 0)) continue;
    found.apart = std::max(found.apart, std::fabs(influence - factored.dot(i, factored, j)) /
                                            std::sqrt(square * dot(h, h)));
    const double whole = loss_of(graph, batch, i) / square;  // takes all of its loss
    const auto change = [&](double share) {
      return change_of_loss(graph, batch, i, j, share * whole);
    };
    const auto missed = [&](double share) {
      return std::fabs(change(share) - share * whole * influence);
    };
    left += missed(kLargeStep);
    changes += std::fabs(change(kLargeStep));
    const double power = portable::log2(missed(kSmallStep) / missed(kSmallStep / 2));
    if (std::isfinite(power)) powers.push_back(power);
  }
  found.left = left / changes;
  found.pairs = std::ssize(powers);
  if (powers.empty()) {
    found.order = found.low = found.high = NAN;
    return found;
  }
  constexpr std::int64_t kResamples = 999;
  found.order = median(powers);
  const stats::Interval interval = stats::bootstrap_interval(
      found.pairs, kResamples, 0, [&](const std::vector<std::int64_t>& drawn) {
        std::vector<double> some;
        for (const std::int64_t i : drawn) some.push_back(powers[static_cast<std::size_t>(i)]);
        return median(std::move(some));
      });
  found.low = interval.low;
  found.high = interval.high;
  return found;
}

namespace {

constexpr double kOrder = 2;  // of what first order leaves
constexpr double kOrderOff = 0.25;

/// Self-influence over that of float32, and squared errors of pairs over their variances, by
/// format.
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
  FirstOrder first;
  Draws draws;

  static void fields(auto& self, const auto& visit) {
    visit("first", self.first);
    visit("draws", self.draws);
  }
};

Draws draw(const std::vector<LayerOperands>& operands, const Plan& plan, std::uint64_t seed) {
  Draws found;
  const SampleGradients exact(operands, {});
  const std::int64_t samples = exact.samples(), pairs = samples / 2;
  double squares = 0;
  for (std::int64_t i = 0; i < samples; ++i) squares += exact.dot(i, exact, i);
  for (const Format* format : plan.formats) {
    double bias = 0;
    for (std::int64_t i = 0; i < samples; ++i)
      bias += net::samples::one_draw_bias(operands, *format, stochastic(), i);
    std::vector<double> variances;  // of pairs
    if (net::samples::all_factored(operands)) {
      const net::samples::GradientLaws law(operands, *format, stochastic(), samples);
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
      // Of all pairs together: where a pair's gradients are far below the scale, a draw is rarely
      // other than 0, and its squared error over its own variance has no mean of so few draws.
      double errors = 0;
      for (std::int64_t i = 0; i < std::ssize(variances); ++i) {
        const double off = a.dot(i, b, i + pairs) - exact.dot(i, exact, i + pairs);
        errors += off * off;
      }
      if (!variances.empty())
        spread.push_back(errors / std::accumulate(variances.begin(), variances.end(), 0.0));
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
  point["steps"] = {kLargeStep, kSmallStep};
  point["order"] = "median power of pairs, changes of losses as integrals";
  point["probes"] = plan.probes;
  point["draws"] = plan.draws;
  const std::vector<Probed> all =
      run_cases<Probed>(run, std::vector<int>{0}, [&](int) -> TypedTrial<Probed> {
        return {
            point, trial.net + ", influences of probes", [&] {
              net::Graph graph = trained_in_float32(trial, flipped);
              const Batch batch = net::samples::first_of_training(flipped, plan.probes);
              const std::vector<LayerOperands> operands = net::samples::operands_of(graph, batch);
              return Probed{first_order(graph, batch, operands), draw(operands, plan, trial.seed)};
            }};
      });
  const FirstOrder& first = all.front().first;
  const Draws& d = all.front().draws;
  const std::string of = trial.net + ": ";
  conclusion.add(
      exact_finding(of + "dot products of layers' gradients, factored and whole, over the lengths",
                    0, first.apart, first.apart <= first.allowed, at_most(first.allowed)),
      "factored");
  conclusion.add(
      interval_finding(
          fmt::format("{}power of the rate with which falls what influence misses of the "
                      "change of a loss, median of {} pairs",
                      of, first.pairs),
          kOrder, first.order, {first.low, first.high}, near(kOrder, kOrderOff)),
      "first order");
  conclusion.sentences.push_back(fmt::format(
      "{}a step on a sample that takes {:.0f} % of its loss, to first order, changes the "
      "loss of another by what its influence says within {:.1f} % (mean magnitudes).",
      of, 100 * kLargeStep, 100 * first.left));
  ResultTable table{fmt::format("{}operands of {} samples' gradients rounded at random, {} draws",
                                of, plan.probes, plan.draws),
                    {"format", "self-influence over float32, one draw", "predicted", "two draws",
                     "predicted", "squared errors over their variances"},
                    {}};
  for (std::size_t f = 0; f < plan.formats.size(); ++f) {
    const std::string what = of + plan.formats[f]->name + ": ";
    conclusion.add(closed_form(what + "self-influence by one draw, over that of float32",
                               d.once_expected[f], d.once[f].mean, d.once[f].error),
                   "one draw");
    conclusion.add(closed_form(what + "self-influence by two draws, over that of float32", 1,
                               d.twice[f].mean, d.twice[f].error),
                   "two draws");
    const bool spread = std::isfinite(d.spread[f].mean);
    if (spread)
      conclusion.add(closed_form(what + "squared errors of influences over their variances", 1,
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
