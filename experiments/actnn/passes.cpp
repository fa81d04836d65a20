#include "experiments/actnn/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "policies/bits/sample_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::actnn {
namespace {

/// D = A (m x k) B^T (n x k): element (n, k) of B meets all of column k of A.
void add_reach(const net::Product& p, std::vector<double>& all) {
  if (p.a.stack.count() != 1 || p.b.stack.count() != 1)
    throw Error("layer " + std::string(p.layer) + ": expected a product of one matrix");
  const unit::Gather& a = *p.a.gather;
  const unit::Gather& b = *p.b.gather;
  std::vector<double> squares(static_cast<std::size_t>(p.k));
  for (std::int64_t k = 0; k < p.k; ++k) {
    for (std::int64_t m = 0; m < p.m; ++m) {
      const double g = p.a.source->data[static_cast<std::size_t>(a.row[m] + a.depth[k])];
      squares[static_cast<std::size_t>(k)] += g * g;
    }
  }
  const unit::Padding& pad = b.padding;
  std::vector<double> padded(static_cast<std::size_t>(pad.padded_size()));
  for (std::int64_t n = 0; n < p.n; ++n) {
    for (std::int64_t k = 0; k < p.k; ++k)
      padded[static_cast<std::size_t>(b.row[n] + b.depth[k])] +=
          squares[static_cast<std::size_t>(k)];
  }
  for (std::int64_t i = 0; i < p.b.source->size(); ++i) {
    const std::int64_t c = i % pad.channels, x = i / pad.channels % pad.width,
                       y = i / pad.channels / pad.width % pad.height,
                       o = i / pad.channels / pad.width / pad.height;
    all.push_back(padded[static_cast<std::size_t>(
        ((o * pad.padded_height + pad.top + y * pad.row_dilation()) * pad.padded_width + pad.left +
         x * pad.dilation) *
            pad.channels +
        c)]);
  }
}

/// use(first element, count, minimum, maximum) of every group of every sample n.
template <class Use>
void for_each_group(const net::Tensor& x, std::int64_t group, const Use& use) {
  const std::int64_t each = x.size() / x.dim(0);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    for (std::int64_t i = 0; i < each; i += group) {
      const auto begin = x.data.begin() + n * each + i;
      const std::int64_t count = std::min(group, each - i);
      const auto [low, high] = std::minmax_element(begin, begin + count);
      use(n, n * each + i, count, double{*low}, double{*high});
    }
  }
}

double steps_of(int bits) { return (1 << bits) - 1; }

}  // namespace

Sample sample_of(const std::string& net, const net::Dataset& data, std::int64_t train,
                 std::int64_t batch, std::uint64_t seed) {
  Sample sample{briefly_trained(net, data, train, seed), {}, {}};
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), seed, 1);
  for (std::size_t i = 0; std::ssize(ids) < batch; ++i) ids.push_back(ids[i]);
  ids.resize(static_cast<std::size_t>(batch));
  net::Targets targets;
  sample.x = data.train_batch(ids, targets);
  sample.labels = targets.classes;
  return sample;
}

Json sample_point(const std::string& net, const net::Dataset& data, std::int64_t train,
                  std::int64_t batch, std::uint64_t seed) {
  return {{"net", net},     {"data", data.name()}, {"samples", data.digest()},
          {"train", train}, {"batch", batch},      {"seed", seed}};
}

std::vector<Layer> layers_of(const net::Graph& graph) {
  const std::vector<const net::Parameter*> parameters = graph.parameters();
  std::vector<Layer> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr) continue;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto* p) { return &p->value == layer.weight; });
    layers.push_back({layer.name, std::string(graph.value_name(layer.node->inputs[0])),
                      static_cast<std::size_t>(found - parameters.begin())});
  }
  return layers;
}

std::vector<std::string> linear_contexts(const net::Graph& graph) {
  std::vector<std::string> names;
  for (int value = 0; value < static_cast<int>(graph.value_count()); ++value) {
    const bool read = std::ranges::any_of(graph.nodes, [&](const net::Node& node) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == value && node.op->input_use(k) == net::Use::linear) return true;
      return false;
    });
    if (read) names.emplace_back(graph.value_name(value));
  }
  return names;
}

std::vector<net::Tensor> pass(const Sample& sample, net::Numerics& numerics) {
  const FloatGuard guard;
  const net::Step step{.phase = net::Phase::training};
  net::Tape tape = net::forward_training(sample.graph, sample.x, numerics, step);
  net::Tensor grad_output;
  net::cross_entropy(tape.output, sample.labels, &grad_output, 1);
  return net::backward(sample.graph, std::move(tape), std::move(grad_output), numerics);
}

