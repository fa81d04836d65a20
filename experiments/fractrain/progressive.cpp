// Networks trained at static and at progressive precision: accuracy against bit operations.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/net/multiply_adds.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/training_settings.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/fractrain/methods.hpp"
#include "experiments/fractrain/parts.hpp"

namespace numemu::experiments::fractrain {
namespace {

constexpr double kMargin = 0.5;  // points of top-1 that progressive precision may lose
constexpr double kAccounting =
    0.03;  // of the cost: what products that the network lacks may change

/// Trains, and counts what the products of every epoch cost at the precision in force.
Json train(TrainTrial trial, const net::Dataset& data, const Method& method) {
  MultiplyAdds macs;  // of the current epoch
  double total = 0;
  Json stages = Json::array(), losses = Json::array();
  trial.before = [&](const net::Product& p, std::int64_t) {
    double& sum = p.kind == net::GemmKind::fprop   ? macs.fprop
                  : p.kind == net::GemmKind::dgrad ? macs.dgrad
                                                   : macs.wgrad;
    sum += net::multiply_adds(p);
  };
  trial.on_epoch = [&](const net::EpochMetrics& epoch, std::size_t stage) {
    total += cost(method.precisions.at(stage), std::exchange(macs, {}));
    stages.push_back(stage);
    losses.push_back(epoch.train_loss);
  };
  Json result = {{"outcome", to_json(run_train_trial(trial, data))}};
  result["cost"] = total;
  result["stages"] = std::move(stages);
  result["losses"] = std::move(losses);
  return result;
}

/// One method over the seeds.
struct Row {
  const Method* method = nullptr;
  std::vector<double> top1;          ///< per cent
  std::vector<double> costs;         ///< as counted, over that of the first method
  std::vector<double> published;     ///< by the epochs of its stages, likewise
  std::vector<std::string> turns;    ///< epochs with which its stages began
  std::vector<double> losses;        ///< of training by epoch, mean over the seeds
  stats::PairedInterval difference;  ///< of top-1 to the first method

