// Gradients of near-lognormal law: the split of a float's bits and the scale that the law chooses,
// and what they are worth in training (Chmiel et al., ICLR 2021, arXiv 2006.08173).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "emu/stats/paired.hpp"
#include "emu/stats/spearman.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/lognormal_gradients/splits.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::experiments::lognormal_gradients {

// Networks trained with gradients of few bits: every split, three margins, splits that follow
// sigma.

namespace {

constexpr int kPublishedBits = 6;   // claimed to lose nothing
constexpr double kLossHolds = 0.5;  // points of top-1

/// The gradient of a layer in an epoch: its split and the mean of log2|g| after scaling.
struct Choice {
  std::string layer;
  std::int64_t epoch;
  Split split;
  double mean;
};

struct Method {
  std::string name;
  std::vector<Choice> choices;
  double predicted = 0;  ///< relative error, mean over layers and epochs
};

Json entries(const std::vector<Choice>& choices, std::int64_t epoch) {
  Json layers = Json::array();
  for (const Choice& choice : choices) {
    if (choice.epoch != epoch) continue;
    layers.push_back({{"match", choice.layer},
                      {"roles",
                       {{"gradient",
                         {{"format", choice.split.format()},
                          {"scale", fmt::format("lognormal({})", 0 - choice.mean)}}}}}});
  }
  return layers;
}

/// A stage for each epoch that changes something.
Json recipe_of(const Method& method) {
  Json recipe = {{"layers", entries(method.choices, 0)}};
  Json before = recipe["layers"];
  for (std::int64_t epoch = 1;; ++epoch) {
    const Json layers = entries(method.choices, epoch);
    if (layers.empty()) return recipe;
    if (layers == before) continue;
    recipe["stages"].push_back({{"from", {{"epoch", epoch}}}, {"patch", {{"layers", layers}}}});
    before = layers;
  }
}

using SplitMean = std::pair<Split, double>;

/// The splits of one width and their values.
class Width {
 public:
  explicit Width(int bits) : bits_(bits), splits_(splits_of(bits)) {
    for (const Split& split : splits_) grids_.emplace_back(find_format(split.format()));
  }
  int bits() const { return bits_; }
  const std::vector<Split>& splits() const { return splits_; }
  const FormatGrid& grid(const Split& split) const { return grids_[split.exponent - 1]; }
  /// The best split with its best mean.
  SplitMean best(double sigma) const {
    const Split split = best_split(bits_, sigma, [this](const Split& candidate, double s) {
      return grid(candidate).expected(s, grid(candidate).best_mean(s));
    });
    return {split, grid(split).best_mean(sigma)};
  }

 private:
  int bits_;
  std::vector<Split> splits_;
  std::vector<FormatGrid> grids_;
};

/// `choose` gives split and mean of a layer in an epoch from its fit there and from the layer's
/// mean sigma over training.
template <class Choose>
Method method_of(std::string name, const Width& width, const std::vector<EpochFit>& fits,
                 Choose&& choose) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const EpochFit& fit : fits) {
    sums[fit.layer].first += fit.sigma;
    ++sums[fit.layer].second;
  }
  Method method{std::move(name), {}, 0};
  for (const EpochFit& fit : fits) {
    const auto [sum, count] = sums.at(fit.layer);
    const auto [split, mean] = choose(sum / count, fit.sigma);
    method.choices.push_back({fit.layer, fit.epoch, split, mean});
    method.predicted +=
        width.grid(split).expected(fit.sigma, mean) / static_cast<double>(fits.size());
  }
  return method;
}

/// Places of the methods of one width behind those of single splits.
enum Chosen : std::size_t {
  kByLayer,
  kPublishedScale,
  kCentred,
  kByEpoch,
  kHiddenByLayer,
  kHiddenPublished
};

