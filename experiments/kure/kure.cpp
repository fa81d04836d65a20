// Weights trained toward a uniform law: does a quantizer whose step, bits or rounding of the step
// change hurt them less (KURE, Shkolnik et al., NeurIPS 2020, arXiv 2002.07686)?
#include "experiments/kure/kure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/codebooks/codebook.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/npy.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::kure {

namespace {

constexpr double kEnd = std::numbers::sqrt3;  // of the uniform law of unit variance

double normal_mse(int bits, double step) {
  const double tau = std::ldexp(step, bits - 1), inside = normal::within(tau);
  return (tau * tau + 1) * (1 - inside) + step * step / 12 * inside -
         2 * tau * normal::density(tau);
}

/// The least point of a function with one minimum in [low, high], to 1e-9 of it.
template <class F>
double minimum(const F& f, double low, double high) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-9 * high) {
    const double a = high - golden * (high - low), b = low + golden * (high - low);
    (f(a) < f(b) ? high : low) = f(a) < f(b) ? b : a;
  }
  return (low + high) / 2;
}

}  // namespace

double uniform_mse(double a, int bits, double step) {
  const double tau = std::ldexp(step, bits - 1);
  if (tau > a) return step * step / 12;
  return portable::pow(a - tau, 3) / (3 * a) + std::ldexp(portable::pow(step, 3), bits) / (24 * a);
}

double mse(Law law, int bits, double step) {
  return law == Law::uniform ? uniform_mse(kEnd, bits, step) : normal_mse(bits, step);
}

double exact_mse(Law law, int bits, double step) {
  if (law == Law::normal || std::ldexp(step, bits - 1) <= kEnd) return mse(law, bits, step);
  const double level = std::nearbyint(kEnd / step), rest = kEnd - level * step;
  return (level * portable::pow(step, 3) / 12 + portable::pow(rest, 3) / 3) / kEnd;
}

double uniform_step(double a, int bits) { return 2 * a / (std::ldexp(1.0, bits) + 1); }
double published_step(double a, int bits) { return std::ldexp(a, 1 - bits); }

double best_step(Law law, int bits) {
  if (law == Law::uniform) return uniform_step(kEnd, bits);
  return minimum([&](double step) { return normal_mse(bits, step); }, std::ldexp(0.5, -bits),
                 std::ldexp(16.0, -bits));
}

double curvature(Law law, int bits, double step) {
  if (law == Law::uniform) {
    const double tau = std::ldexp(step, bits - 1);
    return std::ldexp(1.0, 2 * bits - 1) * (kEnd - tau) / kEnd +
           std::ldexp(step, bits) / (4 * kEnd);
  }
  const double h = 1e-3 * step;
  return (normal_mse(bits, step + h) - 2 * normal_mse(bits, step) + normal_mse(bits, step - h)) /
         (h * h);
}

double sensitivity(Law law, int bits, double change) {
  const double step = best_step(law, bits);
  return std::fabs(exact_mse(law, bits, step * (1 + change)) - exact_mse(law, bits, step));
}

std::vector<double> levels(int bits) {
  std::vector<double> all;
  for (int i = -(1 << (bits - 1)); i <= 1 << (bits - 1); ++i) all.push_back(i);
  return all;
}

// Uniform and normal numbers quantized over steps: closed forms, optimal steps, the theorem.

namespace {

constexpr const char* kNames[] = {"uniform", "normal"};
constexpr double kTolerance = 0.01;  // relative, of the closed forms
constexpr std::int64_t kParts = 64;  // whose spread is the error of the mean

const char* name_of(Law law) { return kNames[static_cast<int>(law)]; }

/// Numbers of unit variance in kParts independent parts. Number i of a part is the quantile of
/// (i + u) / n, u uniform, n the numbers of the part: one in each of n equal shares of the law.
/// Mean errors are those of independent numbers on average, with a small fraction of their spread,
/// which in the tails would be percents.
std::vector<float> numbers(Law law, std::int64_t samples, std::uint64_t seed) {
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::data;
  random.tensor = static_cast<std::uint32_t>(law);
  const std::int64_t each = samples / kParts;
  std::vector<float> x(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const double within = random.uniform(static_cast<std::uint64_t>(i)) + 0x1p-33;
    const double u = (static_cast<double>(i % each) + within) / static_cast<double>(each);
    x[static_cast<std::size_t>(i)] = static_cast<float>(
        law == Law::uniform ? std::sqrt(3.0) * (2 * u - 1) : normal::quantile(u));
  }
  return x;
}

/// A mean squared error, with its standard error.
struct SquaredError {
  double mse = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("mse", self.mse);
    visit("error", self.error);
  }
};

