// Weight gradients with compressed contexts: variance and mean against closed forms, and what every
// context adds to the variance of the first layer's.
#include <fmt/format.h>

#include <cmath>

#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/actnn/passes.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/portable/math.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::actnn {

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

/// Every layer with its own context alone compressed; greedy where `bits` is 0.
Json measure(const std::string& net, const net::Dataset& data, int bits, const Plan& plan) {
  const Sample sample = sample_of(net, data, plan.train, plan.batch, plan.seed);
  const Exact exact = exact_pass(sample);
  const auto chosen = bits_of(sample, exact, bits, kGreedyAverage, plan.group);
  Json saved{{"group", plan.group}};
  if (bits > 0) saved["format"] = fmt::format("uint{}", bits);
  if (bits == 0) saved["bits"] = fmt::format("greedy({})", kGreedyAverage);
  policies::RecipeNumerics recipe(
      policies::Recipe::parse(recipe_of(saved, plan.seed), "recipe of actnn"), sample.graph);
  if (bits == 0) {
    const net::Step step{.phase = net::Phase::training};
    recipe.begin_step(step);
    pass(sample, recipe);
    recipe.end_step(step);
  }
  Json result = Json::array();
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
    result.push_back({{"layer", layer.name},
                      {"predicted", predicted},
                      {"bound", bound},
                      {"average", average},
                      {"gradient", norm},
                      {"measured", measured.value},
                      {"error", measured.error},
                      {"mean", mean.value},
                      {"mean_error", mean.error}});
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
                  settings.integer("gradient_batch", 2, 65536),
                  settings.integer("draws", 2 * kBlocks, 1'000'000) / kBlocks * kBlocks,
                  settings.integer("group", 2, 1 << 20), run.seed};
  std::vector<int> bits;
  for (const std::int64_t b : settings.whole_numbers("bits", 1, 8))
    bits.push_back(static_cast<int>(b));
  bits.push_back(0);
  const std::vector<std::string> nets = settings.list("nets");
  std::vector<Trial> trials;
  for (const std::string& net : nets) {
    for (const int b : bits) {
      Json point = sample_point(net, data, plan.train, plan.batch, plan.seed);
      point["variance"] = bits_name(b);
      point["group"] = plan.group;
      point["draws"] = plan.draws;
      trials.push_back({std::move(point),
                        fmt::format("gradients of {}, {} bits", net, bits_name(b)),
                        [=, &data] { return measure(net, data, b, plan); }});
    }
  }
  const std::vector<Json> results = run_trials(run, trials);

  ResultTable table{
      fmt::format("squared error of the weight gradient with its context in codes, batch {}, "
                  "groups of {}, {} draws in {} blocks of d = {}",
                  plan.batch, plan.group, plan.draws, kBlocks, plan.draws / kBlocks),
      {"net", "layer", "bits", "predicted / |g|^2", "measured / predicted",
       "d |mean error of d draws|^2 / predicted", "published bound / predicted",
       "mean of range and gradient apart / predicted"},
      {}};
  Chart chart;
  chart.title = "Variance of weight gradients over bits of the contexts";
  chart.caption = fmt::format(
      "Squared error over the squared gradient, one context compressed at a time, stochastic "
      "rounding, groups of {}, batch {}; dashed: sum over elements of s^2 f (1 - f) times the "
      "squared output gradients that meet it.",
      plan.group, plan.batch);
  chart.x = "bits per element";
  chart.y = "squared error / squared gradient";
  chart.log_y = true;
  for (std::size_t t = 0; t < results.size(); ++t) {
    const std::string& net = nets[t / bits.size()];
    const int b = bits[t % bits.size()];
    for (std::size_t l = 0; l < results[t].size(); ++l) {
      const Json& row = results[t][l];
      const auto number = [&](const char* key) { return row.at(key).get<double>(); };
      const std::string layer = row.at("layer");
      const double predicted = number("predicted"), measured = number("measured");
      const std::string where = fmt::format("{} of {}, {} bits", layer, net, bits_name(b));
      conclusion.findings.push_back(closed_form("variance of the weight gradient, " + where,
                                                predicted, measured, number("error")));
      conclusion.about("variance");
      conclusion.findings.push_back(closed_form(
          fmt::format("{0} times the squared mean error of {0} draws over the variance, {1}",
                      plan.draws / kBlocks, where),
          1, number("mean") / predicted, number("mean_error") / predicted));
      conclusion.about("unbiased");
      table.rows.push_back({net, layer, bits_name(b),
                            fmt::format("{:.3g}", predicted / number("gradient")),
                            fmt::format("{:.4f} +- {:.4f}", measured / predicted,
                                        stats::kNormal95 * number("error") / predicted),
                            fmt::format("{:.3f} +- {:.3f}", number("mean") / predicted,
                                        stats::kNormal95 * number("mean_error") / predicted),
                            fmt::format("{:.2f}", number("bound") / predicted),
                            fmt::format("{:.3f}", number("average") / predicted)});
      if (b == 0) continue;
      const std::string name = net + " " + layer;
      const auto series = [&](const std::string& text, bool dashed) -> ChartSeries& {
        for (ChartSeries& s : chart.series)
          if (s.name == text) return s;
        chart.series.push_back({text, {}, dashed});
        return chart.series.back();
      };
      const double g = number("gradient"), half = stats::kNormal95 * number("error");
      series(name + " measured", false)
          .points.push_back({.x = static_cast<double>(b),
                             .y = measured / g,
                             .low = (measured - half) / g,
                             .high = (measured + half) / g});
      series(name + " predicted", true)
          .points.push_back({.x = static_cast<double>(b), .y = predicted / g});
    }
  }
  // The same average bits, spread by the greedy algorithm.
  const auto two = std::find(bits.begin(), bits.end(), static_cast<int>(kGreedyAverage));
  for (std::size_t n = 0; two != bits.end() && n < nets.size(); ++n) {
    double fixed = 0, greedy = 0;
    const std::size_t first = n * bits.size();
    for (const Json& row : results[first + static_cast<std::size_t>(two - bits.begin())])
      fixed += row.at("measured").get<double>();
    for (const Json& row : results[first + bits.size() - 1])
      greedy += row.at("measured").get<double>();
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

Json measure(const std::string& net, const net::Dataset& data, std::int64_t train,
             std::int64_t batch, std::int64_t group, std::int64_t pairs, std::uint64_t seed) {
  const Sample sample = sample_of(net, data, train, batch, seed);
  const std::vector<std::string> contexts = linear_contexts(sample.graph);
  const std::size_t first = layers_of(sample.graph).front().parameter;
  policies::RecipeNumerics recipe(
      policies::Recipe::parse(recipe_of({{"format", kCodes}, {"group", group}}, seed),
                              "recipe of actnn"),
      sample.graph);
  Drawn drawn(recipe);
  const auto entry = [&](const stats::Mean& m) {
    return Json{{"value", m.value}, {"error", m.error}};
  };
  Json result{{"contexts", contexts}, {"alone", Json::array()}, {"behind", Json::array()}};
  result["all"] = entry(variance(sample, first, pairs, drawn, [&](std::int64_t, std::int64_t own) {
    for (const std::string& c : contexts) drawn.draws[c] = own;
  }));
  for (std::size_t m = 0; m < contexts.size(); ++m) {
    result["alone"].push_back(
        entry(variance(sample, first, pairs, drawn,
                       [&](std::int64_t, std::int64_t own) { drawn.draws[contexts[m]] = own; })));
    result["behind"].push_back(
        entry(variance(sample, first, pairs, drawn, [&](std::int64_t common, std::int64_t own) {
          for (std::size_t above = m + 1; above < contexts.size(); ++above)
            drawn.draws[contexts[above]] = common;
          drawn.draws[contexts[m]] = own;
        })));
  }
  return result;
}

}  // namespace

