// The angle between a vector and its min-max codes: normal numbers, weights of a network.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/range_bn/laws.hpp"
#include "experiments/range_bn/parts.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::range_bn {
namespace {

constexpr double kNear = 0.02;  // relative, of angles

double mean_square(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return sum / static_cast<double>(x.size());
}

/// Angles in degrees by number of bits: measured, by the model of uniform errors, and that of
/// normal numbers of the same mean square and ends.
Json angles(const std::vector<float>& x, const std::vector<std::int64_t>& bits) {
  const double square = mean_square(x), deviation = std::sqrt(square);
  Json result = Json::array();
  for (const std::int64_t m : bits) {
    const MinMax q = min_max(x, static_cast<int>(m));
    result.push_back({{"measured", angle_of(cosine(x, q))},
                      {"model", angle_of(model_cosine(q.step, square))},
                      {"normal", angle_of(normal_cosine(q.low / deviation, q.step / deviation,
                                                        static_cast<int>(m)))}});
  }
  return result;
}

Json normal_angles(std::int64_t n, std::int64_t repeats, const std::vector<std::int64_t>& bits,
                   std::uint64_t seed) {
  Json result{{"repeats", Json::array()}, {"sign", Json::array()}};
  for (std::int64_t r = 0; r < repeats; ++r) {
    RandomSource random;
    random.seed = seed;
    random.stream = Stream::probe;
    random.tensor = static_cast<std::uint32_t>(r);
    const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n), 31);
    result["repeats"].push_back(angles(x, bits));
    result["sign"].push_back(angle_of(sign_cosine(x)));
  }
  return result;
}

/// A figure of every repeat at place `b`, with its 95 % interval.
stats::PairedInterval over(const Json& repeats, std::size_t b, const char* key) {
  std::vector<double> values;
  for (const Json& repeat : repeats) values.push_back(repeat[b].at(key).get<double>());
  return stats::paired_interval(values);
}

}  // namespace