namespace {

/// Shown edges, keeps the gradients of nodes' outputs.
auto keep_gradients(std::map<std::string, net::Tensor>& outputs) {
  return [&outputs](const net::Step&, const net::Edge& edge, const net::Tensor& tensor) {
    if (edge.backward) outputs[std::string(edge.layer)] = tensor;
  };
}

}  // namespace

Exact exact_pass(const Sample& sample) {
  Exact exact;
  net::Observers show;
  show.before = [&](const net::Step&, const net::Product& p) {
    if (p.kind == net::GemmKind::wgrad) add_reach(p, exact.reach[std::string(p.layer)]);
  };
  show.kept = [&](const net::Step&, const net::Kept& kept, const net::Tensor& tensor) {
    if (kept.use == net::Use::linear) exact.contexts[std::string(kept.layer)] = tensor;
  };
  show.edge = keep_gradients(exact.outputs);
  net::Observing numerics(show);
  exact.gradients = pass(sample, numerics);
  return exact;
}

net::Saved Drawn::save(const net::Step& step, const net::Kept& kept,
                       const net::SharedTensor& tensor) {
  const auto draw = draws.find(kept.layer);
  if (kept.use != net::Use::linear || draw == draws.end()) return {tensor};
  net::Step own = step;
  own.index = draw->second;
  return Forwarding::save(own, kept, tensor);
}

net::SharedTensor Drawn::restore(const net::Step& step, const net::Kept& kept, net::Saved saved) {
  if (kept.use != net::Use::linear || !draws.contains(kept.layer)) return saved.tensor;
  return Forwarding::restore(step, kept, std::move(saved));
}

std::vector<double> context_variance(const net::Tensor& x, std::int64_t group,
                                     const std::vector<int>& bits) {
  static const Format& bfloat16 = find_format("bfloat16");
  std::vector<double> variance(x.data.size());
  for_each_group(x, group, [&](auto n, auto first, auto count, double low, double high) {
    if (high == low) return;
    const double steps = steps_of(bits[static_cast<std::size_t>(n)]);
    const double s = to_double(decode(bfloat16, encode(bfloat16, value_of((high - low) / steps),
                                                       {RoundingMode::rup}, Overflow::saturate)
                                                    .code));
    for (std::int64_t i = first; i < first + count; ++i) {
      const double place = (x.data[static_cast<std::size_t>(i)] - low) / s;
      const double f = place - std::floor(place);
      variance[static_cast<std::size_t>(i)] = s * s * f * (1 - f);
    }
  });
  return variance;
}

std::vector<double> context_bound(const net::Tensor& x, std::int64_t group,
                                  const std::vector<int>& bits) {
  std::vector<double> bound(x.data.size());
  for_each_group(x, group, [&](auto n, auto first, auto count, double low, double high) {
    const double step = (high - low) / steps_of(bits[static_cast<std::size_t>(n)]);
    std::fill_n(bound.begin() + first, count, step * step / 4);
  });
  return bound;
}

std::map<std::string, std::vector<int>> bits_of(const Sample& sample, const Exact& exact, int bits,
                                                double average, std::int64_t group) {
  std::map<std::string, std::vector<int>> all;
  std::map<std::string, double, std::less<>> averages;
  for (const auto& [value, x] : exact.contexts) {
    all[value] = std::vector<int>(static_cast<std::size_t>(x.dim(0)), bits);
    averages[value] = average;
  }
  if (bits > 0) return all;
  policies::SampleBits greedy(sample.graph, averages);
  for (int step = 0; step < 2; ++step) {
    for (const auto& [value, x] : exact.contexts) all[value] = greedy.choose(value, x, group);
    for (const auto& [node, g] : exact.outputs) greedy.see_gradient(node, g);
    greedy.end_step();
  }
  return all;
}

double squared_distance(const net::Tensor& a, const net::Tensor& b) {
  return stats::sum_of_squared_differences(a.size(), a.data.data(), b.data.data());
}

