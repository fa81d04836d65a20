// What looks at gradients of float32 training say of laws, relative errors and splits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/fit.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/lognormal_gradients/splits.hpp"
#include "formats/analysis/magnitude_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/fields.hpp"

namespace numemu::experiments::lognormal_gradients {

namespace {

Json distances(const std::vector<float>& nonzero) {
  Json json = Json::object();
  for (const stats::Fit& fit : stats::fit_all(nonzero.data(), std::ssize(nonzero)))
    json[fit.family] = fit.ks_distance;
  return json;
}

/// A record but for layer, step and epoch; null without a spread.
Json look_at(const std::vector<float>& g, const std::vector<Candidate>& candidates) {
  std::vector<float> nonzero;
  std::copy_if(g.begin(), g.end(), std::back_inserter(nonzero), [](float x) { return x != 0; });
  const auto n = static_cast<std::int64_t>(nonzero.size());
  const MagnitudeLaw law = fit_law(ThresholdLaw::lognormal, g.data(), std::ssize(g));
  if (!law.usable() || !(law.spread > 0)) return nullptr;
  const double mean = portable::log2(law.scale), sigma = law.spread / std::numbers::ln2;
  Json record = {{"n", g.size()},
                 {"zeros", 1 - law.nonzero},
                 {"ln", {{"mean", portable::log(law.scale)}, {"sigma", law.spread}}},
                 {"log2", {{"mean", mean}, {"sigma", sigma}}},
                 {"ks", distances(nonzero)},
                 {"errors", Json::array()}};
  for (const Candidate& candidate : candidates) {
    const double target = candidate.grid.best_mean(sigma), factor = portable::exp2(target - mean);
    const double sum = pairwise_sum(n, [&](std::int64_t i) {
      return candidate.grid.error_of(factor * std::fabs(double{nonzero[i]}));
    });
    record["errors"].push_back({{"mean", target},
                                {"predicted", candidate.grid.expected(sigma, target)},
                                {"measured", sum / static_cast<double>(n)}});
  }
  return record;
}

}  // namespace

std::vector<Candidate> candidates_of(const std::vector<int>& widths) {
  std::vector<Candidate> all;
  for (const int bits : widths) {
    for (const Split& split : splits_of(bits))
      all.push_back({split, FormatGrid(find_format(split.format()))});
  }
  return all;
}

Json observe(TrainTrial trial, const net::Dataset& data, const Looks& looks,
             const std::vector<Candidate>& candidates) {
  Json records = Json::array();
  trial.before = [&](const net::Product& product, std::int64_t step) {
    if (product.kind != net::GemmKind::wgrad || !looks.at(step)) return;
    Json record = look_at(product.a.source->data, candidates);
    if (record.is_null()) return;
    record["layer"] = std::string(product.layer);
    record["step"] = step;
    record["epoch"] = step / looks.steps_per_epoch;
    records.push_back(std::move(record));
  };
  const TrainOutcome outcome = run_train_trial(trial, data);
  return {{"outcome", json_of(outcome)}, {"records", records}};
}

// What looks at gradients of float32 training say of laws, relative errors and splits.

namespace {

constexpr double kLawHolds = 0.1;     // relative, of the error that a fit predicts
constexpr double kSplitHolds = 1.05;  // error of the chosen split over the least one

/// The records of one layer, by seed.
using OfLayer = std::vector<std::vector<const Json*>>;

/// Mean over the records of a seed, for each seed.
template <class Figure>
std::vector<double> by_seed(const OfLayer& records, Figure&& figure) {
  std::vector<double> means;
  for (const std::vector<const Json*>& seed : records) {
    double sum = 0;
    for (const Json* record : seed) sum += figure(*record);
    means.push_back(sum / static_cast<double>(seed.size()));
  }
  return means;
}

double mean_of(const std::vector<double>& values) { return stats::paired_interval(values).mean; }

double ks(const Json& record, const char* family) {
  return record.at("ks").contains(family) ? record.at("ks").at(family).get<double>() : 1;
}

double sigma_of(const Json& record) { return record.at("log2").at("sigma"); }

/// The candidates of one width: [first, last) of all.
std::pair<std::size_t, std::size_t> of_width(const std::vector<Candidate>& all, int bits) {
  std::size_t first = 0;
  while (all[first].split.bits() != bits) ++first;
  std::size_t last = first;
  while (last < all.size() && all[last].split.bits() == bits) ++last;
  return {first, last};
}

/// The candidate with the least figure "predicted" or "measured" among [first, last).
std::size_t least(const Json& record, std::pair<std::size_t, std::size_t> range, const char* key) {
  const auto error = [&](std::size_t i) { return record.at("errors").at(i).at(key).get<double>(); };
  std::size_t best = range.first;
  for (std::size_t i = range.first; i < range.second; ++i) {
    if (error(i) < error(best)) best = i;
  }
  return best;
}

void judge_laws(const std::vector<std::pair<std::string, OfLayer>>& layers,
                Conclusion& conclusion) {
  std::vector<PairedGain> gains;
  for (const auto& [layer, records] : layers) {
    const auto closer = by_seed(records, [](const Json& r) {
      return std::min(ks(r, "normal"), ks(r, "laplace")) - ks(r, "lognormal");
    });
    gains.push_back({layer + ": distance of the closer of normal and Laplace law minus that of the "
                             "lognormal law",
                     stats::paired_interval(closer)});
  }
  for (Finding& finding : judge_gains(gains)) conclusion.findings.push_back(std::move(finding));
  conclusion.about("lognormal");
}

void judge_errors(const std::vector<std::pair<std::string, OfLayer>>& layers,
                  const std::vector<int>& widths, const std::vector<Candidate>& candidates,
                  Conclusion& conclusion) {
  for (const auto& [layer, records] : layers) {
    for (const int bits : widths) {
      const auto range = of_width(candidates, bits);
      const auto measured = [&](const Json& r, const char* by) {
        return r.at("errors").at(least(r, range, by)).at("measured").get<double>();
      };
      const auto ratio = stats::paired_interval(by_seed(records, [&](const Json& r) {
        const Json& chosen = r.at("errors").at(least(r, range, "predicted"));
        return chosen.at("measured").get<double>() / chosen.at("predicted").get<double>();
      }));
      conclusion.findings.push_back(interval_finding(
          fmt::format("{}, {} bits: measured over predicted relative error", layer, bits), 1,
          ratio.mean, {ratio.low, ratio.high}, near(1, kLawHolds)));
      conclusion.about("gradients");
      const auto cost = stats::paired_interval(by_seed(records, [&](const Json& r) {
        return measured(r, "predicted") / measured(r, "measured");
      }));
      conclusion.findings.push_back(interval_finding(
          fmt::format("{}, {} bits: error of the chosen split over the least", layer, bits), 1,
          cost.mean, {cost.low, cost.high}, at_most(kSplitHolds)));
      conclusion.about("split");
    }
  }
}

/// Best splits at the first and last look, of the first seed, and the fits there.
ResultTable table_of(const std::string& net,
                     const std::vector<std::pair<std::string, OfLayer>>& layers,
                     const std::vector<int>& widths, const std::vector<Candidate>& candidates) {
  ResultTable table{
      fmt::format("{}: gradients over float32 training, first seed; splits predicted | measured",
                  net),
      {"layer", "epoch", "step", "zeros", "sigma, ln", "sigma, base 2", "K-S lognormal",
       "K-S normal", "K-S Laplace"},
      {}};
  for (const int bits : widths) table.header.push_back(fmt::format("best of {} bits", bits));
  for (const auto& [layer, records] : layers) {
    std::int64_t epoch = -1;
    for (const Json* const record : records[0]) {
      const bool last = record == records[0].back();
      if (record->at("epoch") == epoch && !last) continue;
      epoch = record->at("epoch");
      std::vector<std::string> row = {
          layer,
          fmt::format("{}", epoch),
          fmt::format("{}", record->at("step").get<std::int64_t>()),
          fmt::format("{:.3f}", record->at("zeros").get<double>()),
          fmt::format("{:.3f}", record->at("ln").at("sigma").get<double>()),
          fmt::format("{:.3f}", sigma_of(*record))};
      for (const char* family : {"lognormal", "normal", "laplace"})
        row.push_back(fmt::format("{:.4f}", ks(*record, family)));
      for (const int bits : widths) {
        const auto range = of_width(candidates, bits);
        row.push_back(fmt::format("{} | {}",
                                  candidates[least(*record, range, "predicted")].split.name(),
                                  candidates[least(*record, range, "measured")].split.name()));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Chart chart_of(const std::string& net, const std::string& title, const std::string& y) {
  Chart chart;
  chart.title = title + " of " + net;
  chart.x = "step";
  chart.y = y;
  return chart;
}

void draw(const std::string& net, const std::vector<std::pair<std::string, OfLayer>>& layers,
          const std::vector<int>& widths, const std::vector<Candidate>& candidates,
          Conclusion& conclusion) {
  Chart sigmas = chart_of(net, "Sigma of gradients over training", "sigma of log2|g|");
  sigmas.caption =
      "Output gradients of each layer in float32 training, mean over seeds; zeros left out.";
  Chart splits = chart_of(net, "Exponent bits of the best split over training", "exponent bits");
  splits.caption = fmt::format(
      "Split of {} bits with the least relative error to nearest on the grid eXmY+finite, each at "
      "its best mean, mean over seeds; dashed: predicted from sigma.",
      widths.back());
  const auto range = of_width(candidates, widths.back());
  for (const auto& [layer, records] : layers) {
    ChartSeries sigma{layer, {}, false};
    ChartSeries best[2] = {{layer + " measured", {}, false}, {layer + " predicted", {}, true}};
    for (std::size_t look = 0; look < records[0].size(); ++look) {
      double sum = 0, exponents[2] = {0, 0}, seeds = 0;
      for (const std::vector<const Json*>& seed : records) {
        if (look >= seed.size()) continue;
        const Json& record = *seed[look];
        sum += sigma_of(record);
        exponents[0] += candidates[least(record, range, "measured")].split.exponent;
        exponents[1] += candidates[least(record, range, "predicted")].split.exponent;
        ++seeds;
      }
      const double step = records[0][look]->at("step");
      sigma.points.push_back({.x = step, .y = sum / seeds});
      for (int i = 0; i < 2; ++i) best[i].points.push_back({.x = step, .y = exponents[i] / seeds});
    }
    sigmas.series.push_back(std::move(sigma));
    for (ChartSeries& series : best) splits.series.push_back(std::move(series));
  }
  conclusion.charts.push_back(std::move(sigmas));
  conclusion.charts.push_back(std::move(splits));
}

std::vector<EpochFit> fits_of(const std::vector<std::pair<std::string, OfLayer>>& layers) {
  std::vector<EpochFit> fits;
  for (const auto& [layer, records] : layers) {
    std::map<std::int64_t, std::pair<EpochFit, double>> epochs;
    for (const std::vector<const Json*>& seed : records) {
      for (const Json* const record : seed) {
        auto& [fit, count] = epochs[record->at("epoch")];
        fit.mean += record->at("log2").at("mean").get<double>();
        fit.sigma += sigma_of(*record);
        ++count;
      }
    }
    for (auto& [epoch, sum] : epochs) {
      auto& [fit, count] = sum;
      fits.push_back({layer, epoch, fit.mean / count, fit.sigma / count});
    }
  }
  return fits;
}

}  // namespace

std::vector<EpochFit> add_gradients(const ExperimentRun& run, const std::string& net,
                                    const net::Dataset& data, Conclusion& conclusion) {
  const std::vector<int> widths = widths_of(run.settings, "widths");
  const std::vector<Candidate> candidates = candidates_of(widths);
  const TrainTrial shared = training_of(run.settings, net);
  const std::int64_t images = shared.train_samples > 0 ? shared.train_samples : data.train_count();
  const std::int64_t batch = shared.options.batch;
  const Looks looks{run.settings.integer("looks", 1, 1000), (images + batch - 1) / batch};
  const std::vector<std::uint64_t> seeds = seeds_of(run);
  std::vector<Trial> trials;
  for (const std::uint64_t seed : seeds) {
    TrainTrial trial = shared;
    trial.seed = seed;
    Json point = point_of(trial, data);
    point["looks"] = looks.looks;
    for (const Candidate& candidate : candidates)
      point["formats"].push_back(candidate.split.format());
    trials.push_back({std::move(point), fmt::format("{}: gradients, seed {}", net, seed),
                      [=, &data, &candidates] { return observe(trial, data, looks, candidates); }});
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);

  std::vector<std::pair<std::string, OfLayer>> layers;
  for (const std::string& name : net::gemm_layer_names(net::build_net(net, data))) {
    OfLayer records(seeds.size());
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      for (const Json& record : results[s].at("records")) {
        if (record.at("layer") == name) records[s].push_back(&record);
      }
    }
    if (std::none_of(records.begin(), records.end(), [](const auto& seed) { return seed.empty(); }))
      layers.emplace_back(name, std::move(records));
  }
  if (layers.empty()) throw Error(net + ": expected layers with gradients");
  std::vector<std::pair<std::string, OfLayer>> named = layers;
  for (auto& [layer, records] : named) layer = net + ", " + layer;
  judge_laws(named, conclusion);
  judge_errors(named, widths, candidates, conclusion);
  conclusion.tables.push_back(table_of(net, layers, widths, candidates));
  draw(net, layers, widths, candidates, conclusion);
  for (const auto& [layer, records] : layers) {
    std::vector<double> first, last;
    for (const std::vector<const Json*>& seed : records) {
      first.push_back(sigma_of(*seed.front()));
      last.push_back(sigma_of(*seed.back()));
    }
    conclusion.sentences.push_back(fmt::format(
        "{}, {}: sigma (base 2) goes from {:.2f} to {:.2f}; Kolmogorov-Smirnov distance {:.3f} "
        "from the lognormal law, {:.3f} from the normal, {:.3f} from Laplace's.",
        net, layer, mean_of(first), mean_of(last),
        mean_of(by_seed(records, [](const Json& r) { return ks(r, "lognormal"); })),
        mean_of(by_seed(records, [](const Json& r) { return ks(r, "normal"); })),
        mean_of(by_seed(records, [](const Json& r) { return ks(r, "laplace"); }))));
  }
  return fits_of(layers);
}

}  // namespace numemu::experiments::lognormal_gradients
