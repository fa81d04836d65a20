#include "experiments/hfp8/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "emu/unit/unit.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/codec.hpp"
#include "formats/digest.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/running_statistics.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::hfp8 {

double relative_noise(int mantissa) {
  return 3 / (8 * std::numbers::ln2) * std::ldexp(1, -2 * mantissa) / 12;
}

AddedAt added_by(std::shared_ptr<const Density> law, double mean) {
  const std::vector<double> knots = law->knots();
  return [law = std::move(law), low = knots.front(), high = knots.back(), mean](double ulp) {
    constexpr double kFine = 1e-3;  // of the range: rounding changes neither the mean nor much else
    if (ulp < kFine * (high - low)) return Added{mean, ulp * ulp / 12};
    Added added;
    for (double k = std::floor(low / ulp); k <= std::ceil(high / ulp); ++k) {
      const Density::Moments m = law->moments((k - 0.5) * ulp, (k + 0.5) * ulp);
      added.mean += k * ulp * m.p0;
      added.variance += m.p2 - 2 * k * ulp * m.p1 + k * k * ulp * ulp * m.p0;
    }
    return added;
  };
}

AddedAt added_by(double v) {
  return [v](double ulp) {
    const double whole = std::floor(v / ulp), rest = v / ulp - whole;
    // The register is even where a tie first occurs: an addition that is lost leaves it so.
    const double rounded = ulp * (rest > 0.5 ? whole + 1 : whole);
    return Added{rounded, (rounded - v) * (rounded - v)};
  };
}

double expected_sum(const AddedAt& added, double mean, double count, int mantissa) {
  double sum = mean, left = count - 1;
  while (left > 0) {
    const int binade = std::ilogb(sum);
    const double step = added(std::ldexp(1, binade - mantissa)).mean;
    if (!(step > 0)) return sum;  // the register has stalled
    const double room = std::ldexp(1, binade + 1) - sum;
    const double adds = std::min(left, std::max(1.0, room / step));
    sum += adds * step;
    left -= adds;
  }
  return sum;
}

double expected_chunked_sum(const AddedAt& added, double mean, double deviation, double count,
                            double chunk, int mantissa) {
  const double each = expected_sum(added, mean, std::min(chunk, count), mantissa);
  if (chunk >= count) return each;
  const AddedAt of_chunks = deviation > 0 ? added_by(std::shared_ptr<const Density>(normal_density(
                                                         each, deviation * std::sqrt(chunk))),
                                                     each)
                                          : added_by(each);
  return expected_sum(of_chunks, each, count / chunk, mantissa);
}

double retuned_share(double of_weights, double of_inputs, double mean_square) {
  return 1 - of_weights * mean_square / (of_weights + of_inputs);
}

// Numbers rounded to the formats of HFP8, and sums in its 1-6-9 register.

namespace {

constexpr const char* kRegister = "hfp16_e6m9";
constexpr int kMantissa = 9;
constexpr double kSumHolds = 0.02;       // of the predicted sum
constexpr double kConstantHolds = 0.02;  // relative, of the log-uniform noise at 2 and more bits

/// The squared error of normal numbers over their mean square sigma^2, as the codec rounds them.
MeanError noise_of(const Format& format, double sigma, std::int64_t samples, std::uint64_t seed) {
  const RandomSource random{seed, Stream::data, tensor_word(format.name), 0};
  RunningMean noise;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto x = static_cast<float>(sigma * normal::draw(random, static_cast<std::uint64_t>(i)));
    float y = 0;
    quantize_values({.format = &format}, &x, 1, 1, &y);
    const double error = (double{y} - x) / sigma;
    noise.add(error * error);
  }
  return noise.mean(1);
}

std::string unit_of(std::int64_t chunk) {
  return chunk == 1 ? fmt::format("neutral.mac.{}", kRegister)
                    : fmt::format("neutral.chunk{}.{}", chunk, kRegister);
}

}  // namespace

