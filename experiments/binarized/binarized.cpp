// Networks of signs and of few bits (Hubara et al., NeurIPS 2016, arXiv 1602.02830; JMLR 2018,
// arXiv 1609.07061): what is exact about them, what shifts cost, and what training loses.
#include "experiments/binarized/binarized.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "emu/unit/unit.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "formats/suggest.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::binarized {

double power_gain(double deviation, double boundary) {
  constexpr int kBinades = 64;  // of deviations near 1: what lies outside is below 2^-60 of the sum
  double sum = 0;
  for (int k = -kBinades; k <= kBinades; ++k) {
    const double power = std::ldexp(1.0, k);
    sum += power * (normal::pdf(boundary * power / 2 / deviation) -
                    normal::pdf(boundary * power / deviation));
  }
  return 2 / deviation * sum;
}

double shift_deviation(double deviation) {
  const double v = power_gain(deviation, kApproximate) * deviation * deviation;
  return deviation * core::power_of_two(1 / std::sqrt(v));
}

Threshold fold(double scale, double mean, double bias) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  if (scale == 0) return {bias >= 0 ? -kFar : kFar, true};
  const double bound = mean - bias / scale;
  const double whole = scale > 0 ? std::ceil(bound) : std::floor(bound);
  const double far = static_cast<double>(kFar);
  return {static_cast<std::int64_t>(std::clamp(whole, -far, far)), scale > 0};
}

// XNOR and popcount: the unit against counted bits.

std::vector<std::int32_t> sign_products(const std::vector<std::uint8_t>& a,
                                        const std::vector<std::uint8_t>& b, std::int64_t depth) {
  const auto size = [&](const std::vector<std::uint8_t>& codes) {
    return static_cast<std::int64_t>(codes.size()) / depth;
  };
  const Format& sign = find_format("sign1");
  const unit::Gather rows = unit::Gather::matrix(size(a), depth),
                     columns = unit::Gather::matrix(size(b), depth);
  std::vector<std::int32_t> d(static_cast<std::size_t>(size(a) * size(b)));
  unit::find_unit("neutral.xnor")
      .multiply({.m = size(a),
                 .n = size(b),
                 .k = depth,
                 .a = {&sign, a.data(), &rows},
                 .b = {&sign, b.data(), &columns},
                 .d = d.data()});
  return d;
}

void add_xnor(const ExperimentRun& run, Conclusion& conclusion) {
  constexpr std::int64_t kLines = 16, kWord = 64;
  for (const std::int64_t depth : run.settings.whole_numbers("lengths")) {
    const std::int64_t words = (depth + kWord - 1) / kWord;
    const RandomSource random{run.seed, Stream::vectors, static_cast<std::uint32_t>(depth)};
    std::vector<std::uint64_t> packed(static_cast<std::size_t>(2 * kLines * words));
    std::vector<std::uint8_t> a, b;
    for (std::int64_t line = 0; line < 2 * kLines; ++line) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const auto bit =
            static_cast<std::uint8_t>(random.bits(static_cast<std::uint64_t>(line * depth + k), 1));
        (line < kLines ? a : b).push_back(bit);
        packed[line * words + k / kWord] |= std::uint64_t{bit} << (k % kWord);
      }
    }
    const std::vector<std::int32_t> d = sign_products(a, b, depth);
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < kLines; ++i) {
      for (std::int64_t j = 0; j < kLines; ++j) {
        std::int64_t agree = 0;
        for (std::int64_t w = 0; w < words; ++w) {
          const std::int64_t used = std::min(kWord, depth - w * kWord);
          const std::uint64_t mask = ~std::uint64_t{0} >> (kWord - used);
          agree +=
              std::popcount(~(packed[i * words + w] ^ packed[(kLines + j) * words + w]) & mask);
        }
        differ += d[i * kLines + j] != 2 * agree - depth;
      }
    }
    conclusion.add(
        exact_finding(
            fmt::format("products of {} signs that differ from 2 popcount(XNOR) - {}, of {}", depth,
                        depth, kLines * kLines),
            0, static_cast<double>(differ), differ == 0),
        "xnor");
  }
}