  double cost() const { return stats::paired_interval(costs).mean; }
};

Row row_of(const Method& method, const std::vector<Json>& results, const std::vector<Json>& first,
           const Precision& whole) {
  Row row;
  row.method = &method;
  for (std::size_t s = 0; s < results.size(); ++s) {
    const Json& result = results[s];
    row.top1.push_back(100 * train_outcome(result.at("outcome")).metric);
    row.costs.push_back(result.at("cost").get<double>() / first[s].at("cost").get<double>());
    std::vector<Precision> epochs;
    std::string turns;
    std::size_t before = 0;
    for (const Json& stage : result.at("stages")) {
      const std::size_t now = stage;
      if (now != before) turns += fmt::format("{}{}", turns.empty() ? "" : ", ", epochs.size());
      epochs.push_back(method.precisions.at(now));
      before = now;
    }
    row.turns.push_back(turns);
    row.published.push_back(published_share(epochs, whole) * static_cast<double>(epochs.size()) /
                            static_cast<double>(first[s].at("stages").size()));
    row.losses.resize(epochs.size());
    for (std::size_t e = 0; e < epochs.size(); ++e) {
      const Json& loss = result.at("losses").at(e);
      row.losses[e] +=
          (loss.is_number() ? loss.get<double>() : NAN) / static_cast<double>(results.size());
    }
  }
  return row;
}

std::string interval_text(const stats::PairedInterval& d) {
  return d.n < 2 ? "-" : fmt::format("[{:+.2f}, {:+.2f}]", d.low, d.high);
}

void judge(const std::vector<Row>& rows, const std::vector<Precision>& stages,
           Conclusion& conclusion) {
  for (const Row& row : rows) {
    if (&row == &rows[0] || row.method->precisions.front().weight == 32) continue;
    const double published = stats::paired_interval(row.published).mean;
    conclusion.findings.push_back(exact_finding(
        fmt::format("{}: cost over that of {}", row.method->name, rows[0].method->name), published,
        row.cost(), std::fabs(row.cost() - published) <= kAccounting));
  }
  conclusion.about("cost");
  PairedClaims claims;
  const Row& paid = rows.back();
  for (const Row& row : rows) {
    if (row.method->progressive()) {
      claims.add(fmt::format("points gained by {} on {}, at least -{}", row.method->name,
                             rows[0].method->name, kMargin),
                 row.difference, -kMargin, "progressive");
    } else if (row.method->precisions.front() == stages.front()) {
      const bool tested = row.method->kind == Method::Stages::tested;
      stats::PairedInterval loss = row.difference;
      loss = {-loss.mean, -loss.high, -loss.low, loss.n};
      claims.add(fmt::format("points lost by {} to {}, at least {}", row.method->name,
                             rows[0].method->name, kMargin),
                 loss, kMargin, tested ? "tested" : "static");
    }
    if (row.method->kind == Method::Stages::schedule) {
      claims.add(fmt::format("points gained by {} on {}, which costs as much", row.method->name,
                             paid.method->name),
                 stats::paired_interval(row.top1, paid.top1), 0, "shorter");
    }
  }
  for (Finding& finding : claims.judged()) conclusion.findings.push_back(std::move(finding));
}

ResultTable table_of(const TrainTrial& trial, const std::string& data,
                     const std::vector<Row>& rows) {
  ResultTable table{fmt::format("{} on {}, {} epochs, {} seeds, paired by seed", trial.net, data,
                                rows[0].method->epochs, rows[0].top1.size()),
                    {"method", "cost as published, %", "cost counted, %", "top-1, %",
                     "difference, points", "95 % interval", "stages begin with epoch"},
                    {}};
  for (const Row& row : rows) {
    std::string turns;
    for (const std::string& seed : row.turns) {
      if (!row.method->progressive()) break;
      if (!turns.empty() && row.method->kind == Method::Stages::schedule) break;
      turns += (turns.empty() ? "" : "; ") + (seed.empty() ? std::string("none") : seed);
    }
    table.rows.push_back(
        {row.method->name, fmt::format("{:.1f}", 100 * stats::paired_interval(row.published).mean),
         fmt::format("{:.1f}", 100 * row.cost()),
         fmt::format("{:.2f}", stats::paired_interval(row.top1).mean),
         &row == &rows[0] ? "-" : fmt::format("{:+.2f}", row.difference.mean),
         &row == &rows[0] ? "-" : interval_text(row.difference), turns.empty() ? "-" : turns});
  }
  return table;
}

Chart accuracy_chart(const TrainTrial& trial, const std::string& data,
                     const std::vector<Row>& rows) {
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title =
      fmt::format("Accuracy of {} on {} against the cost of its training", trial.net, data);
  chart.caption = fmt::format(
      "Difference of top-1 to {} over {} seeds, with its 95 % interval by Student's t law paired "
      "by "
      "seed, against the bit operations of all products over those of {}. Ranges of tensors, "
      "gradients with stochastic rounding, unit f32.sequential.",
      rows[0].method->name, rows[0].top1.size(), rows[0].method->name);
  chart.x = "cost, % of " + rows[0].method->name;
  chart.y = "top-1 difference, points";
  for (const bool progressive : {false, true}) {
    ChartSeries series{progressive ? "progressive" : "static", {}, false};
    for (const Row& row : rows) {
      const bool float32 = row.method->precisions.front().weight == 32;
      if (row.method->progressive() != progressive || float32) continue;
      const bool apart = row.difference.n > 1 && &row != &rows[0];
      series.points.push_back({.x = 100 * row.cost(),
                               .name = row.method->name,
                               .y = row.difference.mean,
                               .low = apart ? row.difference.low : NAN,
                               .high = apart ? row.difference.high : NAN});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart loss_chart(const TrainTrial& trial, const std::vector<Row>& rows) {
  Chart chart;
  chart.title = fmt::format("Training loss of {} by epoch", trial.net);
  chart.caption = "Means over the seeds. Losses of progressive precision fall at its stages.";
  chart.x = "epoch";
  chart.y = "training loss";
  chart.log_y = true;
  for (const Row& row : rows) {
    ChartSeries series{row.method->name, {}, false};
    for (std::size_t e = 0; e < row.losses.size(); ++e)
      series.points.push_back({.x = static_cast<double>(e), .y = row.losses[e]});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

void add_progressive(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<Method> methods = methods_of(settings);
  const Indicator indicator{settings.number("eps", 0, 1), settings.number("alpha", 0, 1)};
  const TrainTrial trial = training_of(settings, settings.text("net"));
  const auto seeds = static_cast<std::size_t>(settings.integer("seeds", 1, 1000));
  std::vector<Trial> trials;
  for (const Method& method : methods) {
    for (std::size_t s = 0; s < seeds; ++s) {
      TrainTrial one = trial;
      one.seed = run.seed + s;
      one.options.epochs = method.epochs;
      one.recipe = recipe_of(method, indicator);
      Json point = point_of(one, data);
      point["counted"] = "bit operations";
      trials.push_back({std::move(point), fmt::format("{}, seed {}", method.name, one.seed),
                        [one, &data, &method] { return train(one, data, method); }});
    }
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  std::vector<std::vector<Json>> by_method;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const auto begin = results.begin() + static_cast<std::ptrdiff_t>(m * seeds);
    by_method.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(seeds));
  }
  std::vector<Row> rows;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    Row row = row_of(methods[m], by_method[m], by_method[0], methods[0].precisions[0]);
    row.difference = stats::paired_interval(row.top1, rows.empty() ? row.top1 : rows.front().top1);
    rows.push_back(std::move(row));
  }
  const auto scheduled = std::find_if(rows.begin(), rows.end(), [](const Row& row) {
    return row.method->kind == Method::Stages::schedule;
  });
  judge(rows, scheduled->method->precisions, conclusion);
  for (const Row& row : rows) {
    if (!row.method->progressive()) continue;
    conclusion.sentences.push_back(
        fmt::format("{}: {:+.2f} points {} against {} at {:.0f} % of its cost.", row.method->name,
                    row.difference.mean, interval_text(row.difference), rows[0].method->name,
                    100 * row.cost()));
  }
  conclusion.tables.push_back(table_of(trial, data.name(), rows));
  conclusion.charts.push_back(accuracy_chart(trial, data.name(), rows));
  conclusion.charts.push_back(loss_chart(trial, rows));
}

}  // namespace numemu::experiments::fractrain
