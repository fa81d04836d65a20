// Training in hybrid 8-bit floats: 1-4-3 forward, 1-5-2 backward, 1-6-9 sums in chunks, round-off
// residuals, re-estimated statistics (HFP8, Sun et al., NeurIPS 2019).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "emu/net/observing.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/hfp8/numbers.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::hfp8 {

double ulp_of(const Format& format, double w) {
  const int lowest = 1 - format.bias;
  const int exponent = w == 0 ? lowest : std::max(lowest, std::ilogb(w));
  return std::ldexp(1, exponent - format.mantissa_bits);
}

void UpdateWatch::see(const net::Graph& graph, std::int64_t step) {
  const bool looks = step > 0 && step % every_ == 0, next = (step + 1) % every_ == 0;
  for (const net::Parameter* const parameter : graph.parameters()) {
    if (!parameter->trained || parameter->value.shape.size() < 2) continue;
    const net::Elements& w = parameter->value.data;
    if (looks) {
      const std::vector<float>& old = before_.at(parameter->name);
      std::int64_t small = 0, unchanged = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double change = std::fabs(double{w[i]} - old[i]);
        small += change < ulp_of(master_, old[i]) / 2;
        unchanged += change == 0;
      }
      const auto n = static_cast<double>(w.size());
      looks_.push_back({step, parameter->name, static_cast<double>(small) / n,
                        static_cast<double>(unchanged) / n});
    }
    if (next) before_[parameter->name] = w;
  }
}

Json recipe_of(const std::string& gradient, const std::string& loss_scale, const Json& update,
               const std::string& unit, const std::string& forward) {
  const auto role = [](const std::string& format) {
    return Json{{"format", format}, {"scale", "none"}};
  };
  Json recipe = {
      {"roles",
       {{"weight", role(forward)}, {"activation", role(forward)}, {"gradient", role(gradient)}}},
      {"update", update}};
  recipe["update"]["loss_scale"] = loss_scale;
  if (!unit.empty()) {
    for (const char* kind : {"fprop", "dgrad", "wgrad"}) recipe["gemms"][kind] = {{"unit", unit}};
  }
  return recipe;
}

// Networks trained in HFP8: masters, errors of small losses, accumulators, lost updates.

