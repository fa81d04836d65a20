// Layers whose neurons only turn: the hyperspherical energy that this keeps, what each published
// way and each format loses of it, and the accuracy of training (Liu et al., Orthogonal
// Over-Parameterized Training, CVPR 2021, arXiv 2004.04690).
#include "experiments/orthogonal/orthogonal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/study.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/gamma.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::orthogonal {

namespace {

using policies::Matrix;

/// Rows of length 1, and the lengths.
Matrix directions(const Matrix& neurons, std::vector<double>& lengths) {
  Matrix u = neurons;
  for (std::int64_t i = 0; i < u.rows; ++i) {
    double squares = 0;
    for (std::int64_t k = 0; k < u.columns; ++k) squares += u.at(i, k) * u.at(i, k);
    lengths.push_back(std::sqrt(squares));
    for (std::int64_t k = 0; k < u.columns; ++k) u.at(i, k) /= lengths.back();
  }
  return u;
}

/// Of unit vectors; free of the cancellation in 2 - 2 cos.
double squared_distance(const Matrix& u, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < u.columns; ++k) {
    const double off = u.at(i, k) - u.at(j, k);
    sum += off * off;
  }
  return sum;
}

/// Between neighbours of |x|: a power of two.
double spacing(const Format& format, double x) {
  const double least = smallest_normal(format);
  int exponent = 0;
  std::frexp(std::max(std::fabs(x), least), &exponent);
  return std::ldexp(1.0, exponent - 1 - format.mantissa_bits);
}

}  // namespace