/// At each factor of the best step.
std::vector<SquaredError> measured_errors(const std::string& file, Law law, int bits,
                                          const std::vector<double>& factors, std::int64_t samples,
                                          std::uint64_t seed) {
  const std::vector<float> x = numbers(law, samples, seed);
  const Format codebook = read_codebook_format(file);
  const std::vector<Cell> steps = cells(codebook, {}, false);
  const double best = best_step(law, bits);
  std::vector<SquaredError> result;
  for (const double factor : factors) {
    const auto step = static_cast<double>(static_cast<float>(factor * best));
    double sum = 0, squares = 0;
    const std::int64_t each = samples / kParts;
    for (std::int64_t p = 0; p < kParts; ++p) {
      const double part = error_moments(steps, step, x.data() + p * each, each).mse;
      sum += part;
      squares += part * part;
    }
    const double mean = sum / kParts;
    const double variance = std::max(0.0, squares / kParts - mean * mean);
    result.push_back({mean, std::sqrt(variance / (kParts - 1))});
  }
  return result;
}

/// Reference values: best steps and least errors of unit variance.
struct Optimum {
  int bits;
  double step[2], least[2];
};
constexpr Optimum kOptima[] = {{2, {.692820, .844040}, {.04, .081778}},
                               {3, {.384900, .533841}, {.0123457, .030662}},
                               {4, {.203771, .318897}, {.00346021, .010403}},
                               {5, {.104973, .183309}, {.000918274, .003313}},
                               {6, {.053294, .102679}, {.000236686, .0010120}},
                               {8, {.013479, .030655}, {1.51403e-5, 8.707e-5}}};

void judge_optima(const std::vector<int>& bits, Conclusion& conclusion) {
  constexpr double kDigits = 2e-4;  // relative, of the reference
  for (const Optimum& optimum : kOptima) {
    if (std::find(bits.begin(), bits.end(), optimum.bits) == bits.end()) continue;
    for (const Law law : {Law::uniform, Law::normal}) {
      const int l = static_cast<int>(law);
      const auto exact = [&](const char* what, double predicted, double measured) {
        conclusion.add(
            exact_finding(fmt::format("{} of {} bits, {} law", what, optimum.bits, name_of(law)),
                          predicted, measured, std::fabs(measured / predicted - 1) <= kDigits),
            "optimum");
      };
      const double step = best_step(law, optimum.bits);
      exact("best step", optimum.step[l], step);
      exact("least error", optimum.least[l], mse(law, optimum.bits, step));
    }
  }
}

/// The published D^2 / 12 of steps whose last level is beyond the end of the law, against the exact
/// error. With a = (k + r) D, |r| <= 1/2, their ratio is 1 + (4 r^3 - r) / (k + r), at most
/// D / (sqrt(27) a) from 1: the rounding of the law's last cell, which few levels feel. Arithmetic
/// alone, so that it is judged at the same bits and steps in every run.
void judge_published_curve(Conclusion& conclusion) {
  constexpr int kHighResolution = 6;  // bits
  for (const int m : {2, 3, 4, 5, 6, 8}) {
    for (const double factor : {1.1, 1.2, 1.3, 1.5, 2.0}) {
      const double step = factor * best_step(Law::uniform, m);
      if (std::ldexp(step, m - 1) <= kEnd) continue;
      const double ratio = exact_mse(Law::uniform, m, step) / mse(Law::uniform, m, step);
      const bool high = m >= kHighResolution;
      const double tolerance = high ? step / (std::sqrt(27.0) * kEnd) : kTolerance;
      conclusion.add(
          exact_finding(fmt::format("error of the uniform law over D^2 / 12, {} bits, {} of the "
                                    "best step",
                                    m, factor),
                        1, ratio, std::fabs(ratio - 1) <= tolerance, near(1, tolerance)),
          high ? "published curve" : "few levels");
    }
  }
}