MeanError measured_sums(const std::string& unit_name, double deviation, std::int64_t count,
                        std::int64_t repeats, std::uint64_t seed) {
  const unit::Unit& unit = unit::find_unit(unit_name);
  const Format& format = find_format(kRegister);
  const RandomSource random{seed, Stream::data, tensor_word("hfp8/sums"), 0};
  std::vector<float> x(static_cast<std::size_t>(repeats * count));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(1 + std::sqrt(3.0) * deviation * (2 * random.uniform(i) - 1));
  std::vector<std::uint16_t> a(x.size()), b(static_cast<std::size_t>(count)),
      d(static_cast<std::size_t>(repeats));
  quantize_codes({.format = &format}, x.data(), std::ssize(x), 1, a.data());
  const std::vector<float> ones(b.size(), 1);
  quantize_codes({.format = &format}, ones.data(), count, 1, b.data());
  const unit::Gather rows = unit::Gather::matrix(repeats, count),
                     column = unit::Gather::matrix(1, count);
  unit.multiply({.m = repeats,
                 .n = 1,
                 .k = count,
                 .a = {&format, a.data(), &rows},
                 .b = {&format, b.data(), &column},
                 .d = d.data(),
                 .seed = seed});
  RunningMean ratio;
  for (std::int64_t r = 0; r < repeats; ++r) {
    double exact = 0;
    for (std::int64_t i = 0; i < count; ++i) exact += to_double(decode(format, a[r * count + i]));
    ratio.add(to_double(decode(*unit.d_format(), d[r])) / exact);
  }
  return ratio.mean(1);
}

void add_rounding(const ExperimentRun& run, Conclusion& conclusion) {
  run.say("numbers and sums");
  const std::int64_t samples = run.settings.integer("samples");
  struct Case {
    const char* format;
    double sigma;
  };
  std::vector<Case> cases;
  for (const double sigma : {1.0, 1e-3, 1e-5}) {
    for (const char* format : {"hfp8_e4m3", "float8_e4m3", "hfp8_e5m2", kRegister})
      cases.push_back({format, sigma});
  }
  const std::vector<MeanError> results = run_cases<MeanError>(
      run, cases,
      [&](const Case& c) -> TypedTrial<MeanError> {
        return {{{"part", "rounding"},
                 {"format", c.format},
                 {"sigma", c.sigma},
                 {"samples", samples},
                 {"seed", run.seed}},
                fmt::format("{} of sigma {}", c.format, c.sigma),
                [=, seed = run.seed] {
                  return noise_of(find_format(c.format), c.sigma, samples, seed);
                }};
      },
      true);
  ResultTable table{"Noise over signal of normal numbers, to nearest",
                    {"format", "sigma", "log-uniform law", "predicted", "measured", "SQNR, dB"},
                    {}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Format& format = find_format(cases[i].format);
    const double sigma = cases[i].sigma;
    const auto [measured, error] = results[i];
    const double predicted =
        error_moments(cells(format, {}, false), 1, *normal_density(0, sigma)).mse / (sigma * sigma);
    conclusion.add(closed_form(fmt::format("noise over signal of {}, sigma {}", format.name, sigma),
                               predicted, measured, error),
                   "rounding");
    const double constant = relative_noise(format.mantissa_bits);
    if (sigma == 1) {
      conclusion.add(
          model_finding(fmt::format("noise over signal of {} by 0.0451 4^-m, sigma 1", format.name),
                        constant, measured, error, kConstantHolds * constant),
          "constant");
    }
    table.rows.push_back({format.name, fmt::format("{}", sigma), fmt::format("{:.3e}", constant),
                          fmt::format("{:.4g}", predicted), fmt::format("{:.4g}", measured),
                          fmt::format("{:.1f}", -10 * portable::log10(measured))});
  }
  conclusion.tables.push_back(std::move(table));
}

