// Trained networks made fit for few bits after training: which chain of steps recovers how much of
// what rounding costs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/tuning/run_steps.hpp"

namespace numemu::experiments {
namespace {

const char* const kNaive = "naive";
const char* const kFloat32 = "float32";
const char* const kSame = "same";
const char* const kNone = "none";
/// Statistics alone, AdaRound, AdaQuant layer by layer on float32 inputs, and in sequence.
const char* const kChains =
    "light,calibrate(percentile(99.9))+adaround+batch_norm+bias,"
    "calibrate(percentile(99.9))+"
    "adaquant(iterations=100,mode=parallel,weight_rate=0.0003,activation_rate=0.02)+"
    "batch_norm+bias,advanced";
constexpr double kClose = 0.01;  // of top-1: what the published advanced pipeline loses at most

/// Integers: a scale of least squared error per output channel of weights and a zero point per
/// tensor of activations, as CalibTIP has them.
Json integer_roles(const std::string& weight, const std::string& activation) {
  return {{"weight", {{"format", weight}, {"granularity", "channel"}, {"scale", "mse"}}},
          {"activation", {{"format", activation}, {"zero_point", "calibrated"}}}};
}

/// "w4a8": integers of so many bits; "x.json": a recipe file; else a block format for both.
Json recipe_of(const std::string& bits) {
  if (bits.ends_with(".json")) return parse_json(read_text(bits), bits);
  int weight = 0, activation = 0;
  const char *const first = bits.data(), *const last = first + bits.size();
  const std::size_t a = bits.find('a');
  if (bits.starts_with('w') && a != bits.npos &&
      std::from_chars(first + 1, first + a, weight).ptr == first + a &&
      std::from_chars(first + a + 1, last, activation).ptr == last) {
    return {
        {"numemu_recipe", 1},
        {"roles", integer_roles(fmt::format("int{}", weight), fmt::format("int{}", activation))}};
  }
  return {{"numemu_recipe", 1},
          {"roles", {{"weight", {{"format", bits}}}, {"activation", {{"format", bits}}}}}};
}

/// The recipe of a width for a network, whose first and last layer may have integers of their own.
policies::Recipe recipe_for(const std::string& bits, const std::string& ends,
                            const net::Graph& graph) {
  const policies::Recipe recipe = policies::Recipe::parse(recipe_of(bits), bits).last_stage();
  if (ends == kSame || bits == kFloat32) return recipe;
  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph))
    if (layer.weight != nullptr) layers.push_back(layer.name);
  // Behind the patches of stages, whose `layers` replace the recipe's.
  Json json = recipe.json();
  for (const std::string& name : {layers.front(), layers.back()})
    json["layers"].push_back({{"match", name}, {"roles", integer_roles(ends, ends)}});
  return policies::Recipe::parse(json, bits);
}

/// A setting's chain, whose steps are joined by "+", as the text of --steps.
std::string steps_of(const std::string& chain) {
  std::string steps = chain;
  std::replace(steps.begin(), steps.end(), '+', ',');
  return steps;
}

struct Cell {
  std::string bits, chain;
};

/// The network, its data and how much of them is used.
struct Subject {
  const ExperimentRun& run;
  const net::Dataset& data;
  std::int64_t samples, images;

  TrainedNet load() const {
    TrainedNet trained = load_trained_net(run.settings.text("net"), data, run.folders);
    fold_batch_norm(trained);
    return trained;
  }
};

/// {"right": "0110...", "loss"} on the first test images.
Json score(const net::Evaluation& evaluation) {
  std::string right;
  for (const std::uint8_t r : evaluation.right) right.push_back(r != 0 ? '1' : '0');
  return {{"right", right}, {"loss", policies::significant(evaluation.loss, 6)}};
}

Json tune(const Subject& subject, const Cell& cell) {
  net::Graph graph = subject.load().graph;
  const policies::Recipe recipe = recipe_for(cell.bits, subject.run.settings.text("ends"), graph);
  policies::Tuning tuning{
      std::move(graph),
      subject.load().graph,
      {},
      recipe,
      cell.bits,
      {subject.samples,
       [&subject](std::int64_t first, std::int64_t count) {
         net::Targets targets;
         return std::vector<net::Tensor>{subject.data.calibration_batch(first, count, targets)};
       }},
      subject.run.seed};
  policies::complete_ranges(tuning);
  if (cell.chain != kNaive)
    policies::run_tune_steps(tuning,
                             policies::parse_tune_steps(steps_of(cell.chain), "--set: chains"));
  return score(net::evaluate(tuning.graph, subject.data, net::Split::test, subject.images,
                             *policies::tuned_numerics(tuning)));
}

/// Trials are functions of this.
Json point_of(const Subject& subject, const Cell& cell, const std::string& weights) {
  return {{"experiment", "post-training"},
          {"weights", weights},
          {"data", subject.data.digest()},
          {"images", subject.images},
          {"samples", subject.samples},
          {"seed", subject.run.seed},
          {"bits", cell.bits.ends_with(".json") ? recipe_of(cell.bits) : Json(cell.bits)},
          {"ends", subject.run.settings.text("ends")},
          {"chain", cell.chain == kNaive ? cell.chain
                                         : policies::tune_steps_text(policies::parse_tune_steps(
                                               steps_of(cell.chain), "--set: chains"))}};
}

std::int64_t ones(const std::string& right) { return std::count(right.begin(), right.end(), '1'); }

