// A classifier of fixed signs (Hoffer et al., Fix your classifier, ICLR 2018, arXiv 1801.04540):
// what is exact about it, what bounds its logits, and what training loses.
#include "experiments/hadamard_classifier/hadamard_classifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::hadamard {

namespace {

std::int32_t element(std::int64_t row, std::int64_t column) {
  return static_cast<std::int32_t>(net::hadamard_element(row, column));
}

}  // namespace

std::vector<std::int32_t> fast_transform(std::vector<std::int32_t> x) {
  for (std::size_t half = 1; half < x.size(); half *= 2) {
    for (std::size_t first = 0; first < x.size(); first += 2 * half) {
      for (std::size_t i = first; i < first + half; ++i) {
        const std::int32_t sum = x[i] + x[i + half], difference = x[i] - x[i + half];
        x[i] = sum;
        x[i + half] = difference;
      }
    }
  }
  return x;
}

double worst_cosine(std::int64_t rows, std::int64_t columns) {
  std::int64_t worst = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      std::int64_t dot = 0;
      for (std::int64_t c = 0; c < columns; ++c) dot += element(i, c) * element(j, c);
      worst = std::max(worst, std::abs(dot));
    }
  }
  return static_cast<double>(worst) / static_cast<double>(columns);
}

void add_matrices(const ExperimentRun& run, Conclusion& conclusion) {
  for (const std::int64_t n : run.settings.whole_numbers("sizes")) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(n)))
      throw usage_error(fmt::format("--set: sizes: expected powers of two, not {}", n));
    // Row i of H times H^T is the fast transform of row i: n at i, else 0. It is also the product.
    const RandomSource random{run.seed, Stream::vectors, static_cast<std::uint32_t>(n)};
    std::vector<std::int32_t> x;
    for (std::int64_t c = 0; c < n; ++c)
      x.push_back(static_cast<std::int32_t>(random.bits(static_cast<std::uint64_t>(c), 16)) -
                  32768);
    const std::vector<std::int32_t> transformed = fast_transform(x);
    std::int64_t products = 0, differ = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<std::int32_t> row;
      std::int32_t sum = 0;
      for (std::int64_t c = 0; c < n; ++c) {
        row.push_back(element(i, c));
        sum += row.back() * x[c];
      }
      differ += sum != transformed[i];
      const std::vector<std::int32_t> with_all = fast_transform(row);
      for (std::int64_t j = 0; j < n; ++j) products += with_all[j] != (i == j ? n : 0);
    }
    conclusion.add(
        exact_finding(fmt::format("elements of H H^T that differ from {} I, of {}", n, n * n), 0,
                      static_cast<double>(products), products == 0),
        "orthogonal");
    conclusion.add(
        exact_finding(fmt::format("sums of H x that differ from the fast transform, of {}", n), 0,
                      static_cast<double>(differ), differ == 0),
        "orthogonal");
  }
}