void add_sums(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> lengths = run.settings.whole_numbers("lengths"),
                                  chunks = run.settings.whole_numbers("chunks");
  const std::int64_t repeats = run.settings.integer("repeats");
  struct Case {
    double deviation;
    std::int64_t chunk, length;
  };
  std::vector<Case> cases;
  for (const double deviation : {0.0, 1.0}) {
    for (const std::int64_t chunk : chunks) {
      for (const std::int64_t length : lengths) cases.push_back({deviation, chunk, length});
    }
  }
  const std::vector<MeanError> results =
      run_cases<MeanError>(run, cases, [&](const Case& c) -> TypedTrial<MeanError> {
        const std::int64_t sums = c.deviation > 0 ? repeats : 1;
        return {{{"part", "sums"},
                 {"unit", unit_of(c.chunk)},
                 {"deviation", c.deviation},
                 {"length", c.length},
                 {"repeats", sums},
                 {"seed", run.seed}},
                fmt::format("sums of {} in chunks of {}", c.length, c.chunk),
                [=, seed = run.seed] {
                  return measured_sums(unit_of(c.chunk), c.deviation, c.length, sums, seed);
                }};
      });
  ResultTable table{"Sums in a 1-6-9 register over exact sums, to nearest",
                    {"numbers", "chunk", "length", "predicted", "measured"},
                    {}};
  Chart chart{
      .title = "Sums in a 1-6-9 register by length and chunk",
      .caption = fmt::format(
          "Uniform numbers of mean and deviation 1, to nearest after each addition, mean of {} "
          "sums; dashed: the walk over binades. A chunk of 1 adds one by one and stalls at 4,096.",
          repeats),
      .x = "numbers added",
      .y = "sum over exact sum",
      .log_x = true};
  const std::shared_ptr<const Density> uniform =
      uniform_density(1 - std::sqrt(3.0), 1 + std::sqrt(3.0));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const auto length = static_cast<double>(c.length);
    const AddedAt added = c.deviation > 0 ? added_by(uniform, 1) : added_by(1);
    const double predicted =
        (c.chunk == 1 ? expected_sum(added, 1, length, kMantissa)
                      : expected_chunked_sum(added, 1, c.deviation, length,
                                             static_cast<double>(c.chunk), kMantissa)) /
        length;
    const auto [measured, error] = results[i];
    const std::string numbers = c.deviation > 0 ? "uniform" : "ones";
    const std::string what =
        fmt::format("sum of {} {} in chunks of {}, over the exact sum", c.length, numbers, c.chunk);
    if (c.deviation > 0) {
      conclusion.add(model_finding(what, predicted, measured, error, kSumHolds * predicted),
                     "sums");
      chart.add(fmt::format("chunk {}", c.chunk), with_error({.x = length, .y = measured}, error),
                {.x = length, .y = predicted});
    } else {
      conclusion.add(exact_finding(what, predicted, measured, measured == predicted), "stall");
    }
    table.rows.push_back({numbers, fmt::format("{}", c.chunk), fmt::format("{}", c.length),
                          fmt::format("{:.4f}", predicted), fmt::format("{:.4f}", measured)});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}