namespace {

constexpr std::int64_t kBlocks = 20;  // of draws, each with a mean error of its own
constexpr double kGreedyAverage = 2;

struct Plan {
  std::int64_t train, batch, draws, group;
  std::uint64_t seed;
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Of the weight gradient of a layer whose own context alone is compressed.
struct LayerVariance {
  std::string layer;
  double predicted = 0, bound = 0, average = 0;
  double gradient = 0;  ///< its square
  double measured = 0, error = 0, mean = 0, mean_error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("layer", self.layer);
    visit("predicted", self.predicted);
    visit("bound", self.bound);
    visit("average", self.average);
    visit("gradient", self.gradient);
    visit("measured", self.measured);
    visit("error", self.error);
    visit("mean", self.mean);
    visit("mean_error", self.mean_error);
  }
};
using LayerVariances = std::vector<LayerVariance>;

/// Greedy where `bits` is 0.
LayerVariances measure(const std::string& net, const net::Dataset& data, int bits,
                       const Plan& plan) {
  const Sample sample = sample_of(net, data, plan.train, plan.batch, plan.seed);
  Exact exact = exact_pass(sample);
  Json saved{{"group", plan.group}};
  if (bits > 0) saved["format"] = fmt::format("uint{}", bits);
  if (bits == 0) saved["bits"] = fmt::format("greedy({})", kGreedyAverage);
  policies::RecipeNumerics recipe(
      policies::Recipe::make({{"saved", saved}}, "recipe of actnn", plan.seed), sample.graph);
  if (bits == 0) {
    // Greedy bits follow the gradients of this step, which pass through contexts in codes.
    net::Observing first(recipe, {.edge = keep_gradients(exact.outputs)});
    const net::Step step{.phase = net::Phase::training};
    recipe.begin_step(step);
    pass(sample, first);
    recipe.end_step(step);
  }
  const auto chosen = bits_of(sample, exact, bits, kGreedyAverage, plan.group);
  LayerVariances result;
  for (const Layer& layer : layers_of(sample.graph)) {
    const net::Tensor& x = exact.contexts.at(layer.context);
    const std::vector<double>& reach = exact.reach.at(layer.name);
    const std::vector<double> variance = context_variance(x, plan.group, chosen.at(layer.context));
    const double predicted = dot(variance, reach);
    const double bound = dot(context_bound(x, plan.group, chosen.at(layer.context)), reach);
    double own = 0, all = 0, average = 0;
    for (const double v : variance) own += v;
    for (const double r : reach) all += r;
    average = own * all / static_cast<double>(reach.size());  // blind to which element meets what
    const net::Tensor& g = exact.gradients[layer.parameter];
    Drawn drawn(recipe);
    std::vector<double> squares, means;
    const std::int64_t each = plan.draws / kBlocks;
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      std::vector<double> sum(g.data.size());
      for (std::int64_t d = 0; d < each; ++d) {
        drawn.draws[layer.context] = 1 + block * each + d;
        const net::Tensor noisy = std::move(pass(sample, drawn)[layer.parameter]);
        squares.push_back(squared_distance(noisy, g));
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{noisy.data[i]} - g.data[i];
      }
      means.push_back(dot(sum, sum) / static_cast<double>(each));
    }
    double norm = 0;
    for (const float v : g.data) norm += double{v} * v;
    const stats::Mean measured = stats::mean_of(squares), mean = stats::mean_of(means);
    result.push_back({layer.name, predicted, bound, average, norm, measured.value, measured.error,
                      mean.value, mean.error});
  }
  return result;
}

std::string bits_name(int bits) {
  return bits == 0 ? fmt::format("greedy {}", kGreedyAverage) : fmt::format("{}", bits);
}

}  // namespace