namespace {

constexpr double kLossHolds = 0.5;    // points of top-1
constexpr double kShareHolds = 0.05;  // of the weights
constexpr const char* kUnit = "ibm.hfp8.chunk64";
constexpr const char* kOneByOne = "neutral.mac.hfp16_e6m9";

const Json& lost_master() {
  static const Json update = {{"master", "hfp8_e4m3"}};
  return update;
}

enum Name : std::size_t {
  float32,
  float32_master,
  rne_169,
  sr_169,
  rne_143,
  residual,
  everywhere_152,
  chunked,
  one_by_one,
  kFixed
};

std::vector<TrainingMethod> fixed_methods() {
  const auto hfp8 = [](const Json& update, const std::string& unit = "") {
    return recipe_of("hfp8_e5m2", "static(1024)", update, unit);
  };
  const Json sr = {{"master", "hfp16_e6m9"}, {"rounding", "sr(16)"}};
  return {{"float32", Json::object()},
          {"HFP8, float32 master", hfp8(Json::object())},
          {"HFP8, 1-6-9 master to nearest", hfp8({{"master", "hfp16_e6m9"}})},
          {"HFP8, 1-6-9 master stochastic", hfp8(sr)},
          {"HFP8, 1-4-3 master to nearest", hfp8(lost_master())},
          {"HFP8, 1-4-3 master and 1-6-9 residual",
           hfp8({{"master", "hfp8_e4m3"}, {"rule", "residual(hfp16_e6m9,hfp16_e6m9)"}})},
          {"1-5-2 everywhere, 1-6-9 master stochastic",
           recipe_of("hfp8_e5m2", "static(1024)", sr, "", "hfp8_e5m2")},
          {"HFP8, 1-6-9 master stochastic, 1-6-9 sums in chunks of 64", hfp8(sr, kUnit)},
          {"HFP8, 1-6-9 master stochastic, 1-6-9 sums one by one", hfp8(sr, kOneByOne)}};
}

/// Losses scaled by 2^-k: errors in 1-4-3, then in 1-5-2.
std::vector<TrainingMethod> small_losses(const std::vector<std::int64_t>& exponents) {
  std::vector<TrainingMethod> methods;
  for (const std::int64_t k : exponents) {
    for (const char* gradient : {"hfp8_e4m3", "hfp8_e5m2"}) {
      methods.push_back(
          {fmt::format("errors in {} of a loss times 2^-{}",
                       std::string(gradient) == "hfp8_e4m3" ? "1-4-3" : "1-5-2", k),
           recipe_of(gradient, fmt::format("static({})", std::ldexp(1, -static_cast<int>(k))),
                     Json::object())});
    }
  }
  return methods;
}

/// The most products that a sum of a training step on the first images adds up.
std::int64_t longest_sum(const TrainTrial& trial, const net::Dataset& data) {
  std::vector<std::int64_t> ids(
      static_cast<std::size_t>(std::min(trial.options.batch, data.train_count())));
  std::iota(ids.begin(), ids.end(), 0);
  net::Targets targets;
  const net::Tensor x = data.train_batch(ids, targets);
  std::int64_t longest = 0;
  net::Observing numerics({.before = [&](const net::Step&, const net::Product& product) {
    longest = std::max(longest, product.k);
  }});
  training_pass(initial_network(trial, data), x, targets.classes, numerics, 0, trial.seed);
  return longest;
}

/// `longest` is longest_sum().
void judge_training(const TrainingTable& training, const std::vector<std::int64_t>& exponents,
                    const TrainingPlan& plan, std::int64_t longest, Conclusion& conclusion) {
  const std::vector<TrainingMethod>& methods = plan.methods;
  const std::string& net = plan.trial.net;
  PairedClaims accuracy;
  for (const std::size_t method : {float32_master, rne_169, sr_169, residual, chunked}) {
    accuracy.add(fmt::format("{}: points gained by {} on float32, at least -{}", net,
                             methods[method].name, kLossHolds),
                 gain(training.top1, method, float32), -kLossHolds, "accuracy");
  }
  conclusion.add(accuracy.judged());
  const auto over = [&](const std::string& what, std::size_t a, std::size_t b) {
    return PairedGain{fmt::format("{}: points gained by {}", net, what), gain(training.top1, a, b)};
  };
  struct {
    const char* what;
    std::size_t method, on;
    const char* claim;
  } const claims[] = {
      {"a float32 master over a 1-4-3 master to nearest", float32_master, rne_143, "lost"},
      {"the residual of a 1-4-3 master", residual, rne_143, "residual"},
      {"1-4-3 forward over 1-5-2 forward", sr_169, everywhere_152, "forward"}};
  for (const auto& [what, method, on, claim] : claims)
    conclusion.add(judge_gains({over(what, method, on)}), claim);
  std::vector<Finding> sums =
      judge_gains({over("sums in chunks of 64 over sums one by one", chunked, one_by_one)});
  const auto stall = static_cast<std::int64_t>(
      std::ldexp(1, find_format("hfp16_e6m9").mantissa_bits + 1));  // of ones
  if (longest <= stall)
    sums = without_verdict(std::move(sums), fmt::format("sums of at most {} products do not stall, "
                                                        "as those of more than {} may",
                                                        longest, stall));
  conclusion.add(std::move(sums), "chunks");
  std::vector<PairedGain> small;
  for (std::size_t i = 0; i < exponents.size(); ++i)
    small.push_back(over(fmt::format("errors in 1-5-2 over 1-4-3, loss times 2^-{}", exponents[i]),
                         kFixed + 2 * i + 1, kFixed + 2 * i));
  conclusion.add(judge_gains(small), "errors");
}

using Looks = std::vector<UpdateLook>;
using Share = double UpdateLook::*;

/// The mean over steps of a share of a layer.
double mean_share(const Looks& looks, const std::string& layer, Share share) {
  double sum = 0, count = 0;
  for (const UpdateLook& look : looks) {
    if (look.layer != layer) continue;
    sum += look.*share;
    ++count;
  }
  return sum / count;
}

void add_lost_updates(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t every = run.settings.integer("look_every");
  const Json counted = {{"updates", {{"master", "hfp8_e4m3"}, {"every", every}}}};
  const Json rounded = recipe_of("hfp8_e5m2", "static(1024)", lost_master());
  const TrainingPlan plan{
      .trial = training_of(run.settings, run.settings.text("net")),
      .data = data.name(),
      .seeds = seeds_of(run),
      .methods = {{.name = "updates of float32 masters", .counted = counted},
                  {.name = "updates of 1-4-3 masters", .recipe = rounded, .counted = counted}},
      .at_once = true};
  const auto study = run_training_study<Looks>(run, data, plan, [&](TrainTrial trial, std::size_t) {
    UpdateWatch watch(find_format("hfp8_e4m3"), every);
    trial.on_step = [&](const net::Graph& graph, std::int64_t step) { watch.see(graph, step); };
    run_train_trial(trial, data);
    return watch.looks();
  });
  const Looks &of_float32 = study.runs[0][0], &of_rounded = study.runs[1][0];
  if (of_float32.empty())
    throw usage_error("--set: look_every: expected fewer steps than the training has");
  std::set<std::string> layers;
  for (const UpdateLook& look : of_float32) layers.insert(look.layer);
  ResultTable table{"Share of the weights that a step leaves unchanged, mean over steps and seeds",
                    {"layer", "predicted from float32 masters", "measured with 1-4-3 masters",
                     "difference by seed"},
                    {}};
  Chart chart{.title = "Updates lost by 1-4-3 masters over training",
              .caption =
                  "Share of the weights that a step leaves unchanged, first seed; dashed: "
                  "changes below half an ulp of 1-4-3 in the float32 run.",
              .x = "step",
              .y = "share of weights"};
  for (const std::string& layer : layers) {
    const auto by_seed = [&](std::size_t method, Share share) {
      return study.figures(method,
                           [&](const Looks& looks) { return mean_share(looks, layer, share); });
    };
    const std::vector<double> predicted = by_seed(0, &UpdateLook::small),
                              measured = by_seed(1, &UpdateLook::unchanged);
    const auto difference = stats::paired_interval(measured, predicted);
    conclusion.add(
        interval_finding(fmt::format("{}: share of lost updates of {}, measured minus predicted",
                                     plan.trial.net, layer),
                         0, difference, near(0, kShareHolds)),
        "updates");
    table.rows.push_back({layer, fmt::format("{:.4f}", stats::paired_interval(predicted).mean),
                          fmt::format("{:.4f}", stats::paired_interval(measured).mean),
                          mean_text(difference, 4)});
    const auto draw = [&](ChartSeries& series, const Looks& looks, Share share) {
      for (const UpdateLook& look : looks) {
        if (look.layer == layer)
          series.points.push_back({.x = static_cast<double>(look.step), .y = look.*share});
      }
    };
    draw(chart.of(layer + " measured"), of_rounded, &UpdateLook::unchanged);
    draw(chart.of(layer + " predicted", true), of_float32, &UpdateLook::small);
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  if (run.settings.text("net") == "-") return;
  const std::vector<std::int64_t> exponents = run.settings.whole_numbers("small_losses");
  TrainingPlan plan{.trial = training_of(run.settings, run.settings.text("net")),
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .methods = fixed_methods(),
                    .at_once = true};
  for (TrainingMethod& method : small_losses(exponents)) plan.methods.push_back(std::move(method));
  for (TrainingMethod& method : plan.methods) {
    if (!method.recipe.empty()) method.recipe["update"]["optimizer"] = plan.trial.options.optimizer;
  }
  TrainingTable training = run_training(run, data, plan);
  TrainTrial first = plan.trial;
  first.seed = run.seed;
  judge_training(training, exponents, plan, longest_sum(first, data), conclusion);
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(training.chart));
  add_lost_updates(run, data, conclusion);
}

// Networks that 8-bit floats of one kind train badly, in both kinds and with gradients that workers
// exchange in 8 bits.

namespace {

using workers::Group;
using workers::Method;
using workers::TrainedNetwork;

constexpr const char *kForward = "hfp8_e4m3", *kBackward = "hfp8_e5m2";
enum : std::size_t { kBoth = 1, kOneKind };

std::vector<Method> exchanged_methods() {
  Json both = recipe_of(kBackward, "static(1024)",
                        {{"master", "hfp16_e6m9"}, {"rounding", "sr(16)"}}, "", kForward),
       one = both, sent = both;
  for (const char* const role : {"weight", "activation"}) one["roles"][role]["format"] = kBackward;
  sent["exchange"] = {{"format", kBackward}};
  return {workers::dense(),
          {"HFP8", std::move(both), "networks"},
          {"1-5-2 alone", std::move(one)},
          {"HFP8, exchanged in 1-5-2", std::move(sent), "exchange"}};
}

}  // namespace

void add_exchange(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  std::vector<TrainedNetwork> all;
  if (run.settings.text(workers::key(Group::images, "nets")) != "-")
    all = workers::add_training_on(run, Group::images, data, exchanged_methods(), conclusion);
  for (TrainedNetwork& text :
       workers::add_training(run, Group::text, exchanged_methods(), conclusion))
    all.push_back(std::move(text));
  std::vector<PairedGain> gains;
  for (const TrainedNetwork& trained : all) {
    gains.push_back({fmt::format("{}: {} gained by HFP8 on 1-5-2 alone", trained.name,
                                 trained.accuracy ? "points" : "% of the bits per character"),
                     gain(trained.scores, kBoth, kOneKind)});
  }
  conclusion.add(judge_gains(gains), "one kind");
}

}  // namespace numemu::experiments::hfp8