double energy(const Matrix& neurons, double power) {
  std::vector<double> lengths;
  const Matrix u = directions(neurons, lengths);
  double sum = 0;
  for (std::int64_t i = 0; i < u.rows; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      sum += 2 * portable::pow(squared_distance(u, i, j), -power / 2);
  return sum;
}

EnergySlopes energy_slopes(const Matrix& neurons, double power) {
  std::vector<double> lengths;
  const Matrix u = directions(neurons, lengths);
  EnergySlopes slopes{0, Matrix(u.rows, u.columns), Matrix(u.rows, u.columns)};
  for (std::int64_t i = 0; i < u.rows; ++i) {
    const double length = lengths[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < u.rows; ++j) {
      if (i == j) continue;
      const double square = squared_distance(u, i, j), cosine = 1 - square / 2;
      const double term = portable::pow(square, -power / 2);
      slopes.energy += term;
      // Both orders of the pair, along their cosine.
      const double along = 2 * power * term / square, curved = along * (power + 2) / square;
      for (std::int64_t k = 0; k < u.columns; ++k) {
        const double own = u.at(i, k), turn = (u.at(j, k) - cosine * own) / length;
        slopes.first.at(i, k) += along * turn;
        slopes.second.at(i, k) +=
            curved * turn * turn +
            along * (3 * cosine * own * own - 2 * own * u.at(j, k) - cosine) / (length * length);
      }
    }
  }
  return slopes;
}

double expected_energy(std::int64_t n, std::int64_t d, double power) {
  const auto pairs = static_cast<double>(n * (n - 1)), size = static_cast<double>(d);
  const double logarithm = (size - power - 2) * std::numbers::ln2 + portable::log_gamma(size / 2) +
                           portable::log_gamma((size - 1 - power) / 2) -
                           portable::log_gamma(size - 1 - power / 2);
  return pairs * portable::exp(logarithm) * std::numbers::inv_sqrtpi;
}

EnergyChange rounding_change(const Matrix& neurons, const Format& format, double power) {
  if (format.kind != Kind::floating)
    throw usage_error("energy under rounding: expected a floating format, not " + format.name);
  const EnergySlopes slopes = energy_slopes(neurons, power);
  EnergyChange change;
  for (std::size_t i = 0; i < neurons.data.size(); ++i) {
    const double u = spacing(format, neurons.data[i]), slope = slopes.first.data[i];
    change.mean += slopes.second.data[i] * u * u / 24;
    change.variance += slope * slope * u * u / 12;
  }
  return change;
}

Matrix rounded(const Matrix& neurons, const Format& format) {
  std::vector<float> values(neurons.data.begin(), neurons.data.end());
  if (format.name != "float32")
    quantize_values({.format = &format}, values.data(), std::ssize(values), 1, values.data());
  Matrix result = neurons;
  std::copy(values.begin(), values.end(), result.data.begin());
  return result;
}

Matrix left_over(const policies::RotationRule& rule, const Matrix& a) {
  using policies::Rotator;
  Matrix left(a.rows, a.rows);
  const Matrix square = multiplied(a, a);
  if (rule.rotator == Rotator::descent) {
    const bool odd = rule.iterations % 2 != 0;
    const std::int64_t half = (rule.iterations + (odd ? 3 : 2)) / 2;
    Matrix power = policies::identity(a.rows);
    for (std::int64_t i = 0; i < half; ++i) {
      power = multiplied(power, square);
      for (double& x : power.data) x /= 4;
    }
    add(left, odd ? 4 : -4, power);
  } else if (rule.rotator == Rotator::loewdin) {
    add(left, -1, square);
    for (std::int64_t i = 0; i < rule.iterations; ++i) {
      const Matrix squared = multiplied(left, left);
      Matrix next = multiplied(squared, left);
      for (double& x : next.data) x /= 4;
      add(next, -0.75, squared);
      left = std::move(next);
    }
  }
  return left;
}

double series_change(const EnergySlopes& slopes, const Matrix& neurons, const Matrix& left) {
  const Matrix moved = multiplied(neurons, left);
  double sum = 0;
  for (std::size_t i = 0; i < moved.data.size(); ++i)
    sum += slopes.first.data[i] * moved.data[i] / 2;
  return sum;
}
namespace {

constexpr const char* kFirst = "ordinary";  // the method that the others are compared with
constexpr const char* kOrdinary = "none";
constexpr std::uint64_t kTuningSeeds = 1000;  // behind the run's, beyond all that are judged

using Rates = std::map<std::string, double>;  // by name of the method

/// Ordinary training, then the rules of these names. `base` is the recipe without rules. The rule
/// stands in the inner layers; the first layer, whose neurons are long, turns by the setting
/// `first`, the last is trained as usual.
TrainingPlan plan_of(const ExperimentRun& run, const net::Dataset& data, const TrainTrial& trial,
                     const std::vector<std::string>& names, const Rates& rates, const Json& base) {
  TrainingPlan plan{.trial = trial, .seeds = seeds_of(run), .at_once = true};
  const std::vector<std::string> layers = net::gemm_layer_names(initial_network(trial, data));
  for (const std::string& name : names) {
    TrainingMethod method{.name = name, .recipe = base};
    if (!plan.methods.empty() && name != kOrdinary) {
      method.recipe["update"]["rule"] = name;
      method.recipe["layers"].push_back(
          {{"match", layers.front()}, {"update", {{"rule", run.settings.text("first")}}}});
      method.recipe["layers"].push_back(
          {{"match", layers.back()}, {"update", {{"rule", kOrdinary}}}});
    }
    method.change = [rate = rates.at(name)](TrainTrial& one) { one.options.learning_rate = rate; };
    plan.methods.push_back(std::move(method));
  }
  return plan;
}

/// The rate of the setting `rates` at which each method has the best top-1 in float32, by
/// `tuning_seeds` behind all seeds that are judged; adds a table. A single rate is not tried.
Rates chosen_rates(const ExperimentRun& run, const net::Dataset& data, const TrainTrial& trial,
                   const std::vector<std::string>& names, Conclusion& conclusion) {
  const std::vector<double> rates = run.settings.numbers("rates");
  Rates chosen;
  for (const std::string& name : names) chosen[name] = rates.front();
  if (rates.size() == 1) return chosen;
  std::vector<std::uint64_t> seeds = seeds_of(run, "tuning_seeds");
  for (std::uint64_t& seed : seeds) seed += kTuningSeeds;
  std::vector<StudyColumn> columns = {name_column("rule", names)};
  std::vector<double> best(names.size(), -HUGE_VAL);
  for (const double rate : rates) {
    Rates same;
    for (const std::string& name : names) same[name] = rate;
    TrainingPlan plan = plan_of(run, data, trial, names, same, Json::object());
    plan.seeds = seeds;
    plan.prefix = fmt::format("rate {}: ", rate);
    const auto study = run_training_study<TrainOutcome>(
        run, data, plan,
        [&data](const TrainTrial& one, std::size_t) { return run_train_trial(one, data); });
    const SeedFigures top1 = study.figures(&TrainOutcome::top1);
    columns.push_back(mean_column(fmt::format("top-1 at {}, %", rate), top1));
    for (std::size_t m = 0; m < best.size(); ++m) {
      const double mean = stats::paired_interval(top1[m]).mean;
      if (!(mean > best[m])) continue;
      best[m] = mean;
      chosen[names[m]] = rate;
    }
  }
  columns.push_back(
      {"chosen", [&](std::size_t m) { return fmt::format("{}", chosen.at(names[m])); }});
  conclusion.tables.push_back(
      study_table(fmt::format("Learning rates of {} on {}, float32, {} that are not judged",
                              trial.net, data.name(), counted(std::ssize(seeds), "seed")),
                  best.size(), columns));
  return chosen;
}

using policies::Matrix;
using policies::RotationRule;
using policies::Rotator;

constexpr double kSeriesHolds = 0.1;  // of the change

/// A mean over the draws of a repeat beside its prediction; of exact ways the largest value.
struct Compared {
  double found = 0, predicted = 0;

  static void fields(auto& self, const auto& visit) {
    visit("found", self.found);
    visit("predicted", self.predicted);
  }
};

/// Numbers of one draw.
Matrix normals(std::int64_t rows, std::int64_t columns, std::uint64_t seed, std::int64_t draw,
               std::int64_t turn = 0) {
  const RandomSource source{seed, Stream::vectors,
                            tensor_word(fmt::format("orthogonal/{}/{}", draw, turn))};
  Matrix m(rows, columns);
  for (std::size_t i = 0; i < m.data.size(); ++i) m.data[i] = normal::draw(source, i);
  return m;
}

/// Skew-symmetric, of that norm.
Matrix turn_of(std::int64_t size, double norm, std::uint64_t seed, std::int64_t draw,
               std::int64_t turn) {
  const Matrix drawn = normals(size, size, seed, draw, turn);
  Matrix a = drawn;
  add(a, -1, transposed(drawn));
  const double own = norm_of(a);
  for (double& x : a.data) x *= norm / own;
  return a;
}

struct Sizes {
  std::int64_t n, d;
  double power;
  std::int64_t draws;

  std::string name() const { return fmt::format("{} neurons of {} elements", n, d); }
};

std::vector<Sizes> sizes_of(const Settings& settings) {
  std::vector<Sizes> all;
  const double power = settings.number("power");
  const std::int64_t draws = settings.integer("draws");
  for (const std::int64_t n : settings.whole_numbers("neurons"))
    for (const std::int64_t d : settings.whole_numbers("elements"))
      all.push_back({n, d, power, draws});
  return all;
}

/// A question about matrices of some sizes, asked of every case for every repeat.
struct Case {
  std::string name;
  Json point;
  Sizes sizes;
  /// Of matrix number `draw` of a seed.
  std::function<Compared(const Matrix&, std::uint64_t seed, std::int64_t draw)> compare;
};

Study<Compared> run_all(const ExperimentRun& run, const std::vector<Case>& cases, bool largest) {
  StudyPlan plan{{}, seeds_of(run, "repeats"), /*at_once=*/true};
  for (const Case& one : cases) plan.methods.push_back(one.name);
  return run_study<Compared>(
      run, plan, [&](std::size_t c, std::uint64_t seed) -> StudyRun<Compared> {
        const Case& one = cases[c];
        Json point = one.point;
        point.update({{"neurons", one.sizes.n},
                      {"elements", one.sizes.d},
                      {"power", one.sizes.power},
                      {"draws", one.sizes.draws},
                      {"seed", seed}});
        return {std::move(point), [=, &one] {
                  Compared all;
                  for (std::int64_t draw = 0; draw < one.sizes.draws; ++draw) {
                    const Compared found =
                        one.compare(normals(one.sizes.n, one.sizes.d, seed, draw), seed, draw);
                    const auto share = 1 / static_cast<double>(one.sizes.draws);
                    all.found = largest ? std::max(all.found, found.found)
                                        : all.found + share * found.found;
                    all.predicted = largest ? std::max(all.predicted, found.predicted)
                                            : all.predicted + share * found.predicted;
                  }
                  return all;
                }};
      });
}

double error_of(const Study<Compared>& study, std::size_t c) {
  return stats::mean_of(
             study.figures(c, [](const Compared& one) { return one.found - one.predicted; }))
      .error;
}

ResultTable table_of(std::string title, const Study<Compared>& study, bool root) {
  const auto column = [&](double Compared::*which) {
    return [&study, which, root](std::size_t c) {
      const double mean = study.mean(c, which);
      return fmt::format("{:.4g}", root ? std::sqrt(mean) : mean);
    };
  };
  return study_table(std::move(title), study.size(),
                     {name_column("case", study.methods),
                      {"predicted", column(&Compared::predicted)},
                      {"measured", column(&Compared::found)}});
}

}  // namespace

void add_random(const ExperimentRun& run, Conclusion& conclusion) {
  std::vector<Case> cases;
  for (const Sizes& sizes : sizes_of(run.settings)) {
    cases.push_back(
        {sizes.name(),
         {{"orthogonal", "random"}},
         sizes,
         [sizes](const Matrix& w, std::uint64_t, std::int64_t) -> Compared {
           return {energy(w, sizes.power), expected_energy(sizes.n, sizes.d, sizes.power)};
         }});
  }
  const Study<Compared> study = run_all(run, cases, false);
  for (std::size_t c = 0; c < cases.size(); ++c)
    conclusion.add(closed_form("mean energy, " + cases[c].name, study.mean(c, &Compared::predicted),
                               study.mean(c, &Compared::found), error_of(study, c)),
                   "random");
  conclusion.tables.push_back(table_of("Energy of random neurons", study, false));
}

void add_rounding(const ExperimentRun& run, Conclusion& conclusion) {
  const double angle = run.settings.number("angle");
  std::vector<Case> cases;
  for (const std::string& name : run.settings.list("formats")) {
    const Format& format = find_format(name);
    if (format.kind != Kind::floating)
      throw usage_error("--set: formats: expected floating formats, not " + name);
    for (const std::int64_t turns : run.settings.whole_numbers("turns")) {
      for (const Sizes& sizes : sizes_of(run.settings)) {
        cases.push_back(
            {fmt::format("{}, {} steps, {}", format.name, turns, sizes.name()),
             {{"orthogonal", "rounding"},
              {"format", format.name},
              {"turns", turns},
              {"angle", angle}},
             sizes,
             [=, &format](const Matrix& w, std::uint64_t seed, std::int64_t draw) -> Compared {
               const double first = energy(w, sizes.power);
               Matrix exact = w, stored = w;
               EnergyChange law;
               for (std::int64_t t = 1; t <= turns; ++t) {
                 const Matrix a = turn_of(sizes.d, angle, seed, draw, t);
                 exact = rotated_by({}, exact, a);
                 stored = rounded(rotated_by({}, stored, a), format);
                 const EnergyChange one = rounding_change(exact, format, sizes.power);
                 law.mean += one.mean;
                 law.variance += one.variance;
               }
               const double off = (energy(stored, sizes.power) - first) / first;
               return {off * off, law.mean_square() / (first * first)};
             }});
      }
    }
  }
  const Study<Compared> study = run_all(run, cases, false);
  Chart chart{.kind = Chart::Kind::points,
              .title = "Energy lost by rounding",
              .caption =
                  "Root mean square of the relative change of the hyperspherical energy by "
                  "exact rotations whose results are rounded.",
              .x = "predicted",
              .y = "relative change",
              .log_x = true,
              .log_y = true};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const double predicted = study.mean(c, &Compared::predicted),
                 found = study.mean(c, &Compared::found);
    conclusion.add(closed_form("mean square of the relative change of energy, " + cases[c].name,
                               predicted, found, error_of(study, c)),
                   "rounding");
    const double x = std::sqrt(predicted);
    chart.add(cases[c].point["format"].get<std::string>(), {.x = x, .y = std::sqrt(found)},
              {.x = x, .y = x});
  }
  conclusion.tables.push_back(
      table_of("Relative change of energy by rounding, root mean square", study, true));
  conclusion.charts.push_back(std::move(chart));
}