/// Methods of one width: every split at its best mean; then the chosen split of each layer at its
/// best mean, at the published margin, at margin 0, and chosen anew in each epoch; the first two of
/// these again with the gradient of the output layer, whose fit is the last, in float32.
std::vector<Method> methods_of(const Width& width, const std::vector<EpochFit>& fits) {
  std::vector<Method> methods;
  for (const Split& split : width.splits()) {
    methods.push_back(method_of(split.name(), width, fits, [&](double sigma, double) {
      return SplitMean{split, width.grid(split).best_mean(sigma)};
    }));
  }
  const auto of_layers = [&](const std::vector<EpochFit>& layers, const char* what, auto choose) {
    methods.push_back(
        method_of(fmt::format("{} bits, {}", width.bits(), what), width, layers, choose));
  };
  const auto by_layer = [&](double sigma, double) { return width.best(sigma); };
  const auto published = [&](double sigma, double) {
    return SplitMean{width.best(sigma).first, -kPublishedMargin};
  };
  of_layers(fits, "chosen by layer", by_layer);
  of_layers(fits, "chosen, margin 3", published);
  of_layers(fits, "chosen, margin 0", [&](double sigma, double) {
    return SplitMean{width.best(sigma).first, 0};
  });
  of_layers(fits, "chosen by epoch", [&](double, double now) { return width.best(now); });
  std::vector<EpochFit> hidden = fits;
  std::erase_if(hidden, [&](const EpochFit& fit) { return fit.layer == fits.back().layer; });
  of_layers(hidden, "chosen by layer, hidden layers", by_layer);
  of_layers(hidden, "chosen, margin 3, hidden layers", published);
  return methods;
}