namespace {

constexpr double kMargin = 0.5;  // points of top-1: what counts as little
const char* const kLogits = "hfp8_e4m3";
constexpr double kLargest = 30;  // of that format
constexpr std::int64_t kImages = 512;

/// The logits of images under a format of the last layer's weights; empty: float32.
net::Tensor logits_of(const net::Graph& graph, const net::Tensor& images,
                      const std::string& format) {
  Json recipe = Json::object();
  if (!format.empty()) {
    Json role = {{"format", format}};
    if (block_format_meant(format).empty()) role["scale"] = "none";
    recipe["layers"] =
        Json::array({{{"match", graph.nodes.back().name}, {"roles", {{"weight", role}}}}});
  }
  policies::RecipeNumerics numerics(policies::Recipe::make(recipe, "hadamard-classifier"), graph);
  return net::forward(graph, images, numerics);
}

/// Of the last layer: bytes of what is trained, and elements of its matrix that are neither 1 nor
/// -1, by which a product multiplies.
struct Cost {
  std::int64_t bytes = 0, factors = 0;
};

Cost cost_of(const net::Graph& graph) {
  Cost cost;
  const std::span<const net::Parameter> parameters =
      std::as_const(*graph.nodes.back().op).parameters();
  for (const net::Parameter& parameter : parameters) {
    if (parameter.trained)
      cost.bytes += static_cast<std::int64_t>(sizeof(float)) * parameter.value.size();
  }
  cost.factors =
      std::ranges::count_if(parameters[0].value.data, [](float w) { return std::fabs(w) != 1; });
  return cost;
}

/// A trained network's accuracy; of a fixed classifier its learned scale, the largest product, and
/// how many logits are beyond their format or differ between formats of the classifier, too.
struct Measured {
  double top1 = 0;
  std::optional<std::int64_t> features = {}, classes = {};
  std::optional<double> scale = {}, product = {};
  std::optional<std::int64_t> logits = {}, saturated = {}, differ = {};

  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1);
    visit("features", self.features);
    visit("classes", self.classes);
    visit("scale", self.scale);
    visit("product", self.product);
    visit("logits", self.logits);
    visit("saturated", self.saturated);
    visit("differ", self.differ);
  }
};

Measured measure(const TrainTrial& trial, const net::Dataset& data, bool fixed,
                 const std::vector<std::string>& formats) {
  const net::Graph graph = trained_in_float32(trial, data);
  net::Numerics float32;
  Measured result{test_top1(graph, data, trial.eval_samples, float32)};
  if (!fixed) return result;

  const std::span<const net::Parameter> parameters =
      std::as_const(*graph.nodes.back().op).parameters();
  const double scale = parameters[1].value.data[0];
  const net::Elements& bias = parameters[2].value.data;
  net::Targets targets;
  const net::Tensor images = data.test_batch(0, std::min(kImages, data.test_count()), targets);
  const net::Tensor logits = logits_of(graph, images, "");
  double product = 0;
  for (std::size_t i = 0; i < logits.data.size(); ++i)
    product = std::max(product, std::fabs((logits.data[i] - bias[i % bias.size()]) / scale));
  std::vector<float> codes(logits.data.size());
  const FlagCounts flags = quantize_values({.format = &find_format(kLogits)}, logits.data.data(),
                                           logits.size(), 1, codes.data());
  result.features = parameters[0].value.dim(1);
  result.classes = parameters[0].value.dim(0);
  result.scale = scale;
  result.product = product;
  result.logits = static_cast<std::int64_t>(logits.data.size());
  result.saturated = flags.overflow;
  std::int64_t differ = 0;
  for (const std::string& format : formats) {
    const net::Tensor other = logits_of(graph, images, format);
    for (std::size_t i = 0; i < other.data.size(); ++i) differ += other.data[i] != logits.data[i];
  }
  result.differ = differ;
  return result;
}

}  // namespace