/// Gamma of the uniform law over that of the normal law is claimed below 1.
void judge_theorem(const std::vector<int>& bits, Conclusion& conclusion) {
  const auto below = [&](const char* claim, const std::string& what, double ratio) {
    conclusion.add(exact_finding(what + " (below 1 claimed)", 1, ratio, ratio < 1, at_most(1)),
                   claim);
  };
  for (const int m : bits) {
    const double half = curvature(Law::uniform, m, published_step(std::sqrt(3.0), m));
    below("theorem, published step",
          fmt::format("MSE'' of the uniform law at the published step over the normal law's, {} "
                      "bits",
                      m),
          half / curvature(Law::normal, m, best_step(Law::normal, m)));
  }
  for (const int m : bits) {
    below(
        "theorem, best step",
        fmt::format("MSE'' of the uniform law at its best step over the normal law's, {} bits", m),
        curvature(Law::uniform, m, best_step(Law::uniform, m)) /
            curvature(Law::normal, m, best_step(Law::normal, m)));
    for (const double change : {-0.2, 0.2})
      below(
          "theorem, best step",
          fmt::format("sensitivity of the uniform law over the normal law's, {} bits, step {:+.0f} "
                      "%",
                      m, 100 * change),
          sensitivity(Law::uniform, m, change) / sensitivity(Law::normal, m, change));
  }
  for (const int m : bits) {
    for (const double factor : {0.8, 1.0, 1.2}) {
      const double ratio = mse(Law::uniform, m, factor * best_step(Law::uniform, m)) /
                           mse(Law::normal, m, factor * best_step(Law::normal, m));
      below(
          "error",
          fmt::format("MSE of the uniform law over the normal law's, {} bits, {} of the best step",
                      m, factor),
          ratio);
    }
  }
}