// Powers of two on normal numbers: the shift-based variance, its reciprocal root, and rounding to
// powers of two by a format.

namespace {

constexpr std::int64_t kParts = 64;  // independent: their spread gives the standard error

/// [samples / kParts, kParts] normal numbers: a channel is a part.
std::vector<float> normals(const ExperimentRun& run, std::int64_t samples, double deviation) {
  const RandomSource random{run.seed, Stream::vectors,
                            static_cast<std::uint32_t>(std::lround(deviation * 4096))};
  std::vector<float> x(static_cast<std::size_t>(samples / kParts * kParts));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(deviation * normal::draw(random, i));
  return x;
}

}  // namespace

void add_shifts(const ExperimentRun& run, Conclusion& conclusion) {
  using Rule = net::NormRule;
  const std::int64_t samples = run.settings.integer("samples");
  const Conversion nearest{.format = &find_format("e5m0+finite")};
  Chart chart{
      .title = "Rounding to powers of two on normal numbers",
      .caption =
          "E[x q(x)] / E[x^2] over the standard deviation: AP2 rounds log2 x (boundary sqrt 2), "
          "the format e5m0 to the nearest value (boundary 1.5, rne). 1 would be unbiased.",
      .x = "standard deviation",
      .y = "gain"};
  for (const char* name : {"AP2, predicted", "AP2, measured", "e5m0, predicted", "e5m0, measured"})
    chart.series.push_back({name, {}, std::string(name).ends_with("predicted")});
  for (const double deviation : run.settings.numbers("deviations")) {
    const std::vector<float> x = normals(run, samples, deviation);
    const std::int64_t rows = samples / kParts;
    const net::BatchStatistics exact = net::batch_statistics(x.data(), rows, kParts, {}),
                               shift = net::batch_statistics(x.data(), rows, kParts,
                                                             {.statistic = Rule::Statistic::shift});
    std::vector<float> rounded(x.size());
    quantize_values(nearest, x.data(), static_cast<std::int64_t>(x.size()), 1, rounded.data());
    std::vector<double> gains, of_nearest, deviations;
    for (std::int64_t part = 0; part < kParts; ++part) {
      double product = 0, squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::size_t i = static_cast<std::size_t>(r * kParts + part);
        product += double{x[i]} * rounded[i];
        squares += double{x[i]} * x[i];
      }
      of_nearest.push_back(product / squares);
      gains.push_back(shift.variance[part] / exact.variance[part]);
      deviations.push_back(std::sqrt(exact.variance[part]) *

                           core::power_of_two(1 / std::sqrt(shift.variance[part])));
    }
    const auto judge = [&](const char* what, double predicted, const std::vector<double>& parts,
                           std::size_t series) {
      const stats::Mean measured = stats::mean_of(parts);
      conclusion.add(closed_form(fmt::format("{}, deviation {}", what, deviation), predicted,
                                 measured.value, measured.error),
                     "powers of two");
      if (series == chart.series.size()) return;
      const Finding& finding = conclusion.findings.back();
      chart.series[series].points.push_back({.x = deviation, .y = predicted});
      chart.series[series + 1].points.push_back(
          {.x = deviation, .y = measured.value, .low = finding.low, .high = finding.high});
    };
    judge("shift-based variance over variance", power_gain(deviation, kApproximate), gains, 0);
    judge("gain of powers of two by a format without mantissa", power_gain(deviation, kNearest),
          of_nearest, 2);
    judge("deviation after the shift-based normalisation", shift_deviation(deviation), deviations,
          chart.series.size());
  }
  conclusion.charts.push_back(std::move(chart));
}

namespace {

Json clipped_masters() { return {{"rule", "clip"}}; }

Json float32_input(const std::string& first) {
  return {{"match", first}, {"roles", {{"activation", nullptr}}}};
}

}  // namespace