void add_ways(const ExperimentRun& run, Conclusion& conclusion) {
  struct Way {
    const char* name;
    RotationRule rule;
    bool exact, trained = false;
    const char* claim = "exact";
  };
  constexpr Way kWays[] = {{"cayley", {}, true, false, "exact, cayley"},
                           {"gram-schmidt", {Rotator::gram_schmidt}, true},
                           {"householder", {Rotator::householder}, true},
                           {"parametrised", {}, true, true},
                           {"descent, 1 iteration", {Rotator::descent, 1}, false},
                           {"descent, 2 iterations", {Rotator::descent, 2}, false},
                           {"loewdin, 1 iteration", {Rotator::loewdin, 1}, false},
                           {"loewdin, 2 iterations", {Rotator::loewdin, 2}, false}};
  for (const bool exact : {true, false}) {
    std::vector<Case> cases;
    std::vector<const char*> claims;
    for (const Way& way : kWays) {
      if (way.exact != exact) continue;
      for (const double angle : run.settings.numbers("series_angle")) {
        for (const Sizes& sizes : sizes_of(run.settings)) {
          claims.push_back(way.claim);
          cases.push_back(
              {fmt::format("{}, |A| = {:g}, {}", way.name, angle, sizes.name()),
               {{"orthogonal", "way"}, {"way", way.name}, {"angle", angle}},
               sizes,
               [=](const Matrix& w, std::uint64_t seed, std::int64_t draw) -> Compared {
                 const Matrix a = turn_of(sizes.d, angle, seed, draw, 1);
                 const Matrix turned = way.trained
                                           ? multiplied(w, transposed(policies::cayley_of(a)))
                                           : rotated_by(way.rule, w, a);
                 const EnergySlopes slopes = energy_slopes(w, sizes.power);
                 const double off = (energy(turned, sizes.power) - slopes.energy) / slopes.energy;
                 if (way.exact) {
                   // Sums of d products, twice, and of the energy's n^2 terms.
                   const double weights = norm_of(slopes.first) * norm_of(w) / slopes.energy;
                   return {std::fabs(off), 0x1p-52 * (4 * static_cast<double>(sizes.d) * weights +
                                                      static_cast<double>(sizes.n * sizes.n))};
                 }
                 const double series =
                     series_change(slopes, w, left_over(way.rule, a)) / slopes.energy;
                 return {off * off, series * series};
               }});
        }
      }
    }
    const Study<Compared> study = run_all(run, cases, exact);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const double predicted = study.mean(c, &Compared::predicted),
                   found = study.mean(c, &Compared::found);
      const std::string what = "relative change of energy by a step, " + cases[c].name;
      if (exact) {
        conclusion.add(exact_finding("largest " + what, predicted, found, found <= predicted,
                                     at_most(predicted)),
                       claims[c]);
      } else {
        const double expected = std::sqrt(predicted), off = std::sqrt(found);
        conclusion.add(exact_finding("root mean square of the " + what, expected, off,
                                     std::fabs(off / expected - 1) <= kSeriesHolds,
                                     near(expected, kSeriesHolds * expected)),
                       "series");
      }
    }
    conclusion.tables.push_back(
        table_of(exact ? "Largest relative change of energy by a step that is exact"
                       : "Relative change of energy by a step of a series, root mean square",
                 study, !exact));
  }
}