ResultTable theorem_table(const std::vector<int>& bits) {
  ResultTable table{
      "The theorem: sensitivities of the uniform law over those of the normal law, unit variance",
      {"bits", "best step uniform", "published step", "best step normal", "MSE'' uniform",
       "MSE'' uniform, published step", "MSE'' normal", "Gamma ratio, step -20 %",
       "Gamma ratio, step +20 %", "MSE ratio, step -20 %", "MSE ratio, best step",
       "MSE ratio, step +20 %"},
      {}};
  for (const int m : bits) {
    std::vector<std::string> row = {std::to_string(m)};
    const double u = best_step(Law::uniform, m), n = best_step(Law::normal, m),
                 published = published_step(std::sqrt(3.0), m);
    for (const double x : {u, published, n}) row.push_back(fmt::format("{:.6f}", x));
    for (const double x : {curvature(Law::uniform, m, u), curvature(Law::uniform, m, published),
                           curvature(Law::normal, m, n)})
      row.push_back(fmt::format("{:.3f}", x));
    for (const double change : {-0.2, 0.2})
      row.push_back(fmt::format(
          "{:.2f}", sensitivity(Law::uniform, m, change) / sensitivity(Law::normal, m, change)));
    for (const double factor : {0.8, 1.0, 1.2})
      row.push_back(fmt::format(
          "{:.2f}", mse(Law::uniform, m, factor * u) / mse(Law::normal, m, factor * n)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void add_curves(const ExperimentRun& run, Conclusion& conclusion) {
  std::vector<int> bits;
  for (const std::int64_t m : run.settings.whole_numbers("bits"))
    bits.push_back(static_cast<int>(m));
  const std::vector<double> factors = run.settings.numbers("factors");
  const std::int64_t samples = run.settings.integer("samples") / kParts * kParts;
  std::vector<TypedTrial<std::vector<SquaredError>>> trials;
  for (const int m : bits) {
    const std::string file = codebook_file(run, m);
    for (const Law law : {Law::uniform, Law::normal}) {
      trials.push_back(
          {{{"curve", name_of(law)},
            {"bits", m},
            {"factors", factors},
            {"samples", samples},
            {"strata", samples / kParts},
            {"seed", run.seed}},
           fmt::format("{} numbers, {} bits", name_of(law), m),
           [=, seed = run.seed] { return measured_errors(file, law, m, factors, samples, seed); }});
    }
  }
  const auto results = run_typed(run, trials);
  ResultTable table{
      fmt::format("mean squared error of {} numbers of unit variance over steps", samples),
      {"law", "bits", "step / best step", "predicted", "measured", "measured / predicted"},
      {}};
  Chart chart{
      .title = "Mean squared error over the step",
      .caption = fmt::format(
          "KURE's quantizer of 2^M + 1 levels, {} numbers of unit variance; closed forms dashed. "
          "Below the best step the uniform law's error rises faster, above it stays lower.",
          samples),
      .x = "step over the best step",
      .y = "mean squared error",
      .log_y = true};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Law law = i % 2 == 0 ? Law::uniform : Law::normal;
    const int m = bits[i / 2];
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const double step = factors[f] * best_step(law, m);
      const double form = exact_mse(law, m, step);
      const auto [value, error] = results[i].at(f);
      const std::string what = fmt::format("MSE of the {} law, {} bits, {} of the best step",
                                           name_of(law), m, factors[f]);
      conclusion.add(model_finding(what, form, value, error, kTolerance * form), "curves");
      table.rows.push_back({name_of(law), std::to_string(m), fmt::format("{}", factors[f]),
                            fmt::format("{:.4g}", form), fmt::format("{:.4g}", value),
                            fmt::format("{:.4f}", value / form)});
      chart.add(fmt::format("{} {} bits", name_of(law), m),
                with_error({.x = factors[f], .y = value}, error), {.x = factors[f], .y = form});
    }
  }
  judge_published_curve(conclusion);
  judge_optima(bits, conclusion);
  judge_theorem(bits, conclusion);
  conclusion.sentences.push_back(fmt::format(
      "At the published step 2a / 2^M the second derivative of the uniform law's error is 1/2, "
      "below the normal law's; at the step 2a / (2^M + 1) where the error is least it is 2^(M-1), "
      "above it: with {} bits {:.1f} against {:.2f}.",
      bits.back(), curvature(Law::uniform, bits.back(), best_step(Law::uniform, bits.back())),
      curvature(Law::normal, bits.back(), best_step(Law::normal, bits.back()))));
  conclusion.tables.push_back(theorem_table(bits));
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

namespace {

constexpr double kTarget = 1.8, kNearTarget = 0.1;  // kurtosis
constexpr double kPublishedLambda = 1;              // of the penalty

/// One way to quantize the weights of a trained network.
struct Quantizer {
  int bits = 0;       ///< of symmetric integers
  std::string scale;  ///< rule
  std::string name() const { return fmt::format("int{}, {}", bits, scale); }
};

std::vector<Quantizer> quantizers_of(const Settings& settings) {
  std::vector<Quantizer> all;
  for (const std::int64_t m : settings.whole_numbers("accuracy_bits")) {
    const int bits = static_cast<int>(m);
    all.push_back({bits, "mse"});
    all.push_back({bits, "pow2(mse)"});
    for (const double factor : settings.numbers("factors"))
      if (factor != 1) all.push_back({bits, fmt::format("detuned(mse,{})", factor)});
  }
  return all;
}

double kurtosis_of(const net::Tensor& w) {
  const std::int64_t n = w.size();
  const auto mean_of = [&](auto term) {
    return pairwise_sum(n, [&](std::int64_t i) { return term(double{w.data[i]}); }) /
           static_cast<double>(n);
  };
  const double mean = mean_of([](double x) { return x; });
  const double m2 = mean_of([&](double x) { return (x - mean) * (x - mean); });
  const double m4 = mean_of([&](double x) { return portable::pow(x - mean, 4); });
  return m4 / (m2 * m2);
}

/// Shares of right answers in float32 and under every quantizer; the kurtosis of every weight.
struct Measured {
  double float32 = 0;
  std::vector<double> kurtosis = {}, top1 = {};

  static void fields(auto& self, const auto& visit) {
    visit("float32", self.float32);
    visit("kurtosis", self.kurtosis);
    visit("top1", self.top1);
  }
};

/// Trains, then evaluates in float32 and under every quantizer of all weights.
Measured measure(const TrainTrial& trial, const net::Dataset& data, double weight,
                 const std::vector<Quantizer>& quantizers) {
  net::Graph graph = initial_network(trial, data);
  Json recipe = Json::object();
  if (weight > 0) recipe["penalty"] = {{"rule", "kure"}, {"weight", weight}};
  {
    policies::RecipeNumerics numerics(policies::Recipe::make(recipe, "kure", trial.seed), graph);
    train_under(numerics, graph, trial, data);
  }
  const auto top1 = [&](net::Numerics& numerics) {
    return test_top1(graph, data, trial.eval_samples, numerics);
  };
  net::Numerics float32;
  Measured result{.float32 = top1(float32)};
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) result.kurtosis.push_back(kurtosis_of(*layer.weight));
  }
  for (const Quantizer& quantizer : quantizers) {
    const Json role = {{"format", fmt::format("int{}", quantizer.bits)},
                       {"scale", quantizer.scale}};
    policies::RecipeNumerics numerics(
        policies::Recipe::make({{"roles", {{"weight", role}}}}, "kure"), graph);
    numerics.freeze(graph, 0, {});
    result.top1.push_back(top1(numerics));
  }
  return result;
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainingPlan plan{
      .trial = training_of(run.settings, run.settings.text("net"), {.optimizer = "adam"}),
      .data = data.name(),
      .seeds = seeds_of(run)};
  const net::Graph graph = initial_network(plan.trial, data);
  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) layers.push_back(layer.name);
  }
  if (layers.empty()) throw usage_error("--set: net: expected a network with weights");
  const double lambda = run.settings.number("penalty");
  const double weight = lambda / static_cast<double>(layers.size());
  const std::string other_lambda =
      lambda == kPublishedLambda
          ? ""
          : fmt::format(", lambda = {} (published: {})", lambda, kPublishedLambda);
  const std::vector<Quantizer> quantizers = quantizers_of(run.settings);
  Json of_point;
  for (const Quantizer& quantizer : quantizers) of_point.push_back(quantizer.name());
  enum : std::size_t { kWithout, kWith };
  const double weights[] = {0, weight};
  for (const double of_method : weights)
    plan.methods.push_back({.name = of_method > 0 ? "with the penalty" : "without",
                            .counted = {{"penalty", of_method}, {"quantizers", of_point}}});
  const auto study =
      run_training_study<Measured>(run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return measure(trial, data, weights[m], quantizers);
      });
  const std::size_t seeds = study.seeds();
  /// Top-1 in per cent without and with the penalty.
  const SeedFigures floats = study.figures([](const Measured& m) { return 100 * m.float32; });
  const auto quantized = [&](std::size_t q) {
    return study.figures([q](const Measured& m) { return 100 * m.top1.at(q); });
  };

  for (std::size_t l = 0; l < layers.size(); ++l) {
    double least = HUGE_VAL, most = -HUGE_VAL, sum = 0;
    for (std::size_t s = 0; s < seeds; ++s) {
      const double k = study.runs[kWith][s].kurtosis.at(l);
      least = std::min(least, k);
      most = std::max(most, k);
      sum += k / static_cast<double>(seeds);
    }
    conclusion.add(
        interval_finding(fmt::format("kurtosis of {} trained with the penalty, over all seeds{}",
                                     layers[l], other_lambda),
                         kTarget, sum, {least, most}, near(kTarget, kNearTarget)),
        "kurtosis");
  }

  // float32, then every quantizer.
  std::vector<std::string> names = {"float32"};
  std::vector<SeedFigures> top1s = {floats};
  const std::string in_float32 = mean_text(gain(floats, kWith));
  std::vector<PairedGain> gains, rounded;
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Top-1 gained by the penalty",
              .caption = fmt::format(
                  "Mean difference with and without KURE over {}, with its 95 % interval by "
                  "Student's law paired by seed; in float32 {}.",
                  counted(seeds, "seed"), in_float32),
              .y = "gain, points",
              .series = {{"measured", {}, false}}};
  for (std::size_t q = 0; q < quantizers.size(); ++q) {
    const std::string name = quantizers[q].name();
    const SeedFigures top1 = quantized(q);
    gains.push_back({fmt::format("points gained, {}{}", name, other_lambda), gain(top1, kWith)});
    chart.series[0].points.push_back(gain_point(static_cast<double>(q), name, gain(top1, kWith)));
    if (quantizers[q].scale == "pow2(mse)") {
      const SeedFigures& best = top1s.back();  // of the same quantizer at its best step
      std::vector<double> spared;
      for (std::size_t s = 0; s < seeds; ++s)
        spared.push_back((top1[kWith][s] - best[kWith][s]) -
                         (top1[kWithout][s] - best[kWithout][s]));
      rounded.push_back(
          {fmt::format("points spared by the penalty where the step is rounded, int{}{}",
                       quantizers[q].bits, other_lambda),
           stats::paired_interval(spared)});
    }
    names.push_back(name);
    top1s.push_back(top1);
  }
  conclusion.add(judge_gains(gains), "accuracy");
  conclusion.add(judge_gains(rounded), "power of two");
  const auto kurtosis = [&](std::size_t method) {
    return [&, method](std::size_t layer) {
      double sum = 0;
      for (const Measured& one : study.runs[method]) sum += one.kurtosis.at(layer);
      return fmt::format("{:.2f}", sum / static_cast<double>(seeds));
    };
  };
  const auto mean = [&](std::size_t method) {
    return [&, method](std::size_t row) {
      return fmt::format("{:.2f}", stats::paired_interval(top1s[row][method]).mean);
    };
  };
  conclusion.sentences.push_back(
      fmt::format("In float32 the penalty changes top-1 by {} points.", in_float32));
  conclusion.tables.push_back(study_table(
      "kurtosis of the trained weights, mean over seeds (uniform 1.8, normal 3)", layers.size(),
      {name_column("layer", layers),
       {"without penalty", kurtosis(kWithout)},
       {"with penalty", kurtosis(kWith)}}));
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}: top-1 with quantized weights, {}, paired by seed", plan.trial.net,
                  data.name(), counted(seeds, "seed")),
      names.size(),
      {name_column("weights", names),
       {"without penalty, %", mean(kWithout)},
       {"with penalty, %", mean(kWith)},
       {"gain, points", [&](std::size_t row) { return mean_text(gain(top1s[row], kWith)); }}}));
  conclusion.charts.push_back(std::move(chart));
}