void add_angles(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<std::int64_t> bits = settings.whole_numbers("bits", 1, 8);
  const std::vector<std::int64_t> numbers = settings.whole_numbers("numbers", 16, 100'000'000);
  const std::int64_t repeats = settings.integer("repeats", 3, 1000),
                     train = settings.integer("gradient_train", 32, data.train_count());
  const std::string& net = settings.text("net");
  std::vector<Trial> trials;
  for (const std::int64_t n : numbers)
    trials.push_back({{{"angles", n}, {"repeats", repeats}, {"bits", bits}, {"seed", run.seed}},
                      fmt::format("angles of {} numbers", n),
                      [=, seed = run.seed] { return normal_angles(n, repeats, bits, seed); }});
  trials.push_back({{{"angles", net},
                     {"data", data.name()},
                     {"samples", data.digest()},
                     {"train", train},
                     {"bits", bits},
                     {"seed", run.seed}},
                    "angles of the weights of " + net,
                    [=, &data, seed = run.seed] {
                      Json result = Json::object();
                      const net::Graph graph = briefly_trained(net, data, train, seed);
                      for (const net::GemmLayer& layer : net::gemm_layers(graph))
                        if (layer.weight != nullptr)
                          result[layer.name] = angles(layer.weight->data, bits);
                      return result;
                    }});
  const std::vector<Json> results = run_trials(run, trials);

  ResultTable table{
      fmt::format("angle in degrees between numbers and their min-max codes, {} repeats", repeats),
      {"numbers", "bits", "uniform error", "normal law", "measured", "published: at most"},
      {}};
  Chart chart;
  chart.title = "Angle between a vector and its min-max codes";
  chart.caption = fmt::format(
      "Round to nearest between the smallest and the largest element, {} repeats, 95 % intervals; "
      "dashed: errors uniform and independent, arccos(1 / sqrt(1 + D^2 / (12 sigma^2))).",
      repeats);
  chart.x = "bits";
  chart.y = "angle, degrees";
  chart.log_y = true;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t n = numbers[i];
    ChartSeries measured_series{fmt::format("{} normal numbers, measured", n), {}, false},
        predicted_series{fmt::format("{} normal numbers, predicted", n), {}, true};
    for (std::size_t b = 0; b < bits.size(); ++b) {
      const Json& all = results[i].at("repeats");
      const stats::PairedInterval measured = over(all, b, "measured"),
                                  model = over(all, b, "model"), law = over(all, b, "normal");
      std::vector<double> off_model, off_law;
      for (const Json& repeat : all) {
        const auto ratio = [&](const char* key) {
          return repeat[b].at("measured").get<double>() / repeat[b].at(key).get<double>();
        };
        off_model.push_back(ratio("model"));
        off_law.push_back(ratio("normal"));
      }
      const std::string where = fmt::format("{} normal numbers, {} bits", n, bits[b]);
      const auto judge = [&](const std::string& what, const std::vector<double>& ratios) {
        const stats::PairedInterval ratio = stats::paired_interval(ratios);
        conclusion.findings.push_back(
            interval_finding(what + where, 1, ratio.mean, {ratio.low, ratio.high}, near(1, kNear)));
      };
      judge("angle over that of uniform errors, ", off_model);
      conclusion.about(bits[b] > 2 ? "angle" : "angle, few bits");
      judge("angle over that of the normal law by cells, ", off_law);
      conclusion.about("angle, normal law");
      const double least = least_cosine(static_cast<int>(bits[b]), n);
      conclusion.findings.push_back(interval_finding(
          "angle in degrees against the published bound, " + where, angle_of(least), measured.mean,
          {measured.low, measured.high}, at_most(angle_of(least))));
      conclusion.about("angle, bound");
      table.rows.push_back(
          {std::to_string(n), std::to_string(bits[b]), fmt::format("{:.3f}", model.mean),
           fmt::format("{:.3f}", law.mean),
           fmt::format("{:.3f} +- {:.3f}", measured.mean, measured.high - measured.mean),
           fmt::format("{:.3f}", angle_of(least))});
      const auto x = static_cast<double>(bits[b]);
      measured_series.points.push_back(
          {.x = x, .y = measured.mean, .low = measured.low, .high = measured.high});
      predicted_series.points.push_back({.x = x, .y = model.mean});
    }
    std::vector<double> signs;
    for (const Json& sign : results[i].at("sign")) signs.push_back(sign.get<double>());
    const stats::PairedInterval sign = stats::paired_interval(signs);
    const double predicted = angle_of(normal_sign_cosine());
    conclusion.findings.push_back(interval_finding(
        fmt::format("angle in degrees of the signs of {} normal numbers", n), predicted, sign.mean,
        {sign.low, sign.high}, near(predicted, kNear * predicted)));
    conclusion.about("angle, signs");
    table.rows.push_back({std::to_string(n), "sign", "-", fmt::format("{:.3f}", predicted),
                          fmt::format("{:.3f} +- {:.3f}", sign.mean, sign.high - sign.mean), "-"});
    chart.series.push_back(std::move(measured_series));
    chart.series.push_back(std::move(predicted_series));
  }
  for (const auto& [layer, of_layer] : results.back().items()) {
    for (std::size_t b = 0; b < bits.size(); ++b) {
      const double measured = of_layer[b].at("measured"), model = of_layer[b].at("model");
      const std::string where = fmt::format("{} of {}", layer, net);
      conclusion.findings.push_back(exact_finding(
          fmt::format("angle over that of uniform errors, weight of {}, {} bits", where, bits[b]),
          1, measured / model, std::fabs(measured / model - 1) <= kNear));
      conclusion.about(bits[b] > 2 ? "angle" : "angle, few bits");
      table.rows.push_back({where, std::to_string(bits[b]), fmt::format("{:.3f}", model), "-",
                            fmt::format("{:.3f}", measured), "-"});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::range_bn
