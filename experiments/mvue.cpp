// Unbiased pruning of gradients: is its noise what the closed forms say, does it average out, and
// does that help training?
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/mvue/pruning.hpp"
#include "formats/error.hpp"

namespace numemu::experiments {
namespace mvue {

// Networks trained with pruned gradients, in the update alone and in backward too.

namespace {

struct Rule {
  const char *name, *mask;
  bool predicted;  ///< to be no worse than dense
};
constexpr Rule kRules[] = {{"greedy 1:2", "greedy(1:2)", false},
                           {"greedy 2:4", "greedy(2:4)", false},
                           {"random unbiased 1:2", "random-unbiased(1:2)", false},
                           {"MVUE 1:2", "mvue(1:2)", true},
                           {"MVUE 2:4", "mvue(2:4)", true},
                           {"approximate MVUE 2:4", "mvue-approx(2:4)", true}};
/// What counts as no worse: points of top-1, or bits per character.
constexpr double kMargin = 1, kMarginBits = 0.02;

struct Method {
  std::string name;
  Pruning pruning;
  bool predicted;
};

/// Every rule in the update alone, then in both; then sparse weights, without and with it.
std::vector<Method> methods() {
  std::vector<Method> all;
  for (const Rule& rule : kRules)
    all.push_back({fmt::format("{}, update", rule.name), {"", rule.mask, ""}, rule.predicted});
  for (const Rule& rule : kRules)
    all.push_back({fmt::format("{}, backward + update", rule.name),
                   {rule.mask, rule.mask, ""},
                   rule.predicted});
  const char* const weight = "transposable(2:4,refresh=40)";
  all.push_back({"transposable 2:4 weights", {"", "", weight}, false});
  all.push_back({"transposable 2:4 weights + MVUE 2:4, all products sparse",
                 {"", "mvue(2:4)", weight},
                 false});
  return all;
}

TrainingPlan plan_of(const ExperimentRun& run, const net::Dataset& data,
                     const std::vector<Method>& compared) {
  const Settings& settings = run.settings;
  TrainingPlan plan;
  plan.trial = training_of(settings, settings.text("net"), {.least_batch = 4});
  plan.data = settings.text("data");
  plan.seeds = seeds_of(run);
  const std::string output = net::gemm_layer_names(net::build_net(plan.trial.net, data)).back();
  plan.methods.push_back({"dense", Json::object()});
  for (const Method& method : compared)
    plan.methods.push_back({method.name, recipe_of(method.pruning, output)});
  return plan;
}

/// How much worse than dense, seed by seed: points, or bits per character.
std::vector<double> losses(const std::vector<TrainOutcome>& dense,
                           const std::vector<TrainOutcome>& pruned) {
  std::vector<double> out;
  for (std::size_t s = 0; s < dense.size(); ++s) {
    const double difference = dense[s].metric - pruned[s].metric;
    out.push_back(dense[s].accuracy ? 100 * difference : -difference);
  }
  return out;
}

/// No worse than dense, by the margin.
Finding judged_loss(const std::string& name, bool accuracy, const stats::PairedInterval& loss) {
  const double margin = accuracy ? kMargin : kMarginBits;
  return interval_finding(
      fmt::format("{} lost to dense by {} (at most {} predicted)",
                  accuracy ? "points of top-1" : "bits per character", name, margin),
      0, loss.mean, {loss.low, loss.high}, at_most(margin));
}

/// What a method loses to dense as the difference people read, with its interval: points of top-1
/// fall, bits per character rise.
std::string difference_text(const stats::PairedInterval& loss, bool accuracy) {
  const double sign = accuracy ? -1 : 1;
  const int digits = accuracy ? 2 : 4;
  const auto shown = [&](double x) { return fmt::format("{:+.{}f}", 0 + sign * x, digits); };
  return fmt::format("{} {}{}", shown(loss.mean), accuracy ? "points" : "bits per character",
                     loss.n < 2 ? ""
                                : fmt::format(" [{}, {}]", shown(accuracy ? loss.high : loss.low),
                                              shown(accuracy ? loss.low : loss.high)));
}

/// The least and the most that the methods with that ending lose. One seed cannot tell chance from
/// a better method, so that it names none.
std::string sentence_on(const std::string& where, const std::vector<Method>& compared,
                        const std::vector<stats::PairedInterval>& loss, bool accuracy) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    if (compared[m].name.ends_with(", " + where)) order.emplace_back(loss[m].mean, m);
  }
  std::sort(order.begin(), order.end());
  const std::size_t best = order.front().second, worst = order.back().second;
  const auto name = [&](std::size_t m) {
    return compared[m].name.substr(0, compared[m].name.size() - where.size() - 2);
  };
  if (loss[best].n < 2) {
    return fmt::format(
        "Gradients pruned in {}: between {} and {} against dense over {} rules; one seed does not "
        "tell which rule is best.",
        where, difference_text(loss[worst], accuracy), difference_text(loss[best], accuracy),
        order.size());
  }
  return fmt::format("Gradients pruned in {}: {} loses least ({} against dense), {} most ({}).",
                     where, name(best), difference_text(loss[best], accuracy), name(worst),
                     difference_text(loss[worst], accuracy));
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::vector<Method> compared = methods();
  TrainingTable training = run_training(run, data, plan_of(run, data, compared));
  const bool accuracy = training.study.runs[0][0].accuracy;
  std::vector<stats::PairedInterval> loss;
  for (std::size_t m = 0; m < compared.size(); ++m) {
    loss.push_back(
        stats::paired_interval(losses(training.study.runs[0], training.study.runs[m + 1])));
    if (compared[m].predicted)
      conclusion.findings.push_back(judged_loss(compared[m].name, accuracy, loss.back()));
  }
  for (const char* where : {"update", "backward + update"})
    conclusion.sentences.push_back(sentence_on(where, compared, loss, accuracy));
  conclusion.sentences.push_back(fmt::format(
      "With transposable 2:4 weights, MVUE 2:4 gradients in the update make all three "
      "products of a layer sparse: {} against dense, {} for the weights alone.",
      difference_text(loss.back(), accuracy), difference_text(loss[loss.size() - 2], accuracy)));
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace mvue

namespace {

Conclusion run_mvue(const ExperimentRun& run) {
  Conclusion conclusion;
  mvue::add_laws(run, conclusion);
  conclusion.about("laws");
  mvue::add_averaging(run, conclusion);
  conclusion.about("averaging");
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  if (data.kind() == net::DataKind::images) {
    mvue::add_gradients(run, data, conclusion);
    conclusion.about("gradients");
    mvue::add_propagation(run, data, conclusion);
    conclusion.about("propagation");
  }
  mvue::add_training(run, data, conclusion);
  conclusion.about("training");
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mvue;
const Experiment experiment_mvue = {
    "mvue",
    "does unbiased N:M pruning of gradients follow its closed forms, average out over batches, and "
    "leave training unaffected",
    "Chmiel et al. (ICLR 2023, arXiv 2203.10991) claim that N:M pruning of gradients without bias "
    "and of minimum variance (MVUE) averages out over batches and steps, so that training ends as "
    "accurate as dense, while the bias of greedy pruning stays.",
    {{"laws",
      "On numbers of known laws the noise and the bias of N:M pruning equal their closed forms."},
     {"averaging",
      "Averaged over batches, the error of dW falls as variance over batches plus "
      "bias squared: to zero under MVUE, not under greedy pruning."},
     {"gradients",
      "On gradients of networks MVUE has no bias and the variance of its closed "
      "form."},
     {"propagation",
      "If every dgrad is pruned without bias, the projection of a gradient on the dense one stays "
      "1."},
     {"training",
      "A network trained with MVUE gradients loses at most 1 point of top-1, or 0.02 bits per "
      "character."}},
    {{"net", "mlp", "mlp", "lenet", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"samples", "16000", "200000", "2000000", "numbers of each law"},
     {"draws", "16", "64", "256", "times that each tensor is pruned"},
     {"batches", "4", "64", "256", "batches that dW is averaged over"},
     {"repeats", "16", "32", "64", "repeats of the average"},
     {"gradient_nets", "lenet", "lenet,resnet20", "lenet,resnet20",
      "networks whose gradients are pruned (image data)"},
     {"propagation_net", "mlp", "lenet", "vgg-small",
      "network whose gradients are pruned during backpropagation (image data)"},
     {"gradient_train", "256", "1024", "8192", "samples they were trained with, once"},
     {"gradient_batch", "64", "64", "128", "samples that these gradients come from"},
     {"passes", "12", "40", "100", "backward passes of each rule"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "2", "4", "12", "epochs of training"},
     {"batch", "64", "128", "128", "samples of a step"},
     {"train_samples", "1536", "8192", "0", "training samples; 0: all"},
     {"eval_samples", "500", "4000", "0", "test samples; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run_mvue};

}  // namespace numemu::experiments