std::string codebook_file(const ExperimentRun& run, int bits) {
  std::filesystem::create_directories(run.out);
  const std::string file = fmt::format("{}/levels-{}.npy", run.out, bits);
  const std::vector<double> entries = levels(bits);
  write_npy(file, ArrayType::float64, {static_cast<std::int64_t>(entries.size())}, entries.data());
  return file;
}

}  // namespace numemu::experiments::kure

namespace numemu::experiments {

extern const Experiment experiment_kure = {
    "kure",
    "are weights of uniform law less sensitive to the step, the bits and a rounded step of their "
    "quantizer, and does training toward that law gain accuracy",
    "Shkolnik et al. (NeurIPS 2020, arXiv 2002.07686) claim that a penalty on the kurtosis makes "
    "weights near uniform, and that these are less sensitive to changes of the quantizer than "
    "normal weights, so that few bits and steps that are powers of two cost less accuracy.",
    {{"curves", "The error over the step follows the closed forms within 1 % (derived here)."},
     {"published curve",
      "Beyond the end of the uniform law, at 6 and 8 bits, the error is D^2 / 12 but for the "
      "rounding of the law's last cell, at most D / (sqrt(27) a) of it (published; the tolerance "
      "is derived here)."},
     {"few levels",
      "Of 2 to 5 bits, where the approximation leaves its range, it is so within 1 %, too (a "
      "contrast; the margin is ours)."},
     {"optimum", "Best steps and least errors are those of the closed forms (derived here)."},
     {"theorem, published step",
      "At the published step 2a / 2^M the second derivative of the uniform law's error is below "
      "the normal law's (published)."},
     {"theorem, best step",
      "At the step of least error the uniform law is less sensitive than the normal law too (a "
      "contrast)."},
     {"error", "The error itself is lower under the uniform law (a contrast)."},
     {"kurtosis",
      "The penalty brings the kurtosis of every weight to within 0.1 of 1.8 (published; the margin "
      "is ours).",
      "epochs"},
     {"accuracy",
      "Networks trained with the penalty keep more top-1 when weights are quantized (published).",
      "epochs"},
     {"power of two",
      "Rounding the step to a power of two costs networks trained with the penalty less top-1 "
      "(published).",
      "epochs"}},
    {{"bits", "2,4", "2,3,4,5,6", "2,3,4,5,6,8", "of the quantizer on numbers of known laws",
      wholes(2, 8)},
     {"factors", "0.7,1,1.3", "0.7,0.85,1,1.15,1.3", "0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.5,2",
      "steps over the best step", reals(0.1, 10)},
     {"samples", "200000", "8000000", "32000000", "numbers of each law", whole(64, 1'000'000'000)},
     {"net", "mlp", "network to train", takes_network()},
     data_setting(),
     {"penalty", "1", "lambda, divided by the number of weights", real(0, 1e6)},
     {"accuracy_bits", "2", "2,3,4", "2,3,4", "of the weights", wholes(2, 8)},
     rate_settings(),
     training_settings({"1", "6", "12"}, "128", {"2048", "16384", "16384"}, {"500", "4000", "0"}),
     seeds_setting({"1", "10", "20"}, "networks")},
    conclude<kure::add_curves, kure::add_training>};

}  // namespace numemu::experiments