/// The difference of top-1, a's minus b's, paired by image.
stats::Interval paired(const std::string& a, const std::string& b) {
  std::int64_t only_a = 0, only_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    only_a += a[i] > b[i];
    only_b += b[i] > a[i];
  }
  return stats::paired_difference(only_a, only_b, static_cast<std::int64_t>(a.size()));
}

double difference(const std::string& a, const std::string& b) {
  return static_cast<double>(ones(a) - ones(b)) / static_cast<double>(a.size());
}

std::string points_text(double difference, const stats::Interval& interval) {
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", 100 * difference, 100 * interval.low,
                     100 * interval.high);
}

Conclusion run(const ExperimentRun& run) {
  run.say("loading " + run.settings.text("data"));
  net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  if (const std::string other = run.settings.text("calibrate_on"); other != kNone)
    data = net::calibrated_on(data, net::load_dataset(other, run.folders.cache));
  const Subject subject{
      run, data, std::min(run.settings.integer("samples", 1, 1'000'000), data.calibration_count()),
      std::min(run.settings.integer("images", 1, 100'000'000), data.test_count())};
  const std::string weights = subject.load().digest;
  std::vector<std::string> chains = run.settings.list("chains");
  for (const std::string& chain : chains)  // every mistake before the work
    if (chain != kNaive) policies::parse_tune_steps(steps_of(chain), "--set: chains");
  std::erase(chains, kNaive);
  chains.insert(chains.begin(), kNaive);  // what the others are compared with
  std::vector<Cell> cells = {{kFloat32, kNaive}};
  for (const std::string& bits : run.settings.list("bits"))
    for (const std::string& chain : chains) cells.push_back({bits, chain});
  std::vector<Trial> trials;
  for (const Cell& cell : cells)
    trials.push_back({point_of(subject, cell, weights), cell.bits + " " + cell.chain,
                      [&subject, cell] { return tune(subject, cell); }});
  const std::vector<Json> results = run_trials(run, trials);

  Conclusion conclusion;
  const std::string float32 = results[0]["right"];
  ResultTable table{
      fmt::format("top-1 on {} test images, float32 {:.2f} %", float32.size(),
                  100.0 * static_cast<double>(ones(float32)) / static_cast<double>(float32.size())),
      {"bits", "steps", "top-1 %", "minus float32, points", "minus naive, points", "loss"},
      {}};
  std::map<std::string, std::string> naive;
  std::vector<Finding> gains, close;
  std::vector<double> p_values;
  const std::string ends = run.settings.text("ends");
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto& [bits, chain] = cells[i];
    const std::string right = results[i]["right"];
    if (chain == kNaive) naive[bits] = right;
    const stats::Interval from_float32 = paired(right, float32), gain = paired(right, naive[bits]);
    table.rows.push_back({bits, chain,
                          fmt::format("{:.2f}", 100.0 * static_cast<double>(ones(right)) /
                                                    static_cast<double>(right.size())),
                          points_text(difference(right, float32), from_float32),
                          chain == kNaive ? "" : points_text(difference(right, naive[bits]), gain),
                          fmt::format("{:.4f}", results[i]["loss"].get<double>())});
    if (chain == kNaive) continue;
    const std::string what =
        fmt::format("top-1 of {}{} after {}", bits,
                    ends == kSame ? "" : fmt::format(", first and last layer {},", ends), chain);
    gains.push_back(
        {what + ", minus naive", 0, difference(right, naive[bits]), gain.low, gain.high});
    p_values.push_back(p_value({.mean = (gain.low + gain.high) / 2,
                                .low = gain.low,
                                .high = gain.high,
                                .n = static_cast<std::int64_t>(right.size())},
                               0));
    if (bits == "w4a4" && chain == chains.back())
      close.push_back(interval_finding(what + ", minus float32", 0, difference(right, float32),
                                       from_float32, at_least(-kClose)));
  }
  conclusion.tables.push_back(std::move(table));
  judge_sides(gains, p_values);
  conclusion.findings = std::move(gains);
  conclusion.about("gain");
  conclusion.findings.insert(conclusion.findings.end(), close.begin(), close.end());
  conclusion.about("close");
  return conclusion;
}

}  // namespace

extern const Experiment experiment_post_training;
const Experiment experiment_post_training = {
    "post-training",
    "how much of what few bits cost do steps after training recover",
    "Hubara et al. (ICML 2021, arXiv 2006.10518) claim that re-estimated batch normalisation, "
    "tuned "
    "biases and weights bring 4-bit networks within about 1 point of float32, from a small "
    "calibration set without labels.",
    {{"gain", "Top-1 after the steps is above that of plain rounding."},
     {"close",
      "With 4-bit weights and activations, the first and the last layer as ends says, the last "
      "chain loses at most 1 point of float32."}},
    {{"net", "lenet", "lenet", "lenet", "network or file"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"bits", "w4a4", "w8a8,w4a8,w4a4,w3a4,mxfp4", "w8a8,w4a8,w4a4,w3a4,mxfp4",
      "bits of weights and activations (w4a8), a block format, or a recipe file"},
     {"ends", kSame, kSame, kSame,
      "same, or the format of the first and the last layer, such as int8"},
     {"chains", "batch_norm", kChains, kChains,
      "chains of tuning steps, joined by +, or pipelines; the last one has to come close"},
     {"samples", "64", "256", "512", "calibration samples, without labels"},
     {"calibrate_on", kNone, kNone, kNone, "another data set whose samples steps read"},
     {"images", "200", "2000", "10000", "test images"}},
    run};

}  // namespace numemu::experiments
