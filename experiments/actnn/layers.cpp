// What every context adds to the variance of the first layer's gradient: the terms of the law of
// total variance.
#include <fmt/format.h>

#include <cmath>

#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/actnn/parts.hpp"
#include "experiments/actnn/passes.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/portable/math.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::actnn {
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