void add_networks(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<std::string> nets = settings.list("nets"), formats = settings.list("formats");
  StudyPlan plan{{}, seeds_of(run)};  // of every network the trained classifier, then the fixed one
  for (const std::string& net : nets)
    plan.methods.insert(plan.methods.end(), {net, "hadamard(" + net + ")"});
  const auto study = run_study<Measured>(
      run, plan, [&](std::size_t method, std::uint64_t seed) -> StudyRun<Measured> {
        TrainTrial trial =
            training_of(settings, plan.methods[method], {.optimizer = "adam", .least_batch = 2});
        trial.seed = seed;
        const bool fixed = method % 2 != 0;
        Json point = point_of(trial, data);
        if (fixed) point["formats"] = formats;
        return {std::move(point), [=, &data] { return measure(trial, data, fixed, formats); }};
      });
  const std::size_t seeds = study.seeds();
  const SeedFigures top1 = study.figures([](const Measured& m) { return 100 * m.top1; });

  ResultTable costs{"The classifier's cost",
                    {"network", "bytes trained", "fixed", "multiplications of an image", "fixed",
                     "additions", "by the fast transform"},
                    {}};
  ResultTable table{
      fmt::format("Top-1 in % on {}, {}, paired by seed", data.name(), counted(seeds, "seed")),
      {"network", "trained", "fixed", "difference, points", "95 % interval", "learned scale",
       "bound of the logits", "weights not trained"},
      {}};
  Chart chart{.kind = Chart::Kind::bars,
              .title = "What a fixed classifier costs",
              .caption =
                  "Mean difference of top-1 to a trained classifier with its 95 % interval, "
                  "paired by seed; float32; below 0 is worse.",
              .y = "difference, points",
              .series = {{"measured", {}, false}}};
  PairedClaims claims;
  std::vector<Finding> checks;
  for (std::size_t n = 0; n < nets.size(); ++n) {
    const std::size_t trained = 2 * n, fixed = 2 * n + 1;
    const auto total = [&](std::optional<std::int64_t> Measured::*count) {
      double sum = 0;
      for (const Measured& one : study.runs[fixed]) sum += static_cast<double>(*(one.*count));
      return sum;
    };
    const Measured& first = study.runs[fixed][0];
    const auto features = static_cast<double>(*first.features),
               classes = static_cast<double>(*first.classes);
    const double bound = std::sqrt(features);
    double largest = 0;
    for (const Measured& one : study.runs[fixed]) largest = std::max(largest, *one.product);
    const stats::PairedInterval scale = stats::paired_interval(study.figures(
                                    fixed, [](const Measured&m) { return std::fabs(*m.scale); })),
                                difference = gain(top1, fixed, trained);
    const std::int64_t period = std::int64_t{1}
                                << static_cast<int>(std::ceil(portable::log2(classes)));
    const double rest = static_cast<double>(static_cast<std::int64_t>(features) % period);
    const auto cost = [&](std::size_t method) {
      TrainTrial trial = training_of(settings, plan.methods[method], {.least_batch = 2});
      return cost_of(initial_network(trial, data));
    };
    const Cost own = cost(trained), signs = cost(fixed);
    const double left = sizeof(float) * (1 + classes);  // the scale and the bias
    conclusion.add(
        exact_finding(fmt::format("{}: bytes trained in the fixed classifier, in place of {}",
                                  nets[n], own.bytes),
                      left, static_cast<double>(signs.bytes),
                      static_cast<double>(signs.bytes) == left),
        "cost");
    conclusion.add(
        exact_finding(fmt::format("{}: elements of the fixed classifier that multiply, in place "
                                  "of {}",
                                  nets[n], own.factors),
                      0, static_cast<double>(signs.factors), signs.factors == 0),
        "cost");
    const double rows = std::bit_ceil(static_cast<std::uint64_t>(features));
    costs.rows.push_back({nets[n], std::to_string(own.bytes), std::to_string(signs.bytes),
                          std::to_string(own.factors),
                          fmt::format("{:.0f}", static_cast<double>(signs.factors) + classes),
                          fmt::format("{:.0f}", features * classes),
                          fmt::format("{:.0f}", rows * portable::log2(rows))});
    const double cosine =
        worst_cosine(static_cast<std::int64_t>(classes), static_cast<std::int64_t>(features));
    conclusion.add(exact_finding(fmt::format("{}: worst |cosine| of {} rows at {} features",
                                             nets[n], classes, features),
                                 rest / features, cosine, cosine == rest / features),
                   "cosines");
    conclusion.add(
        exact_finding(fmt::format("{}: logits that differ between float32 and {} formats of the "
                                  "classifier, of {}",
                                  nets[n], formats.size(),
                                  total(&Measured::logits) * static_cast<double>(formats.size())),
                      0, total(&Measured::differ), total(&Measured::differ) == 0),
        "formats");
    checks.push_back(
        self_check(fmt::format("{}: largest product of the classifier (at most the root of {})",
                               nets[n], features),
                   bound, largest, largest <= bound * (1 + 0x1p-20)));
    conclusion.add(
        interval_finding(
            fmt::format("{}: learned scale (at most 30 over the root of {})", nets[n], features),
            kLargest / bound, scale, at_most(kLargest / bound)),
        "scale");
    const double share = total(&Measured::saturated) / total(&Measured::logits);
    conclusion.add(
        exact_finding(fmt::format("{}: share of logits beyond 30", nets[n]), 0, share, share == 0),
        "saturation");
    claims.add(fmt::format("{}: points of top-1 gained on a trained classifier, at least -{}",
                           nets[n], kMargin),
               difference, -kMargin, "accuracy");
    table.rows.push_back(
        {nets[n], fmt::format("{:.2f}", stats::paired_interval(top1[trained]).mean),
         fmt::format("{:.2f}", stats::paired_interval(top1[fixed]).mean),
         fmt::format("{:+.2f}", difference.mean), interval_text(difference),
         fmt::format("{:.2f}", scale.mean), fmt::format("{:.1f}", scale.mean * bound),
         fmt::format("{:.0f}", features * classes)});
    chart.series[0].points.push_back(gain_point(static_cast<double>(n), nets[n], difference));
  }
  conclusion.add(claims.judged());
  conclusion.add(std::move(checks));
  conclusion.tables.push_back(std::move(table));
  conclusion.tables.push_back(std::move(costs));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace numemu::experiments::hadamard

namespace numemu::experiments {

extern const Experiment experiment_hadamard_classifier = {
    "hadamard-classifier",
    "does a last layer of fixed Hadamard rows classify as well as a trained one, in any format, "
    "and what bounds its logits",
    "Hoffer et al. (ICLR 2018, arXiv 1801.04540) claim that the last layer of a classifier may be "
    "fixed, up to one learned scale, with little or no loss of accuracy, and that rows of a "
    "Hadamard matrix serve, which need neither storage nor multiplications.",
    {{"orthogonal",
      "Rows of the whole matrix are orthogonal, and its fast transform is its product, "
      "exactly (derived here)."},
     {"cosines",
      "Cut to the features of a network, rows have the cosines of a count of signs (derived "
      "here)."},
     {"formats",
      "Logits have the bits of float32 whatever format holds the classifier (derived here)."},
     {"scale",
      "The learned scale times the root of the number of features, which bounds products, stays "
      "within the 30 of FP8 1-4-3 (derived here).",
      "seeds"},
     {"saturation", "No logit of a test image is beyond 30 (derived here)."},
     {"cost",
      "The fixed classifier trains no weight and multiplies by none: what is left are one scale "
      "and the bias (published)."},
     {"accuracy",
      "The fixed classifier loses at most 0.5 points of top-1 to a trained one (published; the "
      "margin is ours).",
      "seeds"}},
    {{"sizes", "2,16,128", "2,16,128,1024", "2,16,128,1024,4096", "rows of whole matrices",
      wholes(2, 4096)},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks to train", takes_networks()},
     data_setting(),
     {"formats", "sign1,float8_e4m3fn,mxfp4",
      "sign1,int2,float4_e2m1fn,float6_e3m2fn,float8_e4m3fn,hfp8_e4m3,bfloat16,mxfp4,mxint8,nvfp4",
      "sign1,int2,float4_e2m1fn,float6_e3m2fn,float8_e4m3fn,hfp8_e4m3,bfloat16,mxfp4,mxint8,nvfp4",
      "of the classifier's weights", list_of()},
     training_settings({"1", "8", "12"}, "64", {"1024", "16384", "16384"}, {"500", "4000", "0"}),
     seeds_setting({"1", "5", "10"}, "classifiers")},
    conclude<hadamard::add_matrices, hadamard::add_networks>};

}  // namespace numemu::experiments