bool keeps_energy(std::string_view rule) {
  for (const char* const other : {"descent", "loewdin", "penalty"})
    if (rule.find(other) != std::string_view::npos) return false;
  return true;
}

namespace {

constexpr double kPower = 1;      // of the distances of trained neurons
constexpr double kErrorsOff = 4;  // standard deviations

/// A training, the energy of its layers, and the law of what float32 rounds in its updates.
struct Trained {
  TrainOutcome outcome;
  std::int64_t steps = 0;
  double change = 0;  ///< of the energy, relative, mean over the layers that turn
  double most = 0;    ///< of all layers, over the deviation that rounding predicts

  double top1() const { return outcome.top1(); }
  double per_cent() const { return outcome.diverged ? NAN : 100 * change; }
  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("steps", self.steps);
    visit("change", self.change);
    visit("most", self.most);
  }
};

/// The layers between the first and the last, which every rule turns in its own way.
std::vector<std::string> inner_layers(const net::Graph& graph) {
  std::vector<std::string> names = net::gemm_layer_names(graph);
  if (names.size() < 3)
    throw usage_error("--set: net: expected at least three layers, not " + graph.name);
  return {names.begin() + 1, names.end() - 1};
}

/// The step derived here, of which the publication has the parametrisation.
bool is_cayley_step(std::string_view rule) {
  return rule == "orthogonal" || rule.starts_with("orthogonal(cayley");
}