namespace numemu::experiments {

extern const Experiment experiment_hfp8 = {
    "hfp8",
    "does training with 8-bit floats of two kinds, 16-bit sums in chunks and round-off residuals "
    "end as accurate as float32",
    "Sun et al. (NeurIPS 2019) claim that 1-4-3 forward and 1-5-2 backward with 1-6-9 sums in "
    "chunks of 64 train as accurately as float32, that a residual keeps the updates that 1-4-3 "
    "weights would lose, and that re-estimated statistics of batch normalisation repair networks "
    "quantized after training.",
    {{"rounding",
      "The noise of normal numbers is the integral over the cells of their format (derived here)."},
     {"constant", "It is 0.0451 4^-m within 2 %, that of log-uniform mantissas (derived here)."},
     {"stall", "Ones added one by one stall at 1,024, in chunks of C at 1,024 C (derived here)."},
     {"sums", "Sums of random numbers follow the walk over binades within 2 % (derived here)."},
     {"layer",
      "Re-estimated statistics of a linear layer take away the share of its noise that shifts "
      "channels, within 2 % (derived here)."},
     {"network",
      "Re-estimated statistics raise the top-1 of a network in 1-4-3 or 1-5-2 (published).",
      "norm_seeds"},
     {"network, other formats", "So they do in other formats (a contrast).", "norm_seeds"},
     {"accuracy",
      "With float32 or 1-6-9 masters, or 1-4-3 masters with a residual, training loses at most 0.5 "
      "points of top-1 (published; the margin is ours).",
      "seeds"},
     {"lost", "Masters of 1-4-3 rounded to nearest lose top-1 (a contrast).", "seeds"},
     {"residual", "A residual repairs them (published).", "seeds"},
     {"forward", "1-4-3 forward is more accurate than 1-5-2 (published).", "seeds"},
     {"chunks",
      "Sums in chunks of 64 train more accurately than sums one by one, of more than 1,024 "
      "products "
      "(published, by Wang et al. 2018).",
      "seeds"},
     {"errors",
      "Errors of shrunken losses need the range of 1-5-2 (published; losses times 2^-k are ours).",
      "seeds"},
     {"networks",
      "HFP8 loses at most 0.5 points of top-1, or 1 % of the bits per character, on kinds of "
      "networks where 8 bits of one kind degrade (published; the margin is ours).",
      "seeds"},
     {"one kind", "There 1-5-2 alone trains less accurately than HFP8 (published).", "seeds"},
     {"exchange",
      "So much at most HFP8 loses with gradients that 4 workers exchange in 1-5-2 (published; the "
      "margin is ours).",
      "seeds"},
     {"updates",
      "The share of updates that 1-4-3 masters lose is that of changes below half an ulp in the "
      "float32 run, within 0.05 (derived here).",
      "seeds"}},
    workers::with_training(
        {{"samples", "100000", "1000000", "10000000", "normal numbers rounded to each format",
          whole(1000, 1'000'000'000)},
         {"lengths", "1024,4096", "256,1024,4096,16384,65536", "256,1024,4096,16384,65536,262144",
          "numbers of a sum", wholes(2, 1 << 20)},
         {"chunks", "1,64", "1,16,64,256", "1,4,16,64,256,1024",
          "additions of a chunk; 1: one by one", wholes(1, 1 << 16)},
         {"repeats", "8", "64", "256", "sums of random numbers", whole(2, 10'000)},
         {"layer_rows", "1000", "10000", "20000", "samples of the linear layer",
          whole(100, 1'000'000)},
         {"layers", "4", "16", "64", "draws of the linear layer", whole(2, 10'000)},
         {"norm_net", "mobilenet-small", "network whose statistics are re-estimated",
          takes_network()},
         {"norm_formats", "hfp8_e4m3", "hfp8_e4m3,hfp8_e5m2,int4",
          "hfp8_e4m3,hfp8_e5m2,int6,int5,int4", "formats of its weights and activations",
          list_of()},
         {"norm_image_size", "14", "height and width of its images", whole(1, 10'000)},
         {"norm_epochs", "1", "2", "4", "epochs of its training in float32", whole(1, 10'000)},
         {"norm_batch", "32", "images of a step of it", whole(1, 100'000)},
         {"norm_train_samples", "128", "2048", "4096", "its training images",
          whole(0, 1'000'000'000)},
         {"norm_eval_samples", "100", "1000", "0", "test images it sees; 0: all",
          whole(0, 1'000'000'000)},
         {"norm_samples", "128", "512", "512", "calibration images of the statistics",
          whole(2, 1'000'000'000)},
         {"norm_seeds", "1", "3", "5", "seeds of its training", whole(1, 1000)},
         {"net", "mlp", "network to train in few bits; -: none", takes_network_or_none()},
         data_setting("of images"),
         {"small_losses", "6", "2,4,6", "2,4,6,8", "k of losses scaled by 2^-k", wholes(0, 60)},
         {"look_every", "4", "8", "32", "steps between two looks at the updates",
          whole(2, 1'000'000)},
         {"optimizer", "sgd", "optimizer", takes_optimizer()},
         training_settings({"1", "3", "8"}, "128", {"1024", "3072", "8192"}, {"500", "4000", "0"}),
         seeds_setting({"1", "3", "5"}),
         {"nets", "-", "-", "mobilenet-small",
          "networks to train with workers, beside 1-5-2 alone; -: none", takes_networks_or_none()},
         {"text_nets", "-", "-", "char-transformer",
          "networks to train on a text likewise; -: none", takes_networks_or_none()}},
        {workers::Group::images, workers::Group::text}),
    conclude<hfp8::add_rounding, hfp8::add_sums, hfp8::add_training, hfp8::add_exchange,
             hfp8::add_norms>,
    workers::check_training};

}  // namespace numemu::experiments