/// As a file that `train --recipe` takes.
void write_recipe(const std::string& folder, int bits, const std::string& optimizer, Json recipe) {
  recipe["numemu_recipe"] = 1;
  recipe["update"] = {{"optimizer", optimizer}};
  std::filesystem::create_directories(folder);
  write_atomically(fmt::format("{}/chosen-{}.json", folder, bits), {recipe.dump(2), "\n"});
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data,
                  const std::vector<EpochFit>& fits, Conclusion& conclusion) {
  const std::vector<int> widths = widths_of(run.settings, "train_widths");
  std::vector<Method> methods;
  std::map<int, std::size_t> first;  // method of each width
  for (const int bits : widths) {
    first[bits] = methods.size();
    for (Method& method : methods_of(Width(bits), fits)) methods.push_back(std::move(method));
  }
  TrainingPlan plan{.trial = training_of(run.settings, run.settings.text("net")),
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .methods = {{"float32", Json::object()}},
                    .at_once = true};
  for (const Method& method : methods) plan.methods.push_back({method.name, recipe_of(method)});
  TrainingTable training = run_training(run, data, plan);
  const auto top1 = [&](std::size_t method) { return training.top1[method + 1]; };
  const std::vector<double>& float32 = training.top1[0];

  PairedClaims accuracy, others_lose;
  std::vector<PairedGain> choice, margin, following;
  std::vector<double> predicted, lost;
  Chart chart{
      .kind = Chart::Kind::points,
      .title = fmt::format("Points lost over the predicted relative error, {}", plan.trial.net),
      .caption = fmt::format(
          "Every point is a split, for the gradients of all layers at their best means, rounded to "
          "nearest; predicted from float32 fits; {}, 95 % intervals paired by seed.",
          counted(std::ssize(plan.seeds), "seed")),
      .x = "expected relative error, mean over layers and epochs",
      .y = "points of top-1 lost to float32",
      .log_x = true};
  for (const int bits : widths) {
    ChartSeries series{fmt::format("{} bits", bits), {}, false};
    const std::size_t splits = splits_of(bits).size(), start = first[bits];
    const std::size_t chosen = start + splits;
    std::vector<double> others(float32.size());
    for (std::size_t i = 0; i < splits; ++i) {
      const std::vector<double> of_split = top1(start + i);
      const auto loss = stats::paired_interval(float32, of_split);
      series.points.push_back(
          gain_point(methods[start + i].predicted, methods[start + i].name, loss));
      predicted.push_back(methods[start + i].predicted);
      lost.push_back(loss.mean);
      for (std::size_t s = 0; s < others.size(); ++s)
        others[s] += of_split[s] / static_cast<double>(splits);
    }
    chart.series.push_back(std::move(series));
    write_recipe(run.out, bits, plan.trial.options.optimizer, plan.methods[chosen + 1].recipe);
    const auto loses_little = [&](PairedClaims& claims, Chosen place, const char* claim) {
      claims.add(fmt::format("points gained on float32 by {}, at least -{}",
                             methods[chosen + place].name, kLossHolds),
                 stats::paired_interval(top1(chosen + place), float32), -kLossHolds, claim);
    };
    if (bits >= kPublishedBits) {
      loses_little(accuracy, kHiddenPublished, "accuracy");
      for (const Chosen place : {kHiddenByLayer, kByLayer, kPublishedScale})
        loses_little(others_lose, place, place == kHiddenByLayer ? "best margin" : "output layer");
    }
    const auto gain = [&](std::vector<PairedGain>& gains, const char* what, std::size_t a,
                          const std::vector<double>& b) {
      gains.push_back({fmt::format("points gained by {}, {} bits", what, bits),
                       stats::paired_interval(top1(a), b)});
    };
    gain(choice, "the chosen splits over a split taken at random (mean of all)", chosen, others);
    gain(margin, "the best margin over the published one", chosen, top1(chosen + kPublishedScale));
    gain(following, "choosing anew in each epoch", chosen + kByEpoch, top1(chosen));
  }
  conclusion.add(accuracy.judged());
  conclusion.add(others_lose.judged());
  conclusion.add(judge_gains(choice), "choice");
  conclusion.add(judge_gains(margin), "margin");
  conclusion.add(judge_gains(following), "following");
  const double rank = stats::spearman(predicted, lost);
  const stats::Interval interval = stats::spearman_interval(rank, std::ssize(predicted));
  conclusion.add(
      interval_finding("rank correlation of predicted relative error and points lost, over the "
                       "splits of all widths (claimed above 0)",
                       1, rank, interval, at_least(0)),
      "order");

  training.table.header.insert(training.table.header.begin() + 1,
                               {"gradients, by layer in the last epoch", "predicted error"});
  for (std::size_t row = 0; row < training.table.rows.size(); ++row) {
    std::string formats = "float32";
    if (row > 0) {
      formats.clear();
      const std::vector<Choice>& choices = methods[row - 1].choices;
      for (const Choice& c : choices) {
        if (c.epoch == choices.back().epoch)
          formats +=
              fmt::format("{}{} at {:+}", formats.empty() ? "" : ", ", c.split.name(), c.mean);
      }
    }
    auto& cells = training.table.rows[row];
    cells.insert(cells.begin() + 1,
                 {formats, row > 0 ? fmt::format("{:.4f}", methods[row - 1].predicted) : "0"});
  }
  conclusion.sentences.push_back(fmt::format(
      "{}: over {} splits of {} widths the points lost rank with the predicted relative error at "
      "{:.2f} {}.",
      plan.trial.net, predicted.size(), widths.size(), rank,
      ends_text(interval.low, interval.high, 2, false)));
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(chart));
  conclusion.charts.push_back(std::move(training.chart));
}

std::vector<int> widths_of(const Settings& settings, const std::string& key) {
  std::vector<int> widths;
  for (const std::int64_t bits : settings.whole_numbers(key))
    widths.push_back(static_cast<int>(bits));
  return widths;
}

}  // namespace numemu::experiments::lognormal_gradients

