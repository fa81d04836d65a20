// Networks of signs and of few bits (Hubara et al., NeurIPS 2016, arXiv 1602.02830; JMLR 2018,
// arXiv 1609.07061): what is exact about them, what shifts cost, and what training loses.
#include <fmt/format.h>

#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/binarized/signs.hpp"
#include "experiments/engine/study.hpp"
#include "policies/bits/effective_bits.hpp"

namespace numemu::experiments {
namespace binarized {

// Binarized and quantized networks beside float32, paired by seed, and the bits that they store.

namespace {

constexpr double kMargin = 1;  // points of top-1: what counts as no loss
constexpr int kInputBits = 8;  // of pixels, which the first layer reads
constexpr double kFloat32Bits = 32;

/// A method, and the one that it is claimed to lose nothing to.
struct Method {
  TrainingMethod training;
  const char* claim;  ///< null: none
  std::size_t against;
};

std::vector<Method> methods(const std::string& first) {
  const Json variance = signs(first), shift = with_shifts(variance);
  return {{{"float32", Json::object()}, nullptr, 0},
          {{"signs", variance}, "signs", 0},
          {{"signs, shift-based normalisation", shift}, "shift", 1},
          {{"signs, shift-based normalisation and AdaMax", with_shift_adamax(shift)}, "adamax", 2},
          {{"2 bits, gradients of 6", few_bits(2, first)}, nullptr, 0},
          {{"3 bits, gradients of 6", few_bits(3, first)}, nullptr, 0},
          {{"4 bits, gradients of 6", few_bits(4, first)}, "few bits", 0}};
}

/// Stored bits of the weights, and what a sample's forward pass costs in products of single bits.
struct Cost {
  double weight_bits = 0, bit_products = 0;
};

Cost cost_of(const net::Graph& graph, const Json& recipe) {
  Json whole = recipe;
  whole["numemu_recipe"] = 1;
  const policies::Recipe parsed = policies::Recipe::parse(whole, "binarized");
  Cost cost;
  bool first = true;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const policies::LayerRecipe numerics = parsed.layer(layer.name);
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
  plan.trial.options.learning_rate = settings.number("learning_rate", 1e-6, 1);
  plan.trial.options.weight_decay = 0;
  plan.data = settings.text("data");
  plan.seeds = seeds_of(run);
  return plan;
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainingPlan plan = plan_of(run);
  const net::Graph graph = net::build_net(plan.trial.net, data);
  const std::vector<Method> compared = methods(net::gemm_layer_names(graph).front());
  for (const Method& method : compared) plan.methods.push_back(method.training);
  TrainingTable training = run_training(run, data, plan);

  PairedClaims claims;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    const Method& method = compared[m];
    if (method.claim == nullptr) continue;
    claims.add(fmt::format("points of top-1 that '{}' gains on '{}', at least -{}",
                           method.training.name, compared[method.against].training.name, kMargin),
               gain(training.top1, m, method.against), -kMargin, method.claim);
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
    conclusion.findings.push_back(self_check("bits of float32 weights over those of signs",
                                             kFloat32Bits, ratio, ratio == kFloat32Bits));
  }
  conclusion.tables.push_back(std::move(training.table));
  conclusion.tables.push_back(std::move(costs));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace binarized

namespace {

Conclusion run_binarized(const ExperimentRun& run) {
  Conclusion conclusion;
  binarized::add_xnor(run, conclusion);
  binarized::add_shifts(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  binarized::add_network(run, data, conclusion);
  binarized::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_binarized;
const Experiment experiment_binarized = {
    "binarized",
    "what do networks of signs and of few bits compute exactly, and what do signs, shifts and "
    "rounded gradients cost in training",
    "Hubara et al. (NeurIPS 2016, arXiv 1602.02830; JMLR 2018, arXiv 1609.07061) claim that "
    "networks "
    "trained with signs for weights and activations are nearly as accurate as in float32, also "
    "with "
    "a normalisation and an AdaMax of shifts, and that their products are XNOR and popcount.",
    {{"xnor", "A dot product of n signs is 2 popcount(XNOR) - n, exactly."},
     {"bit planes", "A first layer of 8-bit inputs is a sum of 8 products of signs, exactly."},
     {"thresholds",
      "Normalisation and sign of a trained layer are one compare of its integer sum, exactly."},
     {"powers of two",
      "On normal numbers the shift-based variance and rounding to powers of two have the gains of "
      "the closed forms."},
     {"sums",
      "On the sums of a trained network the shift-based variance has the gain of normal numbers "
      "within 2 %."},
     {"signs", "A network of signs loses at most 1 point of top-1 to float32."},
     {"shift", "The shift-based normalisation loses at most 1 point to the usual one."},
     {"adamax", "The shift-based AdaMax loses at most 1 point to Adam."},
     {"few bits",
      "4-bit weights and activations with gradients of 6-bit powers of two lose at most 1 point."}},
    {{"lengths", "1,16,63,64,65,784", "1,16,63,64,65,784,4096", "1,16,63,64,65,784,4096,65536",
      "signs of a dot product"},
     {"deviations", "1,3", "1,1.25,1.6,3", "1,1.1,1.25,1.4,1.6,1.8,2,3",
      "of the normal numbers that are rounded to powers of two"},
     {"samples", "400000", "4000000", "64000000", "numbers of each deviation"},
     {"net", "mlp-signs", "mlp-signs", "mlp-signs", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"learning_rate", "0.002", "0.002", "0.002", "of every method, at its start"},
     {"epochs", "1", "4", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "1024", "8192", "16384", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "5", "10", "seeds that methods are paired by"}},
    run_binarized};

}  // namespace numemu::experiments