void add_layers(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string& net = settings.text("net");
  const std::int64_t train = settings.integer("gradient_train", 32, data.train_count()),
                     batch = settings.integer("gradient_batch", 2, 65536),
                     group = settings.integer("group", 2, 1 << 20),
                     pairs = settings.integer("passes", 4, 1'000'000);
  Json point = sample_point(net, data, train, batch, run.seed);
  point["layers"] = kCodes;
  point["group"] = group;
  point["pairs"] = pairs;
  const Json result =
      run_trials(run, {{std::move(point), "contexts of " + net, [=, &run, &data] {
                          return measure(net, data, train, batch, group, pairs, run.seed);
                        }}})[0];
  const auto mean = [](const Json& json) {
    stats::Mean read;
    read.value = json.at("value");
    read.error = json.at("error");
    return read;
  };
  const stats::Mean all = mean(result.at("all"));
  ResultTable table{
      fmt::format("variance of the gradient of the first weight of {}, contexts in "
                  "{}, groups of {}, batch {}: shares of {:.4g}, that of all together",
                  net, kCodes, group, batch, all.value),
      {"context", "alone", "below compressed ones"},
      {}};
  Chart chart;
  chart.kind = Chart::Kind::bars;
  chart.title = fmt::format("What each context adds to the variance of the first layer of {}", net);
  chart.caption = fmt::format(
      "Shares of the variance with all contexts in {} codes, groups of {}, batch {}, 95 % "
      "intervals. Alone: no other context is compressed. Below compressed ones: the expected "
      "variance given the gradient that reaches it.",
      kCodes, group, batch);
  chart.y = "share of the variance";
  for (const char* kind : {"alone", "behind"}) {
    const bool alone = std::string_view(kind) == "alone";
    ChartSeries series{alone ? "alone" : "below compressed ones", {}, false};
    double sum = 0, squares = 0;
    for (std::size_t m = 0; m < result.at(kind).size(); ++m) {
      const stats::Mean term = mean(result.at(kind)[m]);
      sum += term.value;
      squares += term.error * term.error;
      const double half = stats::kNormal95 * term.error;
      const std::string name = result.at("contexts")[m];
      if (alone) table.rows.push_back({name});
      table.rows[m].push_back(
          fmt::format("{:.4f} +- {:.4f}", term.value / all.value, half / all.value));
      series.points.push_back({.x = static_cast<double>(m),
                               .name = name,
                               .y = term.value / all.value,
                               .low = (term.value - half) / all.value,
                               .high = (term.value + half) / all.value});
    }
    chart.series.push_back(std::move(series));
    const double error = portable::hypot(std::sqrt(squares), all.error);
    conclusion.findings.push_back(model_finding(
        fmt::format("sum of the terms of all contexts of {} over their joint variance, each {}",
                    net, alone ? "alone" : "below compressed ones"),
        1, sum / all.value, error / all.value, kNonlinear));
    conclusion.about(alone ? "layers alone" : "layers add");
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::actnn