namespace numemu::experiments {

namespace {

Conclusion run_lognormal_gradients(const ExperimentRun& run) {
  using namespace lognormal_gradients;
  Conclusion conclusion;
  run.say("lognormal numbers");
  add_draws(run, conclusion);
  const net::Dataset data = load_data(run);
  const std::string& trained = run.settings.text("net");
  const std::vector<EpochFit> fits = add_gradients(run, trained, data, conclusion);
  for (const std::string& net : run.settings.list("nets")) {
    if (net != trained) add_gradients(run, net, data, conclusion);
  }
  add_training(run, data, fits, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_lognormal_gradients = {
    "lognormal-gradients",
    "are gradients near-lognormal, and does the split of few bits into exponent and mantissa that "
    "the law chooses serve training best",
    "Chmiel et al. (ICLR 2021, arXiv 2006.08173) claim that gradients of each layer follow a "
    "lognormal law, that its deviation gives the split of a float's bits with the least relative "
    "error, and that gradients of 6 bits then cost no accuracy; their program scales gradients to "
    "a mean of 2^-3.",
    {{"grid",
      "Under a lognormal law the relative error of a format is its closed form, cell by cell "
      "(derived here)."},
     {"idealised",
      "A closed form of the error describes the idealised format within 2 % from two mantissa bits "
      "on (derived here; the margin is ours)."},
     {"few mantissa bits", "The same with one mantissa bit or none (a contrast)."},
     {"switches",
      "The best split changes at the deviations in the table of the authors' program, whose range "
      "of the idealised format is not published, within 8 % and the 0.05 of its one decimal (a "
      "contrast)."},
     {"published margin",
      "A margin of 3 binades makes the relative error no larger than a margin of 0 (a contrast)."},
     {"lognormal",
      "Gradients are closer to a lognormal law than to a normal or Laplace's law (published).",
      "seeds"},
     {"gradients",
      "The fitted law predicts the relative error of gradients within 10 % (derived here).",
      "seeds"},
     {"split",
      "In all layers but the output's the split that the law chooses, by our formula, has a "
      "relative error within 5 % of the least (published; the margin is ours).",
      "seeds"},
     {"split, output layer", "So it has in the output layer (a contrast).", "seeds"},
     {"accuracy",
      "With the split chosen by layer and the published scale, gradients of 6 bits and more in all "
      "layers but the output's lose at most 0.5 points of top-1 (published; the margin is ours).",
      "seeds"},
     {"best margin", "So they do at the scale of least relative error (a contrast).", "seeds"},
     {"output layer",
      "So they do with the gradient of the output layer too, at either scale (a contrast).",
      "seeds"},
     {"choice", "The chosen split trains more accurately than a split taken at random (published).",
      "seeds"},
     {"margin",
      "The margin of least relative error trains more accurately than the published (a contrast).",
      "seeds"},
     {"following",
      "Choosing the split anew in each epoch trains more accurately than once (a contrast).",
      "seeds"},
     {"order",
      "Points lost rise with the predicted relative error over splits and widths (derived here).",
      "seeds"}},
    {{"samples", "100000", "1000000", "1000000", "numbers drawn for each setting",
      whole(1000, 1'000'000'000)},
     {"draw_widths", "4", "4,8", "3,4,5,6,7,8", "bits of the formats that numbers are drawn for",
      wholes(3, 8)},
     {"sigmas", "1,3", "1,3", "1,2,3,5", "deviations of log2|x| of the drawn numbers",
      reals(0.1, 10)},
     {"means", "-3,1", "-3,1", "-3,-1,0,1,3", "means of log2|x| of the drawn numbers",
      reals(-64, 64)},
     {"widths", "4,6", "4,5,6,7,8", "3,4,5,6,7,8", "bits whose splits are compared", wholes(3, 8)},
     {"net", "mlp", "network to train with gradients of few bits", takes_network()},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks whose gradients are looked at",
      takes_networks()},
     data_setting("of images"),
     {"looks", "2", "2", "4", "looks at the gradients in an epoch", whole(1, 1000)},
     {"train_widths", "4", "4,6,8", "4,5,6,7,8", "bits of gradients in training", wholes(3, 8)},
     {"optimizer", "sgd", "optimizer", takes_optimizer()},
     rate_settings(),
     training_settings({"1", "4", "8"}, "128", {"2048", "4096", "8192"}, {"500", "4000", "0"}),
     seeds_setting({"1", "3", "10"})},
    run_lognormal_gradients};

}  // namespace numemu::experiments