std::vector<policies::Matrix> neurons_of(const net::Graph& graph) {
  std::vector<policies::Matrix> all;
  for (const std::string& name : inner_layers(graph)) {
    const net::Tensor& w = net::weight_of(graph, name);
    policies::Matrix neurons(w.dim(0), w.size() / w.dim(0));
    std::copy(w.data.begin(), w.data.end(), neurons.data.begin());
    all.push_back(std::move(neurons));
  }
  return all;
}

Trained train(TrainTrial trial, const net::Dataset& data) {
  Trained trained;
  const std::vector<policies::Matrix> before = neurons_of(initial_network(trial, data));
  std::vector<policies::Matrix> after = before;
  trial.on_loss = [&](double) { ++trained.steps; };
  trial.on_step = [&](const net::Graph& graph, std::int64_t) { after = neurons_of(graph); };
  trained.outcome = run_train_trial(trial, data);
  const auto layers = static_cast<double>(before.size());
  for (std::size_t l = 0; l < before.size(); ++l) {
    const EnergyChange law = rounding_change(before[l], find_format("float32"), kPower);
    const auto steps = static_cast<double>(trained.steps);
    const double first = energy(before[l], kPower), off = energy(after[l], kPower) - first;
    trained.change += off / first / layers;
    // An update rounds the increment, which is smaller, and the sum.
    const double deviation = steps * std::fabs(law.mean) + std::sqrt(steps * law.variance);
    trained.most = std::max(trained.most, std::fabs(off) / deviation);
  }
  return trained;
}

