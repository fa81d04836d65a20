// What looks at gradients of float32 training say of laws, relative errors and splits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <optional>
#include <set>
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

namespace numemu::experiments::lognormal_gradients {

namespace {

std::vector<std::int64_t> bins_of(const std::vector<float>& nonzero, const Look::Law& ln) {
  std::vector<std::int64_t> bins(Look::kBins);
  for (const float x : nonzero) {
    const double z = (portable::log(std::fabs(double{x})) - ln.mean) / ln.sigma,
                 place = std::floor((z / Look::kBinSigmas + 1) / 2 * Look::kBins);
    if (place >= 0 && place < Look::kBins) ++bins[static_cast<std::size_t>(place)];
  }
  return bins;
}

/// But for layer, step and epoch; nothing without a spread.
std::optional<Look> look_at(std::span<const float> g, const std::vector<Candidate>& candidates) {
  std::vector<float> nonzero;
  std::copy_if(g.begin(), g.end(), std::back_inserter(nonzero), [](float x) { return x != 0; });
  const auto n = static_cast<std::int64_t>(nonzero.size());
  const MagnitudeLaw law =
      fit_law(ThresholdLaw::lognormal, g.data(), static_cast<std::int64_t>(g.size()));
  if (!law.usable() || !(law.spread > 0)) return std::nullopt;
  const double mean = portable::log2(law.scale), sigma = law.spread / std::numbers::ln2;
  Look look{.n = g.size(),
            .zeros = 1 - law.nonzero,
            .ln = {portable::log(law.scale), law.spread},
            .log2 = {mean, sigma}};
  look.bins = bins_of(nonzero, look.ln);
  for (const stats::Fit& fit : stats::fit_all(nonzero.data(), n))
    look.ks.push_back({fit.family, fit.ks_distance});
  for (const Candidate& candidate : candidates) {
    const double target = candidate.grid.best_mean(sigma), factor = portable::exp2(target - mean);
    const double sum = pairwise_sum(n, [&](std::int64_t i) {
      return candidate.grid.error_of(factor * std::fabs(double{nonzero[i]}));
    });
    look.errors.push_back(
        {target, candidate.grid.expected(sigma, target), sum / static_cast<double>(n)});
  }
  return look;
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

namespace {

struct Observation {
  TrainOutcome outcome;
  std::vector<Look> records;

  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("records", self.records);
  }
};

Observation observe(TrainTrial trial, const net::Dataset& data, const Looks& looks,
                    const std::vector<Candidate>& candidates) {
  Observation observation;
  trial.before = [&](const net::Product& product, std::int64_t step) {
    if (product.kind != net::GemmKind::wgrad || !looks.at(step)) return;
    std::optional<Look> look = look_at(product.a.source->data, candidates);
    if (!look) return;
    look->layer = std::string(product.layer);
    look->step = step;
    look->epoch = step / looks.steps_per_epoch;
    observation.records.push_back(std::move(*look));
  };
  observation.outcome = run_train_trial(trial, data);
  std::set<std::string> seen;
  for (auto look = observation.records.rbegin(); look != observation.records.rend(); ++look)
    if (!seen.insert(look->layer).second) look->bins.clear();
  return observation;
}

// What looks at gradients of float32 training say of laws, relative errors and splits.

constexpr double kLawHolds = 0.1;     // relative, of the error that a fit predicts
constexpr double kSplitHolds = 1.05;  // error of the chosen split over the least one

/// The looks at one layer, by seed.
struct OfLayer {
  std::string name;
  std::vector<std::vector<const Look*>> seeds;

  /// Mean over the looks of a seed, for each seed.
  template <class Figure>
  std::vector<double> by_seed(const Figure& figure) const {
    std::vector<double> means;
    for (const std::vector<const Look*>& seed : seeds) {
      double sum = 0;
      for (const Look* look : seed) sum += figure(*look);
      means.push_back(sum / static_cast<double>(seed.size()));
    }
    return means;
  }
  template <class Figure>
  double mean(const Figure& figure) const {
    return stats::paired_interval(by_seed(figure)).mean;
  }
};

double ks(const Look& look, std::string_view family) {
  for (const auto& [name, distance] : look.ks)
    if (name == family) return distance;
  return 1;
}

/// The candidates of one width: [first, last) of all.
std::pair<std::size_t, std::size_t> of_width(const std::vector<Candidate>& all, int bits) {
  std::size_t first = 0;
  while (all[first].split.bits() != bits) ++first;
  std::size_t last = first;
  while (last < all.size() && all[last].split.bits() == bits) ++last;
  return {first, last};
}

/// The candidate with the least error among [first, last).
std::size_t least(const Look& look, std::pair<std::size_t, std::size_t> range,
                  double SplitError::*error) {
  std::size_t best = range.first;
  for (std::size_t i = range.first; i < range.second; ++i) {
    if (look.errors.at(i).*error < look.errors[best].*error) best = i;
  }
  return best;
}

void judge_laws(const std::string& net, const std::vector<OfLayer>& layers,
                Conclusion& conclusion) {
  std::vector<PairedGain> gains;
  for (const OfLayer& layer : layers) {
    gains.push_back({fmt::format("{}, {}: distance of the closer of normal and Laplace law minus "
                                 "that of the lognormal law",
                                 net, layer.name),
                     stats::paired_interval(layer.by_seed([](const Look& look) {
                       return std::min(ks(look, "normal"), ks(look, "laplace")) -
                              ks(look, "lognormal");
                     }))});
  }
  conclusion.add(judge_gains(gains), "lognormal");
}

void judge_errors(const std::string& net, const std::vector<OfLayer>& layers,
                  const std::vector<int>& widths, const std::vector<Candidate>& candidates,
                  Conclusion& conclusion) {
  for (const OfLayer& layer : layers) {
    for (const int bits : widths) {
      const auto range = of_width(candidates, bits);
      const auto chosen = [&](const Look& look) -> const SplitError& {
        return look.errors.at(least(look, range, &SplitError::predicted));
      };
      const std::string where = fmt::format("{}, {}, {} bits: ", net, layer.name, bits);
      conclusion.add(interval_finding(where + "measured over predicted relative error", 1,
                                      stats::paired_interval(layer.by_seed([&](const Look& look) {
                                        return chosen(look).measured / chosen(look).predicted;
                                      })),
                                      near(1, kLawHolds)),
                     "gradients");
      conclusion.add(
          interval_finding(
              where + "error of the chosen split over the least", 1,
              stats::paired_interval(layer.by_seed([&](const Look& look) {
                return chosen(look).measured /
                       look.errors.at(least(look, range, &SplitError::measured)).measured;
              })),
              at_most(kSplitHolds)),
          &layer == &layers.back() ? "split, output layer" : "split");
    }
  }
}

/// Best splits at the first and last look, of the first seed, and the fits there.
ResultTable table_of(const std::string& net, const std::vector<OfLayer>& layers,
                     const std::vector<int>& widths, const std::vector<Candidate>& candidates) {
  ResultTable table{
      fmt::format("{}: gradients over float32 training, first seed; splits predicted | measured",
                  net),
      {"layer", "epoch", "step", "zeros", "sigma, ln", "sigma, base 2", "K-S lognormal",
       "K-S normal", "K-S Laplace"},
      {}};
  for (const int bits : widths) table.header.push_back(fmt::format("best of {} bits", bits));
  for (const OfLayer& layer : layers) {
    std::int64_t epoch = -1;
    for (const Look* const look : layer.seeds[0]) {
      if (look->epoch == epoch && look != layer.seeds[0].back()) continue;
      epoch = look->epoch;
      std::vector<std::string> row = {layer.name,
                                      fmt::format("{}", epoch),
                                      fmt::format("{}", look->step),
                                      fmt::format("{:.3f}", look->zeros),
                                      fmt::format("{:.3f}", look->ln.sigma),
                                      fmt::format("{:.3f}", look->log2.sigma)};
      for (const char* family : {"lognormal", "normal", "laplace"})
        row.push_back(fmt::format("{:.4f}", ks(*look, family)));
      for (const int bits : widths) {
        const auto range = of_width(candidates, bits);
        row.push_back(fmt::format(
            "{} | {}", candidates[least(*look, range, &SplitError::predicted)].split.name(),
            candidates[least(*look, range, &SplitError::measured)].split.name()));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// The last look at up to six layers, evenly from the first to the last, of the first seed.
Chart histograms_of(const std::string& net, const std::vector<OfLayer>& layers) {
  constexpr std::size_t kMost = 6;
  Chart chart{.title = "ln|g| of layers of " + net + " and the lognormal law fitted to it",
              .caption = fmt::format("Output gradients that are not zero at the last look of the "
                                     "first seed, in bins of {} sigma; dashed: the normal density "
                                     "of ln|g| with its mean and deviation.",
                                     2 * Look::kBinSigmas / Look::kBins),
              .x = "ln|g|",
              .y = "density"};
  const std::size_t drawn = std::min(kMost, layers.size());
  for (std::size_t i = 0; i < drawn; ++i) {
    const OfLayer& layer = layers[drawn > 1 ? i * (layers.size() - 1) / (drawn - 1) : 0];
    const Look& look = *layer.seeds[0].back();
    const double width = 2 * Look::kBinSigmas / Look::kBins,
                 n = static_cast<double>(look.n) * (1 - look.zeros);
    for (std::size_t bin = 0; bin < look.bins.size(); ++bin) {
      const double z = (static_cast<double>(bin) + 0.5) * width - Look::kBinSigmas,
                   x = look.ln.mean + look.ln.sigma * z;
      const double law = portable::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      chart.add(layer.name,
                {.x = x, .y = static_cast<double>(look.bins[bin]) / (n * width * look.ln.sigma)},
                {.x = x, .y = law / look.ln.sigma});
    }
  }
  return chart;
}

void draw(const std::string& net, const std::vector<OfLayer>& layers,
          const std::vector<int>& widths, const std::vector<Candidate>& candidates,
          Conclusion& conclusion) {
  Chart sigmas{.title = "Sigma of gradients over training of " + net,
               .caption =
                   "Output gradients of each layer in float32 training, mean over seeds; "
                   "zeros left out.",
               .x = "step",
               .y = "sigma of log2|g|"};
  Chart splits{.title = "Exponent bits of the best split over training of " + net,
               .caption = fmt::format(
                   "Split of {} bits with the least relative error to nearest on the grid "
                   "eXmY+finite, each at its best mean, mean over seeds; dashed: predicted from "
                   "sigma.",
                   widths.back()),
               .x = "step",
               .y = "exponent bits"};
  const auto range = of_width(candidates, widths.back());
  for (const OfLayer& layer : layers) {
    for (std::size_t place = 0; place < layer.seeds[0].size(); ++place) {
      const auto mean = [&](const auto& figure) {
        double sum = 0, seeds = 0;
        for (const std::vector<const Look*>& seed : layer.seeds) {
          if (place >= seed.size()) continue;
          sum += figure(*seed[place]);
          ++seeds;
        }
        return sum / seeds;
      };
      const auto exponent = [&](double SplitError::*error) {
        return mean(
            [&](const Look& look) { return candidates[least(look, range, error)].split.exponent; });
      };
      const auto step = static_cast<double>(layer.seeds[0][place]->step);
      sigmas.of(layer.name).points.push_back({.x = step, .y = mean([](const Look& look) {
                                                           return look.log2.sigma;
                                                         })});
      splits.add(layer.name, {.x = step, .y = exponent(&SplitError::measured)},
                 {.x = step, .y = exponent(&SplitError::predicted)});
    }
  }
  conclusion.charts.push_back(histograms_of(net, layers));
  conclusion.charts.push_back(std::move(sigmas));
  conclusion.charts.push_back(std::move(splits));
}

std::vector<EpochFit> fits_of(const std::vector<OfLayer>& layers) {
  std::vector<EpochFit> fits;
  for (const OfLayer& layer : layers) {
    std::map<std::int64_t, std::pair<EpochFit, double>> epochs;
    for (const std::vector<const Look*>& seed : layer.seeds) {
      for (const Look* const look : seed) {
        auto& [fit, count] = epochs[look->epoch];
        fit.mean += look->log2.mean;
        fit.sigma += look->log2.sigma;
        ++count;
      }
    }
    for (auto& [epoch, sum] : epochs) {
      auto& [fit, count] = sum;
      fits.push_back({layer.name, epoch, fit.mean / count, fit.sigma / count});
    }
  }
  return fits;
}

}  // namespace

std::vector<EpochFit> add_gradients(const ExperimentRun& run, const std::string& net,
                                    const net::Dataset& data, Conclusion& conclusion) {
  const std::vector<int> widths = widths_of(run.settings, "widths");
  const std::vector<Candidate> candidates = candidates_of(widths);
  TrainingPlan plan{.trial = training_of(run.settings, net),
                    .data = data.name(),
                    .seeds = {},
                    .methods = {{.name = "gradients"}},
                    .at_once = true,
                    .prefix = net + ": "};
  const std::int64_t images =
      plan.trial.train_samples > 0 ? plan.trial.train_samples : data.train_count();
  const std::int64_t batch = plan.trial.options.batch;
  const Looks looks{run.settings.integer("looks"), (images + batch - 1) / batch};
  plan.seeds = seeds_of(run);
  Json& counted = plan.methods[0].counted;
  counted["looks"] = looks.looks;
  counted["bins"] = Look::kBins;
  for (const Candidate& candidate : candidates)
    counted["formats"].push_back(candidate.split.format());
  const auto study =
      run_training_study<Observation>(run, data, plan, [&](const TrainTrial& trial, std::size_t) {
        return observe(trial, data, looks, candidates);
      });

  std::vector<OfLayer> layers;
  for (const std::string& name : net::gemm_layer_names(initial_network(plan.trial, data))) {
    OfLayer layer{name, {}};
    for (const Observation& observation : study.runs[0]) {
      layer.seeds.emplace_back();
      for (const Look& look : observation.records) {
        if (look.layer == name) layer.seeds.back().push_back(&look);
      }
    }
    if (std::none_of(layer.seeds.begin(), layer.seeds.end(),
                     [](const auto& seed) { return seed.empty(); }))
      layers.push_back(std::move(layer));
  }
  if (layers.empty()) throw Error(net + ": expected layers with gradients");
  judge_laws(net, layers, conclusion);
  judge_errors(net, layers, widths, candidates, conclusion);
  conclusion.tables.push_back(table_of(net, layers, widths, candidates));
  draw(net, layers, widths, candidates, conclusion);
  for (const OfLayer& layer : layers) {
    std::vector<double> first, last;
    for (const std::vector<const Look*>& seed : layer.seeds) {
      first.push_back(seed.front()->log2.sigma);
      last.push_back(seed.back()->log2.sigma);
    }
    const auto distance = [&](const char* family) {
      return layer.mean([&](const Look& look) { return ks(look, family); });
    };
    conclusion.sentences.push_back(fmt::format(
        "{}, {}: sigma (base 2) goes from {:.2f} to {:.2f}; Kolmogorov-Smirnov distance {:.3f} "
        "from the lognormal law, {:.3f} from the normal, {:.3f} from Laplace's.",
        net, layer.name, stats::paired_interval(first).mean, stats::paired_interval(last).mean,
        distance("lognormal"), distance("normal"), distance("laplace")));
  }
  return fits_of(layers);
}

}  // namespace numemu::experiments::lognormal_gradients