namespace {

constexpr int kInputs = 64, kOutputs = 32;  // of the linear layer

struct Cast {
  const char* format;
  double scale;  ///< of weights times sqrt(kInputs), and of inputs
};
constexpr Cast kCasts[] = {{"hfp8_e5m2", 1}, {"hfp8_e4m3", 1}, {"int4", 0.5}};

struct Moments {
  double mean = 0, deviation = 0;
};

void judge_layer(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t rows = run.settings.integer("layer_rows");
  StudyPlan plan{.methods = {}, .seeds = seeds_of(run, "layers", 2, 10'000), .at_once = true};
  for (const Cast& cast : kCasts) plan.methods.push_back(fmt::format("a layer in {}", cast.format));
  const auto study = run_study<LayerNoise>(
      run, plan, [&](std::size_t method, std::uint64_t seed) -> StudyRun<LayerNoise> {
        const Operand operand{kCasts[method].format, kCasts[method].scale};
        return {{{"part", "layer"},
                 {"format", operand.format},
                 {"scale", operand.scale},
                 {"rows", rows},
                 {"seed", seed}},
                [=] { return layer_noise(operand, operand, rows, seed); }};
      });
  ResultTable table{
      fmt::format("A normalised linear layer of {} inputs behind a ReLU, {} draws: noise of its "
                  "results, predicted | measured",
                  kInputs, plan.seeds.size()),
      {"format", "stale statistics", "re-estimated", "re-estimated over stale"},
      {}};
  for (std::size_t f = 0; f < std::size(kCasts); ++f) {
    const std::vector<Cell> steps = cells(find_format(kCasts[f].format), {}, true);
    const auto law = normal_density(0, 1);
    // Half of the inputs are zero, so that noise and power halve alike.
    const double each = error_moments(steps, kCasts[f].scale, *law).mse;
    const double mean_square = std::numbers::inv_pi;  // E[x]^2 / E[x^2] behind a ReLU
    const double stale = 2 * each / (1 - mean_square);
    const double share = retuned_share(each, each, mean_square);
    const stats::PairedInterval measured = stats::paired_interval(
        study.figures(f, [](const LayerNoise& noise) { return noise.tuned / noise.stale; }));
    conclusion.add(
        interval_finding(
            fmt::format("noise left by re-estimated statistics of a layer in {}, over stale ones",
                        kCasts[f].format),
            share, measured, near(share, kClosedForm * share)),
        "layer");
    const auto row = [&](double predicted, double LayerNoise::*noise) {
      return fmt::format("{:.5f} | {:.5f}", predicted, study.mean(f, noise));
    };
    table.rows.push_back({kCasts[f].format, row(stale, &LayerNoise::stale),
                          row(stale * share, &LayerNoise::tuned),
                          fmt::format("{:.3f} | {:.3f}", share, measured.mean)});
  }
  conclusion.tables.push_back(std::move(table));
}

/// Top-1 of a trained network in float32, and by format with stale and re-estimated statistics.
struct Retuned {
  double float32 = 0;
  std::vector<double> stale = {}, tuned = {};

  static void fields(auto& self, const auto& visit) {
    visit("float32", self.float32);
    visit("stale", self.stale);
    visit("tuned", self.tuned);
  }
};

Retuned measure(const TrainTrial& trial, const net::Dataset& data,
                const std::vector<std::string>& formats, std::int64_t samples) {
  net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  const auto top1 = [&](net::Numerics& numerics) {
    return test_top1(graph, data, trial.eval_samples, numerics);
  };
  const policies::CalibrationBatch batch = calibration_of(data);
  std::vector<std::vector<net::Tensor>> batches;
  constexpr std::int64_t kBatch = 64;
  for (std::int64_t first = 0; first < samples; first += kBatch)
    batches.push_back(batch(first, std::min(kBatch, samples - first)));
  const net::Checkpoint trained = net::parameters_of(graph);
  Retuned result{.float32 = top1(float32)};
  for (const std::string& format : formats) {
    net::load_parameters(graph, trained, "hfp8");
    Json role = {{"format", format}};
    if (format.starts_with("hfp8")) role["scale"] = "none";
    policies::RecipeNumerics numerics(
        policies::Recipe::make({{"roles", {{"weight", role}, {"activation", role}}}}, "hfp8"),
        graph);
    numerics.freeze(graph, samples, batch);
    result.stale.push_back(top1(numerics));
    policies::reestimate_batch_norm(graph, batches, numerics);
    result.tuned.push_back(top1(numerics));
  }
  return result;
}

void judge_network(const ExperimentRun& run, const net::Dataset& whole, Conclusion& conclusion) {
  net::DataView view;
  view.image_size = run.settings.integer("norm_image_size");
  const net::Dataset data = net::view_of(whole, view);
  const std::vector<std::string> formats = run.settings.list("norm_formats");
  const std::int64_t samples = run.settings.integer("norm_samples", 2, data.calibration_count());
  const std::string& net = run.settings.text("norm_net");
  const TrainingPlan plan{
      .trial = training_of(run.settings, net,
                           {.optimizer = net::recommended_optimizer(net), .prefix = "norm_"}),
      .data = data.name(),
      .seeds = seeds_of(run, "norm_seeds"),
      .methods = {{.name = net,
                   .counted = {{"retuned", {{"formats", formats}, {"samples", samples}}}}}},
      .at_once = true};
  const auto study = run_training_study<Retuned>(
      run, data, plan,
      [&](const TrainTrial& trial, std::size_t) { return measure(trial, data, formats, samples); });
  ResultTable table{fmt::format("{} on {}, {}: top-1 of the trained network quantized, %", net,
                                data.name(), counted(study.seeds(), "seed")),
                    {"format", "float32", "stale statistics", "re-estimated", "gain, points"},
                    {}};
  std::vector<PairedGain> gains;
  const std::vector<double> float32 =
      study.figures(0, [](const Retuned& one) { return 100 * one.float32; });
  for (std::size_t f = 0; f < formats.size(); ++f) {
    const auto of = [&](std::vector<double> Retuned::*figures) {
      return study.figures(0, [&](const Retuned& one) { return 100 * (one.*figures).at(f); });
    };
    const std::vector<double> tuned = of(&Retuned::tuned), stale = of(&Retuned::stale);
    const stats::PairedInterval gain = stats::paired_interval(tuned, stale);
    gains.push_back(
        {fmt::format("points gained by re-estimated statistics, {} in {}", net, formats[f]), gain,
         formats[f].starts_with("hfp8_") ? "network" : "network, other formats"});
    const auto mean = [](const std::vector<double>& top1) {
      return fmt::format("{:.2f}", stats::paired_interval(top1).mean);
    };
    table.rows.push_back({formats[f], mean(float32), mean(stale), mean(tuned), mean_text(gain)});
  }
  conclusion.add(judge_gains(gains));
  conclusion.tables.push_back(std::move(table));
}

}  // namespace

LayerNoise layer_noise(const Operand& weights, const Operand& inputs, std::int64_t rows,
                       std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(rows);
  std::vector<float> x =
      normal::sample({seed, Stream::data, tensor_word("hfp8/x"), 0}, count * kInputs);
  for (float& v : x) v = std::max(v, 0.0f);
  std::vector<float> w =
      normal::sample({seed, Stream::data, tensor_word("hfp8/w"), 0}, kOutputs * kInputs);
  std::vector<float> xq(x.size()), wq(w.size());
  const auto round = [](const Operand& operand, const std::vector<float>& from,
                        std::vector<float>& to) {
    quantize_values({.format = &find_format(operand.format)}, from.data(), std::ssize(from),
                    static_cast<float>(operand.scale), to.data());
  };
  round(inputs, x, xq);
  round(weights, w, wq);
  double stale = 0, tuned = 0;
  for (int c = 0; c < kOutputs; ++c) {
    std::vector<double> y(count), yq(count);
    for (std::size_t r = 0; r < count; ++r) {
      for (int i = 0; i < kInputs; ++i) {
        y[r] += double{x[r * kInputs + i]} * w[c * kInputs + i];
        yq[r] += double{xq[r * kInputs + i]} * wq[c * kInputs + i];
      }
    }
    const auto moments = [&](const std::vector<double>& v) {
      double sum = 0, squares = 0;
      for (const double e : v) sum += e;
      const double mean = sum / static_cast<double>(count);
      for (const double e : v) squares += (e - mean) * (e - mean);
      return Moments{mean, std::sqrt(squares / static_cast<double>(count))};
    };
    const Moments old = moments(y), now = moments(yq);
    for (std::size_t r = 0; r < count; ++r) {
      const double wanted = (y[r] - old.mean) / old.deviation;
      const double a = (yq[r] - old.mean) / old.deviation - wanted;
      const double b = (yq[r] - now.mean) / now.deviation - wanted;
      stale += a * a;
      tuned += b * b;
    }
  }
  const double all = static_cast<double>(rows) * kOutputs;
  return {stale / all, tuned / all};
}

void add_norms(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  judge_layer(run, conclusion);
  judge_network(run, data, conclusion);
}

}  // namespace numemu::experiments::hfp8