Json signs(const std::string& first) {
  const Json sign = {{"format", "sign1"}, {"scale", "none"}, {"ste", "clipped"}};
  Json input = float32_input(first);
  input["gemms"] = {{"fprop", {{"unit", "f32.sequential"}}}};
  return {{"roles", {{"weight", sign}, {"activation", sign}}},
          {"gemms", {{"fprop", {{"unit", "neutral.xnor"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({input})}};
}

Json with_shifts(Json recipe) {
  recipe["norm"] = {{"statistic", "shift"}};
  return recipe;
}

Json with_shift_adamax(Json recipe) {
  recipe["objectives"] = Json::array({{{"rule", "cross_entropy"}, {"optimizer", "shift-adamax"}}});
  return recipe;
}

Json as_binarynet(Json recipe) {
  if (recipe.contains("update")) recipe["update"]["rule"] = "clip(1,true)";
  if (!recipe.contains("objectives")) recipe["objectives"] = Json::array({Json::object()});
  recipe["objectives"][0]["rule"] = "squared_hinge";
  return recipe;
}

Json few_bits(int bits, const std::string& first) {
  // One exponent bit: subnormals and the only binade of normals have the same step. Bias 2 puts
  // that step at 2^(1-bits). Masters never leave [-1, 1] and hard tanh holds activations there, so
  // that gradients need no clipping. Weights begin far below 1, where that grid has nothing but 0:
  // a power of two brings it to them, with its end at about twice their deviation.
  const Json grid = {{"format", fmt::format("e1m{}b2+finite", bits - 2)}, {"scale", "none"}};
  Json weight = grid;
  weight["scale"] = bits == 2 ? "pow2(detuned(absmax,0.375))" : "pow2(detuned(absmax,0.5))";
  return {{"roles",
           {{"weight", weight},
            {"activation", grid},
            {"gradient", {{"format", "e5m0+finite"}, {"scale", "pow2(absmax,up)"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({float32_input(first)})}};
}

// A trained binarized network: what its inference needs beside signs and integers.

namespace {

constexpr std::int64_t kImages = 512;    // whose sums are looked at
constexpr double kGainTolerance = 0.02;  // sums are nearly normal

constexpr const char* kAllMethods = "float32,signs,shift,adamax,2-bits,3-bits,4-bits";
constexpr const char *kUsual = "usual", *kBinaryNet = "binarynet";

/// The normalisation that reads the result of a layer; null for none.
const net::Node* norm_behind(const net::Graph& graph, const std::string& layer) {
  for (std::size_t i = 1; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    if (node.op->kind() == "batch_norm" && graph.value_name(node.inputs[0]) == layer) return &node;
  }
  return nullptr;
}

/// How many of so many figures differ from integer arithmetic.
struct Planes {
  std::int64_t sums = 0, differ = 0;

  static void fields(auto& self, const auto& visit) {
    visit("sums", self.sums);
    visit("differ", self.differ);
  }
};

struct Thresholds {
  std::string layer = {};
  std::int64_t pairs = 0, differ = 0;

  static void fields(auto& self, const auto& visit) {
    visit("layer", self.layer);
    visit("pairs", self.pairs);
    visit("differ", self.differ);
  }
};

/// Means over the channels of a layer's sums: shift-based variance over variance.
struct Gain {
  std::string layer = {};
  double predicted = 0, measured = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("layer", self.layer);
    visit("predicted", self.predicted);
    visit("measured", self.measured);
    visit("error", self.error);
  }
};

struct Measured {
  Planes planes = {};
  std::vector<Thresholds> thresholds = {};
  std::vector<Gain> gains = {};

  static void fields(auto& self, const auto& visit) {
    visit("planes", self.planes);
    visit("thresholds", self.thresholds);
    visit("gains", self.gains);
  }
};

/// Integer sums of `depth` products of signs through a normalisation and a sign: how many pairs of
/// channel and sum the network and the folded threshold decide differently.
Thresholds compare_thresholds(const net::Node& node, std::int64_t depth, const Json& recipe) {
  const auto& norm = dynamic_cast<const net::BatchNorm&>(*node.op);
  const std::span<const net::Parameter> values = norm.parameters();
  const std::int64_t channels = norm.options().channels;
  net::Graph graph;
  graph.name = "normalisation";
  graph.inputs = {{"input", {channels}}};
  auto copy = std::make_unique<net::BatchNorm>(norm.options());
  for (std::size_t p = 0; p < values.size(); ++p) copy->parameters()[p].value = values[p].value;
  graph.add(node.name, std::move(copy));
  net::Tensor sums({depth + 1, channels});
  for (std::int64_t i = 0; i < sums.size(); ++i)
    sums.data[i] = static_cast<float>(2 * (i / channels) - depth);
  policies::RecipeNumerics numerics(policies::Recipe::make(recipe, "binarized"), graph);
  const net::Tensor y = net::forward(graph, sums, numerics);
  const bool shift = recipe.contains("norm");
  std::int64_t differ = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double weight = values[0].value.data[c], variance = values[3].value.data[c];
    const double inverse = 1 / std::sqrt(variance + norm.options().epsilon);
    const double scale =
        shift ? core::power_of_two(weight) * core::power_of_two(inverse) : weight * inverse;
    const Threshold threshold = fold(scale, values[2].value.data[c], values[1].value.data[c]);
    for (std::int64_t i = 0; i <= depth; ++i)
      differ += threshold.fires(2 * i - depth) != (y.data[i * channels + c] >= 0);
  }
  return {node.name, y.size(), differ};
}

/// Inputs as 8-bit integers times signs of weights: bit by bit on the XNOR unit, and in integers.
/// A bit plane x of zeros and ones is (p + 1) / 2 with p of signs: x.w = (p.w + sum w) / 2.
Planes compare_planes(const net::Tensor& inputs, const net::Tensor& weight) {
  constexpr int kBits = 8;
  const std::int64_t depth = weight.dim(1), rows = inputs.size() / depth, outputs = weight.dim(0);
  const auto [low, high] = std::minmax_element(inputs.data.begin(), inputs.data.end());
  std::vector<int> x;
  for (const float value : inputs.data)
    x.push_back(static_cast<int>(std::lround((value - *low) / (*high - *low) * 255)));
  std::vector<std::uint8_t> w;
  std::vector<std::int64_t> total(static_cast<std::size_t>(outputs)),
      sums(static_cast<std::size_t>(rows * outputs));
  for (const float value : weight.data) w.push_back(value < 0);
  for (std::int64_t i = 0; i < weight.size(); ++i) total[i / depth] += w[i] != 0 ? -1 : 1;
  for (int bit = 0; bit < kBits; ++bit) {
    std::vector<std::uint8_t> plane;  // code 0 is +1
    for (const int value : x) plane.push_back((value >> bit & 1) == 0);
    const std::vector<std::int32_t> products = sign_products(plane, w, depth);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += (std::int64_t{products[i]} + total[i % total.size()]) / 2 << bit;
  }
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < outputs; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += w[j * depth + k] != 0 ? -x[i * depth + k] : x[i * depth + k];
      differ += sum != sums[i * outputs + j];
    }
  }
  return {rows * outputs, differ};
}

Gain compare_gain(const std::string& layer, const net::Tensor& sums) {
  const std::int64_t channels = sums.shape.back(), rows = sums.size() / channels;
  const net::BatchStatistics exact = net::batch_statistics(sums.data.data(), rows, channels, {}),
                             shift = net::batch_statistics(
                                 sums.data.data(), rows, channels,
                                 {.statistic = net::NormRule::Statistic::shift});
  double measured = 0, predicted = 0, squares = 0, n = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    if (exact.variance[c] == 0) continue;  // a constant channel
    const double gain = shift.variance[c] / exact.variance[c];
    measured += gain;
    squares += gain * gain;
    predicted += power_gain(std::sqrt(exact.variance[c]), kApproximate);
    ++n;
  }
  measured /= n;
  const double spread = std::max(0.0, squares / n - measured * measured);
  return {layer, predicted / n, measured, std::sqrt(spread / (n - 1))};
}

Measured measure(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = initial_network(trial, data);
  policies::RecipeNumerics numerics(parsed_recipe(trial), graph);
  train_under(numerics, graph, trial, data);

  net::Targets targets;
  const std::int64_t images = std::min(kImages, data.calibration_count());
  const net::Tensor inputs = data.calibration_batch(0, images, targets);
  const std::vector<net::GemmLayer> layers = net::gemm_layers(graph);
  Measured result{compare_planes(inputs, *layers.front().weight)};
  const std::string input = "input";
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const net::Graph part = net::subgraph(graph, {&input, 1}, layers[l].name);
    result.gains.push_back(compare_gain(layers[l].name, net::forward(part, inputs, numerics)));
    const net::Node* const norm = norm_behind(graph, layers[l].name);
    if (l == 0 || norm == nullptr) continue;  // its sums are no integers
    Json rule = Json::object();
    if (trial.recipe.contains("norm")) rule["norm"] = trial.recipe["norm"];
    result.thresholds.push_back(compare_thresholds(*norm, layers[l].weight->shape.back(), rule));
  }
  return result;
}

}  // namespace

void add_network(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  // What inference computes exactly does not depend on how a network was trained.
  if (run.settings.text("setup") != kUsual) return;
  TrainingPlan plan = plan_of(run);
  const net::Graph graph = net::build_net(plan.trial.net, data);
  const std::string first = net::gemm_layer_names(graph).front();
  const Json variance = signs(first);
  std::vector<TypedTrial<Measured>> trials;
  for (const Json& recipe : {variance, with_shifts(variance)}) {
    TrainTrial trial = plan.trial;
    trial.eval_samples = 0;
    trial.recipe = recipe;
    trial.seed = run.seed;
    Json point = point_of(trial, data);
    point["measured"] = "inference in integers";
    trials.push_back({std::move(point), "inference in integers",
                      [trial, &data] { return measure(trial, data); }});
  }
  const std::vector<Measured> results = run_typed(run, trials);
  for (std::size_t t = 0; t < results.size(); ++t) {
    const char* const norm = t == 0 ? "variance" : "shift-based variance";
    const auto exactly = [&](const std::string& what, std::int64_t differ, const char* claim) {
      conclusion.add(exact_finding(what, 0, static_cast<double>(differ), differ == 0), claim);
    };
    exactly(
        fmt::format("sums of {} over 8 bit planes that differ from the integer sums, of {} ({})",
                    first, results[t].planes.sums, norm),
        results[t].planes.differ, "bit planes");
    for (const Thresholds& layer : results[t].thresholds)
      exactly(fmt::format("signs behind {} that differ from an integer compare, of {} pairs of "
                          "channel and sum ({})",
                          layer.layer, layer.pairs, norm),
              layer.differ, "thresholds");
    for (const Gain& layer : results[t].gains)
      conclusion.add(
          model_finding(
              fmt::format("shift-based variance over variance of the sums of {}, mean over "
                          "channels ({})",
                          layer.layer, norm),
              layer.predicted, layer.measured, layer.error, kGainTolerance),
          "sums");
  }
}

// Binarized and quantized networks beside float32, paired by seed, and the bits that they store.

namespace {

constexpr double kMargin = 1;  // points of top-1: what counts as no loss
constexpr int kInputBits = 8;  // of pixels, which the first layer reads
constexpr double kFloat32Bits = 32;

/// A method, and the one that it is claimed to lose nothing to.
struct Method {
  std::string_view key;  ///< in the setting `methods`
  TrainingMethod training;
  const char* claim;         ///< null: none
  std::string_view against;  ///< a key
};

/// Those of kAllMethods. `first` is the layer that reads the network's input.
std::vector<Method> methods(const std::string& first) {
  const Json variance = signs(first), shift = with_shifts(variance);
  return {{"float32", {"float32", Json::object()}, nullptr, "float32"},
          {"signs", {"signs", variance}, "signs", "float32"},
          {"shift", {"signs, shift-based normalisation", shift}, "shift", "signs"},
          {"adamax",
           {"signs, shift-based normalisation and AdaMax", with_shift_adamax(shift)},
           "adamax",
           "shift"},
          {"2-bits", {"2 bits, gradients of 6", few_bits(2, first)}, nullptr, "float32"},
          {"3-bits", {"3 bits, gradients of 6", few_bits(3, first)}, nullptr, "float32"},
          {"4-bits", {"4 bits, gradients of 6", few_bits(4, first)}, "few bits", "float32"}};
}

void check_method(const std::string& key) {
  index_named("method", key, methods("fc1"), &Method::key);
}

void check_setup(const std::string& setup) {
  index_named("setup", setup, std::vector<std::string>{kUsual, kBinaryNet});
}

/// The place of a method among those that run; their number where it does not.
std::size_t place_of(std::string_view key, const std::vector<Method>& compared) {
  return static_cast<std::size_t>(
      std::find_if(compared.begin(), compared.end(),
                   [&](const Method& method) { return method.key == key; }) -
      compared.begin());
}

/// Stored bits of the weights, and what a sample's forward pass costs in products of single bits.
struct Cost {
  double weight_bits = 0, bit_products = 0;
};

Cost cost_of(const net::Graph& graph, const Json& recipe) {
  const policies::BoundRecipe bound(policies::Recipe::make(recipe, "binarized"), graph);
  Cost cost;
  bool first = true;
  for (const auto& [layer, numerics] : bound.products()) {
    const auto n = static_cast<double>(layer.weight->size());
    const double weight =
        policies::stored_bits(numerics[policies::RolePart::weight], layer.weight->shape) / n;
    const double unquantized =
        first && numerics[policies::RolePart::weight] ? kInputBits : kFloat32Bits;
    const double activation = numerics[policies::RolePart::activation]
                                  ? numerics[policies::RolePart::activation]->format->bits
                                  : unquantized;
    cost.weight_bits += weight * n;
    cost.bit_products += weight * activation * n;  // a fully connected weight multiplies once
    first = false;
  }
  return cost;
}

}  // namespace

TrainingPlan plan_of(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  TrainingPlan plan;
  plan.trial = training_of(settings, settings.text("net"), {.optimizer = "adam", .least_batch = 2});
  plan.trial.options.learning_rate = settings.number("learning_rate");
  plan.trial.options.weight_decay = 0;
  if (settings.text("setup") == kBinaryNet) plan.trial.options.schedule = "exponential";
  plan.data = settings.text("data");
  plan.seeds = seeds_of(run);
  return plan;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainingPlan plan = plan_of(run);
  const net::Graph graph = net::build_net(plan.trial.net, data);
  const std::vector<std::string> keys = run.settings.list("methods");
  std::vector<Method> compared;
  std::vector<Method> all = methods(net::gemm_layer_names(graph).front());
  for (Method& method : all) {
    if (std::find(keys.begin(), keys.end(), method.key) == keys.end()) continue;
    if (run.settings.text("setup") == kBinaryNet)
      method.training.recipe = as_binarynet(std::move(method.training.recipe));
    plan.methods.push_back(method.training);
    compared.push_back(std::move(method));
  }
  TrainingTable training = run_training(run, data, plan);

  PairedClaims claims;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    const Method& method = compared[m];
    const std::size_t against = place_of(method.against, compared);
    if (method.claim == nullptr || against == compared.size()) continue;
    claims.add(fmt::format("points of top-1 that '{}' gains on '{}', at least -{}",
                           method.training.name, compared[against].training.name, kMargin),
               gain(training.top1, m, against), -kMargin, method.claim);
  }
  conclusion.add(claims.judged());

  ResultTable costs{"Stored weights, and products of single bits of a forward pass",
                    {"method", "bytes of weights", "smaller by", "bit products", "fewer by"},
                    {}};
  const Cost whole = cost_of(graph, Json::object());
  for (const Method& method : compared) {
    if (method.training.name.find("shift") != std::string::npos) continue;  // as without
    const Cost cost = cost_of(graph, method.training.recipe);
    costs.rows.push_back({method.training.name, fmt::format("{:.0f}", cost.weight_bits / 8),
                          fmt::format("{:.4g}", whole.weight_bits / cost.weight_bits),
                          fmt::format("{:.4g}", cost.bit_products),
                          fmt::format("{:.4g}", whole.bit_products / cost.bit_products)});
    if (method.claim == nullptr || std::string_view(method.claim) != "signs") continue;
    const double ratio = whole.weight_bits / cost.weight_bits;
    conclusion.add(self_check("bits of float32 weights over those of signs", kFloat32Bits, ratio,
                              ratio == kFloat32Bits));
  }
  conclusion.tables.push_back(std::move(training.table));
  conclusion.tables.push_back(std::move(costs));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace numemu::experiments::binarized

namespace numemu::experiments {

extern const Experiment experiment_binarized = {
    "binarized",
    "what do networks of signs and of few bits compute exactly, and what do signs, shifts and "
    "rounded gradients cost in training",
    "Hubara et al. (NeurIPS 2016, arXiv 1602.02830; JMLR 2018, arXiv 1609.07061) claim that "
    "networks trained with signs for weights and activations are nearly as accurate as in float32, "
    "also with a normalisation and an AdaMax of shifts, and that their products are XNOR and "
    "popcount.",
    {{"xnor", "A dot product of n signs is 2 popcount(XNOR) - n, exactly (published)."},
     {"bit planes",
      "A first layer of 8-bit inputs is a sum of 8 products of signs, exactly (published)."},
     {"thresholds",
      "Normalisation and sign of a trained layer are one compare of its integer sum, exactly "
      "(derived here)."},
     {"powers of two",
      "On normal numbers the shift-based variance and rounding to powers of two have the gains of "
      "the closed forms (derived here)."},
     {"sums",
      "On the sums of a trained network the shift-based variance has the gain of normal numbers "
      "within 2 % (a contrast)."},
     {"signs",
      "A network of signs loses at most 1 point of top-1 to float32 (published; the margin is "
      "ours).",
      "seeds"},
     {"shift",
      "The shift-based normalisation loses at most 1 point to the usual one (published; the margin "
      "is ours).",
      "seeds"},
     {"adamax",
      "The shift-based AdaMax loses at most 1 point to Adam (published; the margin is ours).",
      "seeds"},
     {"few bits",
      "4-bit weights and activations with gradients of 6-bit powers of two lose at most 1 point "
      "(published; the margin is ours).",
      "seeds"}},
    {{"lengths", "1,16,63,64,65,784", "1,16,63,64,65,784,4096", "1,16,63,64,65,784,4096,65536",
      "signs of a dot product", wholes(1, 65536)},
     {"deviations", "1,3", "1,1.25,1.6,3", "1,1.1,1.25,1.4,1.6,1.8,2,3",
      "of the normal numbers that are rounded to powers of two", reals(0.01, 100)},
     {"samples", "400000", "4000000", "64000000", "numbers of each deviation",
      whole(64 * 64, 1'000'000'000)},
     {"net", "mlp-signs", "network to train", takes_network()},
     data_setting(),
     {"setup", binarized::kUsual, binarized::kUsual, binarized::kUsual,
      "usual, or binarynet: squared hinge, a rate that falls to a ten-thousandth, steps of clipped "
      "weights scaled by their layer's size, only the trainings",
      text_of(binarized::check_setup)},
     {"methods", binarized::kAllMethods, binarized::kAllMethods, binarized::kAllMethods,
      "methods to train", list_of(binarized::check_method)},
     {"learning_rate", "0.002", "of every method, at its start", real(1e-6, 1)},
     training_settings({"1", "4", "8"}, "128", {"1024", "8192", "16384"}, {"500", "4000", "0"}),
     seeds_setting({"1", "5", "10"})},
    conclude<binarized::add_xnor, binarized::add_shifts, binarized::add_network,
             binarized::add_training>};

}  // namespace numemu::experiments