void add_recipe(const ExperimentRun& run, const net::Dataset& data, const std::string& name,
                const TrainTrial& trial, const Rates& rates, std::vector<PairedGain>& gains,
                Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const bool float32 = name == "float32";
  const std::vector<std::string> rules = settings.list(float32 ? "rules" : "recipe_rules");
  std::vector<std::string> names = {kFirst};
  names.insert(names.end(), rules.begin(), rules.end());
  Json base = Json::object();
  if (!float32) {
    base = read_recipe(name, run.folders.data, "--set: recipes");
    base["update"]["optimizer"] = trial.options.optimizer;
  }
  TrainingPlan plan = plan_of(run, data, trial, names, rates, base);
  plan.prefix = name + ": ";
  const auto study = run_training_study<Trained>(
      run, data, plan, [&data](const TrainTrial& one, std::size_t) { return train(one, data); });
  const SeedFigures top1 = study.figures(&Trained::top1),
                    energies = study.figures(&Trained::per_cent);
  say_diverged(study, plan.seeds, name + ", ", conclusion);
  for (std::size_t m = 1; m < study.size(); ++m) {
    const std::string& rule = rules[m - 1];
    gains.push_back({fmt::format("{}: points of top-1 gained by {}", name, rule), gain(top1, m),
                     name == "float32" && is_cayley_step(rule) ? "accuracy, cayley"
                                                               : published_in(name, "accuracy")});
    if (keeps_energy(rule)) {
      const std::vector<double> most = study.figures(m, &Trained::most);
      const double largest = *std::ranges::max_element(most);
      conclusion.add(
          exact_finding(fmt::format("{}: change of energy under {} over the deviation by rounding",
                                    name, rule),
                        kErrorsOff, largest, largest <= kErrorsOff, at_most(kErrorsOff)),
          "kept");
    }
  }
  conclusion.add(interval_finding(name + ": change of energy in ordinary training, %", 0,
                                  stats::paired_interval(energies[0]), at_least(0)),
                 "ordinary");
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {}, {}, paired by seed", trial.net, data.name(), name,
                  counted(study.seeds(), "seed")),
      study.size(),
      {name_column("rule", study.methods),
       {"rate", [&](std::size_t m) { return fmt::format("{}", rates.at(study.methods[m])); }},
       mean_column("top-1, %", top1),
       difference_column("difference, points", top1),
       interval_column(top1),
       {"change of energy, %", [&](std::size_t m) {
          return fmt::format("{:+.2e}", stats::paired_interval(energies[m]).mean);
        }}}));
  conclusion.charts.push_back(
      gain_chart(fmt::format("Top-1 gained by turning neurons, {}", name),
                 fmt::format("Mean difference to ordinary training of {} over {}, paired by seed.",
                             trial.net, counted(study.seeds(), "seed")),
                 "gain, points", study.methods, top1));
}