void add_variance(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const Plan plan{settings.integer("gradient_train", 32, data.train_count()),
                  settings.integer("gradient_batch"), settings.integer("draws") / kBlocks * kBlocks,
                  settings.integer("group"), run.seed};
  std::vector<int> bits;
  for (const std::int64_t b : settings.whole_numbers("bits")) bits.push_back(static_cast<int>(b));
  bits.push_back(0);
  const std::vector<std::string> nets = settings.list("nets");
  std::vector<std::pair<std::string, int>> cases;
  for (const std::string& net : nets)
    for (const int b : bits) cases.emplace_back(net, b);
  const auto results = run_cases<LayerVariances>(
      run, cases, [&](const std::pair<std::string, int>& one) -> TypedTrial<LayerVariances> {
        const auto& [net, b] = one;
        Json point = sample_point(net, data, plan.train, plan.batch, plan.seed);
        point["variance"] = bits_name(b);
        point["group"] = plan.group;
        point["draws"] = plan.draws;
        return {std::move(point), fmt::format("gradients of {}, {} bits", net, bits_name(b)),
                [&, one] { return measure(one.first, data, one.second, plan); }};
      });
  ResultTable table{
      fmt::format("squared error of the weight gradient with its context in codes, batch {}, "
                  "groups of {}, {} draws in {} blocks of d = {}",
                  plan.batch, plan.group, plan.draws, kBlocks, plan.draws / kBlocks),
      {"net", "layer", "bits", "predicted / |g|^2", "measured / predicted",
       "d |mean error of d draws|^2 / predicted", "published bound / predicted",
       "mean of range and gradient apart / predicted"},
      {}};
  Chart chart{.title = "Variance of weight gradients over bits of the contexts",
              .caption = fmt::format(
                  "Squared error over the squared gradient, one context compressed at a time, "
                  "stochastic rounding, groups of {}, batch {}; dashed: sum over elements of s^2 f "
                  "(1 - f) times the squared output gradients that meet it.",
                  plan.group, plan.batch),
              .x = "bits per element",
              .y = "squared error / squared gradient",
              .log_y = true};
  for (std::size_t t = 0; t < results.size(); ++t) {
    const auto& [net, b] = cases[t];
    for (const LayerVariance& row : results[t]) {
      const double predicted = row.predicted, half = stats::kNormal95 * row.error;
      const std::string where = fmt::format("{} of {}, {} bits", row.layer, net, bits_name(b));
      conclusion.add(closed_form("variance of the weight gradient, " + where, predicted,
                                 row.measured, row.error),
                     "variance");
      conclusion.add(
          closed_form(
              fmt::format("{0} times the squared mean error of {0} draws over the variance, {1}",
                          plan.draws / kBlocks, where),
              1, row.mean / predicted, row.mean_error / predicted, true,
              bias_tolerance(static_cast<double>(plan.draws) / kBlocks)),
          "unbiased");
      table.rows.push_back(
          {net, row.layer, bits_name(b), fmt::format("{:.3g}", predicted / row.gradient),
           half_text(row.measured / predicted, half / predicted, 4),
           half_text(row.mean / predicted, stats::kNormal95 * row.mean_error / predicted, 3),
           fmt::format("{:.2f}", row.bound / predicted),
           fmt::format("{:.3f}", row.average / predicted)});
      if (b == 0) continue;
      const auto x = static_cast<double>(b);
      chart.add(net + " " + row.layer,
                {.x = x,
                 .y = row.measured / row.gradient,
                 .low = (row.measured - half) / row.gradient,
                 .high = (row.measured + half) / row.gradient},
                {.x = x, .y = predicted / row.gradient});
    }
  }
  // The same average bits, spread by the greedy algorithm.
  const auto two = std::find(bits.begin(), bits.end(), static_cast<int>(kGreedyAverage));
  for (std::size_t n = 0; two != bits.end() && n < nets.size(); ++n) {
    const auto sum = [&](std::ptrdiff_t place) {
      double measured = 0;
      for (const LayerVariance& row : results[n * bits.size() + static_cast<std::size_t>(place)])
        measured += row.measured;
      return measured;
    };
    const double fixed = sum(two - bits.begin()), greedy = sum(std::ssize(bits) - 1);
    conclusion.sentences.push_back(
        fmt::format("{}: greedy bits, {} on average, leave {:.2f} times the variance of {} bits "
                    "everywhere, summed over layers.",
                    nets[n], kGreedyAverage, greedy / fixed, kGreedyAverage));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

// What every context adds to the variance of the first layer's gradient: the terms of the law of
// total variance.

namespace {

constexpr const char* kCodes = "uint2";
constexpr double kNonlinear = 0.05;  // relative: terms of order 1 / batch of batch normalisation

/// Half the mean squared distance of two draws of the first layer's weight gradient. `draw`
/// prepares the numerics for draw 0 or 1 of a pair.
template <class Draw>
stats::Mean variance(const Sample& sample, std::size_t parameter, std::int64_t pairs, Drawn& drawn,
                     const Draw& draw) {
  std::vector<double> halves;
  for (std::int64_t p = 0; p < pairs; ++p) {
    net::Tensor gradients[2];
    for (int which = 0; which < 2; ++which) {
      drawn.draws.clear();
      draw(2 * p, 2 * p + which);
      gradients[which] = std::move(pass(sample, drawn)[parameter]);
    }
    halves.push_back(squared_distance(gradients[0], gradients[1]) / 2);
  }
  return stats::mean_of(halves);
}

/// Terms of the contexts in their order, and the variance with all of them compressed.
struct Terms {
  std::vector<std::string> contexts;
  std::vector<Estimate> alone = {}, behind = {};
  Estimate all = {};

  static void fields(auto& self, const auto& visit) {
    visit("contexts", self.contexts);
    visit("alone", self.alone);
    visit("behind", self.behind);
    visit("all", self.all);
  }
};

Terms measure(const std::string& net, const net::Dataset& data, std::int64_t train,
              std::int64_t batch, std::int64_t group, std::int64_t pairs, std::uint64_t seed) {
  const Sample sample = sample_of(net, data, train, batch, seed);
  const std::vector<std::string> contexts = linear_contexts(sample.graph);
  const std::size_t first = layers_of(sample.graph).front().parameter;
  policies::RecipeNumerics recipe(
      policies::Recipe::make({{"saved", {{"format", kCodes}, {"group", group}}}}, "recipe of actnn",
                             seed),
      sample.graph);
  Drawn drawn(recipe);
  const auto term = [&](const auto& draw) -> Estimate {
    const stats::Mean mean = variance(sample, first, pairs, drawn, draw);
    return {mean.value, mean.error};
  };
  Terms result{.contexts = contexts};
  result.all = term([&](std::int64_t, std::int64_t own) {
    for (const std::string& c : contexts) drawn.draws[c] = own;
  });
  for (std::size_t m = 0; m < contexts.size(); ++m) {
    result.alone.push_back(
        term([&](std::int64_t, std::int64_t own) { drawn.draws[contexts[m]] = own; }));
    result.behind.push_back(term([&](std::int64_t common, std::int64_t own) {
      for (std::size_t above = m + 1; above < contexts.size(); ++above)
        drawn.draws[contexts[above]] = common;
      drawn.draws[contexts[m]] = own;
    }));
  }
  return result;
}

}  // namespace

void add_layers(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string& net = settings.text("net");
  const std::int64_t train = settings.integer("gradient_train", 32, data.train_count()),
                     batch = settings.integer("gradient_batch"), group = settings.integer("group"),
                     pairs = settings.integer("passes");
  Json point = sample_point(net, data, train, batch, run.seed);
  point["layers"] = kCodes;
  point["group"] = group;
  point["pairs"] = pairs;
  const Terms terms = run_typed<Terms>(
      run, {{std::move(point), "contexts of " + net,
             [&] { return measure(net, data, train, batch, group, pairs, run.seed); }}})[0];
  const Estimate& all = terms.all;
  ResultTable table{
      fmt::format("variance of the gradient of the first weight of {}, contexts in "
                  "{}, groups of {}, batch {}: shares of {:.4g}, that of all together",
                  net, kCodes, group, batch, all.value),
      {"context", "alone", "below compressed ones"},
      {}};
  Chart chart{
      .kind = Chart::Kind::bars,
      .title = fmt::format("What each context adds to the variance of the first layer of {}", net),
      .caption = fmt::format(
          "Shares of the variance with all contexts in {} codes, groups of {}, batch {}, 95 % "
          "intervals. Alone: no other context is compressed. Below compressed ones: the expected "
          "variance given the gradient that reaches it.",
          kCodes, group, batch),
      .y = "share of the variance"};
  for (const std::string& name : terms.contexts) table.rows.push_back({name});
  for (const bool alone : {true, false}) {
    const char* const kind = alone ? "alone" : "below compressed ones";
    const std::vector<Estimate>& shares = alone ? terms.alone : terms.behind;
    ChartSeries series{kind, {}, false};
    double sum = 0, squares = 0;
    for (std::size_t m = 0; m < shares.size(); ++m) {
      const auto [value, error] = shares[m];
      sum += value;
      squares += error * error;
      const double half = stats::kNormal95 * error;
      table.rows[m].push_back(half_text(value / all.value, half / all.value, 4));
      series.points.push_back({.x = static_cast<double>(m),
                               .name = terms.contexts.at(m),
                               .y = value / all.value,
                               .low = (value - half) / all.value,
                               .high = (value + half) / all.value});
    }
    chart.series.push_back(std::move(series));
    const double error = portable::hypot(std::sqrt(squares), all.error);
    conclusion.add(
        model_finding(fmt::format("sum of the terms of all contexts of {} over their joint "
                                  "variance, each {}",
                                  net, kind),
                      1, sum / all.value, error / all.value, kNonlinear),
        alone ? "layers alone" : "layers add");
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::actnn