Conclusion run_orthogonal(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("synthetic neurons");
  add_random(run, conclusion);
  add_rounding(run, conclusion);
  add_ways(run, conclusion);
  const net::Dataset data = load_data(run);
  const TrainTrial trial = training_of(run.settings, run.settings.text("net"));
  std::vector<std::string> names = {kFirst};
  for (const char* key : {"rules", "recipe_rules"}) {
    for (const std::string& rule : run.settings.list(key)) {
      if (std::ranges::find(names, rule) == names.end()) names.push_back(rule);
    }
  }
  const Rates rates = chosen_rates(run, data, trial, names, conclusion);
  std::vector<PairedGain> gains;
  for (const std::string& recipe : run.settings.list("recipes"))
    add_recipe(run, data, recipe, trial, rates, gains, conclusion);
  conclusion.add(judge_gains(gains));
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::orthogonal

namespace numemu::experiments {

extern const Experiment experiment_orthogonal = {
    "orthogonal",
    "does training that only turns a layer's neurons keep their hyperspherical energy, what do its "
    "ways and formats lose of it, and is it more accurate",
    "Liu et al. (CVPR 2021, arXiv 2004.04690) claim that neurons that keep their random directions "
    "relative to each other, turned by one trained rotation per layer, have nearly the least "
    "hyperspherical energy and generalise better.",
    {{"random",
      "The energy of random neurons has the closed mean of uniform directions (derived here)."},
     {"rounding",
      "Rounding to a format changes the energy as independent errors of its spacing do, in one "
      "step and summed over many (derived here)."},
     {"exact",
      "Gram-Schmidt, Householder reflections and the Cayley parametrisation keep the energy, in "
      "float64 up to its rounding (published)."},
     {"exact, cayley", "So does the exact Cayley step (derived here)."},
     {"series",
      "Descent by fixed-point iterations and Loewdin's by Newton-Schulz change the energy by the "
      "leading term of their series, within 10 % (derived here)."},
     {"kept",
      "In training the exact ways change the energy by no more than 4 deviations of what float32 "
      "rounds in all updates (derived here)."},
     {"ordinary", "Ordinary training raises the energy of hidden layers (a contrast).", "seeds"},
     {"accuracy", "Turning neurons gains top-1 over ordinary training (published).", "seeds"},
     {"accuracy, cayley",
      "So it does by the exact Cayley step, of all elements or of some (derived here).", "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"neurons", "16", "random neurons whose energy is measured", wholes(2, 256)},
     {"elements", "8", "8,16", "8,16", "of each", wholes(6, 256)},
     {"power", "1", "of the distance in their energy", real(0.01, 2)},
     {"formats", "float16,float8_e4m3fn", "float32,bfloat16,float16,float8_e4m3fn,float8_e5m2",
      "float32,bfloat16,float16,float8_e4m3fn,float8_e5m2", "to which they are rounded", list_of()},
     {"turns", "1,8", "steps, each rounded", wholes(1, 10'000)},
     {"angle", "2", "norm of A of such a step", real(0, 100)},
     {"series_angle", "0.2", "0.1,0.2,0.4", "0.1,0.2,0.4", "norm of A of steps in float64",
      reals(1e-3, 1)},
     {"draws", "50", "matrices of each repeat", whole(1, 1'000'000)},
     {"repeats", "8", "20", "20", "repeats", whole(2, 1000)},
     {"net", "mlp-deep", "network, of three layers or more", takes_network()},
     data_setting("of images"),
     {"optimizer", "sgd", "optimizer", takes_optimizer()},
     {"rates", "0.05", "0.05,0.1,0.2,0.4,0.8", "0.05,0.1,0.2,0.4,0.8",
      "its rates, of which each rule has the best", reals(1e-9, 1e3)},
     {"tuning_seeds", "1", "2", "2", "seeds that rates are chosen by", whole(1, 1000)},
     {"rules",
      "orthogonal,orthogonal(parametrised),orthogonal(descent),orthogonal(gram-schmidt),"
      "orthogonal(householder),orthogonal(loewdin),orthogonal(penalty),"
      "orthogonal(cayley,64)",
      "update rules of the inner layers"},
     {"first", "orthogonal(cayley,128)", "update rule of the first layer with each of them"},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes", list_of()},
     {"recipe_rules", "orthogonal", "orthogonal", "orthogonal,orthogonal(cayley,64)",
      "update rules under recipes other than float32"},
     training_settings({"1", "10", "10"}, "128", {"512", "4096", "4096"}, {"500", "4000", "4000"}),
     seeds_setting({"1", "5", "10"})},
    orthogonal::run_orthogonal};

}  // namespace numemu::experiments
